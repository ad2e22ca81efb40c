#include "tests/cc/network_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace uet::cc::model {
namespace {

constexpr SourceKey kKey{.source = 42, .ccc_id = 7};
constexpr Duration kTick = Duration::from_us(40);
constexpr Duration kTimeout = Duration::from_us(120);

}  // namespace

Run::Run(const Scenario& scenario)
    : scenario_(scenario),
      rng_(scenario.seed),
      ccc_rng_(scenario.seed + 1000),
      pacer_(scenario_.config, 4, rng_),
      messages_left_(scenario.messages) {
  ccc_ = std::make_unique<Ccc>(scenario_.config, kKey.ccc_id, scenario.sprayed, Duration(),
                               ccc_rng_, trace_, now_);
  last_base_rtt_ = ccc_->base_rtt();
}

Outcome Run::play() {
  push({.at = now_ + kTick, .kind = Kind::kTick}, 0);
  offer_message();
  send_all();
  while (!events_.empty() && outcome_.events < scenario_.max_events &&
         !testing::Test::HasFatalFailure()) {
    const Event e = events_.top();
    events_.pop();
    now_ = e.at;
    ++outcome_.events;
    switch (e.kind) {
      case Kind::kData:
      case Kind::kTrimmed:
      case Kind::kRequest:
        at_destination(e);
        break;
      default:
        at_source(e);
        send_all();
        check();
    }
    if (messages_left_ == 0 && pdcs_.empty()) break;
  }
  outcome_.finished = messages_left_ == 0 && pdcs_.empty();
  if (outcome_.finished) {
    EXPECT_EQ(ccc_->state(), CccState::kIdle);
    EXPECT_EQ(ccc_->inflight_bytes(), 0);
  }
  return outcome_;
}

void Run::push(Event e, double loss) {
  if (rng_.chance(loss)) return;
  e.order = order_++;
  events_.push(e);
}

Run::Pdc* Run::find(std::uint32_t incarnation) {
  for (auto& pdc : pdcs_) {
    if (pdc.incarnation == incarnation) return &pdc;
  }
  return nullptr;
}

void Run::offer_message() {
  if (messages_left_ == 0) return;
  --messages_left_;
  if (static_cast<int>(pdcs_.size()) < scenario_.pdcs) {
    pdcs_.emplace_back().incarnation = next_incarnation_++;
  }
  Pdc& pdc = pdcs_[rng_.below(static_cast<std::uint32_t>(pdcs_.size()))];
  const auto packets = 1 + rng_.below(64);
  for (std::uint32_t i = 0; i < packets; ++i) {
    const bool full = i + 1 < packets;
    const ByteCount bytes =
        full ? scenario_.config.mtu_bytes : 100 + rng_.below(scenario_.config.mtu_bytes - 100);
    pdc.waiting.push_back(bytes);
    ccc_->on_new_data(now_, bytes);
  }
}

void Run::send_all() {
  while (send_one()) {
  }
  if (!pdcs_.empty() && ccc_->poll_probe(now_)) {
    ccc_->on_ack(
        now_, pdcs_.front().share,
        {.arrived_at = now_, .is_probe_answer = true, .probe_sent_at = now_ - delay() - delay()});
  }
}

bool Run::send_one() {
  for (std::size_t step = 0; step < pdcs_.size(); ++step) {
    Pdc& pdc = pdcs_[(turn_ + step) % pdcs_.size()];
    for (std::size_t i = 0; i < pdc.records.size(); ++i) {
      Transmission& t = pdc.records[i];
      if (!t.waits_for_resend()) continue;
      if (!ccc_->may_send(t.nominal_bytes)) return false;
      send_packet(pdc, t, pdc.base + static_cast<std::uint32_t>(i), t.nominal_bytes, true);
      ++turn_;
      return true;
    }
    if (pdc.waiting.empty() || static_cast<int>(pdc.records.size()) >= scenario_.psn_window)
      continue;
    const auto bytes = pdc.waiting.front();
    if (!ccc_->may_send(bytes)) return false;
    pdc.waiting.pop_front();
    const auto psn = pdc.base + static_cast<std::uint32_t>(pdc.records.size());
    send_packet(pdc, pdc.records.emplace_back(), psn, bytes, false);
    ++turn_;
    return true;
  }
  return false;
}

