/// Memory regions that peers may read and write, by key. [SES 15]
#pragma once

#include <optional>
#include <unordered_map>

#include "ses/iov_list.h"
#include "ses/ses.h"

namespace uet::ses {

inline constexpr std::uint64_t kKeyIdempotentSafe = 1ull << 63;
inline constexpr std::uint64_t kKeyOptimized = 1ull << 62;
inline constexpr std::uint64_t kKeyProvider = 1ull << 48;
inline constexpr std::uint64_t kKeyUserMask = kKeyProvider - 1;
inline constexpr std::uint64_t kKeyOptimizedMask = 0xfff;

struct MemoryRegion : Pooled {
  std::uint64_t key = 0;
  IovList iov;
  bool remote_read = false;
  bool remote_write = false;
  bool virtual_addressing = true;
  bool is_enabled = false;
  std::optional<std::uint32_t> job_id;
  EndpointId endpoint = 0;
  std::uint32_t space = 0;
  PoolRef whole;  ///< derived: the region that it is a part of
  // The source of a rendezvous: our own, for one reader.
  PoolRef operation;
  net::FabricAddress reader;

  bool is_idempotent_safe() const { return (key & kKeyIdempotentSafe) != 0; }
};

/// What a request wants of a region.
struct Access {
  std::uint32_t job_id = 0;
  bool write = false;
  std::uint64_t buffer_offset = 0;
  std::uint64_t length = 0;
};

class MemoryTable {
 public:
  MemoryTable(std::uint32_t max, IovPool& iov_pool) : pool_(max, 32), iov_pool_(iov_pool) {}

  /// What the target of a rendezvous may read, at offsets from 0. Null when there is no place.
  MemoryRegion* add_source(const MemoryRequest& request, PoolRef operation,
                           const net::FabricAddress& reader, base::Rng& rng);
  const MemoryRegion* find_source(std::uint64_t key) const;
  /// Returns the key.
  PostResult<std::uint64_t> add(const MemoryRequest& request, base::Rng& rng);
  bool enable(std::uint64_t key, std::uint32_t space, EndpointId endpoint);
  bool remove(std::uint64_t key, std::uint32_t space);

  /// The enabled region that `key` names at `endpoint`, which belongs to `space`.
  MemoryRegion* find(std::uint64_t key, EndpointId endpoint, std::uint32_t space);
  /// By the 12-bit index of a small request, which names no space: no two regions have the same. [SES 5]
  MemoryRegion* find_optimized(std::uint16_t index);
  /// Null when it, or what it was derived from, is closed.
  MemoryRegion* find(PoolRef ref) {
    MemoryRegion* region = pool_.find(ref);
    return region != nullptr && is_open(*region) ? region : nullptr;
  }

  std::size_t size() const { return pool_.in_use(); }

  /// Rights and bounds of a whole message, and whether memory is there. kOk, or the code to answer; `start` is where the message
  /// begins in the region's bytes.
  static ReturnCode check(const MemoryRegion& region, const Access& access, std::uint64_t& start);

 private:
  MemoryRegion* any_with(std::uint64_t key, std::uint32_t space);
  bool has_optimized(std::uint64_t index) const;
  bool is_open(const MemoryRegion& region) { return !region.whole || is_whole_open(region.whole); }
  bool is_whole_open(PoolRef ref);
  /// Null when there is no such part to be had.
  MemoryRegion* whole_for(const MemoryRequest& request);

  ChunkedPool<MemoryRegion> pool_;
  IovPool& iov_pool_;
  std::unordered_multimap<std::uint64_t, MemoryRegion*> by_key_;  ///< user keys
};

}  // namespace uet::ses
