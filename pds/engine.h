/// The working parts of one Pds. Not for users: include pds/pds.h.
///
/// One Engine per Pds. Its data is here in one place; what it does is in one file per concern:
///
///   engine.cc      construction
///   submit.cc      messages in, PDC choice
///   schedule.cc    whose turn it is, timers
///   tx_data.cc     cut and send one Request
///   tx_ack.cc      build ACKs
///   tx_nack.cc     NACKs out
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
///   credit.cc      RCCC demand and grants
///   keep.cc        who may keep how many answers
///   proof.cc       what a peer may cost before it has proved that it hears us
///   rudi.cc        RUDI and UUD
///   secure_opening.cc  openings that must be confirmed
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cc/credit_pacer.h"
#include "cc/receiver.h"
#include "lib/base/timing_wheel.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "pds/congestion.h"
#include "pds/message.h"
#include "pds/nack_limiter.h"
#include "pds/pdc.h"
#include "pds/pdc_table.h"
#include "pds/pds.h"
#include "pds/peer_shares.h"
#include "pds/pool_sizes.h"
#include "pds/response_store.h"
#include "pds/ring.h"
#include "pds/rudi.h"
#include "pds/rx_tracker.h"
#include "pds/tombstones.h"
#include "pds/tx_window.h"
#include "pds/unproven.h"

namespace uet::pds {

using base::ByteCount;
using base::DropReason;
using base::EventId;
using wire::ControlType;
using wire::NackCode;
using wire::NextHdr;

/// A sequenced packet that arrived: a RUD or ROD Request, or a control packet that consumes a PSN.
struct Arrival {
  net::FabricAddress source;
  Mode mode = Mode::kRud;
  bool is_control = false;
  ControlType control{};
  NextHdr next_hdr{};
  bool retx = false, ar = false, syn = false, trimmed = false, last_hop = false;
  bool has_clear = false;
  std::int16_t clear_offset = 0;
  Psn psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;      ///< syn = 0
  std::uint16_t psn_offset = 0;  ///< syn = 1
  std::uint16_t header_bytes = 0;
  std::span<const std::uint8_t> body;  ///< SES header and payload
  net::Packet* packet = nullptr;       ///< owner of `body`, for whoever must keep it
  RxMeta meta;
  Psn start() const { return Psn(psn.value() - psn_offset); }
};

/// A NACK that waits to be sent. Complete: the PDC may be gone when it leaves.
struct NackOut {
  net::FabricAddress destination;
  std::uint16_t entropy = 0;
  std::uint8_t plane = 0;
  wire::PdsNack header;
};

/// An ACK of any type, as the source sees it.
struct AckIn {
  wire::PdsAck common;
  bool has_sack = false;
  std::uint8_t mpr = 0;
  Psn sack_base;
  std::uint64_t sack_bitmap = 0;
  std::span<const std::uint8_t> body;
  std::optional<Psn> expected_psn;
  cc::AckSignal signal;
  bool ack_names_psn() const { return !common.p; }
  Psn ack_psn() const { return common.cack_psn + common.ack_psn_offset; }
};

enum class Built : std::uint8_t { kNothing, kPacket, kNoBuffer };

struct Engine {
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
  SubmitResult again();
  void forget(Message& message);

  // --- schedule.cc
  bool poll_transmit(Instant now, net::TxPacket& out, std::uint8_t free_planes);
  bool may_have_packets() const {
    return !control_.empty() || !ready_.empty() || !nacks_.is_empty() || !built_.is_empty() ||
           !uud_.empty() || rudi_.peer_count() > 0 || has_new_room_;
  }
  void on_planes_changed(Instant now, std::uint8_t up);
  bool poll_data(Instant now, net::TxPacket& out);
  bool poll_ready(Instant now, net::TxPacket& out, CongestionRing& waiting);
  void arm_free_pass(Instant now, Pdc& pdc);
  bool find_free_pass(Instant now, Congestion& congestion);
  void wake(Pdc& pdc);
  void wake(Congestion& congestion);
  Pdc* voice_of(Congestion& congestion);
  void after_congestion_event(Instant now, Congestion& congestion);
  void on_deadline(Instant now);
  void on_congestion_timer(Instant now, Congestion& congestion);
  void set_timer(Pdc& pdc, PdcTimer timer, Instant when);
  void stop_timer(Pdc& pdc, PdcTimer timer) { pdc.deadline(timer) = Instant::never(); }
  void run_timers(Instant now, Pdc& pdc);
  void on_liveness(Instant now, Pdc& pdc);
  void settle(Instant now);  ///< end of an input: tell SES about room

