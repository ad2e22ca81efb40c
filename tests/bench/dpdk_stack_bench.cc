/// What our own layers cost on mbufs: frames built and parsed, packets all the way through a port, packet delivery between two PDSs,
/// and two whole endpoints
/// over memif and over kernel UDP.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "lib/net/frame_format.h"
#include "lib/net/ip_port.h"
#include "lib/net/port_wrapper.h"
#include "lib/udp/udp_port.h"
#include "lib/wire/uet_crc.h"
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
    net::ParsedFrame parsed;
    benchmark::DoNotOptimize(net::parse_frame(format, packet.bytes(), parsed).has_value());
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
      net::ParsedFrame parsed;
      benchmark::DoNotOptimize(net::parse_frame(format, in[i].bytes(), parsed).has_value());
      in[i].reset();
    }
    packets += static_cast<double>(got);
  }
  meter.report(state, packets);
}
BENCHMARK(port_loop)->ArgsProduct({{4, 6}, {1, 32}});

/// Packet delivery alone, with ACKs, both ends: a message of so many packets of 4 KiB, on mbufs.
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

/// What cannot be done without for each byte, as endpoints do it: from user memory into a packet or out of one, and the CRC.
template <typename Work>
void bytes(benchmark::State& state, Work&& work) {
  if (!is_ready(state)) return;
  const auto pool = make_pool(state);
  if (pool == nullptr) return;
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint8_t> user(size * 16, 1);
  std::vector<net::Packet> packets(16);
  for (net::Packet& p : packets) {
    p = pool->allocate();
    p.append(size);
  }
  double done = 0;
  const Meter meter;
  for (auto _ : state)
    for (std::size_t i = 0; i < packets.size(); ++i, ++done)
      work(user.data() + i * size, packets[i].data(), size);
  meter.report(state, done);
}
void bytes_copied(benchmark::State& state) {
  bytes(state, [](const std::uint8_t* from, std::uint8_t* to, std::size_t size) {
    std::memcpy(to, from, size);
    benchmark::ClobberMemory();
  });
}
void bytes_checked(benchmark::State& state) {
  bytes(state, [](const std::uint8_t*, const std::uint8_t* packet, std::size_t size) {
    benchmark::DoNotOptimize(wire::crc32c({packet, size}));
  });
}
BENCHMARK(bytes_copied)->Name("bytes/copied")->Arg(4096)->Arg(8192);
BENCHMARK(bytes_checked)->Name("bytes/crc")->Arg(4096)->Arg(8192);

/// Counts what is sent, and the calls that move something.
class CountingPort final : public net::PortWrapper {
 public:
  explicit CountingPort(std::unique_ptr<net::Port> inner) : PortWrapper(std::move(inner)) {}
  std::size_t send(base::Instant now, std::span<net::TxPacket> in) override {
    const std::size_t n = inner().send(now, in);
    sent += n;
    calls += n > 0 ? 1 : 0;
    return n;
  }
  std::size_t receive(base::Instant now, std::span<net::RxPacket> out) override {
    const std::size_t n = inner().receive(now, out);
    calls += n > 0 ? 1 : 0;
    return n;
  }
  std::size_t sent = 0;
  std::size_t calls = 0;
};

/// Two ports of one process that reach each other: over memif, or over the kernel's loopback. Time is virtual.
struct Ports {
  /// False when they cannot be opened; the state says why.
  bool is_open(benchmark::State& state, bool over_memif) {
    const char* const memifs[] = {"net_memif4,role=server,socket=/uet/bench1",
                                  "net_memif5,role=client,socket=/uet/bench1"};
    std::string error;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto address = net::FabricAddress::from_v4((over_memif ? 0x0a000001u : 0x7f4d0001u) +
                                                       static_cast<std::uint32_t>(i));
      std::unique_ptr<net::Port> port;
      if (over_memif) {
        net::IpPortConfig config{.name = memifs[i], .address = address};
        if (auto device = open(memifs[i], traces[i], error))
          port = std::make_unique<net::IpPort>(std::move(device), config, traces[i]);
      } else {
        net::PortRequest request;
        request.spec = "udp:" + address.to_string();
        request.address = address;
        port = udp::open_udp_port(request, traces[i], error);
      }
      if (port == nullptr) {
        state.SkipWithError(error.c_str());
        return false;
      }
      ports[i] = std::make_unique<CountingPort>(std::move(port));
    }
    return true;
  }
  void pass_time() {
    now = now + base::Duration::from_ns(500);
    for (auto& port : ports)
      if (port->next_deadline() <= now) port->on_deadline(now);
  }

  std::array<base::Trace, 2> traces;
  std::array<std::unique_ptr<CountingPort>, 2> ports;
  base::Instant now = base::Instant::from_ns(1'000'000'000);
};

/// Memory that is touched for the first time costs a page fault, microseconds each: so many packets have been in every slot of a memif
/// and in every buffer of a pool.
constexpr std::size_t kWarmPackets = 16'384;
/// As many answers have been in every slot of their ring.
constexpr std::size_t kWarmAnswers = 1024;

/// Whether `turn` brings `done` about within seconds of the clock.
template <typename Turn, typename Done>
bool comes_about(Turn&& turn, Done&& done) {
  const std::uint64_t patience = rte_rdtsc() + 10 * rte_get_tsc_hz();
  for (std::uint64_t n = 0; !done(); ++n) {
    turn();
    if (n % 64 == 0 && rte_rdtsc() > patience) return false;
  }
  return true;
}

