/// Option: a ROD destination holds packets behind a gap instead of dropping them. Same bytes on the
/// wire, one retransmission instead of a window of them. [PDS 17.1, 20.1]
#pragma once

#include <optional>

#include "pds/arrival.h"
#include "pds/environment.h"
#include "pds/nack_queue.h"
#include "pds/pdc_table.h"
#include "pds/peer_shares.h"

namespace uet::pds {

class ReorderBuffer : Part {
 public:
  /// `base_rtt`: the configured one, since the destination knows none of its own.
  ReorderBuffer(Environment& env, const PdcTable& pdcs, PeerShares& peers, NackQueue& nacks,
                Duration base_rtt)
      : Part(env),
        table_(pdcs),
        peers_(peers),
        nacks_(nacks),
        base_rtt_(base_rtt),
        held_(config_.rod_reorder ? config_.held_packets_max : 1),
        index_(held_, config_.rod_reorder ? config_.held_packets_max : 1) {}

  struct Held {
    Arrival arrival;
    net::Packet packet;  ///< keeps the bytes of `arrival` alive
  };

  /// Takes the packet over. False when it cannot be held: then it is dropped and the gap reported.
  bool hold(Instant now, Pdc& pdc, const Arrival& in);
  /// The packet that has become the next one in order.
  std::optional<Held> take_next(Pdc& pdc);
  /// A source that asks has nothing more to send before it knows what is missing, so nothing more will overtake.
  void report_all_gaps(Instant now, Pdc& pdc, const RxMeta& meta);
  /// The PDC ends.
  void release(Pdc& pdc);

 private:
  struct Entry {
    std::uint32_t owner = 0;
    Arrival arrival;
    net::Packet packet;
    std::uint32_t index_next = 0;
  };
  Entry* find(const Pdc& pdc, Psn psn);
  void drop(Pdc& pdc, Entry& entry);
  void report_gaps(Instant now, Pdc& pdc, const RxMeta& meta);
  void begin_round_if_due(Instant now, Pdc& pdc);
  void report_gaps_before(Instant now, Pdc& pdc, const RxMeta& meta, Psn end);
  Duration gap_round(const Pdc& pdc) const;

  const PdcTable& table_;
  PeerShares& peers_;
  NackQueue& nacks_;
  Duration base_rtt_;
  base::FixedPool<Entry> held_;
  base::PoolIndex<Entry, &Entry::index_next> index_;
};

}  // namespace uet::pds
