#include "pds/kept_responses.h"

namespace uet::pds {

AnswerShare KeptResponses::share_of(const Pdc& pdc) {
  return {.capacity = config_.gtd_store_max,
          .kept = store_.kept(),
          .of_unproven = of_unproven_,
          .of_peer = peers_.at(pdc.share).answers,
          .of_pdc = pdc.rx.kept};
}

// While the store, but not yet the PDC, has counted one more response.
AnswerShare KeptResponses::share_before(const Pdc& pdc) {
  AnswerShare share = share_of(pdc);
  --share.kept;
  return share;
}

bool KeptResponses::has_room(const Pdc& pdc, Psn psn) {
  if (is_plenty(pdc)) return true;
  const AnswerShare share = share_of(pdc);
  if (pdc.is_unproven()) return share.allows_unproven();
  return share.allows_proven() || may_use_reserve(pdc, psn);
}

// Answers beyond a gap cannot be cleared, and could keep out the very packet that the source must deliver before it may clear
// anything. Such a packet may exceed every share, a few times until CACK moves. What the source can clear it must clear.
// See docs/decisions/0042.
bool KeptResponses::may_use_reserve(const Pdc& pdc, Psn psn) const {
  constexpr std::uint8_t kExtra = 4;
  return psn == pdc.rx.edge + 1 && store_.can_keep(true) && !can_clear_something(pdc) &&
         (pdc.rx.beyond_share < kExtra || pdc.rx.beyond_cack != pdc.rx.cack);
}

// The first answer that holds CACK up is there to be cleared.
bool KeptResponses::can_clear_something(const Pdc& pdc) {
  const RxHalf& rx = pdc.rx;
  return rx.tracker != nullptr && rx.tracker->test(RxTracker::kStored, rx.cack + 1) &&
         (rx.cack + 1).is_at_or_before(rx.edge);
}

// What is kept beyond a gap can be cleared when the gap is closed, and that is for the source to do: it sends a packet again until it
// is acknowledged or has failed, so one that was not even tried for as long as peers are waited for does not come any more.
bool KeptResponses::leaves_gap_open(Instant now, const Pdc& pdc) const {
  const RxHalf& rx = pdc.rx;
  return rx.above_edge > 0 && rx.cack == rx.edge &&
         env_.end_of_patience(now, rx.gap_heard_at) <= now;
}

void KeptResponses::count(Pdc& pdc, std::int32_t change) {
  const auto add = [change](std::uint32_t& count) {
    count = static_cast<std::uint32_t>(static_cast<std::int32_t>(count) + change);
  };
  if (change > 0 && !pdc.is_unproven() && !share_before(pdc).allows_proven()) {
    if (pdc.rx.beyond_cack != pdc.rx.cack) pdc.rx.beyond_share = 0;
    pdc.rx.beyond_cack = pdc.rx.cack;
    ++pdc.rx.beyond_share;
  }
  add(pdc.rx.kept);
  add(peers_.at(pdc.share).answers);
  if (!pdc.is_unproven()) return;
  add(of_unproven_);
  if (pdc.rx.kept == 0)
    unproven_keepers_.erase(unproven_keepers_.iterator_to(pdc));
  else if (!pdc.keeper_hook.is_linked())
    unproven_keepers_.push_back(pdc);
}

void KeptResponses::on_proven(Pdc& pdc) {
  of_unproven_ -= pdc.rx.kept;
  if (pdc.keeper_hook.is_linked()) unproven_keepers_.erase(unproven_keepers_.iterator_to(pdc));
}

void KeptResponses::ask_for_clear(Instant now, Pdc& pdc) {
  if (pdc.is_unproven() || pdc.rx.stored == 0 || !pdc.deadline(PdcTimer::kClearRequest).is_never())
    return;
  scheduler_.want_control(pdc, kSendClearRequest);
  pdc.rx.clear_asked_at = now;
  scheduler_.set_timer(pdc, PdcTimer::kClearRequest, now + clear_patience(pdc.rx.clear_asks));
}

Duration KeptResponses::clear_patience(unsigned asks) const {
  return std::max(config_.pds_clear_time, Duration::from_ms(1)) * (1 << asks);
}

// A source that sleeps is not heard, and waits for its peer timeout. One that is heard again and again and clears nothing of what
// it can clear, or does not send the packet without which it cannot, while room is short, does not mean to.
bool KeptResponses::on_clear_request_timer(Instant now, Pdc& pdc) {
  constexpr unsigned kRounds = 64;
  constexpr std::uint8_t kAwake = 4, kAsleep = 10;  // doublings of the time between two requests
  RxHalf& rx = pdc.rx;
  const AnswerShare share = share_of(pdc);
  if (rx.stored == 0 || (share.allows_proven() && !share.is_short())) {
    rx.clear_rounds = rx.clear_asks = 0;
    return true;
  }
  const bool is_awake = pdc.heard_at >= rx.clear_asked_at;
  rx.clear_asks = std::min<std::uint8_t>(rx.clear_asks + 1, is_awake ? kAwake : kAsleep);
  if (is_awake && can_clear_something(pdc)) ++rx.clear_rounds;
  if (rx.clear_rounds >= kRounds || (is_awake && leaves_gap_open(now, pdc))) return false;
  ask_for_clear(now, pdc);
  return true;
}

}  // namespace uet::pds
