/// One packet delivery context as this end sees it. [PDS 4.2 to 4.4]
///
/// Each end is the source of one direction and the destination of the other: the initiator sends in
/// the forward direction and receives in the return direction, the target the reverse. So a PDC has
/// one source half and one destination half.
#pragma once

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <optional>

#include "cc/transmission.h"
#include "lib/base/timing_wheel.h"
#include "lib/wire/pds_headers.h"
#include "pds/asking.h"
#include "pds/message.h"
#include "pds/pdc_state.h"
#include "pds/response_store.h"
#include "pds/rx_tracker.h"
#include "pds/tx_window.h"

namespace uet::pds {

using base::Duration;
struct Congestion;

/// A timer that knows whom it belongs to.
struct Timer : base::TimerNode {
  enum class Kind : std::uint8_t { kPdc, kCongestion, kRudi };
  Timer(Kind k, void* o) : kind(k), owner(o) {}
  Kind kind;
  void* owner;
};

/// Timers of a PDC: an index into its deadlines. [PDS 13.7]
enum class PdcTimer : std::uint8_t {
  kRetransmit,  ///< earliest RTO or end of a NACK pause
  kClear,       ///< PDS_Clear_Time
  kStall,       ///< stall probe
  kClose,       ///< ACK_WAIT is looked at again; at a target New_PDC_Time, then Close_REQ_Time
  kLiveness,    ///< idle close, silent peer
  kTailLoss,
  kClearRequest,  ///< a short store repeats its Clear Request
  kProof,         ///< a peer that has proved nothing is asked once more
};
inline constexpr std::size_t kPdcTimerCount = 8;

/// Control packets that wait to be sent, as bits.
enum PdcControl : std::uint16_t {
  kSendClear = 1 << 0,
  kSendClearRequest = 1 << 1,
  kSendProbe = 1 << 2,
  kSendCreditRequest = 1 << 3,
  kSendNoop = 1 << 4,
  kSendClose = 1 << 5,        ///< Close Command or, at a target, Close Request
  kSendAckRequests = 1 << 6,  ///< some records are in ASK_DUE or ASK_AGAIN
  kSendCredit = 1 << 7,
  kResendControl = 1 << 8,  ///< a sequenced control packet was lost
};

/// The CCC of a direction. A target has none before it sends read data, and what its peer sends must not depend on there being
/// one: so a use either looks, or names the message that it is about, since messages need a CCC to be accepted.
class CongestionLink {
 public:
  Congestion* if_any() const { return congestion_; }
  Congestion& of(const Message& message) const {
    (void)message;
    UET_CHECK(congestion_ != nullptr);
    return *congestion_;
  }
  void attach(Congestion& congestion) { congestion_ = &congestion; }
  void detach() { congestion_ = nullptr; }

 private:
  Congestion* congestion_ = nullptr;
};

/// The latest Probe of a source.
struct OpenProbe {
  Instant sent_at;
  std::uint16_t opaque = 0;
  bool is_open = false;  ///< not answered

  bool is_answered_by(const wire::PdsAck& ack) const {
    return ack.p && is_open && ack.probe_opaque() == opaque;
  }
};

struct TxHalf {
  Psn next;                     ///< tx_next
  Psn cack;                     ///< snd_cack
  Psn left_edge;                ///< oldest PSN not acknowledged; tx_clear is left_edge - 1
  Psn rtx_from;                 ///< no record before this needs to be resent
  Psn in_flight_from;           ///< no record of a message before this is in flight
  Psn ask_from;                 ///< no record before this is to be asked about
  Psn ask_end;                  ///< nor any from here on
  Psn clear_when;               ///< a Clear Request asked for this PSN, valid with has_clear_when
  Psn commanded;                ///< by the latest Clear Command
  std::uint32_t unacked = 0;    ///< records not acknowledged
  std::uint32_t rtx_count = 0;  ///< records that need to be resent
  std::uint32_t resent = 0;     ///< packets sent again, for reports
  std::uint32_t paused_count = 0;
  std::uint32_t places_wanted =
      0;  ///< packets of those that wait for a place at the target, which nothing new is to take
  std::uint32_t queued = 0;           ///< messages in `queue`
  std::uint32_t queued_segments = 0;  ///< of those messages, not sent yet
  std::uint32_t mp_range = 0;         ///< peer_mp_range
  std::uint32_t credit_demand = 0;    ///< of the Credit Request to be sent
  std::uint8_t stall_backoff = 0;
  std::uint8_t tail_probes = 0;
  std::uint8_t times_asked =
      0;                     ///< Probes since the peer was heard, while only its data is waited for
  std::uint8_t repeats = 0;  ///< of the packet at `left_edge`, since the peer said anything of it
  bool clear_owed = false;
  bool has_clear_when = false;
  bool peer_holds = false;            ///< ROD: the destination keeps what arrives behind a gap
  bool has_credit_exemption = false;  ///< one packet may leave without credit
  OpenProbe probe;
  Asking asking;
  Instant asked_at;                           ///< of the latest of times_asked
  Instant credit_asked_at;                    ///< first Credit Request since the peer was heard
  Instant ses_busy_since = Instant::never();  ///< first RCVD_SES_PROCG without progress since
  Instant repeated_since;                     ///< valid with `repeats`
  cc::PdcShare share;
  CongestionLink cc;
  base::ByteCount backlog = 0;  ///< nominal bytes announced to the CCC and not sent
  MessageQueue queue;
  TxRing ring;

