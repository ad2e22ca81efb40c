/// Posted receives, and which of them a message belongs to. [SES 7.1]
#pragma once

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "ses/iov_list.h"
#include "ses/peer_table.h"
#include "ses/ses.h"

namespace uet::ses {

struct Endpoint;

using ListHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

/// The matching information of a message.
struct Incoming {
  std::uint64_t tag = 0;
  std::uint32_t job_id = 0;
  std::uint32_t initiator_id = 0;
  net::FabricAddress source;
  bool operator==(const Incoming&) const = default;
};

/// What a receive or a peek accepts.
struct Filter {
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  const Peer* source = nullptr;  ///< null: any source
  std::optional<std::uint32_t> job_id;

  bool accepts(const Incoming& message) const {
    if (((tag ^ message.tag) & ~ignore) != 0) return false;
    if (source != nullptr && (source->address.initiator_id != message.initiator_id ||
                              source->address.fabric_address != message.source))
      return false;
    return !job_id || *job_id == message.job_id;
  }
};

/// A receive, posted or bound to the message that is being placed into it.
struct Receive : Pooled {
  ListHook order_hook;   ///< in its space, by time of posting
  ListHook bucket_hook;  ///< among receives with the same ignore bits and hash
  Endpoint* endpoint = nullptr;
  bool tagged = false;
  Filter filter;
  IovList iov;
  std::uint64_t context = 0;
  std::uint64_t sequence = 0;
  std::uint8_t group = 0;  ///< where MatchList keeps it
  std::uint8_t bucket = 0;
  std::uint8_t user_flags = 0;
  // Multi-receive buffers stay posted while messages fit behind `cursor`.
  bool multi_recv = false;
  bool is_posted = false;
  bool is_indexed = false;  ///< in a bucket
  std::size_t cursor = 0;
  std::uint32_t in_flight = 0;  ///< messages being placed

  std::size_t room() const { return iov.size() - cursor; }
};

/// Of the bits of a tag that a filter looks at; the upper ones are the best.
constexpr std::uint64_t tag_hash(std::uint64_t tag, std::uint64_t ignore) {
  return (tag & ~ignore) * 0x9e3779b97f4a7c15ULL;
}

/// Receives that are not posted.
using ReceiveList =
    boost::intrusive::list<Receive,
                           boost::intrusive::member_hook<Receive, ListHook, &Receive::order_hook>,
                           boost::intrusive::constant_time_size<false>>;

/// Bytes of a buffer that a message reaches. An offset from the wire may be anything: beyond every buffer is far enough.
constexpr std::uint64_t bytes_reached(std::uint64_t buffer_offset, std::uint64_t length) {
  return std::min(buffer_offset, std::uint64_t{1} << 40) + length;
}

/// Messages lie 8-byte aligned in a multi-receive buffer.
constexpr std::size_t next_message_at(std::size_t end) {
  return (end + 7) & ~std::size_t{7};
}

/// The posted receives of one space of one endpoint. Receives with the same ignore bits are hashed
/// by the rest of their tag; up to kGroups different masks, everything else in one list. Posting
/// order decides between groups.
class MatchList {
 public:
  explicit MatchList(bool hashed) : hashed_(hashed) {}
  MatchList(const MatchList&) = delete;
  MatchList& operator=(const MatchList&) = delete;
  ~MatchList();

  void post(Receive& receive);
  void remove(Receive& receive);
  /// The receive that was posted first among those that accept the message.
  Receive* find(const Incoming& message);
  Receive* front() { return order_.empty() ? nullptr : &order_.front(); }
  /// The oldest with this context.
  Receive* find_context(std::uint64_t context);
  bool is_empty() const { return order_.empty(); }

 private:
  static constexpr std::size_t kGroups = 4;
  static constexpr std::size_t kBuckets = 64;
  static constexpr std::uint8_t kUnhashed = kGroups;
  /// Below this many receives a walk over the list is faster than hashing.
  static constexpr std::size_t kHashFrom = 8;

  using OrderList =
      boost::intrusive::list<Receive,
                             boost::intrusive::member_hook<Receive, ListHook, &Receive::order_hook>,
                             boost::intrusive::constant_time_size<true>>;
  using BucketList = boost::intrusive::list<
      Receive, boost::intrusive::member_hook<Receive, ListHook, &Receive::bucket_hook>,
      boost::intrusive::constant_time_size<false>>;
  using Buckets = std::array<BucketList, kBuckets>;
  struct Group {
    std::uint64_t ignore = 0;
    std::size_t count = 0;
    std::unique_ptr<Buckets> buckets;
  };

  /// Nearly every message is for the first receive; only one that is not asks for the buckets.
  void index_rest();
  static std::uint8_t bucket_of(std::uint64_t tag, std::uint64_t ignore) {
    return static_cast<std::uint8_t>(tag_hash(tag, ignore) >> 58);
  }
  std::uint8_t group_for(std::uint64_t ignore);
  BucketList& list_of(const Receive& receive);

  bool hashed_;
  std::uint64_t next_sequence_ = 0;
  OrderList order_;
  Receive* first_unindexed_ = nullptr;  ///< it and all behind it are in no bucket
  std::array<Group, kGroups> groups_;
  BucketList unhashed_;
};

}  // namespace uet::ses
