#include "pds/verdict.h"

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

namespace {

bool is_right_role(const Pdc& pdc, const Arrival& in) {
  if (!in.is_control) return true;
  if (in.control == ControlType::kCloseCommand) return !pdc.is_initiator;
  if (in.control == ControlType::kCloseRequest) return pdc.is_initiator;
  return true;
}

bool is_closed_to(const Pdc& pdc, const Arrival& in, PsnClass kind) {
  const bool is_after_close =
      pdc.has_close_psn && !pdc.is_initiator && in.psn.is_after(pdc.close_psn);
  return is_after_close || (pdc.state == PdcState::kCloseAckWait && kind == PsnClass::kNew);
}

/// The packet that is waited for, while nothing beyond it is known and the PDC is open: most are.
bool is_next(const Pdc& pdc, const Arrival& in) {
  const RxHalf& rx = pdc.rx;
  return rx.tracker == nullptr && rx.edge == rx.cack && in.psn == rx.cack + 1 && rx.granted > 0 &&
         !in.is_control && !pdc.has_close_psn && pdc.state != PdcState::kCloseAckWait;
}

constexpr Verdict refuse(Refusal refusal, bool shows_peer) {
  return {Verdict::Action::kRefuse, refusal, shows_peer};
}

}  // namespace

std::optional<Refusal> misfit(const Pdc* pdc, const Arrival& in) {
  if (pdc == nullptr || pdc->state == PdcState::kPending) return Refusal::kUnknownPdc;
  if (pdc->peer != in.source || (pdc->peer_id != 0 && pdc->peer_id != in.spdcid))
    return Refusal::kOtherPeer;
  if (in.spdcid == 0) return Refusal::kNoSource;
  if (pdc->mode != in.mode) return Refusal::kOtherMode;
  return std::nullopt;
}

Verdict judge(const Pdc& pdc, const Arrival& in) {
  if (is_next(pdc, in) && !planted(PlantedBug::kPlainCompare)) [[likely]]
    return {Verdict::Action::kDeliver};
  if (!is_right_role(pdc, in)) return refuse(Refusal::kWrongRole, false);
  const PsnClass kind = classify(pdc, in.psn);
  if (kind == PsnClass::kTooOld) [[unlikely]]
    return refuse(Refusal::kTooOld, false);
  if (kind == PsnClass::kBelowStart) [[unlikely]]
    return refuse(Refusal::kBelowStart, false);
  if (kind == PsnClass::kBeyond) [[unlikely]]
    return refuse(Refusal::kBeyondWindow, false);
  if (is_closed_to(pdc, in, kind)) [[unlikely]] {
    const bool is_crossed = in.is_control && in.control == ControlType::kCloseRequest;
    return refuse(is_crossed ? Refusal::kCrossedClose : Refusal::kClosing, true);
  }
  if (kind == PsnClass::kKnown) return {Verdict::Action::kRepeatKnown};
  if (kind == PsnClass::kFinished && !planted(PlantedBug::kDuplicateDelivered))
    return {Verdict::Action::kRepeatFinished};
  if (pdc.is_rod() && in.psn != pdc.rx.edge + 1 && !planted(PlantedBug::kRodOrderIgnored))
      [[unlikely]]
    return {Verdict::Action::kGap};
  return {Verdict::Action::kDeliver};
}

Verdict judge_trimmed(const Pdc* pdc, const Arrival& in) {
  const Verdict is_missing = refuse(trimmed_refusal(in.last_hop), false);
  if (pdc == nullptr) return is_missing;
  switch (classify(*pdc, in.psn)) {
    case PsnClass::kNew:
      return is_missing;
    case PsnClass::kFinished:
      return {Verdict::Action::kRepeatFinished, {}, false};
    case PsnClass::kKnown:
      return {Verdict::Action::kRepeatKnown, {}, false};
    case PsnClass::kBeyond:
      return refuse(Refusal::kBeyondWindow, false);
    case PsnClass::kBelowStart:
      return refuse(Refusal::kBelowStart, false);
    case PsnClass::kTooOld:
      break;
  }
  return refuse(Refusal::kTooOld, false);
}

}  // namespace uet::pds
