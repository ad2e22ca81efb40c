/// What a source remembers of each PSN that is not acknowledged yet, found by PSN. [PDS 4.3]
///
/// A PDC direction has a ring of records addressed by the low bits of the PSN. The ring is a
/// directory of blocks; blocks come from a pool of the endpoint, so a PDC with nothing outstanding
/// holds none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cc/ccc.h"
#include "lib/base/serial.h"
#include "lib/base/units.h"
#include "lib/wire/enums.h"

namespace uet::pds {

using base::Instant;
using base::Psn;

struct Message;

/// One outstanding PSN.
struct TxRecord {
  cc::Transmission cc;
  /// Timeout of the latest transmission, or end of the pause after a resource NACK. Never while it
  /// waits to be resent.
  Instant deadline = Instant::never();
  Message* message = nullptr;  ///< null for a sequenced control packet
  std::uint32_t segment = 0;
  wire::ControlType control{};  ///< with message == nullptr
  std::uint8_t rto_cnt = 0;
  std::uint8_t nack_cnt = 0;
  std::uint8_t trim_cnt = 0;  ///< trimming NACKs; no limit, but see NackIntake::after_trim()
  bool acked : 1 = false;     ///< response handed to SES; the record waits for the left edge
  bool arrived : 1 =
      false;  ///< SACK or NACK said that the peer has it; its response is still missing
  bool needs_rtx : 1 = false;  ///< waits for permission to be sent again
  bool paused : 1 = false;     ///< waits for the end of a NACK pause
  bool ask_ack : 1 = false;    ///< an ACK Request control packet is to be sent for it
  bool asked_ack : 1 = false;  ///< one has been sent for the present transmission
  bool sent_with_syn : 1 = false;
  bool was_refused : 1 = false;  ///< a NACK ended the transmission before the present one
  bool in_doubt : 1 = false;     ///< some earlier transmission was not refused: it may have arrived
  bool wants_place : 1 = false;  ///< `paused` since the target had no place to keep the answer
  bool suspected : 1 = false;    ///< `deadline` is the end of the reordering window, not an RTO
};

/// Directory of a ring: block numbers, kNoBlock where there is none.
struct TxRing {
  static constexpr std::size_t kBlocks = 32;
  static constexpr std::uint16_t kNoBlock = 0xffff;
  std::array<std::uint16_t, kBlocks> block;
  Psn origin{};  ///< PSN of place 0; a ring whose PSNs are all renumbered only moves this
  TxRing() { block.fill(kNoBlock); }
};

class TxBlockPool {
 public:
  /// Rings hold at least `window` PSNs; `blocks` blocks exist.
  TxBlockPool(std::uint32_t window, std::uint32_t blocks);

  /// PSNs that one ring holds.
  std::uint32_t ring_size() const { return ring_size_; }

  /// A fresh record for `psn`, or null when no block is left. The ring must not hold a live PSN at
  /// this place.
  TxRecord* add(TxRing& ring, Psn psn);
  /// The record of a live PSN.
  TxRecord& at(const TxRing& ring, Psn psn) {
    return *record(ring.block[directory_index(ring, psn)], place(ring, psn));
  }
  const TxRecord& at(const TxRing& ring, Psn psn) const {
    return records_
        .get()[(static_cast<std::size_t>(ring.block[directory_index(ring, psn)]) << block_shift_) +
               place(ring, psn)];
  }
  void remove(TxRing& ring, Psn psn);

  std::uint32_t in_use() const { return in_use_; }
  bool can_add(const TxRing& ring, Psn psn) const {
    return ring.block[directory_index(ring, psn)] != TxRing::kNoBlock ||
           free_head_ != TxRing::kNoBlock || fresh_ < block_count_;
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
  std::uint16_t acquire_block();

  std::uint32_t ring_size_;
  std::uint32_t block_size_;
  unsigned block_shift_;
  std::uint32_t block_count_;
  struct Deleter {
    void operator()(TxRecord* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<TxRecord, Deleter> records_;
  std::unique_ptr<BlockHead[]> heads_;
  std::uint16_t free_head_ = TxRing::kNoBlock;
  std::uint32_t fresh_ = 0;
  std::uint32_t in_use_ = 0;
};

}  // namespace uet::pds