/// Packets from one port to the other, so many at a time: what any transport pays for them, at both ends.
void port(benchmark::State& state, bool over_memif) {
  if (!is_ready(state)) return;
  Ports p;
  if (!p.is_open(state, over_memif)) return;
  const auto burst = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  std::vector<net::TxPacket> out(burst);
  std::vector<net::RxPacket> in(burst);
  std::size_t received = 0;
  const auto turn = [&] {
    p.pass_time();
    for (net::TxPacket& tx : out) {
      if (tx.packet) continue;
      tx.packet = p.ports[0]->pool().allocate();
      tx.packet.append(bytes);
      tx.destination = p.ports[1]->facts().address;
      tx.entropy = 0xc000;
    }
    const std::size_t sent = p.ports[0]->send(p.now, out);
    std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(sent), out.end());
    const std::size_t got = p.ports[1]->receive(p.now, in);
    for (std::size_t i = 0; i < got; ++i) in[i].packet.reset();
    received += got;
    p.ports[0]->receive(p.now, {in.data(), 1});  // ARP wants to be heard
  };
  if (!comes_about(turn, [&] { return received > kWarmPackets; }))
    return state.SkipWithError("nothing came through");
  received = 0;
  const Meter meter;
  for (auto _ : state) turn();
  meter.report(state, static_cast<double>(received));
}
// So many iterations at once: ports take their time to open.
BENCHMARK_CAPTURE(port, memif, true)->ArgsProduct({{1, 16}, {64, 4160, 8256}})->Iterations(4000);
BENCHMARK_CAPTURE(port, udp, false)->ArgsProduct({{1, 16}, {64, 4160, 8256}})->Iterations(4000);

/// Two whole endpoints on them. One core does the work of both ends, of the driver and of the kernel.
struct Endpoints : Ports {
  bool is_ready(benchmark::State& state, bool over_memif) {
    if (!is_open(state, over_memif)) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      Side& s = sides[i];
      s.fep = std::make_unique<fep::Fep>(test::provider_config(ports[i]->facts()), *ports[i], s.rng,
                                         traces[i], now);
      s.completions.keep(false);
      s.endpoint = *s.fep->ses().open_endpoint(now, ses::EndpointConfig{}, s.completions);
    }
    for (std::size_t i = 0; i < 2; ++i)
      sides[i].peer =
          *sides[i].fep->ses().add_peer(sides[1 - i].fep->ses().address_of(sides[1 - i].endpoint));
    return true;
  }
  bool run_until(const std::function<bool()>& done) {
    return comes_about(
        [this] {
          pass_time();
          for (Side& s : sides) s.fep->turn(now);
        },
        done);
  }

  struct Side {
    base::Rng rng{1};
    test::Completions completions;
    std::unique_ptr<fep::Fep> fep;
    ses::EndpointId endpoint = 0;
    ses::PeerId peer = 0;
  };
  std::array<Side, 2> sides;
};

/// Writes of so many bytes, 16 at a time; a packet that carries payload is what counts. For each of them, `answers`: packets of the
/// target; `calls`: of both ports, either way, that moved something.
void endpoint_write(benchmark::State& state, bool over_memif) {
  if (!dpdk::is_ready(state)) return;
  constexpr std::size_t kInFlight = 16;
  Endpoints e;
  if (!e.is_ready(state, over_memif)) return;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint8_t> from(bytes, 1), to(bytes);
  const iovec local{from.data(), bytes}, remote{to.data(), bytes};
  const auto key = e.sides[1].fep->ses().register_memory(
      ses::MemoryRequest{.iov = {&remote, 1}, .remote_write = true, .virtual_addressing = false});
  if (!key) return state.SkipWithError("memory was not registered");
  auto& a = e.sides[0];
  std::size_t posted = 0;
  const auto write = [&] {
    for (std::size_t i = 0; i < kInFlight; ++i, ++posted)
      if (!a.fep->ses().rma(e.now, a.endpoint, {.peer = a.peer, .iov = {&local, 1}, .key = *key}))
        return false;
    return e.run_until([&] { return a.completions.count() == posted; });
  };
  while (e.ports[0]->sent < kWarmPackets || e.ports[1]->sent < kWarmAnswers)
    if (!write()) return state.SkipWithError("nothing came through");
  const std::size_t sent = e.ports[0]->sent, answered = e.ports[1]->sent;
  const std::size_t calls = e.ports[0]->calls + e.ports[1]->calls;
  const Meter meter;
  for (auto _ : state)
    if (!write()) return state.SkipWithError("a write did not complete");
  const auto packets = static_cast<double>(e.ports[0]->sent - sent);
  meter.report(state, packets);
  state.counters["answers"] = static_cast<double>(e.ports[1]->sent - answered) / packets;
  state.counters["calls"] =
      static_cast<double>(e.ports[0]->calls + e.ports[1]->calls - calls) / packets;
  state.counters["packets_of_a_write"] =
      packets / static_cast<double>(kInFlight * static_cast<std::size_t>(state.iterations()));
}
BENCHMARK_CAPTURE(endpoint_write, memif, true)->Arg(64)->Arg(4096)->Arg(65536)->Iterations(500);
BENCHMARK_CAPTURE(endpoint_write, udp, false)->Arg(64)->Arg(4096)->Arg(65536)->Iterations(500);

}  // namespace
}  // namespace uet::dpdk
