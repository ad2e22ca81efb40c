/// What a valid packet says of its peer (it lives, this is its PDCID, it hears us) and what silence says. [PDS 2.2, 6.3, 16.1]
#pragma once

#include "pds/admission.h"

namespace uet::pds {

class Liveness : Part {
 public:
  Liveness(Shared& shared, const SendWindow& window, ReceivingHalf& receiving, Closing& closing,
           Admission& admission)
      : Part(shared.env),
        table_(shared.pdcs),
        scheduler_(shared.scheduler),
        states_(shared.states),
        window_(window),
        openings_(receiving.openings),
        kept_(receiving.kept),
        receiver_(receiving.receiver),
        credit_(receiving.credit),
        closing_(closing),
        admission_(admission) {}

  /// The peer lives. What is out it may know nothing of.
  static void lives(Instant now, Pdc& pdc) {
    pdc.heard_at = now;
    pdc.active_at = now;
    pdc.tx.times_asked = 0;
  }
  /// And it has said something new, so that silence after the last packet is counted from here.
  static void heard(Instant now, Pdc& pdc) {
    lives(now, pdc);
    pdc.tx.tail_probes = 0;
  }
  /// The first valid packet of the target says who it is; a second one with another identifier never
  /// gets here. [PDS 6.3]
  void learn_peer(Instant now, Pdc& pdc, std::uint16_t peer_id);
  /// The peer has named our PDCID: it has heard us, knows the PDC, and sends no more SYN packets.
  void prove(Instant now, Pdc& pdc) {
    if (pdc.is_unproven()) on_proof(now, pdc);
  }
  /// Closes what is idle, asks a peer that is silent, and ends the PDC of one that stays so. Looked at now and then rather
  /// than restarted with every packet. [PDS 2.2, 16.1]
  void look(Instant now, Pdc& pdc);

 private:
  struct Wait;
  void on_proof(Instant now, Pdc& pdc);
  Instant end_of_silence(Instant now, const Pdc& pdc, const Wait& wait) const;
  Instant end_of_patience_for_credit(Instant now, const Pdc& pdc) const;
  Instant end_of_repeats(Instant now, const Pdc& pdc, const Wait& wait) const;
  Instant ask(Instant now, Pdc& pdc, const Wait& wait);
  Instant end_of_idleness(Instant now, const Pdc& pdc, const Wait& wait) const;

  PdcTable& table_;
  Scheduler& scheduler_;
  PdcStates& states_;
  const SendWindow& window_;
  Openings& openings_;
  KeptResponses& kept_;
  Receiver& receiver_;
  CreditGrants& credit_;
  Closing& closing_;
  Admission& admission_;
};

}  // namespace uet::pds
