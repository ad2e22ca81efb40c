/// Carries out the verdict about a sequenced packet: hands it to SES, answers it again, or refuses it. [PDS 7.3, 9.2 to 9.4]
#pragma once

#include "pds/target_opening.h"

namespace uet::pds {

class SequencedIntake : Part {
 public:
  SequencedIntake(Environment& env, PdcTable& pdcs, NackQueue& nacks, ReceivingHalf& receiving,
                  AckBuilder& acks, Life& life, TargetOpening& opening)
      : Part(env),
        table_(pdcs),
        nacks_(nacks),
        openings_(receiving.openings),
        kept_(receiving.kept),
        receiver_(receiving.receiver),
        reorder_(receiving.reorder),
        acks_(acks),
        lifecycle_(life.lifecycle),
        closing_(life.closing),
        admission_(life.admission),
        liveness_(life.liveness),
        opening_(opening) {}

  void on_packet(Instant now, const Arrival& in);
  /// Only the headers of a trimmed packet can be trusted, so it causes a NACK or the answer to a duplicate and nothing else.
  /// [PDS 13.6]
  void on_trimmed(Instant now, const Arrival& in);
  /// The same in a secure domain, where the header of a trimmed packet is not authentic: it can only ask for one packet to be sent
  /// again, on a PDC of its sender and where that packet is missing. It changes nothing else, not even credit. [TSS 9.4]
  void on_trim_hint(Instant now, const Arrival& in);
  /// The answer of SES to a packet that was answered later.
  void respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed);

 private:
  bool find_trimmed_opening(Instant now, const Arrival& in, Pdc*& pdc);
  void on_duplicate(Instant now, Pdc& pdc, const Arrival& in, bool is_finished);
  void on_gap(Instant now, Pdc& pdc, const Arrival& in);
  bool makes_room(Instant now, Pdc& pdc, const Arrival& in);
  void deliver(Instant now, Pdc& pdc, const Arrival& in);
  void deliver_held(Instant now, Pdc& pdc);
  void on_control(Instant now, Pdc& pdc, const Arrival& in);
  void refuse(Instant now, Pdc& pdc, const Arrival& in, Refusal refusal);

  PdcTable& table_;
  NackQueue& nacks_;
  Openings& openings_;
  KeptResponses& kept_;
  Receiver& receiver_;
  ReorderBuffer& reorder_;
  AckBuilder& acks_;
  Lifecycle& lifecycle_;
  Closing& closing_;
  Admission& admission_;
  Liveness& liveness_;
  TargetOpening& opening_;
};

}  // namespace uet::pds
