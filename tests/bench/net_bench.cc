/// What the ground below UET costs: taking and returning a packet, and putting headers on and off.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "lib/net/frame_format.h"
#include "lib/net/heap_packet_pool.h"
#ifdef UET_BENCH_DPDK
#include "lib/dpdk/eal.h"
#include "lib/dpdk/mbuf_pool.h"
#endif

namespace uet::net {
namespace {

constexpr std::size_t kPackets = 8192;
constexpr std::size_t kPacketBytes = 9216;

/// Takes and returns `burst` packets at a time, as a loop turn does.
void run_pool(benchmark::State& state, PacketPool& pool) {
  const auto burst = static_cast<std::size_t>(state.range(0));
  std::vector<Packet> held(burst);
  for (auto _ : state) {
    for (Packet& p : held) {
      p = pool.allocate();
      p.append(64);
    }
    for (Packet& p : held) p.reset();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void heap_pool(benchmark::State& state) {
  HeapPacketPool pool(kPackets, kPacketBytes);
  run_pool(state, pool);
}
BENCHMARK(heap_pool)->Arg(1)->Arg(32)->Arg(1024);

#ifdef UET_BENCH_DPDK
void mbuf_pool(benchmark::State& state) {
  std::string error;
  if (!dpdk::ensure_eal({.memory_bytes = std::size_t{128} << 20}, error)) {
    state.SkipWithError(error.c_str());
    return;
  }
  dpdk::register_thread();
  const auto pool = dpdk::MbufPool::create(kPackets, kPacketBytes, -1, error);
  if (pool == nullptr) {
    state.SkipWithError(error.c_str());
    return;
  }
  run_pool(state, *pool);
}
BENCHMARK(mbuf_pool)->Arg(1)->Arg(32)->Arg(1024);
#endif

FrameFormat format_for(const char* address, std::uint8_t mac_end) {
  return FrameFormat{.mac = {2, 0, 0, 0, 0, mac_end}, .address = *FabricAddress::parse(address)};
}

void build_and_parse(benchmark::State& state) {
  const bool is_v4 = state.range(0) == 4;
  const FrameFormat from = format_for(is_v4 ? "10.0.0.1" : "fd00::1", 1);
  const FrameFormat to = format_for(is_v4 ? "10.0.0.2" : "fd00::2", 2);
  HeapPacketPool pool(64, kPacketBytes);
  for (auto _ : state) {
    Packet packet = pool.allocate();
    packet.append(4160);
    build_frame(from, to.mac, to.address, TosByte::of(18, 2), 777, packet);
    ParsedFrame parsed;
    benchmark::DoNotOptimize(parse_frame(to, packet.bytes(), parsed).has_value());
  }
}
BENCHMARK(build_and_parse)->Arg(4)->Arg(6);

}  // namespace
}  // namespace uet::net

BENCHMARK_MAIN();
