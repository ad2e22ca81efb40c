/// The working parts of one Pds. Not for users: include pds/pds.h.
///
/// One Engine per Pds. Its data is here in one place; what it does is in one file per concern:
///
///   engine.cc      construction
///   submit.cc      messages in, PDC choice
///   schedule.cc    whose turn it is, timers
///   tx_data.cc     cut and send one Request
///   tx_ack.cc      build ACKs
///   tx_control.cc  control packets out
///   receive.cc     packet in: type, lengths, which PDC, checks
///   rx_request.cc  a Request's PSN: new, duplicate, refused
///   rx_deliver.cc  hand up, record the answer, decide about the ACK
///   rx_ack.cc      ACK in
///   rx_nack.cc     NACK in
///   rx_control.cc  control packets in
///   hold.cc        ROD packets held behind a gap
///   loss.cc        timeouts, inference, go-back-N
///   clear.cc       CLEAR and the stall rule
///   lifecycle.cc   open, attach, learn, free
///   close.cc       graceful close, failure
///   keep.cc        who may keep how many answers
///   proof.cc       what a peer may cost before it has proved that it hears us
///   secure_opening.cc  openings that must be confirmed
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "pds/arrival.h"
#include "pds/clear.h"
#include "pds/congestion.h"
#include "pds/credit_grants.h"
#include "pds/environment.h"
#include "pds/failed_messages.h"
#include "pds/kept_responses.h"
#include "pds/loss.h"
#include "pds/message.h"
#include "pds/nack_queue.h"
#include "pds/nominal.h"
#include "pds/openings.h"
#include "pds/pdc.h"
#include "pds/pdc_states.h"
#include "pds/pdc_table.h"
#include "pds/pds.h"
#include "pds/psn_class.h"
#include "pds/receiver.h"
#include "pds/renumbering.h"
#include "pds/reorder_buffer.h"
#include "pds/ring.h"
#include "pds/rudi.h"
#include "pds/scheduler.h"
#include "pds/tx_ack.h"
#include "pds/tx_control.h"
#include "pds/tx_poll.h"
#include "pds/uud.h"

namespace uet::pds {

/// Comes before the parts, which refer to it.
struct EngineEnvironment {
  Environment own_env_;
};

struct Engine : EngineEnvironment, Part {
  Engine(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
         net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper);
  ~Engine();

  // --- engine.cc
  Instant next_deadline() const;
  Pds::Gauges gauges() const;

  // --- submit.cc
  SubmitResult submit(Instant now, const TxMessage& request);
  SubmitResult submit_return(Instant now, RxHandle handle, const TxMessage& request);
  void append(Instant now, Pdc& pdc, const TxMessage& request);
  Pdc* choose_pdc(Instant now, const TxMessage& request, bool& must_wait);
  void abort(Instant now, MessageToken token);
  std::uint32_t truncate(Instant now, MessageToken token, std::uint32_t extra_segments);
  void unlock(Instant now, PdcRef ref);

  // --- schedule.cc
  bool poll_transmit(Instant now, net::TxPacket& out, std::uint8_t free_planes);
  bool may_have_packets() const {
    return !scheduler_.is_idle() || !nacks_.is_empty() || !built_.is_empty() || !uud_.is_idle() ||
           !rudi_.is_idle() || room_.has_news();
  }
  void on_planes_changed(Instant now, std::uint8_t up);
  void on_deadline(Instant now);
  void run_timers(Instant now, Pdc& pdc);
  void on_liveness(Instant now, Pdc& pdc);

  // --- receive.cc
  void on_packet(Instant now, net::RxPacket rx);
  void on_request_packet(Instant now, net::RxPacket& rx, bool has_cc_state);
  /// The live PDC a sequenced packet belongs to, opened if need be; null when the packet was dealt
  /// with.
  Pdc* find_for(Instant now, const Arrival& in);
  Pdc* find_for_syn(Instant now, const Arrival& in);
  Pdc* open_target(Instant now, const Arrival& in);
  Pdc& add_target(Instant now, const Arrival& in, Psn start, PdcInput how);
  void on_trimmed(Instant now, const Arrival& in);

  // --- secure_opening.cc
  void challenge(Instant now, const Arrival& in, Psn announced);
  Pdc* confirm_opening(Instant now, Pdc& pdc, const Arrival& in);
  void reap_half_open(Instant now, Pdc& pdc);

  // --- receive.cc, whatever the packet
  void heard(Instant now, Pdc& pdc) {
    pdc.heard_at = now;
    pdc.active_at = now;
    pdc.tx.tail_probes = 0;
    pdc.tx.times_asked = 0;
  }
  void learn_peer(Instant now, Pdc& pdc, std::uint16_t peer_id);

  // --- rx_request.cc
  void on_sequenced(Instant now, const Arrival& in);
  void on_duplicate(Instant now, Pdc& pdc, const Arrival& in, bool finished);
  void on_rod_gap(Instant now, Pdc& pdc, const Arrival& in);

  // --- rx_deliver.cc
  void deliver(Instant now, Pdc& pdc, const Arrival& in);
  void respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed);

  // --- hold.cc
  void deliver_held(Instant now, Pdc& pdc);

