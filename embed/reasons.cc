#include "embed/reasons.h"

namespace uet {
namespace {

const char* why_cancelled(Operation operation) {
  switch (operation) {
    case Operation::kReceive:
      return "cancel() took it back, or its sender did";
    case Operation::kSend:
      return "cancel() took it back, or the target closed its endpoint";
    case Operation::kWrite:
    case Operation::kRead:
      return "the target closed the window, or cancel() took it back";
  }
  return "cancelled";
}

}  // namespace

const char* reason_of(Operation operation, ses::ReturnCode code) {
  switch (code) {
    case ses::ReturnCode::kOk:
      return "";
    case ses::ReturnCode::kTruncated:
      return "the message was longer than the buffer";
    case ses::ReturnCode::kPeerSilent:
      return "the peer was silent for too long";
    case ses::ReturnCode::kMessageTimeout:
      return "the rest of the message never came";
    case ses::ReturnCode::kUndeliverable:
      return "the peer cannot be reached";
    case ses::ReturnCode::kCancelled:
      return why_cancelled(operation);
    case ses::ReturnCode::kBadIndex:
    case ses::ReturnCode::kBadPid:
    case ses::ReturnCode::kBadJobId:
      return "another endpoint has the IP address and UDP port of the peer, or the peer is in "
             "another job (FI_UET_JOB); if its process has ended, ask for its address anew";
    case ses::ReturnCode::kBadMkey:
      return "the window does not exist";
    case ses::ReturnCode::kBadAddr:
      return "outside the window";
    case ses::ReturnCode::kPermViolation:
      return "not allowed by the window";
    default:
      return "refused by the peer";
  }
}

const char* reason_of(ses::PostError error) {
  switch (error) {
    case ses::PostError::kBadPeer:
      return "remove_peer() took this peer";
    case ses::PostError::kBadJob:
      return "the peer is in another job (FI_UET_JOB)";
    case ses::PostError::kTooLong:
      return "longer than a message may be";
    case ses::PostError::kModeForbids:
      return "the delivery mode forbids it";
    default:
      return "an argument is wrong";
  }
}

}  // namespace uet
