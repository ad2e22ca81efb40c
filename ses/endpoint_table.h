/// The endpoints of this FEP and how packets are addressed to them. [SES 2]
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "ses/endpoint.h"

namespace uet::ses {

/// Where a request wants to go.
struct Target {
  bool relative = true;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
};

enum class RiKind : std::uint8_t { kUntagged, kTagged, kRma, kDatagram, kAny };

class EndpointTable {
 public:
  /// The indices that it chooses go round from `first_index`.
  EndpointTable(std::uint32_t max, net::FabricAddress own_address, base::Duration ri_reuse,
                std::uint16_t first_index = 1);

  PostResult<Endpoint*> open(Instant now, const EndpointConfig& config, CompletionSink& sink);
  /// The RI stays unused for the reuse time, so that nothing meant for this endpoint reaches
  /// another.
  void close(Instant now, Endpoint& endpoint);
  Endpoint* find(EndpointId id) const;

  /// A shared receive context: an endpoint that no packet names. Not found by find().
  PostResult<Endpoint*> open_context(std::size_t min_multi_recv, CompletionSink& sink);
  /// Nothing may be its member any more.
  void close_context(Endpoint& context);
  Endpoint* find_context(EndpointId id) const;
  /// An endpoint or a context: what receives are posted to.
  Endpoint* find_receiver(EndpointId id) const {
    return (id & kContextBit) != 0 ? find_context(id) : find(id);
  }

  /// The endpoint that a packet names, or null and why. [SES 13, steps 5 to 7]
  Endpoint* route(const Target& target, RiKind kind, ReturnCode& code) const;
  /// Some endpoint of the process, for requests that carry no RI. [SES 5, small header]
  Endpoint* route_process(const Target& target, ReturnCode& code) const;
  /// One of them that reaches the regions of `memory_space`; with `id` only that one.
  Endpoint* find_in_process(const Target& target, EndpointId id, std::uint32_t memory_space) const;

  std::size_t size() const { return open_; }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_)
      if (slot.endpoint != nullptr) visit(*slot.endpoint);
  }

 private:
  /// 12 bits name the slot, the rest the life of the slot; also the upper half of a ROD context.
  static constexpr unsigned kSlotBits = 12;
  static constexpr EndpointId kContextBit = EndpointId{1} << 31;  ///< no life gets that long
  struct Slot {
    std::unique_ptr<Endpoint> endpoint;
    std::uint32_t life = 0;
  };

  static std::uint64_t process_key(bool relative, std::uint32_t job_id, std::uint16_t pid);
  static std::uint64_t key_of(const Target& t);
  bool is_held(const EndpointConfig& config, std::uint16_t index) const;
  bool is_resting(Instant now, const EndpointConfig& config, std::uint16_t index) const;
  std::uint16_t choose_index(Instant now, const EndpointConfig& config);
  Slot* free_slot();
  ReturnCode reason_of_miss(const Target& target) const;
  static bool is_served(const Endpoint& endpoint, RiKind kind);

  std::uint32_t max_;
  net::FabricAddress own_address_;
  base::Duration ri_reuse_;
  std::size_t open_ = 0;
  std::uint16_t next_index_;
  std::vector<Slot> slots_;
  std::vector<Slot> contexts_;
  /// Of the latest packet: nearly all are for few endpoints.
  mutable std::uint64_t recent_key_ = ~std::uint64_t{0};
  mutable Endpoint* recent_ = nullptr;
  std::unordered_map<std::uint64_t, Endpoint*> by_key_;
  std::unordered_multimap<std::uint64_t, Endpoint*> by_process_;
  std::unordered_multimap<std::uint32_t, Endpoint*> by_job_;  ///< relative endpoints
  std::unordered_map<std::uint64_t, Instant> resting_;        ///< closed keys, free again at
};

}  // namespace uet::ses
