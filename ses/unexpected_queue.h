/// The unexpected messages of one space of one endpoint, and which of them a receive takes. [SES 7.1]
#pragma once

#include <cstdint>
#include <memory>

#include "ses/unexpected_store.h"

namespace uet::ses {

/// Messages in order of arrival. From a certain number on they are also hashed by the bits of their tags that receives look at: programs
/// that talk MPI ignore the same bits in nearly every receive, whatever the tag.
class UnexpectedQueue {
 public:
  using ArrivalList = boost::intrusive::list<
      UnexpectedMessage,
      boost::intrusive::member_hook<UnexpectedMessage, ListHook, &UnexpectedMessage::hook>,
      boost::intrusive::constant_time_size<true>>;

  /// Messages without a tag are not hashed.
  explicit UnexpectedQueue(bool tagged) : tagged_(tagged) {}
  UnexpectedQueue(const UnexpectedQueue&) = delete;
  UnexpectedQueue& operator=(const UnexpectedQueue&) = delete;

  void push_back(UnexpectedMessage& message);
  /// `message` is older than all that came after `place`, and has the tag of `place`.
  void insert_before(UnexpectedMessage& place, UnexpectedMessage& message);
  void remove(UnexpectedMessage& message);
  /// For a receive: the oldest that the filter accepts, without those of which only the header is here.
  UnexpectedMessage* find(const Filter& filter);
  /// For a peek: the oldest that the filter accepts, if its first packet has come. One that waits for it hides the later ones of its
  /// source, which a peek sees in their order, and of no other. [SES 7.3] `number` of the peek: no other of this endpoint has it.
  UnexpectedMessage* find_for_peek(const Filter& filter, std::uint64_t number);
  const ArrivalList& arrivals() const { return arrivals_; }
  /// The bits that messages are hashed without, for tests.
  std::uint64_t indexed_ignore() const { return ignore_; }
  /// For tests.
  std::size_t buckets() const { return std::size_t{1} << bucket_bits_; }
  UnexpectedMessage* front() { return arrivals_.empty() ? nullptr : &arrivals_.front(); }

 private:
  static constexpr int kFewestBits = 8, kMostBits = 16;
  /// Messages in a bucket, on the average, from which on there are more buckets.
  static constexpr std::size_t kCrowded = 8;
  /// Below this many messages a walk over all is faster.
  static constexpr std::size_t kHashFrom = 8;

  using BucketList = boost::intrusive::list<
      UnexpectedMessage,
      boost::intrusive::member_hook<UnexpectedMessage, ListHook, &UnexpectedMessage::bucket_hook>,
      boost::intrusive::constant_time_size<false>>;

  /// Calls `use` with one of the lists that have all messages which the filter accepts, oldest first.
  template <class Use>
  UnexpectedMessage* with_list(const Filter& filter, const Use& use);
  BucketList& bucket_of(std::uint64_t tag) {
    return buckets_[tag_hash(tag, ignore_) >> (64 - bucket_bits_)];
  }
  bool is_indexed_for(std::uint64_t ignore);
  bool is_crowded() const {
    return bucket_bits_ < kMostBits && arrivals_.size() > kCrowded << bucket_bits_;
  }
  int bits_for_all() const;

  bool tagged_;
  ArrivalList arrivals_;
  std::unique_ptr<BucketList[]> buckets_;  ///< null: not hashed yet
  int bucket_bits_ = kFewestBits;          ///< of their number
  std::uint64_t ignore_ = 0;               ///< what the buckets leave out of tags
  std::uint64_t last_ignore_ = 0;          ///< of the last filter that had to be looked for
};

}  // namespace uet::ses
