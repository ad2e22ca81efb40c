/// What our own layers cost on mbufs: frames built and parsed, packets all the way through a port, packet delivery between two PDSs,
/// and two whole endpoints that a memif joins.
#include <cstring>
#include <vector>

#include "lib/net/frame_format.h"
#include "lib/net/ip_port.h"
#include "tests/bench/dpdk_bench.h"
#include "tests/bench/pds_ends.h"
#include "tests/fep/fep_pair.h"

namespace uet::dpdk {
namespace {

std::unique_ptr<MbufPool> make_pool(benchmark::State& state) {
  std::string error;
  auto pool = MbufPool::create(kPackets, kPacketBytes, -1, error);
  if (pool == nullptr) state.SkipWithError(error.c_str());
  return pool;
}

net::FrameFormat format_for(std::int64_t ip) {
  return {.mac = {2, 0, 0, 0, 0, 1},
          .address = *net::FabricAddress::parse(ip == 4 ? "10.0.0.1" : "fd00::1")};
}

/// Headers in front of a packet of 4 KiB: IP version.
void build(benchmark::State& state) {
  if (!is_ready(state)) return;
  const auto pool = make_pool(state);
  if (pool == nullptr) return;
  const net::FrameFormat format = format_for(state.range(0));
  net::Packet packet = pool->allocate();
  packet.append(4160);
  double packets = 0;
  const Meter meter;
  for (auto _ : state) {
    const std::size_t before = packet.size();
    net::build_frame(format, format.mac, format.address, net::TosByte::of(18, 2), 777, packet);
    packet.trim_front(packet.size() - before);
    ++packets;
  }
  meter.report(state, packets);
}
BENCHMARK(build)->Arg(4)->Arg(6);

void parse(benchmark::State& state) {
  if (!is_ready(state)) return;
  const auto pool = make_pool(state);
  if (pool == nullptr) return;
  const net::FrameFormat format = format_for(state.range(0));
  net::Packet packet = pool->allocate();
  packet.append(4160);
  net::build_frame(format, format.mac, format.address, net::TosByte::of(18, 2), 777, packet);
  double packets = 0;
  const Meter meter;
  for (auto _ : state) {
    benchmark::DoNotOptimize(net::parse_frame(format, packet.bytes()).has_value());
    ++packets;
  }
  meter.report(state, packets);
}
BENCHMARK(parse)->Arg(4)->Arg(6);

/// A UET packet to itself through a whole port on a ring: headers on, device, headers off.
void port_loop(benchmark::State& state) {
  if (!is_ready(state)) return;
  base::Trace trace;
  std::string error;
  auto device = open("net_ring1", trace, error);
  if (device == nullptr) return state.SkipWithError(error.c_str());
  const bool is_v4 = state.range(0) == 4;
  const auto burst = static_cast<std::size_t>(state.range(1));
  net::FrameFormat format{.mac = device->facts().mac,
                          .address = *net::FabricAddress::parse(is_v4 ? "10.0.0.1" : "fd00::1")};
  std::vector<net::Packet> out(burst), in(burst);
  double packets = 0;
  const Meter meter;
  for (auto _ : state) {
    for (net::Packet& p : out) {
      p = device->pool().allocate();
      p.append(4160);
      net::build_frame(format, format.mac, format.address, net::TosByte::of(18, 2), 777, p);
    }
    device->send_frames(out);
    const std::size_t got = device->receive_frames(in);
    for (std::size_t i = 0; i < got; ++i) {
      benchmark::DoNotOptimize(net::parse_frame(format, in[i].bytes()).has_value());
      in[i].reset();
    }
    packets += static_cast<double>(got);
  }
  meter.report(state, packets);
}
BENCHMARK(port_loop)->ArgsProduct({{4, 6}, {1, 32}});

/// Packet delivery alone, with ACKs, both ends: a message of so many packets of 4 KiB, on heap memory and on mbufs.
void pds(benchmark::State& state) {
  if (!is_ready(state)) return;
  const auto pool_a = make_pool(state), pool_b = make_pool(state);
  if (pool_a == nullptr || pool_b == nullptr) return;
  pds::End a(0x0a000001, *pool_a), b(0x0a000002, *pool_b);
  pds::Exchange exchange(a, b);
  const Meter meter;
  for (auto _ : state) exchange.deliver(static_cast<std::uint32_t>(state.range(0)));
  meter.report(state, static_cast<double>(exchange.packets()));
}
BENCHMARK(pds)->Name("pds")->Arg(1)->Arg(32)->Arg(256);

/// Two endpoints on IP ports over a memif pair, on virtual time; one core does the work of both ends and of the driver.
struct Endpoints {
  bool is_open(benchmark::State& state) {
    const char* const specs[] = {"net_memif4,role=server,socket=/uet/bench1",
                                 "net_memif5,role=client,socket=/uet/bench1"};
    std::string error;
    for (std::size_t i = 0; i < 2; ++i) {
      auto device = open(specs[i], sides[i].trace, error);
      if (device == nullptr) {
        state.SkipWithError(error.c_str());
        return false;
      }
      net::IpPortConfig config;
      config.name = specs[i];
      config.address = net::FabricAddress::from_v4(0x0a000001u + static_cast<std::uint32_t>(i));
      sides[i].port = std::make_unique<net::IpPort>(std::move(device), config, sides[i].trace);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      Side& s = sides[i];
      s.fep = std::make_unique<fep::Fep>(test::provider_config(s.port->facts()), *s.port, s.rng,
                                         s.trace, now);
      s.completions.keep(false);
      s.endpoint = *s.fep->ses().open_endpoint(now, ses::EndpointConfig{}, s.completions);
    }
    for (std::size_t i = 0; i < 2; ++i)
      sides[i].peer =
          *sides[i].fep->ses().add_peer(sides[1 - i].fep->ses().address_of(sides[1 - i].endpoint));
    return true;
  }
  void turn() {
    now = now + base::Duration::from_ns(500);
    for (Side& s : sides) {
      if (s.port->next_deadline() <= now) s.port->on_deadline(now);
      s.fep->turn(now);
    }
  }
  /// False when nothing comes through for seconds of the clock.
  template <typename Done>
  bool run_until(Done&& done) {
    const std::uint64_t patience = rte_rdtsc() + 10 * rte_get_tsc_hz();
    for (std::uint64_t n = 0; !done(); ++n) {
      turn();
      if (n % 1024 == 0 && rte_rdtsc() > patience) return false;
    }
    return true;
  }

