#include "cc/ccc.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cc/nscc.h"
#include "cc/path_judge.h"
#include "cc/prober.h"
#include "cc/rccc_source.h"
#include "cc/tfc.h"
#include "cc/wire_counter.h"
#include "lib/base/check.h"

namespace uet::cc {
namespace {

constexpr Duration kServiceTimeUnit = Duration::from_ns(128);
constexpr std::uint16_t kServiceTimeOverflow = 0xffff;
// The destination rounds its counter up to whole units, so it may be ahead of the truth by less
// than one. [CC 3.8]
constexpr ByteCount kRoundingMax = kWireUnitBytes - 1;
// A value whose packets take longer than the mean by more than this many sending times of a packet is slow.
constexpr int kSlowPackets = 3;

/// A sample is valid only when there can be no doubt which transmission was answered: the echo tells the first from its copies, and
/// of the copies only the latest is left when a NACK answered each one before it. [CC 4.4]
std::optional<Duration> rtt_sample(const Transmission& t, Instant arrived, bool retx_echo,
                                   Duration service) {
  if (t.copy_unanswered || (t.resent > 0) != retx_echo) return std::nullopt;
  const auto rtt = arrived - t.sent_at - service;
  if (rtt <= Duration()) return std::nullopt;
  return rtt;
}

std::optional<Duration> service_time(const AckSignal& ack) {
  if (ack.service_time_units == kServiceTimeOverflow) return std::nullopt;
  return kServiceTimeUnit * ack.service_time_units;
}

Nscc::Trim trim_of(NackCause cause) {
  switch (cause) {
    case NackCause::kTrimmed:
      return Nscc::Trim::kInFabric;
    case NackCause::kTrimmedLastHop:
      return Nscc::Trim::kLastHop;
    case NackCause::kOther:
      break;
  }
  return Nscc::Trim::kNone;
}

bool uses(const CcConfig& config, Algorithm algorithm) {
  return config.algorithm == algorithm || config.algorithm == Algorithm::kBoth;
}

}  // namespace

struct Ccc::Impl {
  Impl(const CcConfig& given, std::uint8_t id_, bool sprayed_, Duration cached_base_rtt,
       base::Rng& rng, base::Trace& trace_, Instant now, Rivals* rivals_)
      : own_config(given.complete ? nullptr : std::make_unique<CcConfig>(derived(given))),
        config(own_config ? *own_config : given),
        window_decides(uses(config, Algorithm::kNscc)),
        credit_decides(uses(config, Algorithm::kRccc)),
        cells_decide(config.algorithm == Algorithm::kTfc),
        trace(trace_),
        rivals(rivals_),
        nscc(config, cached_base_rtt, now),
        rccc(config, now),
        tfc(config, now),
        paths(config, sprayed_, rng, trace_),
        prober(config, cached_base_rtt),
        now_seen(now),
        traced_window(nscc.window()),
        id(id_),
        sprayed(sprayed_) {}

  Duration slow_above() const;

  ~Impl() {
    if (is_rival) --rivals->ready;
  }

  bool has_data() const { return backlog > 0 || rtx_packets > 0; }
  bool algorithms_allow(ByteCount bytes) const;
  bool lacks_credit() const;
  Demand demand_after(ByteCount new_bytes, ByteCount resend_bytes) const;
  std::uint32_t credit_target(const Demand& demand, ByteCount leaving) const;
  void on_any_feedback(Instant now);
  Duration rtt_or_base() const {
    return smoothed_rtt == Duration() ? nscc.base_rtt() : smoothed_rtt;
  }
  void close_transmission(Transmission& t, PdcShare& share);
  void mark_for_resend(Transmission& t, PdcShare& share);
  void unmark(Transmission& t, PdcShare& share);
  ByteCount take_newly_received(PdcShare& share, const AckSignal& ack);
  ByteCount take_received(PdcShare& share);
  static void forget_held(Transmission& t, PdcShare& share);
  void note_changes(Instant now);
  void note_readiness();
  void note_closed(const Transmission& t);
  bool is_stuck() const;
  Instant credit_request_due() const;

  std::unique_ptr<CcConfig> own_config;
  const CcConfig& config;
  const bool window_decides, credit_decides, cells_decide;  ///< by the algorithm
  base::Trace& trace;
  Rivals* rivals;
  Nscc nscc;
  RcccSource rccc;
  TfcSource tfc;
  PathJudge paths;
  Prober prober;