  // --- tx_data.cc
  enum class Work : std::uint8_t { kNone, kResend, kNew };
  Work next_work(Instant now, Pdc& pdc, Psn& psn);
  bool window_allows(const Pdc& pdc, Psn psn) const;
  bool may_take_psn(const Pdc& pdc) const;
  /// Limit_PSN_Range: `more` packets can be sent before this direction comes near its end. [PDS 7.6]
  bool has_psns_for(const Pdc& pdc, std::uint64_t more) const;
  Built send_data(Instant now, Pdc& pdc, Work work, Psn psn, net::TxPacket& out);
  ByteCount nominal_of(const Pdc& pdc, const Message& message, std::uint32_t segment) const;
  ByteCount nominal_bytes(std::size_t uet_bytes) const {
    return static_cast<ByteCount>(uet_bytes) + encapsulation_bytes_;
  }
  static std::size_t request_header_bytes(const Congestion& congestion);
  void prepend_request(const Pdc& pdc, const cc::Ccc& ccc, NextHdr next, Psn psn, bool ar,
                       bool retx, const std::optional<std::uint32_t>& credit_target,
                       net::Packet& packet);
  void arm_retransmit(Instant now, Pdc& pdc, TxRecord& record);
  Duration rto(const Pdc& pdc, unsigned rto_cnt) const;

  // --- receive.cc
  void on_packet(Instant now, net::RxPacket rx);
  void on_request_packet(Instant now, net::RxPacket& rx, bool has_cc_state);
  bool is_trimmed(const net::RxPacket& rx) const;
  RxMeta meta_of(Instant now, const net::RxPacket& rx) const;
  /// The live PDC a sequenced packet belongs to, opened if need be; null when the packet was dealt
  /// with.
  Pdc* find_for(Instant now, const Arrival& in);
  Pdc* find_for_syn(Instant now, const Arrival& in);
  Pdc* open_target(Instant now, const Arrival& in);
  Pdc& add_target(Instant now, const Arrival& in, Psn start, PdcInput how);
  void on_trimmed(Instant now, const Arrival& in);
  void on_trim_hint(Instant now, const Arrival& in);

  // --- secure_opening.cc
  void challenge(Instant now, const Arrival& in, Psn announced);
  bool may_replace(Instant now, Pdc& pdc, const Arrival& in);
  Pdc* confirm_opening(Instant now, Pdc& pdc, const Arrival& in);
  void reap_half_open(Instant now, Pdc& pdc);
  void on_new_start_psn(Instant now, Pdc& pdc, Psn start);

  // --- receive.cc, whatever the packet
  void heard(Instant now, Pdc& pdc) {
    pdc.heard_at = now;
    pdc.active_at = now;
    pdc.tx.tail_probes = 0;
    pdc.tx.times_asked = 0;
  }
  void learn_peer(Instant now, Pdc& pdc, std::uint16_t peer_id);

  // --- rx_request.cc
  enum class PsnClass : std::uint8_t { kBelowStart, kTooOld, kFinished, kKnown, kNew, kBeyond };
  PsnClass classify(const Pdc& pdc, Psn psn) const;
  void on_sequenced(Instant now, const Arrival& in);
  void on_duplicate(Instant now, Pdc& pdc, const Arrival& in, bool finished);
  void on_rod_gap(Instant now, Pdc& pdc, const Arrival& in);
  void answer_known(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control = false);

  // --- rx_deliver.cc
  void deliver(Instant now, Pdc& pdc, const Arrival& in);
  void note_received(Instant now, Pdc& pdc, const Arrival& in);
  void mark_received(Pdc& pdc, Psn psn);
  static void note_distance(Pdc& pdc) {
    if ((pdc.rx.cack + 1).value() - pdc.start.value() >= 0x8000'0000u) pdc.rx.is_past_half = true;
  }
  void on_answer(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, const SesResponse& response,
                 bool guaranteed, RxRecord* pending);
  void respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed);
  void advance_cack(Pdc& pdc);
  void release_tracker(Pdc& pdc);
  void queue_ack(Pdc& pdc, RxRecord& record);
  void queue_finished_ack(Pdc& pdc, Psn psn, const RxMeta& meta, bool is_control = false);
  void queue_update(Pdc& pdc, const RxMeta& meta);

