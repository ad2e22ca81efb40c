/// What the ground costs on DPDK's pools and devices: a mempool by cache, burst and operations; frames through our device over the
/// drivers that need no hardware, by burst. Cycles are those of the time stamp counter while the thread ran. Instructions are
/// counted where the machine lets us.
#include "tests/bench/dpdk_bench.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>

#include <algorithm>
#include <vector>

namespace uet::dpdk {
namespace {

// --- Mempools

/// Objects of a mempool, taken and put back `burst` at a time: operations, cache, burst. `is_across`: back past the cache.
void mempool(benchmark::State& state, const char* operations, bool is_across) {
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
    if (is_across)
      rte_mempool_generic_put(pool, objects.data(), burst, nullptr);
    else
      rte_mempool_put_bulk(pool, objects.data(), burst);
    packets += burst;
  }
  meter.report(state, packets);
  rte_mempool_free(pool);
}
void mempool_at_one_core(benchmark::State& state, const char* operations) {
  mempool(state, operations, false);
}
/// Taken at one core and put back by another: what the cache holds is never what was put back.
void mempool_across_cores(benchmark::State& state, const char* operations) {
  mempool(state, operations, true);
}
BENCHMARK_CAPTURE(mempool_at_one_core, ring, "ring_mp_mc")
    ->Name("mempool/ring")
    ->ArgsProduct({{0, 64, 256, 512}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool_at_one_core, ring_for_one, "ring_sp_sc")
    ->Name("mempool/ring_for_one")
    ->ArgsProduct({{0, 64, 256, 512}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool_at_one_core, stack, "stack")
    ->Name("mempool/stack")
    ->ArgsProduct({{0, 64, 256, 512}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool_at_one_core, lf_stack, "lf_stack")
    ->Name("mempool/lf_stack")
    ->ArgsProduct({{0, 256}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool_across_cores, ring, "ring_mp_mc")
    ->Name("mempool_across/ring")
    ->ArgsProduct({{256}, {1, 32, 256}});
BENCHMARK_CAPTURE(mempool_across_cores, stack, "stack")
    ->Name("mempool_across/stack")
    ->ArgsProduct({{256}, {1, 32, 256}});

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

/// Frames from one device to another, or to itself; per frame sent *and* received.
void frames(benchmark::State& state, const char* from_spec, const char* to_spec) {
  if (!is_ready(state)) return;
  std::string error;
  // Who listens comes first.
  DpdkDevice* const other = to_spec != nullptr ? opened_once(to_spec, error) : nullptr;
  DpdkDevice* const from =
      to_spec == nullptr || other != nullptr ? opened_once(from_spec, error) : nullptr;
  if (from == nullptr) return state.SkipWithError(error.c_str());
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
  bool is_through = false;
  while (!is_through && rte_rdtsc() < patience) {
    is_through = turn() != 0;
    sched_yield();  // to the thread that connects
  }
  if (!is_through) return state.SkipWithError("nothing came through");
  double packets = 0;
  const Meter meter;
  for (auto _ : state) packets += static_cast<double>(turn());
  meter.report(state, packets);
}
BENCHMARK_CAPTURE(frames, null, "net_null0", nullptr)->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64}});
BENCHMARK_CAPTURE(frames, ring, "net_ring0", nullptr)->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64}});
BENCHMARK_CAPTURE(frames, memif, "net_memif1,role=client,socket=/uet/bench",
                  "net_memif0,role=server,socket=/uet/bench")
    ->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64, 4096}});
/// Through vhost, which has the memory of virtio_user: the nearest thing to a commodity NIC.
void frames_virtio(benchmark::State& state) {
  static const std::string socket = "/tmp/uet-bench-" + std::to_string(getpid());
  static const std::string vhost = "net_vhost0,iface=" + socket,
                           user = "net_virtio_user0,path=" + socket;
  frames(state, user.c_str(), vhost.c_str());
  unlink(socket.c_str());  // both ends have it
}
BENCHMARK(frames_virtio)->Name("frames/virtio")->ArgsProduct({{1, 4, 8, 16, 32, 64}, {64, 4096}});

}  // namespace
}  // namespace uet::dpdk

BENCHMARK_MAIN();
