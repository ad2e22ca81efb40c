#include "ses/memory_table.h"

namespace uet::ses {

PostResult<std::uint64_t> MemoryTable::add(const MemoryRequest& request, base::Rng& rng) {
  if (request.iov.size() > kMaxIov) return PostError::kBadArgument;
  if (request.job_id && *request.job_id > kLargestJob) return PostError::kBadArgument;
  const std::uint64_t flags =
      (request.idempotent_safe ? kKeyIdempotentSafe : 0) | (request.optimized ? kKeyOptimized : 0);
  if (request.key) {
    // [SES 15] A user chooses bits 47:0, or 11:0 of an optimized key, and nothing else.
    const std::uint64_t allowed = request.optimized ? kKeyOptimizedMask : kKeyUserMask;
    if ((*request.key & ~allowed) != 0) return PostError::kBadKey;
    if (request.check_unique && any_with(*request.key | flags, request.space) != nullptr)
      return PostError::kKeyInUse;
    if (request.optimized && has_optimized(*request.key)) return PostError::kKeyInUse;
  } else if (request.optimized) {
    return PostError::kBadKey;  // 12 bits leave no room for an epoch: the user must choose
  }
  MemoryRegion* const whole = request.part_of ? whole_for(request) : nullptr;
  if (request.part_of && whole == nullptr) return PostError::kBadArgument;
  // Memory first: what comes after it cannot fail half-way.
  const auto entry = request.key ? by_key_.emplace(*request.key | flags, nullptr) : by_key_.end();
  const auto refuse = [&] {
    if (entry != by_key_.end()) by_key_.erase(entry);
    return PostError::kNoResources;
  };
  MemoryRegion* region = pool_.acquire();
  if (region == nullptr) return refuse();
  const bool has_memory =
      whole == nullptr
          ? region->iov.assign(request.iov, iov_pool_, request.device)
          : region->iov.assign_part(whole->iov, static_cast<std::size_t>(request.part_of->offset),
                                    static_cast<std::size_t>(request.part_of->length), iov_pool_);
  if (!has_memory) {
    pool_.release(region);
    return refuse();
  }
  region->remote_read = request.remote_read;
  region->remote_write = request.remote_write;
  region->virtual_addressing = request.virtual_addressing;
  region->is_enabled = request.enabled;
  region->job_id = request.job_id;
  region->endpoint = request.endpoint;
  region->space = request.space;
  region->operation = {};
  region->whole = whole == nullptr ? PoolRef{} : ref_of(*whole);
  if (whole != nullptr) {
    if (!region->job_id) region->job_id = whole->job_id;
    if (region->endpoint == 0) region->endpoint = whole->endpoint;
  }
  if (request.key) {
    region->key = *request.key | flags;
    entry->second = region;
  } else {
    // The random epoch keeps a key that outlived its region from reaching the next region of the
    // same slot.
    const std::uint64_t epoch = rng.next_u32() & 0xff'ffff;
    std::uint64_t key = kKeyProvider | epoch << 24 | region->pool_index | flags;
    if (key == region->key) key ^= 1ull << 24;
    region->key = key;
  }
  return region->key;
}

/// A part lies inside, and opens nothing that is closed.
MemoryRegion* MemoryTable::whole_for(const MemoryRequest& request) {
  const PartOfRegion& part = *request.part_of;
  MemoryRegion* whole = any_with(part.key, request.space);
  if (whole == nullptr || !is_open(*whole) || !request.iov.empty()) return nullptr;
  const bool is_inside =
      part.offset <= whole->iov.size() && part.length <= whole->iov.size() - part.offset;
  const bool has_rights = (whole->remote_read || !request.remote_read) &&
                          (whole->remote_write || !request.remote_write) &&
                          (whole->is_idempotent_safe() || !request.idempotent_safe);
  const bool is_as_restricted =
      (!whole->job_id || !request.job_id || *whole->job_id == *request.job_id) &&
      (whole->endpoint == 0 || request.endpoint == 0 || whole->endpoint == request.endpoint);
  return is_inside && has_rights && is_as_restricted ? whole : nullptr;
}

/// Down to the region that is no part of another one.
bool MemoryTable::is_whole_open(PoolRef ref) {
  while (ref) {
    const MemoryRegion* whole = pool_.find(ref);
    if (whole == nullptr || !whole->is_enabled) return false;
    ref = whole->whole;
  }
  return true;
}

MemoryRegion* MemoryTable::add_source(const MemoryRequest& request, PoolRef operation,
                                      const net::FabricAddress& reader, base::Rng& rng) {
  const auto key = add(request, rng);
  if (!key) return nullptr;
  MemoryRegion* region = pool_.at(static_cast<std::uint32_t>(*key & 0xff'ffff));
  region->operation = operation;
  region->reader = reader;
  return region;
}

const MemoryRegion* MemoryTable::find_source(std::uint64_t key) const {
  const MemoryRegion* region = pool_.at(static_cast<std::uint32_t>(key & 0xff'ffff));
  return region != nullptr && region->key == key && region->operation ? region : nullptr;
}

bool MemoryTable::enable(std::uint64_t key, std::uint32_t space, EndpointId endpoint) {
  MemoryRegion* region = any_with(key, space);
  if (region == nullptr) return false;
  if (endpoint != 0) region->endpoint = endpoint;
  region->is_enabled = true;
  return true;
}

bool MemoryTable::remove(std::uint64_t key, std::uint32_t space) {
  MemoryRegion* region = any_with(key, space);
  if (region == nullptr) return false;
  const auto [first, last] = by_key_.equal_range(key);
  for (auto it = first; it != last; ++it)
    if (it->second == region) {
      by_key_.erase(it);
      break;
    }
  region->iov.clear(iov_pool_);
  region->is_enabled = false;
  pool_.release(region);
  return true;
}

MemoryRegion* MemoryTable::find(std::uint64_t key, EndpointId endpoint, std::uint32_t space) {
  const auto usable = [this, endpoint, space](const MemoryRegion& r) {
    return r.is_enabled && r.space == space && (r.endpoint == 0 || r.endpoint == endpoint) &&
           is_open(r);
  };
  if ((key & kKeyProvider) != 0) {
    MemoryRegion* region = pool_.at(static_cast<std::uint32_t>(key & 0xff'ffff));
    return region != nullptr && region->key == key && usable(*region) ? region : nullptr;
  }
  const auto [first, last] = by_key_.equal_range(key);
  for (auto it = first; it != last; ++it)
    if (usable(*it->second)) return it->second;
  return nullptr;
}

MemoryRegion* MemoryTable::find_optimized(std::uint16_t index) {
  for (const std::uint64_t flags : {kKeyOptimized, kKeyOptimized | kKeyIdempotentSafe}) {
    const auto it = by_key_.find(flags | index);
    if (it != by_key_.end() && it->second->is_enabled && is_open(*it->second)) return it->second;
  }
  return nullptr;
}

bool MemoryTable::has_optimized(std::uint64_t index) const {
  return by_key_.contains(kKeyOptimized | index) ||
         by_key_.contains(kKeyOptimized | kKeyIdempotentSafe | index);
}

ReturnCode MemoryTable::check(const MemoryRegion& region, const Access& access,
                              std::uint64_t& start) {
  if (region.job_id && *region.job_id != access.job_id) return ReturnCode::kPermViolation;
  if (access.write ? !region.remote_write : !region.remote_read) return ReturnCode::kPermViolation;
  // Addresses of a region of several pieces run on from the first piece's, as libfabric's do.
  const std::uint64_t base =
      region.virtual_addressing ? reinterpret_cast<std::uintptr_t>(region.iov.base()) : 0;
  if (access.buffer_offset < base) return ReturnCode::kBadAddr;
  start = access.buffer_offset - base;
  if (start > region.iov.size() || access.length > region.iov.size() - start)
    return ReturnCode::kBadAddr;
  return region.iov.is_there(start, access.length) ? ReturnCode::kOk : ReturnCode::kBadAddr;
}

MemoryRegion* MemoryTable::any_with(std::uint64_t key, std::uint32_t space) {
  if ((key & kKeyProvider) != 0) {
    MemoryRegion* region = pool_.at(static_cast<std::uint32_t>(key & 0xff'ffff));
    const bool is_it = region != nullptr && region->key == key && region->space == space;
    return is_it ? region : nullptr;
  }
  const auto [first, last] = by_key_.equal_range(key);
  for (auto it = first; it != last; ++it)
    if (it->second->space == space) return it->second;
  return nullptr;
}

}  // namespace uet::ses