  // --- hold.cc
  struct HeldPacket {
    std::uint32_t owner = 0;
    Arrival arrival;
    net::Packet packet;
    std::uint32_t index_next = 0;
  };
  bool hold(Instant now, Pdc& pdc, const Arrival& in);
  bool is_held(const Pdc& pdc, Psn psn);
  void report_gaps(Instant now, Pdc& pdc, const RxMeta& meta);
  void report_all_gaps(Instant now, Pdc& pdc, const RxMeta& meta);
  void begin_gap_round(Instant now, Pdc& pdc);
  void report_gaps_before(Instant now, Pdc& pdc, const RxMeta& meta, Psn end);
  Duration gap_round(const Pdc& pdc) const;
  void deliver_held(Instant now, Pdc& pdc);
  void drop_held(Pdc& pdc, HeldPacket& held);
  void release_held(Pdc& pdc);

  // --- tx_ack.cc
  Built build_ack(Instant now, Pdc& pdc, net::TxPacket& out);
  struct AckShape {
    Psn ack_psn;
    RxMeta meta;
    bool is_probe_answer = false;
    std::uint16_t opaque = 0;
    Psn sack_near;                    ///< PSN the bitmap should show
    std::optional<Psn> expected_psn;  ///< of the ACK of a Close Command, secured only
    const RxRecord* record = nullptr;
  };
  Built emit_ack(Instant now, Pdc& pdc, const AckShape& shape, net::TxPacket& out);
  cc::WindowAdvice window_advice_for(RxHalf& rx);
  bool has_ack_to_send(const Pdc& pdc);

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
  bool is_outstanding(const Pdc& pdc, Psn psn) const {
    return psn.is_at_or_after(pdc.tx.left) && psn.is_before(pdc.tx.next);
  }

  // --- tx_nack.cc
  void nack_for(Instant now, const Arrival& in, const Pdc* pdc, NackCode code,
                std::uint32_t payload = 0);
  void nack(Instant now, const net::FabricAddress& to, const RxMeta& meta, wire::PdsNack header,
            bool is_live);
  bool poll_nack(Instant now, net::TxPacket& out);

  // --- rx_nack.cc
  void on_nack_packet(Instant now, const net::RxPacket& rx);
  void on_nack(Instant now, Pdc& pdc, const wire::PdsNack& nack, const RxMeta& meta);
  void on_fatal_nack(Instant now, Pdc& pdc, const wire::PdsNack& nack, PdsError error);
  void pause(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
             const RxMeta& meta);
  bool resend_now(Instant now, Pdc& pdc, Psn psn, TxRecord& record, const wire::PdsNack& nack,
                  const RxMeta& meta);
  void after_trim(Instant now, Pdc& pdc, Psn psn, TxRecord& record);
  void hold_back(Pdc& pdc, Psn psn, TxRecord& record, Instant until);
  void on_rod_ooo(Instant now, Pdc& pdc, const wire::PdsNack& nack, const RxMeta& meta);
  void on_ses_busy(Instant now, Pdc& pdc, TxRecord& record);

  // --- tx_control.cc
  void want_control(Pdc& pdc, unsigned bits);
  void list_control(Pdc& pdc);
  Built poll_control(Instant now, net::TxPacket& out);
  Built build_control(Instant now, Pdc& pdc, net::TxPacket& out);
  Built build_pending_control(Instant now, Pdc& pdc, net::TxPacket& out);
  Built send_sequenced(Instant now, Pdc& pdc, ControlType type, net::TxPacket& out);
  Built resend_sequenced(Instant now, Pdc& pdc, net::TxPacket& out);
  Built send_ack_request(Instant now, Pdc& pdc, net::TxPacket& out);
  void watch_credit(Instant now, Pdc& pdc);
  Built emit_control(Instant now, Pdc& pdc, ControlType type, Psn psn, std::uint32_t payload,
                     bool ar, bool retx, std::uint16_t opaque, net::TxPacket& out);
  std::uint16_t control_entropy();

  // --- rx_control.cc
  void on_control_packet(Instant now, const net::RxPacket& rx);
  bool is_believable(const Pdc& pdc, const wire::PdsControl& header) const;
  void on_ack_request(Instant now, Pdc& pdc, const wire::PdsControl& header, const RxMeta& meta);
  void on_probe(Instant now, Pdc& pdc, const wire::PdsControl& header, const RxMeta& meta);
  void on_credit(Instant now, Pdc& pdc, std::uint32_t credit_units);

