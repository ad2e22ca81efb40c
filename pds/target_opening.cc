#include "pds/target_opening.h"

namespace uet::pds {
namespace {

OpeningGuard::Opening opening_of(const Arrival& in) {
  return {
      .source = in.source, .spdcid = in.spdcid, .start = in.start(), .is_overtaken = in.overtaken};
}

}  // namespace

TargetOpening::TargetOpening(Shared& shared, ReceivingHalf& receiving, Life& life)
    : Part(shared.env),
      table_(shared.pdcs),
      scheduler_(shared.scheduler),
      states_(shared.states),
      nacks_(shared.nacks),
      openings_(receiving.openings),
      receiver_(receiving.receiver),
      lifecycle_(life.lifecycle),
      closing_(life.closing),
      admission_(life.admission),
      liveness_(life.liveness) {}

Pdc* TargetOpening::find_for(Instant now, const Arrival& in) {
  if (in.syn) return find_for_syn(now, in);
  Pdc* pdc = table_.by_id(in.dpdcid);
  const auto refusal = misfit(pdc, in);
  if (!refusal) [[likely]]
    return pdc;
  // Of a PDC that is not its own the sender learns nothing.
  nacks_.refuse(now, in, *refusal == Refusal::kOtherMode ? pdc : nullptr, *refusal);
  return nullptr;
}

Pdc* TargetOpening::find_for_syn(Instant now, const Arrival& in) {
  const auto refuse = [&](const Pdc* pdc, Refusal refusal) -> Pdc* {
    nacks_.refuse(now, in, pdc, refusal);
    return nullptr;
  };
  if (in.spdcid == 0) return refuse(nullptr, Refusal::kNoSource);
  Pdc* pdc = table_.find_target(in.source, in.spdcid, in.start());
  if (pdc == nullptr) pdc = table_.find_proven_target(in.source, in.spdcid);
  if (pdc != nullptr && is_given_up(now, *pdc, in)) {
    if (!may_replace(now, *pdc, in)) return nullptr;
    pdc = nullptr;
  }
  if (pdc == nullptr) return open(now, in);
  if (pdc->mode != in.mode) return refuse(pdc, Refusal::kOtherMode);
  if (pdc->state == PdcState::kPending) return confirm(now, *pdc, in);
  if (pdc->start != in.start()) return refuse(pdc, Refusal::kOtherStart);
  return pdc;
}

// A SYN with another start contradicts a PDC whose peer has proved that it uses this identifier so, and lives. See
// docs/decisions/0102, 0103.
bool TargetOpening::is_given_up(Instant now, const Pdc& pdc, const Arrival& in) {
  return pdc.start != in.start() && pdc.state != PdcState::kPending &&
         closing_.is_given_up(now, pdc);
}

// Without a guard the SYN may be forged: each PDC goes its way, and the peer proves the one that it knows. Behind a guard one lives.
// There the SYN may be a recorded one, so it has to come from a start that it is told first; until then the PDC stays.
bool TargetOpening::may_replace(Instant now, Pdc& pdc, const Arrival& in) {
  if (env_.guard == nullptr) return true;
  if (in.start() != pdc.other_start) {
    if (!pdc.other_start) pdc.other_start = Psn(env_.rng.next_u32());
    nacks_.refuse(now, in, nullptr, Refusal::kChallenged, pdc.other_start->value());
    return false;
  }
  closing_.fail(now, pdc, PdsError::kPeerSilent);
  return true;
}

// [PDS 6.4] Every refusal comes before anything is allocated.
Pdc* TargetOpening::open(Instant now, const Arrival& in) {
  const auto refuse = [&](Refusal refusal, std::uint32_t payload = 0) -> Pdc* {
    nacks_.refuse(now, in, nullptr, refusal, payload);
    return nullptr;
  };
  if (openings_.tombstones().contains(now, in.source, in.spdcid, in.start()))
    return refuse(Refusal::kTombstone);
  // Its PDC had to make place before the peer proved that it hears us, which may have delivered this: never again.
  if (openings_.ended_early().contains(now, in.source, in.spdcid, in.start()))
    return refuse(Refusal::kEndedEarly);
  // Every target PDC needs a tombstone (TIME_WAIT) when it closes, and none is evicted early: the SYN is refused where the table
  // could not hold those of all open PDCs. So its size bounds the rate of openings. See docs/decisions/0048.
  if (!openings_.tombstones().has_room_for(now, table_.target_count() + 1)) [[unlikely]]
    return refuse(Refusal::kNoPlace);
  if (!admission_.make_place_under(now, in.source) || !admission_.make_place(now) ||
      table_.next_free_id() > now)
    return refuse(Refusal::kNoPlace);
  if (!lifecycle_.can_open_target(in)) return refuse(Refusal::kNoCcc);
  if (!receiver_.has_trackers()) return refuse(Refusal::kNoTracker);
  if (in.psn_offset >= limits_.window) return refuse(Refusal::kBeyondWindow);
  // Secured, the guard decides between ESTABLISHED and PENDING; without one a SYN is accepted at
  // once. [PDS 6.5]
  if (env_.guard != nullptr) {
    if (const auto announced = env_.guard->on_opening(opening_of(in))) {
      challenge(now, in, *announced);
      return nullptr;
    }
  }
  if (in.mode == Mode::kRod && in.psn_offset != 0)
    return refuse(Refusal::kOutOfOrder, in.start().value());

  Pdc& pdc = lifecycle_.open_target(now, in, in.start(), PdcInput::kSynAccepted);
  trace_.emit(now, EventId::kPdcOpened, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(pdc.mode));
  liveness_.look(now, pdc);
  return &pdc;
}

// The first SYN does not open. What it carries is not delivered; it comes again.
void TargetOpening::challenge(Instant now, const Arrival& in, Psn announced) {
  if (!env_.guard->may_wait(in.source)) return nacks_.refuse(now, in, nullptr, Refusal::kNoPlace);
  Pdc& pdc = lifecycle_.open_target(now, in, announced, PdcInput::kSynUnconfirmed);
  if (config_.new_pdc_time > Duration{})
    scheduler_.set_timer(pdc, PdcTimer::kClose, now + config_.new_pdc_time);
  nacks_.refuse(now, in, &pdc, Refusal::kChallenged, announced.value());
}

// A SYN for a pending PDC. Null unless it starts where it was told to.
Pdc* TargetOpening::confirm(Instant now, Pdc& pdc, const Arrival& in) {
  const auto refuse = [&](Refusal refusal, Psn payload = Psn(0)) -> Pdc* {
    nacks_.refuse(now, in, &pdc, refusal, payload.value());
    return nullptr;
  };
  if (!env_.guard->is_confirmed(opening_of(in), pdc.start))
    return refuse(Refusal::kChallenged, pdc.start);
  if (in.psn_offset >= limits_.window) return refuse(Refusal::kBeyondWindow);
  if (pdc.is_rod() && in.psn_offset != 0) return refuse(Refusal::kOutOfOrder, in.start());
  env_.guard->on_wait_over(pdc.peer);
  lifecycle_.begin_at(now, pdc, in.start());
  Scheduler::stop_timer(pdc, PdcTimer::kClose);
  states_.change(now, pdc, PdcInput::kSynConfirmed);
  liveness_.prove(now, pdc);  // it starts as we told it to
  trace_.emit(now, EventId::kPdcOpened, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(pdc.mode));
  liveness_.look(now, pdc);
  return &pdc;
}

}  // namespace uet::pds