  // --- rx_ack.cc
  void on_ack_packet(Instant now, const net::RxPacket& rx);
  std::optional<AckIn> parse_ack(Instant now, const net::RxPacket& rx);
  bool speaks_of_what_was_sent(const Pdc& pdc, const AckIn& in) const;
  bool shows_an_arrival(const Pdc& pdc, const AckIn& in) const;
  void on_ack(Instant now, Pdc& pdc, AckIn& in);
  bool acknowledge(Instant now, Pdc& pdc, Psn psn, std::uint8_t next_hdr,
                   std::span<const std::uint8_t> body);
  void apply_sack(Instant now, Pdc& pdc, const AckIn& in);
  bool is_gap_open(const Pdc& pdc, const AckIn& in) const;
  std::optional<Psn> newest_arrival(const Pdc& pdc, const AckIn& in) const;
  void advance_left(Pdc& pdc);

  // --- rx_nack.cc
  void on_nack_packet(Instant now, const net::RxPacket& rx);
  void on_nack(Instant now, Pdc& pdc, const wire::PdsNack& nack, const RxMeta& meta);
  void on_fatal_nack(Instant now, Pdc& pdc, const wire::PdsNack& nack, PdsError error);
  void pause(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
             const RxMeta& meta);
  bool resend_now(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
                  const RxMeta& meta);
  void after_trim(Instant now, Pdc& pdc, Psn psn, TxRecord& record);
  void on_rod_ooo(Instant now, Pdc& pdc, const wire::PdsNack& nack, const RxMeta& meta);
  void on_ses_busy(Instant now, Pdc& pdc, TxRecord& record);

  // --- rx_control.cc
  void on_control_packet(Instant now, const net::RxPacket& rx);
  bool is_believable(const Pdc& pdc, const wire::PdsControl& header) const;
  void on_ack_request(Instant now, Pdc& pdc, const wire::PdsControl& header, const RxMeta& meta);
  void on_probe(Instant now, Pdc& pdc, const wire::PdsControl& header, const RxMeta& meta);
  void on_credit(Instant now, Pdc& pdc, std::uint32_t credit_units);

  // --- rx_control.cc, sequenced
  void on_sequenced_control(Instant now, Pdc& pdc, const Arrival& in);
  void on_close_request(Instant now, Pdc& pdc);

  // --- lifecycle.cc
  Pdc* open_initiator(Instant now, const TxMessage& request);
  void init_halves(Instant now, Pdc& pdc, Psn start);
  bool attach_congestion(Instant now, Pdc& pdc);
  void detach_congestion(Pdc& pdc);
  void begin_close(Instant now, Pdc& pdc);
  void try_close(Instant now, Pdc& pdc);
  void on_close_timer(Instant now, Pdc& pdc);
  bool is_given_up(Instant now, const Pdc& pdc) const;
  void break_uncleared(Instant now, Pdc& pdc);
  void on_timeouts_exhausted(Instant now, Pdc& pdc);
  void on_close_acknowledged(Instant now, Pdc& pdc);
  void on_close_command(Instant now, Pdc& pdc, const Arrival& in);
  void try_finish_target_close(Instant now, Pdc& pdc);
  /// A NACK that says of one packet that the target does not know its PDC.
  struct Refusal {
    Psn psn;
    bool was_sent_once = false;
  };
  void fail(Instant now, Pdc& pdc, PdsError error, const std::optional<Refusal>& refusal = {});
  static bool is_known_undelivered(Psn psn, const TxRecord& record, PdsError error,
                                   const std::optional<Refusal>& refusal);
  void free_pdc(Instant now, Pdc& pdc);
  void drop_unaccepted(Instant now, Pdc& pdc);
  void finish_target_close(Instant now, Pdc& pdc);
  void make_room(Instant now, bool for_initiator);
  void close_all(Instant now);
  bool is_idle() const;
  Duration close_grace() const;

  // --- proof.cc
  void prove(Instant now, Pdc& pdc);
  bool evict_unproven(Instant now);
  void retire_unproven(Instant now, Pdc& pdc);
  bool make_place_for_stranger(Instant now);

  // --- keep.cc
  bool has_room_for_answer(Instant now, Pdc& pdc, Psn psn);
  void evict_answers_of_unproven(Instant now, const Pdc& except);

  Backpressure room_;
  Scheduler scheduler_;
  PdcStates states_;
  NackQueue nacks_;
  PdcTable table_;
  CongestionTable congestions_;
  MessageTable messages_;
  FailedMessages failed_;
  SendWindow window_;
  TxBlockPool& tx_blocks_;
  LossRecovery loss_;
  ClearSender clear_;
  ProofRequests proofs_;
  Openings openings_;
  KeptResponses kept_;
  Receiver receiver_;
  ReorderBuffer reorder_;
  Renumbering renumbering_;

  CreditGrants credit_;
  AckBuilder acks_;
  ControlSender controls_;
  DataSender sender_;
  DataPoll data_;

  Ring<net::TxPacket> built_;  ///< last ACKs of closed PDCs, RUDI responses
  Rudi rudi_;
  Uud uud_;
  std::uint64_t half_open_reaped_ = 0;
  std::uint64_t unproven_evicted_ = 0;
  std::uint64_t clear_breaks_ = 0;
  std::uint32_t ccc_reserved_ = 0;         ///< target PDCs that may still need a CCC of their own
  std::uint32_t close_wanted_ = 0;         ///< PDCs in CREATING that are to close once established
  Instant next_id_at_ = Instant::never();  ///< submit() waits for an identifier in quarantine
  Planes planes_;
  bool rudi_turn_ = false;
};

}  // namespace uet::pds
