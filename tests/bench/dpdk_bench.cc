/// What the ground costs on DPDK's pools and devices: a mempool by cache, burst and operations; frames through our device over the
/// drivers that need no hardware, by burst; a packet all the way through a port. Cycles are those of the time stamp
/// counter while the thread ran.
/// Instructions are counted where the machine lets us.
#include <benchmark/benchmark.h>
#include <linux/perf_event.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/mbuf_pool.h"
#include "lib/net/ip_port.h"

namespace uet::dpdk {
namespace {

constexpr unsigned kPackets = 8192;
constexpr std::size_t kPacketBytes = 9216;

bool is_ready(benchmark::State& state) {
  std::string error;
  const bool is_up = ensure_eal({.memory_bytes = std::size_t{128} << 20}, error);
  if (!is_up) state.SkipWithError(error.c_str());
  register_thread();
  return is_up;
}

/// Cycles and instructions between its birth and report().
class Meter {
 public:
  Meter() {
    static const int fd = open_counter();
    fd_ = fd;
    instructions_ = read_counter();
    started_ns_ = cpu_ns();
  }
  void report(benchmark::State& state, double packets) const {
    const std::uint64_t ns = cpu_ns() - started_ns_;
    if (packets == 0) return;
    const double hz = static_cast<double>(rte_get_tsc_hz());
    state.counters["cycles"] = static_cast<double>(ns) * hz / 1e9 / packets;
    if (fd_ >= 0)
      state.counters["instructions"] =
          static_cast<double>(read_counter() - instructions_) / packets;
    state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  }

 private:
  /// Of this thread alone: others may share its CPU.
  static std::uint64_t cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(t.tv_nsec);
  }
  static int open_counter() {
    perf_event_attr what{};
    what.type = PERF_TYPE_HARDWARE;
    what.size = sizeof what;
    what.config = PERF_COUNT_HW_INSTRUCTIONS;
    what.exclude_kernel = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &what, 0, -1, -1, 0));
  }
  std::uint64_t read_counter() const {
    std::uint64_t count = 0;
    return fd_ >= 0 && read(fd_, &count, sizeof count) == sizeof count ? count : 0;
  }

  int fd_ = -1;
  std::uint64_t instructions_ = 0;
  std::uint64_t started_ns_ = 0;
};

// --- Mempools

