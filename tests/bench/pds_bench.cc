// The send and receive steps of packet delivery, without a network: packets go from one Pds straight into the other.
#include <benchmark/benchmark.h>

#include "lib/net/heap_packet_pool.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "tests/bench/pds_ends.h"

namespace uet::pds {
namespace {

struct HeapEnd {
  explicit HeapEnd(std::uint32_t address) : end(address, pool) {}
  net::HeapPacketPool pool{4096, 9000};
  End end;
};

void run(benchmark::State& state, std::uint32_t segments) {
  HeapEnd a(0x0a000001), b(0x0a000002);
  Exchange exchange(a.end, b.end);
  for (auto _ : state) exchange.deliver(segments);
  const std::uint64_t packets = exchange.packets();
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.counters["ns_per_packet"] =
      benchmark::Counter(static_cast<double>(packets) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// One packet, one ACK: the ping-pong case.
void PdsSmallMessage(benchmark::State& state) {
  run(state, 1);
}
/// A stream with coalesced ACKs: the bandwidth case.
void PdsLargeMessage(benchmark::State& state) {
  run(state, 256);
}

/// A PDC that carries one packet: opened, used, closed at both ends.
void PdsOpenUseClose(benchmark::State& state) {
  HeapEnd end_a(0x0a000001), end_b(0x0a000002);
  End &a = end_a.end, &b = end_b.end;
  Instant now = Instant::from_ns(1'000'000'000);
  MessageToken token = 0;
  for (auto _ : state) {
    TxMessage m;
    m.token = ++token;
    m.destination = b.facts.address;
    m.ses_header_bytes = 44;
    m.segment_payload = 4096;
    m.payload_bytes = 4096;
    (void)a.pds->submit(now, m);
    move_all(now, a, b);
    move_all(now, b, a);
    a.pds->close_all(now);
    while (a.pds->gauges().pdcs_open + b.pds->gauges().pdcs_open > 0) {
      now = now + base::Duration::from_us(5);
      move_all(now, a, b);
      move_all(now, b, a);
      if (a.pds->next_deadline() <= now) a.pds->on_deadline(now);
      if (b.pds->next_deadline() <= now) b.pds->on_deadline(now);
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(token));  // opened per second
}

/// SYNs of ever new sources, as fast as they can be accepted.
void PdsAccept(benchmark::State& state) {
  constexpr std::uint32_t kPdcs = 60'000;
  std::optional<HeapEnd> heap_end;
  std::uint32_t n = kPdcs;
  const Instant now = Instant::from_ns(1'000'000'000);
  for (auto _ : state) {
    if (n == kPdcs) {
      state.PauseTiming();
      heap_end.emplace(0x0a000001);
      n = 0;
      state.ResumeTiming();
    }
    End* const end = &heap_end->end;
    net::RxPacket rx;
    rx.packet = heap_end->pool.allocate();
    wire::PdsRequestSyn h;
    h.next_hdr = wire::NextHdr::kRequestStd;
    h.psn = Psn(n * 7919);
    h.spdcid = static_cast<std::uint16_t>(1 + n);
    wire::emit(h, rx.packet.append(wire::PdsRequestSyn::kSize));
    rx.packet.append(108);
    rx.source = net::FabricAddress::from_v4(0x0b000000 + n++);
    end->pds->on_packet(now, std::move(rx));
    net::TxPacket tx;
    while (end->pds->poll_transmit(now, tx)) tx = {};
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));  // opened per second
}

BENCHMARK(PdsOpenUseClose);
BENCHMARK(PdsAccept);
BENCHMARK(PdsSmallMessage);
BENCHMARK(PdsLargeMessage);

}  // namespace
}  // namespace uet::pds

BENCHMARK_MAIN();
