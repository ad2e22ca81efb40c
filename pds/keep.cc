// Who may keep how many answers, and what happens to a source that does not clear. See docs/decisions/0101.

#include "pds/engine.h"

namespace uet::pds {

AnswerShare Engine::share_of(const Pdc& pdc) {
  return {.capacity = config_.gtd_store_max,
          .kept = responses_.kept(),
          .of_unproven = kept_by_unproven_,
          .of_peer = shares_.at(pdc.share).answers,
          .of_pdc = pdc.rx.kept};
}

/// SES may answer `psn` with something to keep: true when there is room for it.
bool Engine::has_room_for_answer(Instant now, Pdc& pdc, Psn psn) {
  AnswerShare share = share_of(pdc);
  if (pdc.is_unproven()) {
    // Unproven peers push out each other: a newcomer needs an answer for a round trip only.
    if (share.of_unproven >= share.unproven_share() && evict_answers_of_unproven(now, pdc))
      share = share_of(pdc);
    return share.allows_unproven();
  }
  if (share.allows_proven()) return true;
  return may_use_reserve(pdc, psn);
}

// Answers beyond a gap cannot be cleared, and could keep out the very packet that the source must deliver before it may clear
// anything. Such a packet may exceed every share, a few times until CACK moves. What the source can clear it must clear.
// See docs/decisions/0042.
bool Engine::may_use_reserve(const Pdc& pdc, Psn psn) const {
  constexpr std::uint8_t kExtra = 4;
  return psn == pdc.rx.edge + 1 && responses_.can_keep(true) && !can_clear_something(pdc) &&
         (pdc.rx.beyond_share < kExtra || pdc.rx.beyond_cack != pdc.rx.cack);
}

/// The first answer that holds CACK up is there to be cleared.
bool Engine::can_clear_something(const Pdc& pdc) {
  const RxHalf& rx = pdc.rx;
  return rx.tracker != nullptr && rx.tracker->test(RxTracker::kStored, rx.cack + 1) &&
         (rx.cack + 1).is_at_or_before(rx.edge);
}

void Engine::count_kept(Pdc& pdc, std::int32_t change) {
  const auto add = [change](std::uint32_t& count) {
    count = static_cast<std::uint32_t>(static_cast<std::int32_t>(count) + change);
  };
  if (change > 0 && !pdc.is_unproven() && !share_of(pdc).allows_proven()) {
    if (pdc.rx.beyond_cack != pdc.rx.cack) pdc.rx.beyond_share = 0;
    pdc.rx.beyond_cack = pdc.rx.cack;
    ++pdc.rx.beyond_share;
  }
  add(pdc.rx.kept);
  add(shares_.at(pdc.share).answers);
  if (pdc.is_unproven()) add(kept_by_unproven_);
}

bool Engine::evict_answers_of_unproven(Instant now, const Pdc& except) {
  Pdc* pdc = unproven_.to_evict_with_answers(now, except);
  if (pdc == nullptr || !openings_.has_room_for(now, 1)) return false;
  ++unproven_evicted_;
  retire_unproven(now, *pdc);
  return true;
}

/// Room is short for this PDC, and it holds answers: its source is asked to clear them.
void Engine::ask_for_clear(Instant now, Pdc& pdc) {
  if (pdc.is_unproven() || pdc.rx.stored == 0 || !pdc.deadline(PdcTimer::kClearRequest).is_never())
    return;
  want_control(pdc, kSendClearRequest);
  pdc.rx.clear_asked_at = now;
  set_timer(pdc, PdcTimer::kClearRequest, now + clear_patience(pdc.rx.clear_asks));
}

Duration Engine::clear_patience(unsigned asks) const {
  return std::max(config_.pds_clear_time, Duration::from_ms(1)) * (1 << asks);
}

// A source that sleeps is not heard, and waits for its peer timeout. One that is heard again and again and clears nothing of what
// it can clear, while room is short, does not mean to.
void Engine::on_clear_request_timer(Instant now, Pdc& pdc) {
  constexpr unsigned kRounds = 64;
  constexpr std::uint8_t kAwake = 4, kAsleep = 10;  // doublings of the time between two requests
  RxHalf& rx = pdc.rx;
  const AnswerShare share = share_of(pdc);
  if (rx.stored == 0 || (share.allows_proven() && !share.is_short())) {
    rx.clear_rounds = rx.clear_asks = 0;
    return;
  }
  const bool is_awake = pdc.heard_at >= rx.clear_asked_at;
  rx.clear_asks = std::min<std::uint8_t>(rx.clear_asks + 1, is_awake ? kAwake : kAsleep);
  if (is_awake && can_clear_something(pdc)) ++rx.clear_rounds;
  if (rx.clear_rounds < kRounds) return ask_for_clear(now, pdc);
  ++clear_breaks_;
  nack_close_error(now, pdc, rx.edge + 1, rx.last_meta, NackCode::kClosingInErr);
  fail(now, pdc, PdsError::kPeerFailed);
}

}  // namespace uet::pds
