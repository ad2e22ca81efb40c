#include "pds/nack_rules.h"

namespace uet::pds {

using base::DropReason;
using wire::NackCode;

RefusalRule rule_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::kUnknownPdc:
      return {DropReason::kUnknownPdc, NackCode::kInvDpdcid};
    case Refusal::kOtherPeer:
      return {DropReason::kPeerMismatch, NackCode::kPdcHdrMismatch};
    case Refusal::kNoSource:
      return {DropReason::kPeerMismatch, {}};
    case Refusal::kOtherMode:
      return {DropReason::kModeMismatch, NackCode::kPdcModeMismatch};
    case Refusal::kOtherStart:
      return {DropReason::kPsnBelowStart, NackCode::kInvalidSyn};
    case Refusal::kTombstone:
      return {DropReason::kStaleSyn, {}};
    case Refusal::kEndedEarly:
      return {DropReason::kStaleSyn, NackCode::kClosingInErr};
    case Refusal::kNoPlace:
      return {DropReason::kNoPdc, NackCode::kNoPdcAvail};
    case Refusal::kNoCcc:
      return {DropReason::kNoPdc, NackCode::kNoCccAvail};
    case Refusal::kNoTracker:
      return {DropReason::kNoTracker, NackCode::kNoBitmap};
    case Refusal::kBeyondWindow:
      return {DropReason::kPsnBeyondWindow, NackCode::kPsnOorWindow};
    case Refusal::kOutOfOrder:
      return {DropReason::kRodOutOfOrder, NackCode::kRodOoo};
    case Refusal::kChallenged:
      return {DropReason::kStaleSyn, NackCode::kNewStartPsn};
    case Refusal::kWrongRole:
      return {DropReason::kRoleMismatch, {}};
    case Refusal::kBelowStart:
      return {DropReason::kPsnBelowStart, {}};
    case Refusal::kTooOld:
      return {DropReason::kPsnTooOld, {}};
    case Refusal::kClosing:
      return {DropReason::kClosing, NackCode::kClosing};
    case Refusal::kCrossedClose:
      return {DropReason::kClosing, {}};
    case Refusal::kNoRoomForAnswer:
      return {DropReason::kNoResource, NackCode::kNoGtdDelAvail};
    case Refusal::kNoRecord:
      return {DropReason::kNoResource, NackCode::kNoResource};
    case Refusal::kNoRoomInSes:
      return {DropReason::kNoResource, NackCode::kNoSesMsgAvail};
    case Refusal::kTrimmed:
      return {DropReason::kTrimmed, NackCode::kTrimmed};
    case Refusal::kTrimmedLastHop:
      return {DropReason::kTrimmed, NackCode::kTrimmedLasthop};
    case Refusal::kNoRoomForReply:
      return {DropReason::kAckQueueFull, NackCode::kNoResource};
    case Refusal::kNoBuffer:
      return {DropReason::kNoBuffer, NackCode::kNoPktBuffer};
  }
  return {DropReason::kNoResource, NackCode::kNoResource};
}

NackCode code_of(Notice notice) {
  switch (notice) {
    case Notice::kMissing:
      return NackCode::kPktNotRcvd;
    case Notice::kInferredLost:
      return NackCode::kRcvrInferLoss;
    case Notice::kSesBusy:
      return NackCode::kRcvdSesProcg;
    case Notice::kResponseGone:
      return NackCode::kGtdRespUnavail;
    case Notice::kUnexpectedClose:
      return NackCode::kUnexpEvent;
    case Notice::kEndedInError:
      break;
  }
  return NackCode::kClosingInErr;
}

CodeRule rule_of(NackCode code) {
  switch (code) {
    case NackCode::kTrimmed:
      return {Reaction::kResend, {}, cc::NackCause::kTrimmed};
    case NackCode::kTrimmedLasthop:
      return {Reaction::kResend, {}, cc::NackCause::kTrimmedLastHop};
    case NackCode::kTrimmedAck:
    case NackCode::kPktNotRcvd:
    case NackCode::kAckWithData:
    case NackCode::kRcvrInferLoss:
      return {Reaction::kResend};
    case NackCode::kNoPdcAvail:
    case NackCode::kNoCccAvail:
    case NackCode::kNoBitmap:
      return {Reaction::kPauseLong, PdsError::kNoPdc};
    case NackCode::kNoPktBuffer:
    case NackCode::kNoGtdDelAvail:
    case NackCode::kNoSesMsgAvail:
    case NackCode::kNoResource:
    case NackCode::kPsnOorWindow:
      return {Reaction::kPause, PdsError::kNackExhausted};
    case NackCode::kRodOoo:
      return {Reaction::kGoBack};
    case NackCode::kInvDpdcid:
    case NackCode::kPdcHdrMismatch:
    case NackCode::kInvalidSyn:
    case NackCode::kPdcModeMismatch:
    case NackCode::kUnexpEvent:
    case NackCode::kExpNackFatal:
      return {Reaction::kFail, PdsError::kPeerLost};
    case NackCode::kClosing:
      return {Reaction::kFail, PdsError::kPeerClosing};
    case NackCode::kClosingInErr:
      return {Reaction::kFail, PdsError::kPeerFailed};
    case NackCode::kGtdRespUnavail:
      return {Reaction::kFail, PdsError::kResponseLost};
    case NackCode::kRcvdSesProcg:
      return {Reaction::kWait};
    case NackCode::kNewStartPsn:
      return {Reaction::kNewStart};
    case NackCode::kExpNackNormal:
    case NackCode::kExpNackErr:
      return {Reaction::kPause, PdsError::kNackExhausted};
  }
  if (static_cast<unsigned>(code) == 0x00 || static_cast<unsigned>(code) == 0x0c)
    return {Reaction::kIgnore};
  return {Reaction::kPause, PdsError::kNackExhausted};  // unknown: as 0xFD
}

}  // namespace uet::pds
