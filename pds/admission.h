/// Who gets a place when there is none, and what a peer may cost before it has proved that it hears us. See
/// docs/decisions/0100 and 0101. [PDS 5.2]
#pragma once

#include "pds/close.h"

namespace uet::pds {

class Admission : Part {
 public:
  Admission(Environment& env, PdcTable& pdcs, const PdcStates& states, ReceivingHalf& receiving,
            Closing& closing)
      : Part(env),
        table_(pdcs),
        states_(states),
        openings_(receiving.openings),
        kept_(receiving.kept),
        proofs_(receiving.proofs),
        closing_(closing) {}

  /// No address holds more than half of the places, whatever it has proved. Of those that it did not prove the oldest goes first:
  /// they may be forged, and must not keep it out. True when there is a place under this bound.
  bool make_place_under(Instant now, const net::FabricAddress& peer);
  /// For one more target PDC. True when the place is there.
  bool make_place(Instant now);
  /// The table is full for one role.
  void make_room(Instant now, Role role);
  /// SES may answer `psn` with something to keep: true when there is room for it.
  bool has_room_for_answer(Instant now, Pdc& pdc, Psn psn);
  /// An unproven PDC ends.
  void retire(Instant now, Pdc& pdc);
  std::uint64_t evicted() const { return evicted_; }

 private:
  void ask_for_proofs(Instant now);
  bool drop_unanswered_close(Instant now);
  bool evict_unproven(Instant now, Pdc* pdc);
  void evict_answers_of_unproven(Instant now, const Pdc& except);

  PdcTable& table_;
  const PdcStates& states_;
  Openings& openings_;
  KeptResponses& kept_;
  ProofRequests& proofs_;
  Closing& closing_;
  std::uint64_t evicted_ = 0;
};

}  // namespace uet::pds