void Run::send_packet(Pdc& pdc, Transmission& t, std::uint32_t psn, ByteCount bytes, bool resend) {
  const bool avoid = resend && t.timed_out && ccc_->path_count() > 1;
  const auto lost_on = t.entropy;
  const auto params = ccc_->next_send(now_, resend ? &t : nullptr, bytes);
  if (avoid) {
    ASSERT_NE(params.entropy, lost_on) << "same path after a loss";
  }
  ccc_->on_send(now_, t, pdc.share, bytes, params, resend);
  ++outcome_.sent;
  outcome_.resent += resend ? 1 : 0;
  digest(static_cast<std::uint64_t>(now_.ns()));
  digest((std::uint64_t{params.entropy} << 32) | psn);
  digest(static_cast<std::uint64_t>(ccc_->window_bytes()));
  const auto& f = scenario_.faults;
  Event e{.at = now_ + delay(), .kind = Kind::kData, .incarnation = pdc.incarnation, .psn = psn};
  e.cack = static_cast<std::uint32_t>(bytes);
  e.ecn = rng_.chance(f.mark);
  e.retx = resend;
  e.has_target = params.credit_target.has_value();
  e.units = params.credit_target.value_or(0);
  e.last_hop = rng_.chance(f.last_hop);
  if (rng_.chance(f.duplicate)) push(e, 0);
  if (rng_.chance(f.trim)) e.kind = Kind::kTrimmed;
  push(e, f.data_loss);
}

void Run::at_destination(const Event& e) {
  const auto& f = scenario_.faults;
  if (e.kind == Kind::kRequest) pacer_.on_request(now_, kKey, e.units);
  if (e.has_target) pacer_.on_demand(now_, kKey, e.units);
  if (e.kind == Kind::kTrimmed && e.has_target) pacer_.on_trimmed(now_, kKey);
  while (const auto grant = pacer_.poll_grant(now_)) {
    push({.at = now_ + delay(), .kind = Kind::kCredit, .units = grant->credit_units},
         f.credit_loss);
  }
  Pdc* pdc = find(e.incarnation);
  if (e.kind == Kind::kRequest || pdc == nullptr) return;
  Event answer = e;
  answer.at = now_ + delay();
  if (e.kind == Kind::kTrimmed) {
    answer.kind = Kind::kNack;
    push(answer, f.ack_loss);
    return;
  }
  if (pdc->received.size() <= e.psn) pdc->received.resize(e.psn + 1);
  if (!pdc->received[e.psn]) pdc->received_bytes += e.cack;
  pdc->received[e.psn] = true;
  while (pdc->cumulative < pdc->received.size() && pdc->received[pdc->cumulative])
    ++pdc->cumulative;
  answer.kind = Kind::kAck;
  answer.cack = pdc->cumulative;
  answer.sack = 0;
  for (std::uint32_t i = 0; i < 64 && answer.cack + i < pdc->received.size(); ++i) {
    if (pdc->received[answer.cack + i]) answer.sack |= std::uint64_t{1} << i;
  }
  answer.units = rcvd_units(pdc->received_bytes);
  answer.plain = rng_.chance(f.plain_ack);
  if (answer.plain) answer.sack = 0;
  answer.penalty = rng_.chance(f.penalty) ? static_cast<std::uint8_t>(rng_.below(128)) : 0;
  push(answer, f.ack_loss);
}

void Run::at_source(const Event& e) {
  if (e.kind == Kind::kTick) return on_tick();
  if (e.kind == Kind::kCredit) return ccc_->on_credit(now_, e.units);
  Pdc* pdc = find(e.incarnation);
  if (pdc == nullptr) return;
  if (e.kind == Kind::kAck) return on_ack(*pdc, e);
  if (e.psn < pdc->base || e.psn - pdc->base >= pdc->records.size()) return;
  ccc_->on_nack(now_, pdc->records[e.psn - pdc->base], pdc->share,
                {.arrived_at = now_,
                 .cause = e.last_hop ? NackCause::kTrimmedLastHop : NackCause::kTrimmed,
                 .ecn = e.ecn,
                 .retx_echo = e.retx});
}