  // --- credit.cc
  /// RCCC: a CCC of some source that sends to us, and a PDC that can carry grants to it.
  struct CreditSource {
    net::FabricAddress peer;
    cc::SourceKey key;  ///< `source` is its place in the pool
    PdcRef voice;
    std::uint32_t pdcs = 0;
    std::uint32_t index_next = 0;
  };
  void note_demand(Instant now, const Arrival& in, std::uint8_t ccc_id, std::uint32_t target);
  void on_credit_request(Instant now, Pdc& pdc, std::uint32_t payload);
  CreditSource* join_credit(Pdc& pdc, std::uint8_t ccc_id);
  void leave_credit(Pdc& pdc);
  void run_pacer(Instant now);
  std::uint32_t credit_for(const Pdc& pdc);

  // --- rx_control.cc, sequenced
  void on_sequenced_control(Instant now, Pdc& pdc, const Arrival& in);
  void on_close_request(Instant now, Pdc& pdc);

  // --- loss.cc
  void on_retransmit_timer(Instant now, Pdc& pdc);
  bool on_timeout(Instant now, Pdc& pdc, Psn psn, TxRecord& record);
  void note_loss(Instant now, Congestion& congestion);
  void mark_lost(Instant now, Pdc& pdc, Psn psn, TxRecord& record, bool timeout);
  void queue_resend(Pdc& pdc, Psn psn, TxRecord& record);
  void unqueue_resend(Pdc& pdc, TxRecord& record);
  void go_back(Instant now, Pdc& pdc, Psn from, bool timeout);
  void infer_losses(Instant now, Pdc& pdc);
  void suspect_overtaken(Instant now, Pdc& pdc, Psn newest);
  void suspect_sent_before(Instant now, Pdc& pdc, Psn end, Instant sent_before);
  void watch_tail(Instant now, Pdc& pdc);
  Duration tail_silence(Instant now, const Pdc& pdc) const;
  bool is_losing(Instant now, const Pdc& pdc) const;
  void ask_about_tail(Instant now, Pdc& pdc);
  void on_tail_loss(Instant now, Pdc& pdc);
  void ask_about(Pdc& pdc, TxRecord& record);

  // --- clear.cc
  void accept_clear(Instant now, Pdc& pdc, Psn clear);
  void owe_clear(Instant now, Pdc& pdc);
  void owe_clear_now(Pdc& pdc);
  Psn highest_stored(const Pdc& pdc) const;
  void on_clear_request(Instant now, Pdc& pdc, Psn wanted);
  void on_clear_timer(Instant now, Pdc& pdc);
  void start_stall(Instant now, Pdc& pdc);
  void on_stall_timer(Instant now, Pdc& pdc);

  // --- lifecycle.cc
  Pdc* open_initiator(Instant now, const TxMessage& request);
  void init_halves(Instant now, Pdc& pdc, Psn start);
  /// Base RTT where the PDC has a CCC, else NACK_Retx_Time.
  Duration round_trip(const Pdc& pdc) const;
  /// Zero without a CCC or a sample.
  static Duration smoothed_rtt(const Pdc& pdc);
  bool attach_congestion(Instant now, Pdc& pdc);
  void detach_congestion(Pdc& pdc);
  void change_state(Instant now, Pdc& pdc, PdcInput input);
  void begin_close(Instant now, Pdc& pdc);
  void try_close(Instant now, Pdc& pdc);
  void on_close_timer(Instant now, Pdc& pdc);
  bool is_given_up(Instant now, const Pdc& pdc) const;
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
  void report_failed(Instant now, PdsError error);
  void free_pdc(Instant now, Pdc& pdc);
  void release_receive_state(Pdc& pdc);
  void drop_unaccepted(Instant now, Pdc& pdc);
  void nack_close_error(Instant now, Pdc& pdc, Psn psn, const RxMeta& meta, NackCode code);
  bool has_unacked_data(Pdc& pdc);
  void finish_target_close(Instant now, Pdc& pdc);
  void make_room(Instant now, bool for_initiator);
  void close_all(Instant now);
  bool is_idle() const;
  Duration close_grace() const;

  // --- proof.cc
  Duration opening_memory() const;
  void prove(Instant now, Pdc& pdc);
  void ask_for_proof(Instant now, Pdc& pdc);
  static bool is_waiting_for_proof(const Pdc& pdc) {
    return !pdc.tx.queue.empty() || pdc.rx.withholds_answers;
  }
  void on_proof_timer(Pdc& pdc);
  void release_withheld_answers(Pdc& pdc);
  bool evict_unproven(Instant now);
  void retire_unproven(Instant now, Pdc& pdc);
  bool make_place_for_stranger(Instant now);
  void remember_opening(Instant now, const Pdc& pdc);

