/// Which leg a MAC address was last seen behind, as a learning switch keeps it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/net/frame_device.h"
#include "sim/sim_time.h"

namespace uet::fabric {

/// A fixed number of buckets of four. A full bucket forgets the address that was silent longest;
/// frames to it are then flooded until it speaks again.
class MacTable {
 public:
  explicit MacTable(std::size_t buckets = 1024) : buckets_(buckets) {}

  void learn(const net::MacAddress& mac, std::uint32_t leg, sim::SimTime now);
  /// Nothing for addresses that are unknown or were silent for too long.
  std::optional<std::uint32_t> find(const net::MacAddress& mac, sim::SimTime now) const;
  void forget_leg(std::uint32_t leg);

  struct Entry {
    net::MacAddress mac{};
    std::uint32_t leg = 0;
    sim::SimTime seen;
    bool is_used = false;
  };
  /// All that are known, in no order.
  std::vector<Entry> entries() const;
  std::size_t size() const;
  std::size_t capacity() const { return buckets_.size() * kWays; }
  std::uint64_t moved() const { return moved_; }
  std::uint64_t displaced() const { return displaced_; }

 private:
  static constexpr std::size_t kWays = 4;
  static constexpr base::Duration kAge = base::Duration::from_seconds(300);
  using Bucket = std::array<Entry, kWays>;

  std::size_t bucket_of(const net::MacAddress& mac) const;

  std::vector<Bucket> buckets_;
  std::uint64_t moved_ = 0, displaced_ = 0;
};

}  // namespace uet::fabric