  struct Side {
    base::Trace trace;
    base::Rng rng{1};
    std::unique_ptr<net::IpPort> port;
    test::Completions completions;
    std::unique_ptr<fep::Fep> fep;
    ses::EndpointId endpoint = 0;
    ses::PeerId peer = 0;
  };
  std::array<Side, 2> sides;
  base::Instant now = base::Instant::from_ns(1'000'000'000);
};

/// Writes of so many bytes, 16 in flight; a packet is 4 KiB of them or less.
void endpoint_write(benchmark::State& state) {
  if (!is_ready(state)) return;
  constexpr std::size_t kInFlight = 16;
  Endpoints e;
  if (!e.is_open(state)) return;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint8_t> from(bytes, 1), to(bytes);
  const iovec local{from.data(), bytes}, remote{to.data(), bytes};
  auto& target = e.sides[1].fep->ses();
  const auto key = target.register_memory(
      ses::MemoryRequest{.iov = {&remote, 1}, .remote_write = true, .virtual_addressing = false});
  if (!key) return state.SkipWithError("memory was not registered");
  auto& a = e.sides[0];
  std::size_t posted = 0;
  const auto write = [&] {
    const bool is_posted =
        a.fep->ses()
            .rma(e.now, a.endpoint,
                 ses::RmaRequest{.peer = a.peer, .iov = {&local, 1}, .key = *key})
            .has_value();
    posted += is_posted;
    return is_posted && e.run_until([&] { return a.completions.count() + kInFlight > posted; });
  };
  if (!write() || !e.run_until([&] { return a.completions.count() == posted; }))
    return state.SkipWithError("nothing came through");
  const std::size_t before = posted;
  const Meter meter;
  for (auto _ : state)
    if (!write()) return state.SkipWithError("a write did not complete");
  const std::size_t mtu = a.fep->payload_mtu();
  meter.report(state, static_cast<double>((posted - before) * ((bytes + mtu - 1) / mtu)));
  e.run_until([&] { return a.completions.count() == posted; });
}
BENCHMARK(endpoint_write)->Name("endpoint/write")->Arg(64)->Arg(4096)->Arg(65536);

}  // namespace
}  // namespace uet::dpdk
