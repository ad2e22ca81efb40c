/// The operations of initiators, and the memory that each holds until it is over.
#pragma once

#include "ses/core.h"
#include "ses/message_ids.h"
#include "ses/pdc_use.h"
#include "ses/rendezvous_sources.h"
#include "ses/slab.h"
#include "ses/small_reads.h"
#include "ses/tx_op.h"

namespace uet::ses {

/// Every operation that was posted and is not over, by age, by token and by message id. Some descriptors are kept for what the
/// target's half asks of us, so that users cannot take them all.
class Operations {
 public:
  using ByAge = OpList<&TxOp::all_hook>;

  Operations(Core& core, RendezvousSources& sources);
  ~Operations() {
    by_age_.clear();
    ended_.clear();
  }
  Operations(const Operations&) = delete;
  Operations& operator=(const Operations&) = delete;

  /// A descriptor as its last user left it; null when all that users get are taken.
  TxOp* acquire() { return free_for_users() > 0 ? take() : nullptr; }
  /// One of those that are kept for READs of rendezvous and requests to restart.
  TxOp* acquire_for_fetch();
  /// It was acquired, and nothing else came of it.
  void give_back(TxOp& op) { pool_.release(&op); }
  void give_back_for_fetch(TxOp& op);

  /// The bytes go into a block of ours, so that the user may change its buffer at once. False when there is no room.
  bool copy_in(TxOp& op, std::span<const iovec> iov, DeviceMemory* device);
  /// Operands of an atomic; null when there is no room. They are the operation's once it has them.
  AtomicPart* acquire_atomic() { return atomics_.acquire(); }
  void give_back_atomic(AtomicPart& part) { atomics_.release(&part); }

  /// It is posted: the newest of all.
  void begin(TxOp& op) {
    core_.peers.hold(*op.peer);
    by_age_.push_back(op);
  }
  /// The operation is over, and its descriptor free.
  void release(TxOp& op);
  /// The operation is over, and its target still owes op.owed: it keeps its descriptor and its message id, and nothing else, until that
  /// has come, its PDC is gone, or another operation needs the descriptor. [SES 4.1]
  void end(TxOp& op);
  /// Part of what an ended operation is owed has come.
  void take_owed(TxOp& op, std::size_t bytes);
  /// Nothing more comes on this PDC.
  void forget_ended(pds::PdcRef pdc);
  /// What it holds besides its descriptor.
  void release_memory(TxOp& op);

  ByAge& by_age() { return by_age_; }
  /// By the packet that asked.
  SmallReads& small_reads() { return small_reads_; }

  /// The one that packet delivery knows by this token: only its present attempt, and only while it has that.
  TxOp* find(pds::MessageToken token) {
    TxOp* op = pool_.at(index_of(token));
    if (op == nullptr || op->state != OpState::kCarried) return nullptr;
    return op->token() == token ? op : nullptr;
  }
  TxOp* find(PoolRef ref) { return pool_.find(ref); }
  /// The one that peers know by this message id.
  TxOp* find_carried(std::uint16_t message_id);
  /// The same, if something may come for it in the return direction, though it may have ended.
  TxOp* find_returning(std::uint16_t message_id);
  /// The one that its target may put off under this token. [SES 8.2]
  TxOp* find_deferrable(std::uint32_t token);

  /// Gives it a message id, in the place of the one that it had.
  void name(TxOp& op) {
    ids_.give_back(op.message_id);
    op.message_id = ids_.take(op.pool_index);
  }

  std::size_t free_for_users() const { return max_ - in_use() - kept_for_fetches_; }
  /// Without those that ended.
  std::size_t in_use() const { return pool_.in_use() - ended_count_; }
  std::size_t ended() const { return ended_count_; }
  /// Of those that ended, how many forget_ended() has looked at in vain.
  std::uint64_t passed() const { return passed_; }
  std::uint32_t max() const { return max_; }

 private:
  /// There is one, perhaps that of an ended operation.
  TxOp* take() {
    if (pool_.available() == 0) [[unlikely]]
      forget(ended_.front());
    return pool_.acquire();
  }
  void forget(TxOp& ended);
  void free_descriptor(TxOp& op);
  TxOp* find_id(std::uint16_t message_id);

  Core& core_;
  RendezvousSources& sources_;
  std::uint32_t max_;  ///< that are not over
  ChunkedPool<TxOp> pool_;
  ChunkedPool<AtomicPart> atomics_;
  Slab injected_;
  SmallReads small_reads_;
  MessageIds ids_;
  ByAge by_age_;
  ByAge ended_;
  std::size_t ended_count_ = 0;
  PdcUse ended_on_;
  std::uint64_t passed_ = 0;
  std::uint32_t kept_for_fetches_;  ///< descriptors that users do not get
};

}  // namespace uet::ses
