/// The receiving half of a PDC: what has arrived, what was answered, when it is acknowledged, and which responses are kept
/// until the source clears them. [PDS 7.3, 9.3, 9.4, 10.2, 11.2]
///
/// It is told of packets that the verdict let through and of answers of SES; ACKs that are due are listed with the scheduler.
#pragma once

#include "pds/arrival.h"
#include "pds/environment.h"
#include "pds/kept_responses.h"
#include "pds/nack_queue.h"
#include "pds/pdc_table.h"
#include "pds/proof_requests.h"
#include "pds/scheduler.h"

namespace uet::pds {

class Receiver : Part {
 public:
  Receiver(Environment& env, const PdcTable& pdcs, KeptResponses& kept, Scheduler& scheduler,
           NackQueue& nacks, ProofRequests& proofs)
      : Part(env),
        table_(pdcs),
        kept_(kept),
        responses_(kept.store()),
        scheduler_(scheduler),
        nacks_(nacks),
        proofs_(proofs),
        trackers_(limits_.window, limits_.rx_trackers) {}

  /// False when a packet out of order, or one that is answered later, could not be recorded.
  bool can_track(const Pdc& pdc) const { return pdc.rx.tracker != nullptr || has_trackers(); }
  bool has_trackers() const { return !trackers_.is_exhausted(); }
  /// A new data packet that SES has taken. The caller has seen that it can be tracked and its answer kept.
  void accept(Instant now, Pdc& pdc, const Arrival& in, const Answer& answer);
  /// A new sequenced control packet. False when it cannot be recorded.
  [[nodiscard]] bool accept_control(Instant now, Pdc& pdc, const Arrival& in);
  /// Notes that `psn` came. Closing calls it for a Close Command that waits for answers of SES.
  void mark_received(Pdc& pdc, Psn psn);
  /// The answer of SES to a packet that was answered later. False when none is owed.
  [[nodiscard]] bool respond(Instant now, Pdc& pdc, Psn psn, const SesResponse& response,
                             bool guaranteed);

  /// CLEAR, cumulative and monotonic: the highest one seen counts, in whatever order they arrive. [PDS 11.2]
  void accept_clear(Instant now, Pdc& pdc, Psn clear);
  Psn highest_stored(const Pdc& pdc) const;

  /// Answers for a received PSN above CACK that a duplicate or an ACK Request asks for.
  void answer_known(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control = false);
  /// One ACK with the default response for a PSN that is finished. A control packet has none. [PDS 10.1]
  void queue_finished_ack(Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control = false);
  /// An ACK that only reports CACK and SACK.
  void queue_update(Pdc& pdc, const RxMeta& meta);
  /// Answers with much read data that were kept back until the peer proved itself.
  void release_withheld(Pdc& pdc);
  /// The PDC ends: nothing of it is kept.
  void release(Pdc& pdc);

 private:
  void note_received(Instant now, Pdc& pdc, const Arrival& in);
  static void note_distance(Pdc& pdc) {
    if ((pdc.rx.cack + 1).value() - pdc.start.value() >= 0x8000'0000u) pdc.rx.is_past_half = true;
  }
  void on_answer(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, const SesResponse& response,
                 bool guaranteed, RxRecord* pending);
  bool asks_for_ack(RxHalf& rx, const RxMeta& meta, const SesResponse& response) const;
  void acknowledge(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, const SesResponse& response,
                   bool is_stored, RxRecord* record);
  RxRecord* take_over_waiting_ack(Pdc& pdc, Psn psn, const RxMeta& meta);
  void advance_cack(Pdc& pdc);
  void queue_ack(Pdc& pdc, RxRecord& record);
  void release_tracker(Pdc& pdc);

  const PdcTable& table_;
  KeptResponses& kept_;
  ResponseStore& responses_;
  Scheduler& scheduler_;
  NackQueue& nacks_;
  ProofRequests& proofs_;
  RxTrackerPool trackers_;
};

}  // namespace uet::pds