  ByteCount backlog = 0;
  ByteCount rtx_bytes = 0;
  std::uint32_t rtx_packets = 0;
  std::uint32_t open_packets = 0;
  std::uint32_t attached_pdcs = 0;
  Instant now_seen;
  Duration smoothed_rtt;
  ByteCount traced_window;
  std::uint8_t id;
  bool sprayed;
  bool heard = false;     ///< any feedback: a PDC exists at the destination
  bool is_rival = false;  ///< counted in `rivals`
};

Ccc::Ccc(const CcConfig& config, std::uint8_t ccc_id, bool sprayed, Duration cached_base_rtt,
         base::Rng& rng, base::Trace& trace, Instant now, Rivals* rivals)
    : impl_(std::make_unique<Impl>(config, ccc_id, sprayed, cached_base_rtt, rng, trace, now,
                                   rivals)) {}

Ccc::~Ccc() = default;

void Ccc::on_new_data(Instant now, ByteCount bytes) {
  Impl& c = *impl_;
  const bool was_resting = !c.has_data();
  c.backlog = std::max<ByteCount>(c.backlog + bytes, 0);
  if (was_resting && c.has_data()) {
    c.rccc.timer().data_came(now, !c.lacks_credit());
    c.tfc.timer().data_came(now, !c.lacks_credit());
  }
  c.note_changes(now);
}

bool Ccc::may_send(ByteCount nominal_bytes) const {
  return impl_->has_data() && impl_->algorithms_allow(nominal_bytes);
}

std::uint8_t Ccc::worthwhile_planes(Instant now, std::uint8_t free_planes) const {
  if (impl_->config.planes == 1 || impl_->paths.table().size() == 1) return free_planes;
  const std::uint8_t healthy = impl_->paths.table().healthy_planes(now);
  return healthy == 0 ? free_planes : static_cast<std::uint8_t>(healthy & free_planes);
}

SendParams Ccc::next_send(Instant now, const Transmission* previous, ByteCount nominal_bytes,
                          std::uint8_t free_planes) {
  Impl& c = *impl_;
  c.now_seen = now;
  PathRequest request{.now = now,
                      .free_planes = free_planes == 0 ? std::uint8_t{0xff} : free_planes,
                      .avoid_entropy = {},
                      .open_packets = c.open_packets,
                      .base_rtt = c.nscc.base_rtt(),
                      .window_packets = window_bytes() / c.config.mtu_bytes};
  if (previous != nullptr && previous->timed_out) request.avoid_entropy = previous->entropy;
  const auto index = c.paths.next(request, nominal_bytes);

  SendParams params;
  params.entropy = c.paths.table().entropy(index);
  params.plane = c.paths.table().plane(index);
  const bool resend = previous != nullptr;
  const auto demand = resend ? c.demand_after(0, nominal_bytes) : c.demand_after(nominal_bytes, 0);
  params.ack_request = resend || demand.new_bytes == 0;
  if (c.window_decides && c.nscc.wants_ack(nominal_bytes)) params.ack_request = true;
  if (c.credit_decides && c.rccc.spends_last(nominal_bytes)) params.ack_request = true;
  if (c.cells_decide && c.tfc.spends_last(nominal_bytes)) params.ack_request = true;
  if (c.paths.table().wants_answer(index, now)) params.ack_request = true;
  if (carries_credit()) params.credit_target = c.credit_target(demand, nominal_bytes);
  return params;
}

void Ccc::on_send(Instant now, Transmission& t, PdcShare& share, ByteCount nominal_bytes,
                  const SendParams& params, bool is_retransmission) {
  Impl& c = *impl_;
  c.now_seen = now;
  if (!share.attached) {
    share.attached = true;
    ++c.attached_pdcs;
  }
  if (t.open) {
    t.copy_unanswered |= t.resent > 0;
    c.close_transmission(t, share);  // sent again while still out: one record counts one copy
  }
  if (t.marked) c.unmark(t, share);
  if (is_retransmission) {
    if (t.resent < 2) ++t.resent;
  } else {
    c.backlog = std::max<ByteCount>(c.backlog - nominal_bytes, 0);
  }
  t.sent_at = now;
  if (params.ack_request) c.prober.on_asked(now);
  t.entropy = params.entropy;
  t.plane = params.plane;
  t.timed_out = false;
  c.paths.on_sent(now, params.entropy, params.ack_request);
  if (t.acked) return c.note_readiness();  // only for its response: no ACK will ever close it

  share.unacked_bytes += nominal_bytes - (is_retransmission ? ByteCount{t.nominal_bytes} : 0);
  t.nominal_bytes = static_cast<std::uint32_t>(nominal_bytes);
  t.open = true;
  ++c.open_packets;
  ++share.open_packets;
  share.inflight += nominal_bytes;
  c.nscc.on_send(nominal_bytes);
  if (c.credit_decides) c.rccc.on_send(now, nominal_bytes);
  if (c.cells_decide) c.tfc.on_send(now, nominal_bytes);
  c.note_readiness();
}

void Ccc::on_first_ack(Transmission& t, PdcShare& share) {
  Impl& c = *impl_;
  if (t.acked) return;
  t.acked = true;
  c.note_closed(t);
  c.forget_held(t, share);
  const ByteCount bytes = t.nominal_bytes;
  if (t.open) {
    t.open = false;
    --c.open_packets;
    --share.open_packets;
  } else if (t.marked) {
    // Its bytes left inflight at the loss, and leave it again with what the destination has
    // received: put them back.
    c.unmark(t, share);
    share.inflight += bytes;
    c.nscc.on_send(bytes);
    if (c.cells_decide) c.tfc.on_lost_but_arrived(bytes);
  } else {
    return;
  }
  share.unacked_bytes -= bytes;
  share.rcvd_ahead -= bytes;
  share.counted_ahead -= bytes;
  c.paths.on_first_ack(c.now_seen, t, c.nscc.base_rtt());
}

void Ccc::on_arrived(Transmission& t) {
  Impl& c = *impl_;
  if (!t.acked) c.paths.on_arrived(c.now_seen, t, c.nscc.base_rtt());
}

void Ccc::on_ack(Instant now, PdcShare& share, const AckSignal& ack) {
  Impl& c = *impl_;
  c.on_any_feedback(now);
  const auto service = service_time(ack);
  std::optional<Duration> rtt;
  if (ack.trigger != nullptr && service && !ack.is_probe_answer) {
    rtt = rtt_sample(*ack.trigger, ack.arrived_at, ack.retx_echo, *service);
  }
  c.paths.on_ack(now, ack, rtt, c.slow_above(), c.nscc.base_rtt(), c.rtt_or_base());

  const auto newly_received = c.take_newly_received(share, ack);
  if (c.window_decides) {
    c.nscc.on_ack(
        now, {.newly_received = newly_received,
              .ecn = ack.ecn,
              .rtt = rtt,
              .penalty = static_cast<std::uint8_t>(ack.has_nscc_state ? ack.penalty & 0x7f : 0),
              .restore_window = ack.has_nscc_state && ack.restore_window});
  } else {
    c.nscc.close(newly_received);
    if (rtt) c.nscc.on_base_rtt_sample(*rtt);
  }
  if (ack.is_probe_answer) {
    std::optional<Duration> probe_rtt;
    if (service) probe_rtt = ack.arrived_at - ack.probe_sent_at - *service;
    if (const auto base_rtt = c.prober.on_answer(ack.probe_sent_at, probe_rtt))
      c.nscc.on_base_rtt_sample(*base_rtt);
  }
  if (rtt) {
    const bool first = c.smoothed_rtt == Duration();
    c.smoothed_rtt = first ? *rtt : c.smoothed_rtt + (*rtt - c.smoothed_rtt) / 8;
  }
  if (ack.has_credit_state) on_credit(now, ack.credit_units);
  c.note_changes(now);
}

void Ccc::on_held(Instant now, Transmission& t, PdcShare& share) {
  Impl& c = *impl_;
  c.on_any_feedback(now);
  if (!t.open || t.held) return;
  t.held = true;
  share.held_bytes += t.nominal_bytes;
  c.nscc.close(c.take_received(share));
  c.note_changes(now);
}

bool Ccc::on_nack(Instant now, Transmission& t, PdcShare& share, const NackSignal& nack) {
  Impl& c = *impl_;
  c.now_seen = now;
  if (nack.pdc_exists) c.on_any_feedback(now);
  const bool stale = t.resent > 0 && !nack.retx_echo;
  if (!t.open || stale) return false;
  c.paths.on_nack(now, t, nack, c.nscc.base_rtt());
  const auto rtt = rtt_sample(t, nack.arrived_at, nack.retx_echo, Duration());
  const auto trim = trim_of(nack.cause);
  if (c.window_decides) {
    // The share and the record close here, inflight itself closes in the window rules, whose order
    // matters.
    c.nscc.on_nack(now, t.nominal_bytes, trim, rtt, c.credit_decides);
  } else {
    c.nscc.close(t.nominal_bytes);
    if (rtt) c.nscc.on_base_rtt_sample(*rtt);
  }
  c.mark_for_resend(t, share);
  c.note_changes(now);
  return true;
}

bool Ccc::on_inferred_loss(Instant now, Transmission& t, PdcShare& share, bool timeout,
                           bool pdc_exists) {
  Impl& c = *impl_;
  c.now_seen = now;
  if (!t.open) return false;
  t.copy_unanswered |= t.resent > 0;
  // Packets of an ordered flow that go again because one before them was lost are no news of congestion. [CC 9]
  const bool only_order = !c.sprayed && !timeout;
  if (c.window_decides && !only_order) {
    c.nscc.on_inferred_loss(t.nominal_bytes);
  } else {
    c.nscc.close(t.nominal_bytes);
  }
  c.mark_for_resend(t, share);
  // A PDC may open without a word to this CCC, by a control packet; then credit can be asked for.
  if (pdc_exists) c.heard = true;
  if (timeout && !pdc_exists && !c.heard) c.rccc.on_timeout_without_pdc();
  if (!only_order) {
    // Whether a timer or the acknowledgements of later packets said so: this path did not deliver. [CC 7.7]
    t.timed_out = true;
    c.paths.on_loss(now, t, c.nscc.base_rtt());
  }
  c.note_changes(now);
  return true;
}

void Ccc::on_abandon(Transmission& t, PdcShare& share) {
  Impl& c = *impl_;
  if (!t.open && !t.marked) return;
  if (t.open) c.close_transmission(t, share);
  if (t.marked) c.unmark(t, share);
  share.unacked_bytes -= t.nominal_bytes;
  c.note_changes(c.now_seen);
}

void Ccc::on_pdc_closed(PdcShare& share) {
  Impl& c = *impl_;
  // Whatever the PDC left open or marked goes with it, and so does the rounding of its receive
  // counter.
  const ByteCount marked_bytes = share.unacked_bytes - (share.inflight + share.counted_ahead);
  c.open_packets -= share.open_packets;
  c.rtx_packets -= share.marked_packets;
  if (share.marked_packets > 0) c.rtx_bytes -= marked_bytes;
  c.nscc.close(share.inflight);
  if (share.attached && --c.attached_pdcs == 0) {
    // The destination frees the credit state of a source that has no PDC left: both start again
    // from zero.
    c.rccc.reset(c.now_seen);
    c.tfc.reset(c.now_seen);
    c.heard = false;
  }
  share = PdcShare{};
  c.note_changes(c.now_seen);
}

void Ccc::on_pdc_opened() {
  impl_->heard = true;
}

void Ccc::on_credit(Instant now, std::uint32_t credit_units) {
  Impl& c = *impl_;
  c.on_any_feedback(now);
  if (c.credit_decides) c.rccc.on_credit(now, credit_units);
  if (c.cells_decide) c.tfc.on_credit(now, credit_units);
  c.note_readiness();
}

CccState Ccc::state() const {
  const Impl& c = *impl_;
  if (!c.has_data()) return c.open_packets == 0 ? CccState::kIdle : CccState::kPending;
  return c.algorithms_allow(c.config.mtu_bytes) ? CccState::kReady : CccState::kActive;
}

std::optional<std::uint32_t> Ccc::poll_credit_request(Instant now) {
  Impl& c = *impl_;
  c.now_seen = now;
  if (c.credit_request_due() > now) return std::nullopt;
  (c.cells_decide ? c.tfc.timer() : c.rccc.timer()).request_sent(now);
  return c.credit_target(c.demand_after(0, 0), 0);
}

bool Ccc::poll_probe(Instant now) {
  return impl_->prober.poll(now, impl_->is_stuck(), impl_->nscc.base_rtt());
}

Instant Ccc::next_deadline(bool can_probe) const {
  const auto credit = impl_->credit_request_due();
  return can_probe ? std::min(credit, impl_->prober.due(impl_->is_stuck())) : credit;
}

std::uint8_t Ccc::id() const {
  return impl_->id;
}

bool Ccc::carries_credit() const {
  return impl_->credit_decides || impl_->cells_decide;
}

ByteCount Ccc::window_bytes() const {
  // Without a window of our own, the largest one says how much the path can hold.
  return impl_->window_decides ? impl_->nscc.window() : impl_->config.max_window;
}

ByteCount Ccc::inflight_bytes() const {
  return impl_->nscc.inflight();
}
Duration Ccc::base_rtt() const {
  return impl_->nscc.base_rtt();
}

Duration Ccc::smoothed_rtt() const {
  return impl_->rtt_or_base();
}

void Ccc::on_planes_changed(Instant now, std::uint8_t up) {
  impl_->now_seen = now;
  impl_->paths.table().on_planes_changed(now, up);
}

std::size_t Ccc::path_count() const {
  return impl_->paths.table().size();
}

Ccc::PathInfo Ccc::path(std::size_t index) const {
  UET_CHECK(index < path_count());
  const auto i = static_cast<std::uint32_t>(index);
  const auto& e = impl_->paths.table().entry(i);
  return {.entropy = impl_->paths.table().entropy(i),
          .plane = impl_->paths.table().plane(i),
          .rtt = Duration::from_ns(e.rtt_ns),
          .sent = e.sent,
          .marks = e.marks,
          .trims = e.trims,
          .losses = e.losses,
          .penalty = e.penalty,
          .state = impl_->paths.table().state(i, impl_->now_seen)};
}

bool Ccc::Impl::algorithms_allow(ByteCount bytes) const {
  if (window_decides && !nscc.may_send(bytes)) return false;
  if (credit_decides && !rccc.may_send()) return false;
  return !cells_decide || tfc.may_send(bytes);
}

bool Ccc::Impl::lacks_credit() const {
  if (credit_decides) return !rccc.may_send();
  return cells_decide && !tfc.may_send(config.mtu_bytes);
}

/// What still waits once packets of these sizes have left.
Demand Ccc::Impl::demand_after(ByteCount new_bytes, ByteCount resend_bytes) const {
  Demand demand;
  demand.new_bytes = std::max<ByteCount>(backlog - new_bytes, 0);
  demand.resend_bytes = std::max<ByteCount>(rtx_bytes - resend_bytes, 0);
  if (window_decides) demand.window = nscc.window();
  if (rivals != nullptr) demand.rivals = rivals->ready;
  return demand;
}

/// A path is slow when it takes longer than the others do, and that matters when packets wait for room in the window:
/// while there is room, delay costs the flow nothing.
Duration Ccc::Impl::slow_above() const {
  const bool waits = window_decides && has_data() && !nscc.may_send(config.mtu_bytes);
  if (!waits || smoothed_rtt == Duration()) return Duration::max();
  return smoothed_rtt + config.link_rate.time_for(ByteCount{config.mtu_bytes} * kSlowPackets);
}

std::uint32_t Ccc::Impl::credit_target(const Demand& demand, ByteCount leaving) const {
  return cells_decide ? tfc.credit_target(demand, leaving) : rccc.credit_target(demand, leaving);
}

void Ccc::Impl::on_any_feedback(Instant now) {
  now_seen = now;
  rccc.on_first_feedback();
  heard = true;
  // A probe is worth its packet only for a flow that goes on. [CC 4.9]
  if (has_data()) prober.on_feedback();
}

/// Ends the open transmission of `t` without a congestion reaction.
void Ccc::Impl::close_transmission(Transmission& t, PdcShare& share) {
  note_closed(t);
  forget_held(t, share);
  t.open = false;
  --open_packets;
  --share.open_packets;
  share.inflight -= t.nominal_bytes;
  nscc.close(t.nominal_bytes);
}

void Ccc::Impl::note_closed(const Transmission& t) {
  prober.on_settled(t.sent_at);
  prober.on_closed();
}

/// A window that shrinks may leave packets in the network none of which asks for an ACK, and too few
/// for the destination to send one unasked. Then the destination says nothing until a timeout.
bool Ccc::Impl::is_stuck() const {
  return window_decides && has_data() && open_packets > 0 && !nscc.may_send(config.mtu_bytes) &&
         nscc.inflight() < config.ack_gen_trigger;
}

Instant Ccc::Impl::credit_request_due() const {
  // Without a PDC the destination could not answer; the next SYN carries the demand.
  if (!has_data() || !lacks_credit() || !heard) return Instant::never();
  return (cells_decide ? tfc.timer() : rccc.timer()).due(nscc.base_rtt());
}

/// Ends the open transmission of `t`, whose bytes the window rules have taken out of inflight
/// already.
void Ccc::Impl::mark_for_resend(Transmission& t, PdcShare& share) {
  note_closed(t);
  forget_held(t, share);
  t.open = false;
  --open_packets;
  --share.open_packets;
  share.inflight -= t.nominal_bytes;
  t.marked = true;
  ++rtx_packets;
  ++share.marked_packets;
  rtx_bytes += t.nominal_bytes;
  if (cells_decide) tfc.on_lost(t.nominal_bytes);
}

void Ccc::Impl::unmark(Transmission& t, PdcShare& share) {
  t.marked = false;
  --rtx_packets;
  --share.marked_packets;
  rtx_bytes -= t.nominal_bytes;
}

/// Bytes that this ACK shows to have left the network and that were not counted before. [CC 3.8]
ByteCount Ccc::Impl::take_newly_received(PdcShare& share, const AckSignal& ack) {
  if (ack.has_nscc_state) {
    const auto units = units_ahead(ack.rcvd_units & kWireCounterMask, share.last_rcvd_units);
    if (units > 0) share.last_rcvd_units = ack.rcvd_units & kWireCounterMask;
    share.rcvd_ahead += ByteCount{units} * kWireUnitBytes;
  }
  // No destination can have received more than was sent: a counter that says so is wrong, and
  // believing it would open the window for ever.
  const ByteCount believable = share.unacked_bytes + kRoundingMax;
  share.rcvd_ahead = std::min(share.rcvd_ahead, believable);
  return take_received(share);
}

/// What has arrived is what the counter says, or what single answers said, whichever is more.
ByteCount Ccc::Impl::take_received(PdcShare& share) {
  const ByteCount received = std::max(share.rcvd_ahead, share.held_bytes);
  const ByteCount fresh = std::max<ByteCount>(received - share.counted_ahead, 0);
  share.counted_ahead += fresh;
  share.inflight -= fresh;
  return fresh;
}

void Ccc::Impl::forget_held(Transmission& t, PdcShare& share) {
  if (!t.held) return;
  t.held = false;
  share.held_bytes -= t.nominal_bytes;
}

void Ccc::Impl::note_readiness() {
  if (rivals == nullptr || !credit_decides) return;  // only credit is asked for by share
  const bool is_ready = has_data() && algorithms_allow(config.mtu_bytes);
  if (is_ready == is_rival) return;
  is_rival = is_ready;
  rivals->ready += is_ready ? 1u : ~0u;
}

/// After each event: what idling ends, and the trace of the window when it moved by an eighth.
void Ccc::Impl::note_changes(Instant now) {
  now_seen = now;
  note_readiness();
  if (!has_data() && open_packets == 0) nscc.on_idle();
  if (!window_decides) return;
  const auto moved = nscc.window() - traced_window;
  if ((moved < 0 ? -moved : moved) < std::max<ByteCount>(traced_window / 8, config.mtu_bytes))
    return;
  traced_window = nscc.window();
  trace.emit(now, base::EventId::kWindowChanged, 0, {}, static_cast<std::uint64_t>(traced_window),
             static_cast<std::uint64_t>(std::max<ByteCount>(nscc.inflight(), 0)));
}

std::string_view name_of(Ccc::PathState state) {
  switch (state) {
    case Ccc::PathState::kGood:
      return "good";
    case Ccc::PathState::kEvicted:
      return "evicted";
    case Ccc::PathState::kReturning:
      return "returning";
  }
  return "";
}

}  // namespace uet::cc