  /// The record of `psn` is in flight again.
  void note_in_flight(Psn psn) {
    if (psn.is_before(in_flight_from)) in_flight_from = psn;
  }
  Psn clear_psn() const { return left_edge - 1; }
  bool is_outstanding(Psn psn) const {
    return psn.is_at_or_after(left_edge) && psn.is_before(next);
  }
};

struct RxHalf {
  /// A packet came, whether or not it can be taken: either the one that the others wait for, or the first that waits.
  void note_arrival(Instant now, Psn psn) {
    if (psn == edge + 1 || above_edge == 0) gap_heard_at = now;
  }

  Psn edge;  ///< rcv_edge
  Psn cack;
  Psn cleared;  ///< rx_clear
  Psn max_rcvd;
  Psn max_ar;
  Psn last_control;  ///< latest sequenced control packet; its ACK carries no response
  Psn untold;        ///< highest PSN above CACK whose answer was left to CACK
  Psn answered;      ///< ROD: highest N with all PSN <= N answered by SES
  std::uint32_t granted = 0;
  std::uint32_t ack_gen_count = 0;
  std::uint32_t above_edge = 0;   ///< received PSNs beyond a gap
  std::uint32_t kept = 0;         ///< pending and stored records of this PDC
  std::uint32_t stored = 0;       ///< of those, stored
  Psn beyond_cack;                ///< what beyond_share counts for
  std::uint8_t beyond_share = 0;  ///< kept in the reserve while CACK stood there
  std::uint8_t clear_asks = 0;    ///< requests to clear, for their spacing
  /// Requests to clear after which the peer was heard and cleared nothing.
  std::uint8_t clear_rounds = 0;
  std::uint8_t hints = 0;  ///< trim hints answered since hints_since
  Instant clear_asked_at;
  std::uint64_t rcvd_bytes = 0;  ///< nominal bytes of new data packets
  Instant last_request;          ///< arrival of the latest data packet
  Instant last_ooo_nack;
  /// When the packet missing at the edge was last tried, or since when it is missing.
  Instant gap_heard_at;
  Instant hints_since;           ///< trim hints are counted from then on
  RxTracker* tracker = nullptr;  ///< present while something above CACK is known
  std::uint32_t held = 0;        ///< ROD packets held behind a gap
  Psn held_last;                 ///< highest of them
  Psn gaps_reported;             ///< no PSN up to here is reported missing again in this round
  std::uint32_t credit = 0;      ///< grant to be sent
  std::uint32_t credit_source = base::kNoIndex;
  AckQueue acks;
  RxMeta last_meta;   ///< of the latest packet, for pure updates
  RxMeta probe_meta;  ///< of the Probe that is to be answered
  bool ooo_nack_armed = true;
  bool wants_update = false;       ///< a pure-update ACK is to be sent
  bool ce_seen = false;            ///< CE since the last ACK
  bool is_past_half = false;       ///< 2^31 PSNs were used: nothing is "before the start" any more
  bool has_accepted = false;       ///< at least one packet
  bool has_delivered = false;      ///< at least one packet went up to SES
  bool tells_by_name = false;      ///< leaves nothing to CACK while answers are kept
  bool withholds_answers = false;  ///< stored, and to be sent when the peer has proved itself
  bool wants_probe_answer = false;
  std::uint16_t probe_opaque = 0;
  Psn probe_base;
};

struct Pdc {
  net::FabricAddress peer;
  std::uint16_t id = 0;
  std::uint16_t peer_id = 0;  ///< 0 until learnt
  std::uint16_t generation = 0;
  Mode mode = Mode::kRud;
  PdcState state = PdcState::kClosed;
  bool is_initiator = false;
  bool is_proven = false;      ///< target: the peer has used our PDCID, so it hears us
  std::uint8_t unasked = 0;    ///< target: packets sent of our own accord before that
  std::uint8_t questions = 0;  ///< target: Probes repeated while read data waits for that
  std::uint8_t traffic_class = 0;
  bool is_close_wanted = false;  ///< in CREATING: close as soon as established
  bool has_close_psn = false;
  bool is_unanswered =
      false;  ///< in CREATING: a packet timed out, and it is not known who the target is
  std::uint8_t start_changes = 0;  ///< NEW_START_PSN taken up
  bool was_syn_resent = false;     ///< some packet left with syn and was sent again
  std::uint16_t pending_control = 0;
  std::uint32_t rod_context = 0;
  std::uint32_t locks = 0;
  std::uint32_t share = base::kNoIndex;  ///< what the peer uses, over all its PDCs
  Psn start;
  /// Secured. Initiator: where it started before it was told another start. Target that is given up: where a PDC in its place has
  /// to start.
  std::optional<Psn> other_start;
  Psn close_psn;
  Instant last_syn_sent;
  Instant opened_at;   ///< target
  Instant heard_at;    ///< latest valid packet from the peer
  Instant busy_since;  ///< when work became outstanding
  Instant active_at;   ///< latest packet or lock change
  RxMeta close_meta;   ///< of the Close Command
  TxHalf tx;
  RxHalf rx;
  Timer timer{Timer::Kind::kPdc, this};
  std::array<Instant, kPdcTimerCount> deadlines;
  std::uint32_t index_next = 0;
  boost::intrusive::list_member_hook<> ready_hook;   ///< in its CCC's list of PDCs with data
  boost::intrusive::list_member_hook<> record_hook;  ///< of those that wait for a record
  boost::intrusive::list_member_hook<>
      control_hook;  ///< in the endpoint's list of PDCs with control packets
  boost::intrusive::list_member_hook<>
      unproven_hook;  ///< target PDCs of unproven peers, oldest first
  boost::intrusive::list_member_hook<> keeper_hook;  ///< those of them for which answers are kept
  boost::intrusive::list_member_hook<>
      order_hook;  ///< all PDCs, longest idle first (approximately)