/// Objects of a mempool, taken and put back `burst` at a time: operations, cache, burst.
void mempool(benchmark::State& state, const char* operations) {
  if (!is_ready(state)) return;
  const auto cache = static_cast<unsigned>(state.range(0));
  const auto burst = static_cast<unsigned>(state.range(1));
  rte_mempool* pool =
      rte_mempool_create_empty("uet_bench", kPackets, 128, cache, 0, SOCKET_ID_ANY, 0);
  if (pool == nullptr || rte_mempool_set_ops_byname(pool, operations, nullptr) != 0 ||
      rte_mempool_populate_default(pool) < 0) {
    rte_mempool_free(pool);
    return state.SkipWithError("no such mempool");
  }
  std::vector<void*> objects(burst);
  double packets = 0;
  const Meter meter;
  for (auto _ : state) {
    if (rte_mempool_get_bulk(pool, objects.data(), burst) != 0) break;
    rte_mempool_put_bulk(pool, objects.data(), burst);
    packets += burst;
  }
  meter.report(state, packets);
  rte_mempool_free(pool);
}
BENCHMARK_CAPTURE(mempool, ring, "ring_mp_mc")->ArgsProduct({{0, 64, 256, 512}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool, ring_for_one, "ring_sp_sc")->ArgsProduct({{0, 256}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool, stack, "stack")->ArgsProduct({{0, 256}, {1, 32, 256}});

/// Our pool on top, `burst` packets at a time.
void packet_pool(benchmark::State& state) {
  if (!is_ready(state)) return;
  std::string error;
  const auto pool = MbufPool::create(kPackets, kPacketBytes, SOCKET_ID_ANY, error);
  if (pool == nullptr) return state.SkipWithError(error.c_str());
  std::vector<net::Packet> held(static_cast<std::size_t>(state.range(0)));
  double packets = 0;
  const Meter meter;
  for (auto _ : state) {
    for (net::Packet& p : held) {
      p = pool->allocate();
      p.append(64);
    }
    for (net::Packet& p : held) p.reset();
    packets += static_cast<double>(held.size());
  }
  meter.report(state, packets);
}
BENCHMARK(packet_pool)->Arg(1)->Arg(32)->Arg(64)->Arg(256)->Arg(1024);

/// A received mbuf becomes a packet, the packet an mbuf to send.
void adopt_and_hand_over(benchmark::State& state) {
  if (!is_ready(state)) return;
  std::string error;
  const auto pool = MbufPool::create(kPackets, kPacketBytes, SOCKET_ID_ANY, error);
  if (pool == nullptr) return state.SkipWithError(error.c_str());
  rte_mbuf* mbuf = rte_pktmbuf_alloc(pool->mempool());
  rte_pktmbuf_append(mbuf, 64);
  double packets = 0;
  const Meter meter;
  for (auto _ : state) {
    net::Packet packet = pool->adopt(mbuf);
    mbuf = MbufPool::to_mbuf(packet);
    benchmark::DoNotOptimize(mbuf->data_off);
    (void)packet.release();
    ++packets;
  }
  meter.report(state, packets);
  rte_pktmbuf_free(mbuf);
}
BENCHMARK(adopt_and_hand_over);

// --- Devices

std::unique_ptr<DpdkDevice> open(const std::string& spec, base::Trace& trace, std::string& error) {
  DpdkDeviceConfig config{.packets = 4096, .burst = 64};
  if (!parse_device_spec("dpdk:" + spec, config.spec, error)) return nullptr;
  add_default_arguments(default_ip_mtu(config.spec), config.spec);
  return DpdkDevice::open(config, trace, error);
}

/// Frames from one device to another, or to itself; per frame sent *and* received.
void frames(benchmark::State& state, const char* from_spec, const char* to_spec) {
  if (!is_ready(state)) return;
  base::Trace trace;
  std::string error;
  const auto from = open(from_spec, trace, error);
  const auto other = from != nullptr && to_spec != nullptr ? open(to_spec, trace, error) : nullptr;
  if (from == nullptr || (to_spec != nullptr && other == nullptr))
    return state.SkipWithError(error.c_str());
  DpdkDevice& to = other != nullptr ? *other : *from;
  const auto burst = static_cast<std::size_t>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  std::vector<net::Packet> out(burst), in(burst);
  const auto turn = [&] {
    for (net::Packet& p : out) {
      if (p) continue;
      p = from->pool().allocate();
      p.append(bytes);
    }
    const std::size_t sent = from->send_frames(out);
    std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(sent), out.end());
    const std::size_t got = to.receive_frames(in);
    for (std::size_t i = 0; i < got; ++i) in[i].reset();
    return got;
  };
  // A memif has to connect first.
  const std::uint64_t patience = rte_rdtsc() + 5 * rte_get_tsc_hz();
  while (turn() == 0 && rte_rdtsc() < patience) {
  }
  double packets = 0;
  const Meter meter;
  for (auto _ : state) packets += static_cast<double>(turn());
  if (packets == 0) state.SkipWithError("nothing came through");
  meter.report(state, packets);
}
BENCHMARK_CAPTURE(frames, null, "net_null0", nullptr)->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64}});
BENCHMARK_CAPTURE(frames, ring, "net_ring0", nullptr)->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64}});
BENCHMARK_CAPTURE(frames, memif, "net_memif0,role=server,socket=/uet/bench",
                  "net_memif1,role=client,socket=/uet/bench")
    ->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64, 4096}});

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

}  // namespace
}  // namespace uet::dpdk

BENCHMARK_MAIN();
