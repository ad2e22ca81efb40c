/// Messages of several packets on their way in. [SES 4.3]
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/unordered_set.hpp>
#include <memory>
#include <new>

#include "ses/coverage.h"
#include "ses/match_list.h"
#include "ses/memory_table.h"
#include "ses/pdc_use.h"
#include "ses/request_view.h"

namespace uet::ses {

struct UnexpectedMessage;
struct Sender;

/// What tells messages apart: nothing in a packet names its sender but these. The PDC stands for the sender's PDCID, which two
/// openings of one address may share while one of them is forged. [SES 4.3]
struct MessageKey {
  net::FabricAddress source;
  pds::PdcRef pdc;
  std::uint16_t message_id = 0;

  bool operator==(const MessageKey&) const = default;
  std::size_t hash(const base::HashKey& hash_key) const {
    return source.hash(hash_key, std::uint64_t{pdc.value} << 16 | message_id);
  }
};

enum class RxTarget : std::uint8_t {
  kReceive,  ///< into a receive
  kCapture,  ///< into the unexpected store
  kRegion,   ///< WRITE into a memory region
  kRead,     ///< READ: nothing to place
  kDiscard,  ///< failed or discarded: packets are only counted, until the last one was seen
};

struct RxMessage : Pooled,
                   boost::intrusive::unordered_set_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  ListHook age_hook;         ///< by last activity
  ListHook sender_hook;      ///< among the live messages of its sender, or its discarded ones
  Sender* sender = nullptr;  ///< whose share it comes from
  MessageKey key;
  RxTarget target = RxTarget::kDiscard;
  Endpoint* endpoint = nullptr;  ///< null: closed meanwhile

  // Every packet must repeat these.
  SesOpcode opcode{};
  bool dc = false, rel = false, is_sequenced = false;
  bool is_proven = false;  ///< its source had proved itself when it began
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::uint32_t initiator = 0;
  std::uint64_t mkey_match = 0;
  std::uint64_t buffer_offset = 0;
  std::uint32_t request_length = 0;
  std::uint32_t carried_length = 0;  ///< of that, in its packets: less in a rendezvous

  std::uint64_t seen = 0;  ///< bytes in its packets: says when a discarded message has met them all
  Coverage coverage;       ///< of the others
  std::uint64_t end =
      0;  ///< bytes that will come: less than carried_length when the initiator ended it early
  bool som_seen = false;
  bool hd =
      false;  ///< as the first packet says, whenever it comes: some senders mark only that [docs/interop.md]
  std::uint64_t header_data = 0;
  ReturnCode code = ReturnCode::kOk;  ///< kDiscard: what later packets are told
  bool code_was_told = false;         ///< one guaranteed error is enough [SES 11.2]
  std::int64_t active_at_ns = 0;      ///< last packet, in loop time

  // Where the bytes go.
  Receive* receive = nullptr;
  UnexpectedMessage* unexpected = nullptr;  ///< kCapture; kReceive too in a rendezvous
  PoolRef region;
  std::uint64_t start = 0;  ///< of the message in the buffer or region
  std::uint64_t limit = 0;  ///< bytes of the message that fit
  std::uint64_t placed = 0;

  PoolRef progress;  ///< kRead: counts the data packets that go back

  bool is_consistent_with(const RequestView& r) const;
  bool is_complete() const {
    if (target == RxTarget::kDiscard) return seen >= end;
    return end < carried_length ? coverage.reaches(end) : coverage.is_complete();
  }
};

using MessageList = boost::intrusive::list<
    RxMessage, boost::intrusive::member_hook<RxMessage, ListHook, &RxMessage::sender_hook>>;

/// Of an unordered set of Boost.Intrusive. For tests: how many objects one look-up may have to look at.
template <typename Set>
std::size_t longest_chain(const Set& set) {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < set.bucket_count(); ++i)
    longest = std::max(longest, set.bucket_size(i));
  return longest;
}

/// Twice as many buckets for the objects of `set`; without memory for them those that it has, and longer chains.
template <typename Set>
void grow_buckets(Set& set, std::unique_ptr<typename Set::bucket_type[]>& buckets) {
  const std::size_t n = 2 * set.bucket_count();
  std::unique_ptr<typename Set::bucket_type[]> more(new (std::nothrow)
                                                        typename Set::bucket_type[n]());
  if (more == nullptr) return;
  set.rehash({more.get(), n});
  buckets.swap(more);
}

class RxMessageTable {
 public:
  RxMessageTable(std::uint32_t max, const base::HashKey& hash_key);
  ~RxMessageTable();

  RxMessage* find(const MessageKey& key);
  /// Null when the table is full. `request` supplies what later packets must repeat. Its target is kDiscard.
  RxMessage* create(const MessageKey& key, const RequestView& request, std::int64_t active_ns,
                    Sender& sender, bool is_proven);
  void set_target(RxMessage& message, RxTarget target);
  void release(RxMessage& message);
  /// What is to be said about this packet of a message that is known, or would be its first.
  Coverage::Look look(const RxMessage& message, const RequestView& request) {
    return message.coverage.look(request.message_offset, request.covered, message.carried_length,
                                 windows_);
  }
  Coverage::Look look_at_first(const RequestView& request) {
    return Coverage().look(request.message_offset, request.covered, request.carried_length,
                           windows_);
  }
  /// The packet is one of the message from now on.
  void count(RxMessage& message, const RequestView& request);
  void touch(RxMessage& message, std::int64_t active_ns);

  PdcUse& use() { return use_; }
  std::size_t available() const { return pool_.available(); }
  bool is_empty() const { return by_age_.empty(); }
  std::size_t size() const { return pool_.in_use(); }
  std::size_t longest_chain() const { return ses::longest_chain(by_key_); }
  RxMessage* oldest() { return by_age_.empty() ? nullptr : &by_age_.front(); }
  /// `visit` may release the message it is given, and no other.
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto it = by_age_.begin(); it != by_age_.end();) visit(*it++);
  }

 private:
  struct Hash {
    const base::HashKey* hash_key;
    std::size_t operator()(const RxMessage& m) const { return m.key.hash(*hash_key); }
    std::size_t operator()(const MessageKey& k) const { return k.hash(*hash_key); }
  };
  struct Equal {
    bool operator()(const RxMessage& a, const RxMessage& b) const { return a.key == b.key; }
    bool operator()(const MessageKey& a, const RxMessage& b) const { return a == b.key; }
  };
  using Set = boost::intrusive::unordered_set<RxMessage, boost::intrusive::hash<Hash>,
                                              boost::intrusive::equal<Equal>,
                                              boost::intrusive::power_2_buckets<true>>;
  using AgeList = boost::intrusive::list<
      RxMessage, boost::intrusive::member_hook<RxMessage, ListHook, &RxMessage::age_hook>>;

  const base::HashKey& hash_key_;
  PdcUse use_;
  ChunkedPool<RxMessage> pool_;
  CoveragePool windows_;
  std::unique_ptr<Set::bucket_type[]> buckets_;
  Set by_key_;
  RxMessage* last_found_ = nullptr;  ///< the packets of a long message come in runs
  AgeList by_age_;
};

}  // namespace uet::ses
