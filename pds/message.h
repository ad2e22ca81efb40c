/// Messages that SES has handed over, found by token. [PDS 3.2, 18.1]
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>

#include "lib/base/fixed_pool.h"
#include "lib/base/hash_key.h"
#include "pds/backpressure.h"
#include "pds/pds.h"
#include "pds/pds_config.h"

namespace uet::pds {

struct Pdc;
struct RudiPeer;

struct Message {
  Message() = default;
  explicit Message(const TxMessage& handed_over)
      : request(handed_over), payload_segments(handed_over.segments) {}

  TxMessage request;
  Pdc* pdc = nullptr;                  ///< RUD, ROD
  RudiPeer* rudi = nullptr;            ///< RUDI
  std::uint32_t next_segment = 0;      ///< first segment never sent
  std::uint32_t unanswered = 0;        ///< segments sent whose response SES has not got
  std::uint32_t payload_segments = 0;  ///< segments from here on carry no payload (after truncate)
  bool may_be_delivered = false;       ///< of a failed PDC: the target may have some packet of it
  bool is_silent = false;              ///< aborted by SES: its failure is not reported
  bool is_return = false;              ///< read data going back to who asked for it
  std::uint32_t token_next = 0;
  boost::intrusive::list_member_hook<>
      hook;  ///< in the queue of its PDC or peer while segments are unsent

  bool is_fully_sent() const { return next_segment >= request.segments; }
  std::uint32_t segments_left() const { return request.segments - next_segment; }
  bool is_started() const { return next_segment > 0; }
  std::uint32_t payload_of(std::uint32_t segment) const {
    if (segment >= payload_segments) return 0;
    const std::uint64_t begin = std::uint64_t{segment} * request.segment_payload;
    if (begin >= request.payload_bytes) return 0;
    const std::uint64_t rest = request.payload_bytes - begin;
    return static_cast<std::uint32_t>(rest < request.segment_payload ? rest
                                                                     : request.segment_payload);
  }
};

using MessageQueue = boost::intrusive::list<
    Message,
    boost::intrusive::member_hook<Message, boost::intrusive::list_member_hook<>, &Message::hook>,
    boost::intrusive::constant_time_size<false>>;

/// Requests and read data going back leave a quarter, at most 64 places, to each other: peers whose reads wait for this
/// endpoint may keep what its own requests wait for. See docs/decisions/0086.
class MessageTable {
 public:
  /// `room` hears of every message that is forgotten.
  MessageTable(std::uint32_t capacity, Backpressure& room)
      : room_(room), pool_(capacity), index_(pool_, capacity) {}

  bool is_full_for(bool is_return) const {
    const std::uint32_t own = is_return ? returns_ : pool_.in_use() - returns_;
    return pool_.is_full() || own >= pool_.capacity() - reserve();
  }
  std::uint32_t size() const { return pool_.in_use(); }

  /// The table must not be full for such messages and the token not in use.
  Message& add(const TxMessage& request, bool is_return = false) {
    Message* message = pool_.acquire(request);
    UET_CHECK(message != nullptr);
    message->is_return = is_return;
    returns_ += is_return ? 1 : 0;
    index_.insert(base::mix(request.token), *message);
    return *message;
  }
  Message* find(MessageToken token) {
    return index_.find(base::mix(token),
                       [&](const Message& m) { return m.request.token == token; });
  }
  void forget(Message& message) {
    returns_ -= message.is_return ? 1 : 0;
    index_.erase(base::mix(message.request.token), message);
    pool_.release(&message);
    room_.on_room();
  }

 private:
  std::uint32_t reserve() const { return reserve_of(pool_.capacity()); }

  Backpressure& room_;
  base::FixedPool<Message> pool_;
  base::PoolIndex<Message, &Message::token_next> index_;
  std::uint32_t returns_ = 0;
};

}  // namespace uet::pds
