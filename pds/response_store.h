/// What a destination remembers of single PSNs: answers SES still owes, guaranteed answers kept
/// until the source clears them, and acknowledgements that are to be sent. [PDS 9, 10, 11.2]
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/fixed_pool.h"
#include "lib/base/serial.h"
#include "lib/base/units.h"
#include "pds/pds.h"

namespace uet::pds {

/// Facts of one received copy of a packet that its ACK repeats.
struct RxMeta {
  Instant arrived;
  std::uint32_t bytes = 0;  ///< SES header and payload
  std::uint16_t entropy = 0;
  std::uint8_t plane = 0;
  bool ecn : 1 = false;
  bool retx : 1 = false;
  bool ack_now : 1 = false;  ///< ar, syn, retx or CE: no coalescing
};

/// In a cache line of its own.
struct alignas(64) RxRecord {
  enum class State : std::uint8_t {
    kAckOnly,  ///< only an ACK to send; forgotten afterwards
    kPending,  ///< delivered, SES has not answered
    kStored,   ///< guaranteed answer, kept until cleared
  };
  Psn psn;
  std::uint32_t owner = 0;  ///< slot of the PDC
  State state = State::kAckOnly;
  bool queued = false;        ///< in the PDC's list of ACKs to send
  bool queued_first = false;  ///< in its part that goes before everything
  bool urgent = false;        ///< ROD: may be sent before the ACKs of smaller PSNs
  std::uint8_t next_hdr = 0;
  std::uint8_t header_bytes = 0;
  std::uint16_t data_bytes = 0;
  RxMeta meta;
  std::array<std::uint8_t, 20> header{};
  std::uint32_t hash_next = 0;
  std::uint32_t queue_next = base::kNoIndex;
  std::uint32_t queue_before = base::kNoIndex;
};
static_assert(sizeof(RxRecord) == 64);

/// RxRecords of one PDC whose ACKs are to be sent. The peer decides how many there are and in which part, so nothing walks over one
/// part to find a place in the other.
struct AckQueue {
  struct Part {
    std::uint32_t head = base::kNoIndex;
    std::uint32_t tail = base::kNoIndex;
  };
  Part first;  ///< youngest at the head
  Part rest;   ///< oldest, or lowest PSN, at the head
  bool is_empty() const { return first.head == base::kNoIndex && rest.head == base::kNoIndex; }
};

class ResponseStore {
 public:
  /// `kept` bounds pending and stored records together, `acks` the others; `max_data` is the room
  /// for read data.
  ResponseStore(std::uint32_t kept, std::uint32_t acks, std::uint16_t max_data,
                const base::HashKey& key);

  /// Room for one more pending or stored record. A few places are only for PSNs that close a gap (`at_edge`): their
  /// answers can always be cleared, while answers beyond a gap cannot, and could otherwise keep out the very packet
  /// that the source must deliver before it may clear anything.
  bool can_keep(bool at_edge) const { return kept_ < kept_max_ + (at_edge ? kEdgeReserve : 0); }
  std::uint32_t kept() const { return kept_; }
  /// After an answer turned a pending record into an ACK alone.
  bool has_too_many_acks() const { return pool_.in_use() - kept_ > acks_max_; }
  std::uint32_t in_use() const { return pool_.in_use(); }
  std::uint32_t longest_chain() { return index_.longest_chain(); }

  /// Null when the pool is exhausted.
  RxRecord* add(std::uint32_t owner, Psn psn, RxRecord::State state, const RxMeta& meta);
  /// The pending or stored record of a PSN.
  RxRecord* find(std::uint32_t owner, Psn psn);
  /// Becomes kStored, kAckOnly or kPending.
  void change_state(RxRecord& record, RxRecord::State state);
  void set_response(RxRecord& record, const SesResponse& response);
  std::span<const std::uint8_t> data_of(const RxRecord& record) const;
  /// Forgets it; must not be queued.
  void remove(RxRecord& record);
  static constexpr std::uint32_t kEdgeReserve = 64;

  void push(AckQueue& queue, RxRecord& record);
  /// In PSN order: behind everything that is not after `record`, but for what goes before everything. ROD delivers in this order,
  /// so that only answers that SES gives later pass others.
  void push_ordered(AckQueue& queue, RxRecord& record);
  /// Before everything, in order or not.
  void push_front(AckQueue& queue, RxRecord& record);
  RxRecord* front(const AckQueue& queue);
  /// The last one of those that wait for their turn.
  RxRecord* back(const AckQueue& queue) {
    return queue.rest.tail == base::kNoIndex ? nullptr : &pool_.at(queue.rest.tail);
  }
  RxRecord* pop(AckQueue& queue);
  /// Takes one record out of the middle.
  void unqueue(AckQueue& queue, RxRecord& record);
  /// Records that push_ordered() has passed since the start.
  std::uint64_t passed() const { return passed_; }

 private:
  using Part = AckQueue::Part;
  /// `after` base::kNoIndex: at the head.
  void link(Part& part, std::uint32_t after, RxRecord& record);
  std::size_t hash(std::uint32_t owner, Psn psn) const {
    return key_(std::uint64_t{owner} << 32 | psn.value());
  }

  const base::HashKey& key_;

  base::FixedPool<RxRecord> pool_;
  base::PoolIndex<RxRecord, &RxRecord::hash_next> index_;
  std::uint32_t kept_max_;
  std::uint32_t acks_max_;
  std::uint32_t kept_ = 0;
  std::uint64_t passed_ = 0;
  std::uint16_t max_data_;
  std::unique_ptr<std::uint8_t[]> data_;
};

}  // namespace uet::pds
