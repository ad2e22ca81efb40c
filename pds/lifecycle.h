/// PDCs come and go: opening, the CCC they use, freeing. [PDS 5, 6, 16]
#pragma once

#include "pds/arrival.h"
#include "pds/halves.h"
#include "pds/shared.h"

namespace uet::pds {

class Lifecycle : Part {
 public:
  Lifecycle(Shared& shared, SendWindow& window, ReceivingHalf& receiving);
  /// Whatever is open ends without a word.
  ~Lifecycle();
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;

  /// Null when there is no place, no identifier or no CCC.
  Pdc* open_initiator(Instant now, const TxMessage& request);
  /// open_initiator() finds no place, or no CCC: that of another PDC would help, as it would not for lack of an identifier or of memory.
  bool lacks_place(const TxMessage& request);
  /// A CCC would be there if the target sent something.
  bool can_open_target(const Arrival& in);
  /// The caller has seen that there is room for it.
  Pdc& open_target(Instant now, const Arrival& in, Psn start, PdcInput how);
  /// Nothing has been sent or received before `start`.
  void begin_at(Instant now, Pdc& pdc, Psn start);
  /// A target needs a CCC only when it sends return data; its place was reserved when it was opened.
  bool attach_congestion(Instant now, Pdc& pdc);

  /// The PDC ends here. Its messages have been dealt with before.
  void release(Instant now, Pdc& pdc);
  /// A target PDC that was created by a packet which then was refused: leave nothing behind.
  /// [PDS 6.4]
  void drop_unaccepted(Instant now, Pdc& pdc);

  // --- Identifiers in quarantine
  /// submit() found no place: it is told when an identifier comes free.
  void wait_for_identifier(Instant now) {
    if (table_.next_free_id() > now) next_id_at_ = table_.next_free_id();
  }
  Instant next_deadline() const { return next_id_at_; }
  void on_deadline(Instant now);

 private:
  void join_peer(Pdc& pdc);
  void detach_congestion(Pdc& pdc);
  void detach(Pdc& pdc);

  PdcTable& table_;
  CongestionTable& congestions_;
  Backpressure& room_;
  Scheduler& scheduler_;
  PdcStates& states_;
  SendWindow& window_;
  Openings& openings_;
  KeptResponses& kept_;
  Receiver& receiver_;
  ReorderBuffer& reorder_;
  CreditGrants& credit_;
  std::uint32_t ccc_reserved_ = 0;  ///< target PDCs that may still need a CCC of their own
  Instant next_id_at_ = Instant::never();
};

}  // namespace uet::pds