  Pdc() { deadlines.fill(Instant::never()); }
  PdcRef ref() const { return PdcRef{std::uint32_t{generation} << 16 | id}; }
  bool is_rod() const { return mode == Mode::kRod; }
  Role role() const { return is_initiator ? Role::kInitiator : Role::kTarget; }
  bool is_unproven() const { return !is_initiator && !is_proven; }
  /// New messages may be mapped here.
  bool accepts_messages() const {
    return is_initiator && !is_close_wanted &&
           (state == PdcState::kCreating || state == PdcState::kEstablished);
  }
  bool is_closing() const {
    return state != PdcState::kCreating && state != PdcState::kEstablished &&
           state != PdcState::kPending && state != PdcState::kCloseReq;
  }
  bool has_tx_work() const { return tx.unacked > 0 || !tx.queue.empty(); }
  Instant& deadline(PdcTimer t) { return deadlines[static_cast<std::size_t>(t)]; }
};

using PdcReadyList = boost::intrusive::list<
    Pdc, boost::intrusive::member_hook<Pdc, boost::intrusive::list_member_hook<>, &Pdc::ready_hook>,
    boost::intrusive::constant_time_size<false>>;
using PdcRecordList = boost::intrusive::list<
    Pdc,
    boost::intrusive::member_hook<Pdc, boost::intrusive::list_member_hook<>, &Pdc::record_hook>,
    boost::intrusive::constant_time_size<false>>;
using PdcControlList = boost::intrusive::list<
    Pdc,
    boost::intrusive::member_hook<Pdc, boost::intrusive::list_member_hook<>, &Pdc::control_hook>,
    boost::intrusive::constant_time_size<false>>;
using PdcKeeperList = boost::intrusive::list<
    Pdc,
    boost::intrusive::member_hook<Pdc, boost::intrusive::list_member_hook<>, &Pdc::keeper_hook>,
    boost::intrusive::constant_time_size<false>>;
using PdcOrderList = boost::intrusive::list<
    Pdc, boost::intrusive::member_hook<Pdc, boost::intrusive::list_member_hook<>, &Pdc::order_hook>,
    boost::intrusive::constant_time_size<false>>;

}  // namespace uet::pds
