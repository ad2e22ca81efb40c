/// What a source remembers of each PSN that is not acknowledged yet, found by PSN. [PDS 4.3]
///
/// A PDC direction has a ring of records addressed by the low bits of the PSN. The ring is a
/// directory of blocks; blocks come from a pool of the endpoint, so a PDC with nothing outstanding
/// holds none. Its first one waits for no other PDC, as long as there is a block for each of them. Further ones are shared by peer: a
/// window stays as long as its oldest packet is not acknowledged, and that is for the peer to say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "cc/transmission.h"
#include "lib/base/check.h"
#include "lib/base/serial.h"
#include "lib/base/units.h"
#include "lib/wire/enums.h"
#include "pds/tx_state.h"

namespace uet::pds {

using base::Instant;
using base::Psn;

struct Message;

/// One outstanding PSN: its state, what the transport knows of its latest transmission, and what became of earlier ones.
class TxRecord {
 public:
  TxState state() const { return state_; }
  bool is_acked() const { return state_ == TxState::kAcked; }
  bool has_arrived() const { return pds::has_arrived(state_); }
  bool waits_for_resend() const { return pds::waits_for_resend(state_); }
  bool is_paused() const { return pds::is_paused(state_); }
  /// By kTxTransitions. An event that is not allowed is an error of ours and changes nothing. The sender half counts some states, so it changes them by SendWindow::move().
  void move(TxEvent on);

  cc::Transmission cc;                  ///< when, how large, by which path, how often
  Instant deadline = Instant::never();  ///< what it means is in the state
  Message* message = nullptr;           ///< null for a sequenced control packet
  std::uint32_t segment = 0;
  wire::ControlType control{};  ///< with message == nullptr
  std::uint8_t rto_cnt = 0;
  std::uint8_t nack_cnt = 0;
  std::uint8_t trim_cnt = 0;  ///< trimming NACKs; no limit, but see NackIntake::after_trim()
  bool sent_with_syn = false;

  /// A NACK ended the latest transmission that is over.
  bool was_refused() const { return was_refused_; }
  /// Some transmission before the present one was not refused: it may have arrived.
  bool is_in_doubt() const { return is_in_doubt_; }
  /// What comes answers a question about the latest transmission: its time says nothing about the path.
  bool was_asked_about() const { return was_asked_about_; }

 private:
  TxState state_ = TxState::kUnsent;
  bool was_refused_ = false;
  bool is_in_doubt_ = false;
  bool was_asked_about_ = false;
};

inline void TxRecord::move(TxEvent on) {
  const TxState next = detail::tx_matrix_at(state_, on);
  const bool is_allowed = next != detail::kNoTxState;
  UET_DCHECK(is_allowed);
  if (!is_allowed) return;
  if (on == TxEvent::kLost || on == TxEvent::kWindowShrank) was_refused_ = false;
  if (on == TxEvent::kRefused) was_refused_ = true;
  if (on == TxEvent::kSent && state_ == TxState::kQueued && !was_refused_) is_in_doubt_ = true;
  if (on == TxEvent::kSent) was_asked_about_ = false;
  if (on == TxEvent::kAsked) was_asked_about_ = true;
  state_ = next;
}

/// Directory of a ring: block numbers, kNoBlock where there is none.
struct TxRing {
  static constexpr std::size_t kBlocks = 32;
  static constexpr std::uint16_t kNoBlock = 0xffff;
  std::array<std::uint16_t, kBlocks> block;
  Psn origin{};           ///< PSN of place 0; a ring whose PSNs are all renumbered only moves this
  std::uint8_t held = 0;  ///< blocks
  std::uint32_t* further_of_peer = nullptr;  ///< what all rings of the peer hold beyond their first
  TxRing() { block.fill(kNoBlock); }
};

class TxBlockPool {
 public:
  /// Rings hold at least `window` PSNs; `blocks` blocks exist, of which rings have at most `further` beyond their first ones.
  TxBlockPool(std::uint32_t window, std::uint32_t blocks, std::uint32_t further);

  /// PSNs that one ring holds.
  std::uint32_t ring_size() const { return ring_size_; }

  /// A fresh record for `psn`, or null where can_add() says no. The ring must not hold a live PSN at
  /// this place.
  TxRecord* add(TxRing& ring, Psn psn) {
    std::uint16_t& block = ring.block[directory_index(ring, psn)];
    if (block == TxRing::kNoBlock) [[unlikely]] {
      if (!may_grow(ring)) return nullptr;
      block = acquire_block(ring);
    }
    ++heads_[block].live;
    ++in_use_;
    return new (record(block, place(ring, psn))) TxRecord;
  }
  /// The record of a live PSN.
  TxRecord& at(const TxRing& ring, Psn psn) {
    return *record(ring.block[directory_index(ring, psn)], place(ring, psn));
  }
  const TxRecord& at(const TxRing& ring, Psn psn) const {
    return records_
        .get()[(static_cast<std::size_t>(ring.block[directory_index(ring, psn)]) << block_shift_) +
               place(ring, psn)];
  }
  void remove(TxRing& ring, Psn psn) {
    std::uint16_t& block = ring.block[directory_index(ring, psn)];
    UET_DCHECK(block != TxRing::kNoBlock);
    --in_use_;
    if (--heads_[block].live == 0) release_block(ring, block);
  }

  std::uint32_t in_use() const { return in_use_; }
  std::uint32_t free_blocks() const { return block_count_ - blocks_in_use_; }
  bool can_add(const TxRing& ring, Psn psn) const {
    return ring.block[directory_index(ring, psn)] != TxRing::kNoBlock || may_grow(ring);
  }

 private:
  struct BlockHead {
    std::uint32_t live;
    std::uint16_t next_free;
  };
  std::size_t directory_index(const TxRing& ring, Psn psn) const {
    return ((psn.value() - ring.origin.value()) & (ring_size_ - 1)) >> block_shift_;
  }
  std::uint32_t place(const TxRing& ring, Psn psn) const {
    return (psn.value() - ring.origin.value()) & (block_size_ - 1);
  }
  TxRecord* record(std::uint16_t block, std::uint32_t index) {
    return records_.get() + (static_cast<std::size_t>(block) << block_shift_) + index;
  }
  /// May it have one more block? A peer leaves a quarter of the further ones to others.
  bool may_grow(const TxRing& ring) const;
  std::uint16_t acquire_block(TxRing& ring);
  void release_block(TxRing& ring, std::uint16_t& block);

  std::uint32_t ring_size_;
  std::uint32_t block_size_;
  unsigned block_shift_;
  std::uint32_t block_count_;
  std::uint32_t further_;
  struct Deleter {
    void operator()(TxRecord* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<TxRecord, Deleter> records_;
  std::unique_ptr<BlockHead[]> heads_;
  std::uint16_t free_head_ = TxRing::kNoBlock;
  std::uint32_t fresh_ = 0;
  std::uint32_t in_use_ = 0;
  std::uint32_t blocks_in_use_ = 0;
  std::uint32_t further_in_use_ = 0;
};

}  // namespace uet::pds
