#include "cc/ccc.h"

#include <algorithm>

#include "lib/base/check.h"

namespace uet::cc {
namespace {

constexpr Duration kServiceTimeUnit = Duration::from_ns(128);
constexpr std::uint16_t kServiceTimeOverflow = 0xffff;
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

}  // namespace

Ccc::Ccc(const CcConfig& config, std::uint8_t ccc_id, bool sprayed, Duration cached_base_rtt,
         base::Rng& rng, base::Trace& trace, Instant now, ContendingContexts* contending)
    : config_(config),
      trace_(trace),
      allowance_(config, cached_base_rtt, now, contending),
      paths_(config, sprayed, rng, trace),
      prober_(config, cached_base_rtt),
      now_seen_(now),
      traced_window_(allowance_.window()),
      id_(ccc_id),
      sprayed_(sprayed) {}

std::uint8_t Ccc::worthwhile_of_many(Instant now, std::uint8_t free_planes) const {
  if (paths_.table().size() == 1) return free_planes;
  const std::uint8_t healthy = paths_.table().healthy_planes(now);
  return healthy == 0 ? free_planes : static_cast<std::uint8_t>(healthy & free_planes);
}

inline std::uint32_t Ccc::next_path(PathRequest& request, ByteCount nominal_bytes) {
  return paths_.next(request, nominal_bytes, [this](PathRequest& r) {
    r.open_packets = ledger_.open_packets();
    r.base_rtt = base_rtt();
    r.window_packets = window_bytes() / config_.mtu_bytes;
  });
}

bool Ccc::send_new(Instant now, Transmission& t, PdcShare& share, ByteCount nominal_bytes,
                   std::uint8_t free_planes, bool last_may_wait) {
  UET_DCHECK(!carries_credit());
  now_seen_ = now;
  PathRequest request{.now = now,
                      .free_planes = free_planes == 0 ? std::uint8_t{0xff} : free_planes,
                      .avoid_entropy = {}};
  const std::uint32_t path = next_path(request, nominal_bytes);
  PathTable& table = paths_.table();
  const bool asks = (ledger_.backlog() <= nominal_bytes && !last_may_wait) ||
                    allowance_.wants_ack(nominal_bytes) || table.wants_answer(path, now);
  ledger_.attach(share);
  t.leave(now, false);
  t.entropy = table.entropy(path);
  t.plane = table.plane(path);
  if (asks) prober_.on_asked(now);
  table.on_sent(now, path, asks);
  ledger_.on_send(t, share, nominal_bytes, false);
  allowance_.on_send(now, nominal_bytes);
  return asks;
}

SendParams Ccc::next_send(Instant now, const Transmission* previous, ByteCount nominal_bytes,
                          std::uint8_t free_planes, bool last_may_wait) {
  now_seen_ = now;
  PathRequest request{.now = now,
                      .free_planes = free_planes == 0 ? std::uint8_t{0xff} : free_planes,
                      .avoid_entropy = {}};
  if (previous != nullptr && previous->timed_out) request.avoid_entropy = previous->entropy;
  const std::uint32_t index = next_path(request, nominal_bytes);
  SendParams params;
  params.entropy = paths_.table().entropy(index);
  params.plane = paths_.table().plane(index);
  const bool is_resend = previous != nullptr;
  const Demand demand = waiting(nominal_bytes, is_resend);
  params.ack_request = is_resend || (demand.new_bytes == 0 && !last_may_wait) ||
                       allowance_.wants_ack(nominal_bytes) ||
                       paths_.table().wants_answer(index, now);
  if (carries_credit()) params.credit_target = allowance_.credit_target(demand, nominal_bytes);
  return params;
}

void Ccc::on_send(Instant now, Transmission& t, PdcShare& share, ByteCount nominal_bytes,
                  const SendParams& params, bool is_retransmission) {
  now_seen_ = now;
  ledger_.attach(share);
  take_in(t, share);
  if (t.is_in_flight()) {  // sent again while still out: one record counts one copy
    t.copy_unanswered |= t.resent > 0;
    note_settled(t);
    allowance_.remove_inflight(t.nominal_bytes);
  }
  t.leave(now, is_retransmission);
  if (params.ack_request) prober_.on_asked(now);
  t.entropy = params.entropy;
  t.plane = params.plane;
  t.timed_out = false;
  paths_.on_sent(now, params.entropy, params.ack_request);
  if (ledger_.on_send(t, share, nominal_bytes, is_retransmission))
    allowance_.on_send(now, nominal_bytes);
  allowance_.note_readiness(ledger_.has_data());
}

void Ccc::leave_out(Transmission& t, PdcShare& share) {
  if (t.counted != Transmission::Counted::kInFlight) return;
  allowance_.remove_inflight(Ledger::leave_out(t, share));
}

/// Something came of it: it is counted as any other from here on. True when it was not.
bool Ccc::take_in(Transmission& t, PdcShare& share) {
  if (!t.is_left_out()) return false;
  allowance_.restore_inflight(Ledger::take_in(t, share));
  return true;
}

void Ccc::on_arrived(Transmission& t) {
  if (t.is_counted()) paths_.on_arrived(now_seen_, t, base_rtt());
}

void Ccc::on_ack(Instant now, PdcShare& share, const AckSignal& ack) {
  on_any_feedback(now);
  const auto service = service_time(ack);
  std::optional<Duration> rtt;
  if (ack.trigger != nullptr && service && !ack.is_probe_answer) {
    rtt = rtt_sample(*ack.trigger, ack.arrived_at, ack.retx_echo, *service);
  }
  paths_.on_ack(now, ack, rtt, slow_above(), base_rtt(), smoothed_rtt());
  allowance_.on_ack(now, ledger_.take_newly_received(share, ack), ack, rtt);
  if (ack.is_probe_answer) {
    std::optional<Duration> probe_rtt;
    if (service) probe_rtt = ack.arrived_at - ack.probe_sent_at - *service;
    if (const auto sample = prober_.on_answer(ack.probe_sent_at, probe_rtt))
      allowance_.on_base_rtt_sample(*sample);
  }
  if (rtt) {
    const bool first = smoothed_rtt_ == Duration();
    smoothed_rtt_ = first ? *rtt : smoothed_rtt_ + (*rtt - smoothed_rtt_) / 8;
  }
  if (ack.has_credit_state) on_credit(now, ack.credit_units);
  note_changes(now);
}

void Ccc::on_held(Instant now, Transmission& t, PdcShare& share) {
  on_any_feedback(now);
  take_in(t, share);
  if (t.counted != Transmission::Counted::kInFlight) return;
  allowance_.remove_inflight(ledger_.hold(t, share));
  note_changes(now);
}

bool Ccc::on_nack(Instant now, Transmission& t, PdcShare& share, const NackSignal& nack) {
  now_seen_ = now;
  if (nack.pdc_exists) on_any_feedback(now);
  const bool stale = t.resent > 0 && !nack.retx_echo;
  if (stale) return false;
  take_in(t, share);
  if (!t.is_in_flight()) return false;
  paths_.on_nack(now, t, nack, base_rtt());
  // The window rules take the bytes out of inflight themselves: their order matters.
  allowance_.on_nack(now, t.nominal_bytes, nack.cause,
                     rtt_sample(t, nack.arrived_at, nack.retx_echo, Duration()));
  note_settled(t);
  ledger_.close_for_resend(t, share);
  note_changes(now);
  return true;
}

bool Ccc::on_inferred_loss(Instant now, Transmission& t, PdcShare& share, bool timeout,
                           bool pdc_exists) {
  now_seen_ = now;
  const bool was_left_out = take_in(t, share);
  if (!t.is_in_flight()) return false;
  t.copy_unanswered |= t.resent > 0;
  // Go-back-N retransmissions behind a lost packet are not a congestion signal. [CC 9]
  const bool only_order = !sprayed_ && !timeout;
  allowance_.on_loss(t.nominal_bytes, !only_order && !was_left_out);
  note_settled(t);
  ledger_.close_for_resend(t, share);
  // A PDC may open without a word to this CCC, by a control packet; then credit can be asked for.
  if (pdc_exists) heard_ = true;
  if (timeout && !pdc_exists && !heard_) allowance_.on_timeout_without_pdc();
  if (!only_order) {
    // Whether a timer or the acknowledgements of later packets said so: this path did not deliver. [CC 7.7]
    t.timed_out = true;
    paths_.on_loss(now, t, base_rtt());
  }
  note_changes(now);
  return true;
}

bool Ccc::on_excluded(Instant now, Transmission& t, PdcShare& share) {
  now_seen_ = now;
  take_in(t, share);
  if (!t.is_in_flight()) return false;
  t.copy_unanswered |= t.resent > 0;
  allowance_.on_loss(t.nominal_bytes, false);
  note_settled(t);
  ledger_.close_for_resend(t, share);
  note_changes(now);
  return true;
}

void Ccc::on_abandon(Transmission& t, PdcShare& share) {
  if (!t.is_counted()) return;
  take_in(t, share);
  if (t.is_in_flight()) {
    note_settled(t);
    allowance_.remove_inflight(t.nominal_bytes);
  }
  ledger_.abandon(t, share);
  note_changes(now_seen_);
}

void Ccc::on_pdc_closed(PdcShare& share) {
  allowance_.remove_inflight(share.inflight);
  if (ledger_.detach(share)) {
    allowance_.reset_credit(now_seen_);
    heard_ = false;
  }
  note_changes(now_seen_);
}

void Ccc::on_pdc_opened() {
  heard_ = true;
}

void Ccc::on_credit(Instant now, std::uint32_t credit_units) {
  on_any_feedback(now);
  allowance_.on_credit(now, credit_units);
  allowance_.note_readiness(ledger_.has_data());
}

void Ccc::on_planes_changed(Instant now, std::uint8_t up) {
  now_seen_ = now;
  paths_.table().on_planes_changed(now, up);
}

CccState Ccc::state() const {
  if (!ledger_.has_data())
    return ledger_.open_packets() == 0 ? CccState::kIdle : CccState::kPending;
  return allowance_.allows(config_.mtu_bytes) ? CccState::kReady : CccState::kActive;
}

std::uint32_t Ccc::request_credit(Instant now) {
  allowance_.on_credit_requested(now);
  return allowance_.credit_target(waiting(0, false), 0);
}

bool Ccc::poll_probe(Instant now) {
  return prober_.poll(now, is_stuck(), base_rtt());
}

Instant Ccc::next_deadline(bool can_probe) const {
  const auto credit = credit_request_due();
  return can_probe ? std::min(credit, prober_.due(is_stuck())) : credit;
}

Ccc::PathInfo Ccc::path(std::size_t index) const {
  UET_CHECK(index < path_count());
  const auto i = static_cast<std::uint32_t>(index);
  const auto& e = paths_.table().entry(i);
  return {.entropy = paths_.table().entropy(i),
          .plane = paths_.table().plane(i),
          .rtt = Duration::from_ns(e.rtt_ns),
          .sent = e.sent,
          .marks = e.marks,
          .trims = e.trims,
          .losses = e.losses,
          .penalty = e.penalty,
          .state = paths_.table().state(i, now_seen_)};
}

/// What still waits once a packet of this size has left.
Demand Ccc::waiting(ByteCount leaving, bool is_resend) const {
  Demand demand;
  demand.new_bytes = std::max<ByteCount>(ledger_.backlog() - (is_resend ? 0 : leaving), 0);
  demand.resend_bytes = std::max<ByteCount>(ledger_.resend_bytes() - (is_resend ? leaving : 0), 0);
  return demand;
}

/// A path is slow when it takes longer than the others do, and that matters when packets wait for room in the window:
/// while there is room, delay costs the flow nothing.
Duration Ccc::slow_above() const {
  if (smoothed_rtt_ == Duration() || !ledger_.has_data() || !allowance_.is_window_full())
    return Duration::max();
  return smoothed_rtt_ + config_.link_rate.time_for(ByteCount{config_.mtu_bytes} * kSlowPackets);
}

void Ccc::on_any_feedback(Instant now) {
  now_seen_ = now;
  allowance_.on_feedback();
  heard_ = true;
  // A probe is worth its packet only for a flow that goes on. [CC 4.9]
  if (ledger_.has_data()) prober_.on_feedback();
}

/// A window that shrinks may leave packets in the network none of which asks for an ACK, and too few
/// for the destination to send one unasked. Then the destination says nothing until a timeout.
bool Ccc::is_stuck() const {
  return ledger_.open_packets() > 0 && ledger_.has_data() && allowance_.is_window_full() &&
         allowance_.inflight() < config_.ack_gen_trigger;
}

/// After each event that can move the window: the trace of it when it moved by an eighth.
void Ccc::note_changes(Instant now) {
  note_rest(now);
  if (!allowance_.has_window()) return;
  const auto window = allowance_.window();
  const auto moved = window - traced_window_;
  if ((moved < 0 ? -moved : moved) < std::max<ByteCount>(traced_window_ / 8, config_.mtu_bytes))
    return;
  traced_window_ = window;
  trace_.emit(now, base::EventId::kWindowChanged, 0, {}, static_cast<std::uint64_t>(window),
              static_cast<std::uint64_t>(std::max<ByteCount>(allowance_.inflight(), 0)));
}

}  // namespace uet::cc