void Run::on_ack(Pdc& pdc, const Event& e) {
  AckSignal ack{.arrived_at = now_, .ecn = e.ecn, .retx_echo = e.retx};
  for (std::size_t i = 0; i < pdc.records.size(); ++i) {
    const auto psn = pdc.base + static_cast<std::uint32_t>(i);
    const bool covered =
        psn < e.cack || (psn - e.cack < 64 && ((e.sack >> (psn - e.cack)) & 1) != 0);
    Transmission& t = pdc.records[i];
    if (!covered || !t.is_counted()) continue;
    ccc_->on_first_ack(t, pdc.share);
    pdc.acked_bytes += t.nominal_bytes;
    if (psn == e.psn) ack.trigger = &t;
  }
  if (!e.plain) {
    ack.has_nscc_state = true;
    ack.rcvd_units = e.units;
    ack.penalty = e.penalty;
    ack.restore_window = true;
    if (e.units > pdc.seen_units) pdc.seen_units = e.units;  // no wrap in so short a life
    pdc.seen_bytes = ByteCount{pdc.seen_units} * 256;
  }
  pdc.best_known = std::max({pdc.best_known, pdc.seen_bytes, pdc.acked_bytes});
  ccc_->on_ack(now_, pdc.share, ack);
  if (rng_.chance(scenario_.faults.spurious_loss) && !pdc.records.empty()) {
    auto& victim = pdc.records[rng_.below(static_cast<std::uint32_t>(pdc.records.size()))];
    ccc_->on_inferred_loss(now_, victim, pdc.share, false);
  }
  forget_acked(pdc);
  close_if_done(pdc, rng_.chance(scenario_.faults.abort));
}

void Run::forget_acked(Pdc& pdc) {
  while (!pdc.records.empty() && !pdc.records.front().is_counted()) {
    pdc.records.pop_front();
    ++pdc.base;
  }
}

void Run::close_if_done(Pdc& pdc, bool abort) {
  const bool done = pdc.records.empty() && pdc.waiting.empty();
  if (!abort && !(done && rng_.chance(0.3))) return;
  for (auto& t : pdc.records) ccc_->on_abandon(t, pdc.share);
  for (const auto bytes : pdc.waiting) ccc_->on_new_data(now_, -bytes);
  ccc_->on_pdc_closed(pdc.share);
  pdcs_.erase(std::find_if(pdcs_.begin(), pdcs_.end(), [&pdc](const Pdc& other) {
    return other.incarnation == pdc.incarnation;
  }));
  // The destination may or may not have noticed before the next PDC comes.
  if (pdcs_.empty() && rng_.chance(0.5)) pacer_.forget(kKey);
}

void Run::on_tick() {
  if (messages_left_ > 0 && rng_.chance(0.5)) offer_message();
  for (auto& pdc : pdcs_) {
    for (auto& t : pdc.records) {
      if (t.is_in_flight() && now_ - t.sent_at > kTimeout) {
        ccc_->on_inferred_loss(now_, t, pdc.share, true, pdc.base > 0);
      }
    }
  }
  for (std::size_t i = pdcs_.size(); i-- > 0;) {
    if (pdcs_[i].records.empty() && pdcs_[i].waiting.empty())
      close_if_done(pdcs_[i], messages_left_ == 0);
  }
  if (const auto target = ccc_->poll_credit_request(now_)) {
    push({.at = now_ + delay(), .kind = Kind::kRequest, .units = *target},
         scenario_.faults.credit_loss);
  }
  while (const auto grant = pacer_.poll_grant(now_)) {
    push({.at = now_ + delay(), .kind = Kind::kCredit, .units = grant->credit_units},
         scenario_.faults.credit_loss);
  }
  push({.at = now_ + kTick, .kind = Kind::kTick}, 0);
}

void Run::check() {
  const auto& config = scenario_.config;
  ASSERT_GE(ccc_->window_bytes(), config.mtu_bytes);
  ASSERT_LE(ccc_->window_bytes(), config.max_window);
  ASSERT_LE(ccc_->base_rtt(), last_base_rtt_) << "base RTT grew";
  last_base_rtt_ = ccc_->base_rtt();

  ByteCount inflight = 0;
  bool any_open = false, any_data = false;
  for (const auto& pdc : pdcs_) {
    ByteCount open = 0, unacked = 0;
    for (const auto& t : pdc.records) {
      if (t.is_in_flight()) open += t.nominal_bytes;
      if (t.is_counted()) unacked += t.nominal_bytes;
      any_open |= t.is_in_flight();
      any_data |= t.waits_for_resend();
    }
    any_data |= !pdc.waiting.empty();
    const auto received_not_acked = pdc.best_known - pdc.acked_bytes;
    ASSERT_EQ(pdc.share.inflight, open - received_not_acked);
    if (unacked == 0) {
      ASSERT_LE(pdc.share.inflight, 0);
      ASSERT_GE(pdc.share.inflight, -255);
    }
    inflight += pdc.share.inflight;
  }
  ASSERT_EQ(ccc_->inflight_bytes(), inflight);
  const auto state = ccc_->state();
  ASSERT_EQ(state == CccState::kIdle, !any_open && !any_data);
  ASSERT_EQ(state == CccState::kPending, any_open && !any_data);
  ASSERT_EQ(state == CccState::kReady, any_data && ccc_->may_send(config.mtu_bytes));
}

}  // namespace uet::cc::model
