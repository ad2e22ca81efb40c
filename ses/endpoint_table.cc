#include "ses/endpoint_table.h"

#include <algorithm>

#include "lib/base/check.h"

namespace uet::ses {
namespace {

template <typename Map, typename Key>
void erase_one(Map& map, const Key& key, const Endpoint* endpoint) {
  const auto [first, last] = map.equal_range(key);
  for (auto it = first; it != last; ++it)
    if (it->second == endpoint) {
      map.erase(it);
      return;
    }
}

/// No job twice, and none that does not fit the wire.
bool are_jobs(const EndpointConfig& c) {
  std::vector<std::uint32_t> all = c.further_jobs;
  all.push_back(c.job_id);
  std::ranges::sort(all);
  return all.size() <= kMaxJobs && all.back() <= kLargestJob &&
         std::ranges::adjacent_find(all) == all.end();
}

/// The jobs that the endpoint is addressed in; an address of absolute mode has none, so there one entry serves all.
template <typename Visit>
void for_each_job(const EndpointConfig& c, Visit&& visit) {
  visit(c.job_id);
  if (c.relative) std::ranges::for_each(c.further_jobs, visit);
}

}  // namespace

EndpointTable::EndpointTable(std::uint32_t max, net::FabricAddress own_address,
                             base::Duration ri_reuse, std::uint16_t first_index)
    : max_(std::min<std::uint32_t>(max, kMaxIndex - 1)),
      own_address_(own_address),
      ri_reuse_(ri_reuse),
      next_index_(first_index) {}

PostResult<Endpoint*> EndpointTable::open(Instant now, const EndpointConfig& config,
                                          CompletionSink& sink) {
  if (!are_jobs(config) || config.pid_on_fep > 0xfff || config.resource_index > kMaxIndex)
    return PostError::kBadArgument;
  std::erase_if(resting_, [now](const auto& entry) { return entry.second <= now; });
  std::uint16_t index = config.resource_index;
  if (index == 0) {
    index = choose_index(now, config);
    if (index == 0) return PostError::kNoResources;
  } else if (is_held(config, index)) {
    return PostError::kAddressInUse;
  } else if (is_resting(now, config, index)) {
    return PostError::kAddressRests;
  }
  Slot* slot = free_slot();
  if (slot == nullptr) return PostError::kNoResources;
  slot->endpoint = std::make_unique<Endpoint>();
  Endpoint& e = *slot->endpoint;
  e.id = (++slot->life << kSlotBits & ~kContextBit) |
         static_cast<std::uint32_t>(slot - slots_.data() + 1);
  e.config = config;
  e.config.resource_index = index;
  e.sink = &sink;
  e.address.fabric_address = own_address_;
  e.address.pid_on_fep = config.pid_on_fep;
  e.address.resource_index = index;
  e.address.relative = config.relative;
  // [SES 2.6] Unique in {FA, JobID}, because {PIDonFEP, RI} is.
  e.address.initiator_id =
      config.initiator_id.value_or((std::uint32_t{config.pid_on_fep} << 12) | index);
  for_each_job(config, [&](std::uint32_t job) {
    by_key_.emplace(key_of({config.relative, job, config.pid_on_fep, index}), &e);
    by_process_.emplace(process_key(config.relative, job, config.pid_on_fep), &e);
    if (config.relative) by_job_.emplace(job, &e);
  });
  ++open_;
  return &e;
}

void EndpointTable::close(Instant now, Endpoint& endpoint) {
  const EndpointConfig& c = endpoint.config;
  for_each_job(c, [&](std::uint32_t job) {
    const std::uint64_t key = key_of({c.relative, job, c.pid_on_fep, c.resource_index});
    by_key_.erase(key);
    if (key == recent_key_) recent_key_ = ~std::uint64_t{0};
    erase_one(by_process_, process_key(c.relative, job, c.pid_on_fep), &endpoint);
    erase_one(by_job_, job, &endpoint);
    resting_[key] = now + ri_reuse_;
  });
  --open_;
  slots_[(endpoint.id & ((1u << kSlotBits) - 1)) - 1].endpoint.reset();
}

Endpoint* EndpointTable::find(EndpointId id) const {
  const std::size_t slot = id & ((1u << kSlotBits) - 1);
  if (slot == 0 || slot > slots_.size()) return nullptr;
  Endpoint* e = slots_[slot - 1].endpoint.get();
  return e != nullptr && e->id == id ? e : nullptr;
}

Endpoint* EndpointTable::route(const Target& target, RiKind kind, ReturnCode& code) const {
  const std::uint64_t key = key_of(target);
  if (key != recent_key_) [[unlikely]] {
    const auto it = by_key_.find(key);
    if (it == by_key_.end()) {
      code = reason_of_miss(target);
      return nullptr;
    }
    recent_key_ = key;
    recent_ = it->second;
  }
  if (!is_served(*recent_, kind)) {
    code = ReturnCode::kBadIndex;
    return nullptr;
  }
  return recent_;
}

Endpoint* EndpointTable::route_process(const Target& target, ReturnCode& code) const {
  const auto it = by_process_.find(process_key(target.relative, target.job_id, target.pid_on_fep));
  if (it == by_process_.end()) {
    code = reason_of_miss(target);
    return nullptr;
  }
  return it->second;
}

Endpoint* EndpointTable::find_in_process(const Target& target, EndpointId id,
                                         std::uint32_t memory_space) const {
  const auto [first, last] =
      by_process_.equal_range(process_key(target.relative, target.job_id, target.pid_on_fep));
  for (auto it = first; it != last; ++it) {
    Endpoint& e = *it->second;
    if (e.config.memory_space == memory_space && (id == 0 || e.id == id)) return &e;
  }
  return nullptr;
}

std::uint64_t EndpointTable::process_key(bool relative, std::uint32_t job_id, std::uint16_t pid) {
  const std::uint64_t job = relative ? job_id : 0;
  return std::uint64_t{relative} << 48 | job << 24 | std::uint64_t{pid} << 12;
}

std::uint64_t EndpointTable::key_of(const Target& t) {
  return process_key(t.relative, t.job_id, t.pid_on_fep) | t.resource_index;
}

bool EndpointTable::is_held(const EndpointConfig& c, std::uint16_t index) const {
  bool is_held = false;
  for_each_job(c, [&](std::uint32_t job) {
    is_held = is_held || by_key_.contains(key_of({c.relative, job, c.pid_on_fep, index}));
  });
  return is_held;
}

bool EndpointTable::is_resting(Instant now, const EndpointConfig& c, std::uint16_t index) const {
  bool is_resting = false;
  for_each_job(c, [&](std::uint32_t job) {
    const auto it = resting_.find(key_of({c.relative, job, c.pid_on_fep, index}));
    is_resting = is_resting || (it != resting_.end() && it->second > now);
  });
  return is_resting;
}

/// Goes round, so that numbers come back late even without the resting time. 0 when all are taken.
std::uint16_t EndpointTable::choose_index(Instant now, const EndpointConfig& config) {
  for (unsigned i = 0; i < kMaxIndex; ++i) {
    const std::uint16_t index = next_index_;
    next_index_ = next_index_ == kMaxIndex ? 1 : static_cast<std::uint16_t>(next_index_ + 1);
    if (!is_held(config, index) && !is_resting(now, config, index)) return index;
  }
  return 0;
}

PostResult<Endpoint*> EndpointTable::open_context(std::size_t min_multi_recv,
                                                  CompletionSink& sink) {
  auto slot = std::ranges::find_if(contexts_, [](const Slot& s) { return s.endpoint == nullptr; });
  if (slot == contexts_.end()) {
    if (contexts_.size() >= max_) return PostError::kNoResources;
    slot = contexts_.emplace(contexts_.end());
  }
  slot->endpoint = std::make_unique<Endpoint>();
  Endpoint& e = *slot->endpoint;
  e.id = kContextBit | ++slot->life << kSlotBits |
         static_cast<std::uint32_t>(slot - contexts_.begin() + 1);
  e.config.min_multi_recv = min_multi_recv;
  e.sink = &sink;
  return &e;
}

void EndpointTable::close_context(Endpoint& context) {
  UET_CHECK(context.members.empty());
  contexts_[(context.id & ((1u << kSlotBits) - 1)) - 1].endpoint.reset();
}

Endpoint* EndpointTable::find_context(EndpointId id) const {
  const std::size_t slot = id & ((1u << kSlotBits) - 1);
  if ((id & kContextBit) == 0 || slot == 0 || slot > contexts_.size()) return nullptr;
  Endpoint* e = contexts_[slot - 1].endpoint.get();
  return e != nullptr && e->id == id ? e : nullptr;
}

EndpointTable::Slot* EndpointTable::free_slot() {
  if (open_ >= max_) return nullptr;
  for (Slot& slot : slots_)
    if (slot.endpoint == nullptr) return &slot;
  return &slots_.emplace_back();
}

ReturnCode EndpointTable::reason_of_miss(const Target& t) const {
  if (t.relative && !by_job_.contains(t.job_id)) return ReturnCode::kBadJobId;
  if (!by_process_.contains(process_key(t.relative, t.job_id, t.pid_on_fep)))
    return ReturnCode::kBadPid;
  return ReturnCode::kBadIndex;
}

bool EndpointTable::is_served(const Endpoint& endpoint, RiKind kind) {
  switch (kind) {
    case RiKind::kUntagged:
      return endpoint.config.has_untagged;
    case RiKind::kTagged:
      return endpoint.config.has_tagged;
    case RiKind::kRma:
      return endpoint.config.has_rma;
    case RiKind::kDatagram:
      return endpoint.config.has_datagrams;
    case RiKind::kAny:
      return true;
  }
  return false;
}

}  // namespace uet::ses
