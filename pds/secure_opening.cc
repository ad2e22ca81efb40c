// Openings that must be confirmed first. [PDS 6.5]

#include "pds/engine.h"

namespace uet::pds {

namespace {

OpeningGuard::Opening opening_of(const Arrival& in) {
  return {in.source, in.spdcid, in.start()};
}

}  // namespace

/// Target: the first SYN does not open. What it carries is not delivered; it comes again.
void Engine::challenge(Instant now, const Arrival& in, Psn announced) {
  if (!env_.guard->may_wait(in.source)) {
    trace_.drop(now, DropReason::kNoPdc, in.body.size(), 0, in.psn);
    return nacks_.add_for(now, in, nullptr, NackCode::kNoPdcAvail);
  }
  Pdc& pdc = add_target(now, in, announced, PdcInput::kSynUnconfirmed);
  if (config_.new_pdc_time > Duration{})
    scheduler_.set_timer(pdc, PdcTimer::kClose, now + config_.new_pdc_time);
  trace_.drop(now, DropReason::kStaleSyn, in.body.size(), pdc.id, in.psn);
  nacks_.add_for(now, in, nullptr, NackCode::kNewStartPsn, announced.value());
}

/// Target: a SYN for a pending PDC. Null unless it starts where it was told to.
Pdc* Engine::confirm_opening(Instant now, Pdc& pdc, const Arrival& in) {
  const auto refuse = [&](DropReason reason, NackCode code, Psn payload) -> Pdc* {
    trace_.drop(now, reason, in.body.size(), pdc.id, in.psn);
    nacks_.add_for(now, in, nullptr, code, payload.value());
    return nullptr;
  };
  if (!env_.guard->is_confirmed(opening_of(in), pdc.start))
    return refuse(DropReason::kStaleSyn, NackCode::kNewStartPsn, pdc.start);
  if (in.psn_offset >= limits_.window)
    return refuse(DropReason::kPsnBeyondWindow, NackCode::kPsnOorWindow, Psn(0));
  if (pdc.is_rod() && in.psn_offset != 0)
    return refuse(DropReason::kRodOutOfOrder, NackCode::kRodOoo, in.start());
  env_.guard->on_wait_over(pdc.peer);
  init_halves(now, pdc, in.start());
  Scheduler::stop_timer(pdc, PdcTimer::kClose);
  states_.change(now, pdc, PdcInput::kSynConfirmed);
  prove(now, pdc);  // it starts as we told it to
  trace_.emit(now, EventId::kPdcOpened, pdc.id, pdc.start, 1, static_cast<std::uint64_t>(pdc.mode));
  on_liveness(now, pdc);
  return &pdc;
}

/// Target: nobody took up the challenge.
void Engine::reap_half_open(Instant now, Pdc& pdc) {
  trace_.emit(now, EventId::kPdcClosed, pdc.id, pdc.start, 1,
              static_cast<std::uint64_t>(PdsError::kPeerSilent));
  env_.guard->on_wait_over(pdc.peer);
  states_.change(now, pdc, PdcInput::kFailed);
  free_pdc(now, pdc);
  ++half_open_reaped_;
  if (half_open_reaped_ % std::max<std::uint32_t>(config_.new_pdc_timeout_thresh, 1) == 0)
    env_.guard->on_half_open_limit();
}

}  // namespace uet::pds
