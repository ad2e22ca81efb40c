/// What every part of one simulated run shares: the clock, the packets in flight, the seed, the
/// fingerprint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/byte_cursor.h"
#include "lib/base/rng.h"
#include "sim/event_queue.h"
#include "sim/frame.h"
#include "sim/slab_pool.h"

namespace uet::sim {

/// Fingerprint of a run: FNV-1a over everything that was delivered and when. Equal seeds must give
/// equal fingerprints.
class TraceHash {
 public:
  void mix(std::uint64_t v) { value_ = (value_ ^ v) * 0x100000001b3ULL ^ (value_ >> 47); }
  void mix(std::span<const std::uint8_t> bytes) {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8))
      mix(base::load_be<std::uint64_t>(bytes.data()));
    for (const std::uint8_t b : bytes) mix(b);
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

struct Simulation {
  /// `packets` bounds the packets of the shared pool.
  Simulation(std::uint64_t seed, std::size_t packets, std::size_t packet_bytes)
      : rng(seed), packets_pool(packets, packet_bytes) {}
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  SimTime now() const { return events.now(); }
  /// A generator of its own for one part, so that parts do not disturb each other's draws.
  base::Rng fork_rng() { return base::Rng(rng.next_u64()); }

  /// A pool for one endpoint alone; lives as long as the simulation, so packets may outlive a crashed
  /// endpoint.
  SlabPool& add_pool(std::size_t packets) {
    return *own_pools.emplace_back(
        std::make_unique<SlabPool>(packets, packets_pool.max_packet_bytes()));
  }

  base::Rng rng;
  // Pools come before everything that may hold packets.
  SlabPool packets_pool;
  std::vector<std::unique_ptr<SlabPool>> own_pools;
  FramePool frames;
  EventQueue events;
  TraceHash hash;
};

}  // namespace uet::sim
