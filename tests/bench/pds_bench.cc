// The send and receive steps of packet delivery, without a network: packets go from one Pds straight into the other.
#include <benchmark/benchmark.h>

#include <cstring>

#include "lib/net/heap_packet_pool.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "pds/pds.h"

namespace uet::pds {
namespace {

/// Cuts segments without payload copies, so that what is measured is the PDS.
class NullSes final : public Upper {
 public:
  SegmentInfo emit_segment(MessageToken, std::uint32_t, PdcRef, Psn, net::Packet& packet) override {
    std::memset(packet.append(44), 0, 44);
    packet.append(4096);
    return SegmentInfo{3};
  }
  Answer on_request(Instant, const RxRequest&) override {
    Answer a;
    a.response.next_hdr = 4;
    a.response.header_bytes = 12;
    return a;
  }
  void on_response(Instant, MessageToken, std::uint32_t, std::uint8_t,
                   std::span<const std::uint8_t>) override {
    ++answered;
  }
  void on_message_error(Instant, MessageToken, PdsError) override {}
  void on_pdc_gone(Instant, PdcRef, net::FabricAddress, PdsError) override {}
  void on_resume(Instant) override {}
  std::uint64_t answered = 0;
};

struct End {
  explicit End(std::uint32_t address) : pool(4096, 9000), rng(address), trace(1024) {
    facts.address = net::FabricAddress::from_v4(address);
    PdsConfig config;
    config.pdc_idle_time = base::Duration{};
    config.pdcid_quarantine = base::Duration{};
    config.max_pdc = 65535;
    cc::CcConfig cc;
    cc.link_rate = base::BitRate::from_gbps(100);
    cc.config_base_rtt = base::Duration::from_us(100);
    pds.emplace(config, cc, facts, pool, rng, trace, ses);
  }
  net::HeapPacketPool pool;
  base::Rng rng;
  base::Trace trace;
  net::PortFacts facts;
  NullSes ses;
  std::optional<Pds> pds;
};

std::size_t move_all(Instant now, End& from, End& to) {
  std::size_t n = 0;
  net::TxPacket tx;
  while (from.pds->poll_transmit(now, tx)) {
    net::RxPacket rx;
    rx.packet = std::move(tx.packet);
    rx.source = from.facts.address;
    rx.destination = to.facts.address;
    rx.entropy = tx.entropy;
    rx.tos = tx.tos;
    to.pds->on_packet(now, std::move(rx));
    ++n;
  }
  return n;
}

void run(benchmark::State& state, std::uint32_t segments) {
  End a(0x0a000001), b(0x0a000002);
  Instant now = Instant::from_ns(1'000'000'000);
  MessageToken token = 0;
  std::uint64_t packets = 0;
  for (auto _ : state) {
    TxMessage m;
    m.token = ++token;
    m.destination = b.facts.address;
    m.segments = segments;
    m.ses_header_bytes = 44;
    m.segment_payload = 4096;
    m.payload_bytes = std::uint64_t{segments} * 4096;
    (void)a.pds->submit(now, m);
    const std::uint64_t goal = a.ses.answered + segments;
    while (a.ses.answered < goal) {
      now = now + base::Duration::from_us(5);
      packets += move_all(now, a, b);
      now = now + base::Duration::from_us(5);
      move_all(now, b, a);
      if (a.pds->next_deadline() <= now) a.pds->on_deadline(now);
      if (b.pds->next_deadline() <= now) b.pds->on_deadline(now);
    }
  }
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
  End a(0x0a000001), b(0x0a000002);
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
  std::optional<End> end;
  std::uint32_t n = kPdcs;
  const Instant now = Instant::from_ns(1'000'000'000);
  for (auto _ : state) {
    if (n == kPdcs) {
      state.PauseTiming();
      end.emplace(0x0a000001);
      n = 0;
      state.ResumeTiming();
    }
    net::RxPacket rx;
    rx.packet = end->pool.allocate();
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
