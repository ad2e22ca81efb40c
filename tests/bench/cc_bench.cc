/// What congestion control costs: one send and its share of an ACK, and one grant.
#include <benchmark/benchmark.h>

#include <array>

#include "cc/ccc.h"
#include "cc/credit_pacer.h"
#include "cc/receiver.h"

namespace uet::cc {
namespace {

CcConfig bench_config(LoadBalancing lb) {
  CcConfig config;
  config.load_balancing = lb;
  config.paths = 64;
  config.link_rate = base::BitRate::from_gbps(100);
  return derived(config);
}

/// Four packets leave and one ACK closes them, as with a byte trigger of 16 KiB.
void send_and_ack(benchmark::State& state) {
  const auto config = bench_config(static_cast<LoadBalancing>(state.range(0)));
  base::Rng rng(1);
  base::Trace trace(64);
  Instant now = Instant::from_ns(1'000'000);
  Ccc ccc(config, 1, true, Duration(), rng, trace, now);
  PdcShare share;
  ByteCount received = 0;
  constexpr int kPerAck = 4;
  for (auto _ : state) {
    std::array<Transmission, kPerAck> packets{};
    ccc.on_new_data(now, kPerAck * ByteCount{config.mtu_bytes});
    for (auto& t : packets) {
      benchmark::DoNotOptimize(ccc.may_send(config.mtu_bytes));
      const auto params = ccc.next_send(now, nullptr, config.mtu_bytes);
      ccc.on_send(now, t, share, config.mtu_bytes, params, false);
      received += config.mtu_bytes;
    }
    now = now + Duration::from_us(50);
    for (auto& t : packets) ccc.on_first_ack(t, share);
    AckSignal ack;
    ack.arrived_at = now;
    ack.trigger = &packets.back();
    ack.has_nscc_state = true;
    ack.rcvd_units = rcvd_units(received);
    ccc.on_ack(now, share, ack);
  }
  state.SetItemsProcessed(state.iterations() * kPerAck);
}
BENCHMARK(send_and_ack)->DenseRange(0, 5)->ArgName("lb");

void grant(benchmark::State& state) {
  auto config = bench_config(LoadBalancing::kOblivious);
  const auto sources = static_cast<std::size_t>(state.range(0));
  base::Rng rng(1);
  CreditPacer pacer(config, sources, rng);
  Instant now;
  std::uint32_t target = 0;
  std::size_t turn = 0;
  for (auto _ : state) {
    if (turn++ % sources == 0) target = (target + 64) & 0xff'ffff;
    pacer.on_demand(now, {.source = turn % sources, .ccc_id = 1}, target);
    benchmark::DoNotOptimize(pacer.poll_grant(now));
    now = now + Duration::from_us(2);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(grant)->Arg(8)->Arg(1024)->Arg(65'536);

}  // namespace
}  // namespace uet::cc

BENCHMARK_MAIN();