  // --- keep.cc
  AnswerShare share_of(const Pdc& pdc);
  bool has_room_for_answer(Instant now, Pdc& pdc, Psn psn);
  bool may_use_reserve(const Pdc& pdc, Psn psn) const;
  static bool can_clear_something(const Pdc& pdc);
  void count_kept(Pdc& pdc, std::int32_t change);
  bool evict_answers_of_unproven(Instant now, const Pdc& except);
  void ask_for_clear(Instant now, Pdc& pdc);
  Duration clear_patience(unsigned asks) const;
  void on_clear_request_timer(Instant now, Pdc& pdc);

  // --- rudi.cc
  SubmitResult submit_rudi(Instant now, const TxMessage& request);
  SubmitResult submit_uud(Instant now, const TxMessage& request);
  bool poll_rudi(Instant now, net::TxPacket& out);
  bool poll_uud(Instant now, net::TxPacket& out);
  void on_rudi_request(Instant now, const net::RxPacket& rx);
  void on_rudi_response(Instant now, const net::RxPacket& rx);
  void on_rudi_nack(Instant now, const net::RxPacket& rx, const wire::PdsNack& nack);
  void on_uud(Instant now, const net::RxPacket& rx);
  void on_rudi_timer(Instant now, RudiPacket& packet);
  bool send_rudi(Instant now, RudiPacket& packet, net::TxPacket& out);
  void queue_rudi_resend(RudiPacket& packet);
  void finish_rudi(RudiPacket& packet);
  void fail_rudi_message(Instant now, Message& message, PdsError error);
  void drop_rudi_message(Instant now, Message& message);
  RudiPeer* rudi_peer_for(const net::FabricAddress& peer);
  void release_rudi_peer_if_idle(RudiPeer& peer);

  std::uint8_t data_tos(bool resend) const {
    const std::uint8_t dscp = !config_.use_trimming ? config_.dscp_data
                              : resend              ? config_.dscp_trimmable_rtx
                                                    : config_.dscp_trimmable;
    return net::TosByte::of(dscp, 2).value;
  }
  std::uint8_t control_tos() const { return net::TosByte::of(config_.dscp_control, 0).value; }

  const PdsConfig config_;
  const Limits limits_;
  const bool sends_nscc_state_;
  const bool sends_credit_state_;
  const ByteCount encapsulation_bytes_;
  net::PacketPool& pool_;
  base::Rng& rng_;
  base::Trace& trace_;
  Upper& upper_;

  base::TimingWheel wheel_;
  PdcTable table_;
  CongestionTable congestions_;
  MessageTable messages_;
  TxBlockPool tx_blocks_;
  RxTrackerPool trackers_;
  ResponseStore responses_;
  Tombstones tombstones_;
  Tombstones openings_;  ///< of unproven PDCs that ended early
  UnprovenPdcs unproven_;
  PeerShares shares_;
  NackLimiter limiter_;
  RudiTable rudi_;

  std::optional<cc::CreditPacer> pacer_;
  FixedPool<CreditSource> credit_sources_;
  PoolIndex<CreditSource, &CreditSource::index_next> credit_index_;

  FixedPool<HeldPacket> held_;
  PoolIndex<HeldPacket, &HeldPacket::index_next> held_index_;

  CongestionRing ready_;    ///< CCCs with PDCs that may have something to send
  PdcControlList control_;  ///< PDCs with ACKs or control packets to send
  Ring<NackOut> nacks_;
  Ring<net::TxPacket> built_;  ///< last ACKs of closed PDCs, RUDI responses
  MessageQueue failed_;        ///< messages whose error is to be reported
  MessageQueue uud_;
  OpeningGuard* guard_ = nullptr;
  std::uint64_t half_open_reaped_ = 0;
  std::uint64_t unproven_evicted_ = 0;
  std::uint64_t clear_breaks_ = 0;
  std::uint32_t kept_by_unproven_ = 0;
  std::uint32_t ccc_reserved_ = 0;  ///< target PDCs that may still need a CCC of their own
  std::uint32_t half_open_ = 0;     ///< PDCs in CREATING or PENDING
  std::uint32_t closing_pdcs_ = 0;
  std::uint32_t close_wanted_ = 0;         ///< PDCs in CREATING that are to close once established
  Instant next_id_at_ = Instant::never();  ///< submit() waits for an identifier in quarantine
  std::uint8_t free_planes_ = 1;           ///< ports that can take data, during poll_transmit()
  std::uint8_t planes_up_ = 1;             ///< ports with a link
  bool has_slowed_ = false;                ///< SES named a resource that may run out
  bool is_short_of_room_ = false;          ///< SES was told kAgain
  bool has_new_room_ = false;
  bool rudi_turn_ = false;
};

}  // namespace uet::pds
