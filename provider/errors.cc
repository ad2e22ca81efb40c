#include "provider/errors.h"

namespace uet::provider {

using ses::PostError;
using ses::ReturnCode;

int fi_error_of(ReturnCode code) {
  switch (code) {
    case ReturnCode::kNull:
    case ReturnCode::kOk:
      return 0;
    case ReturnCode::kNoMatch:
      return FI_ENORX;
    case ReturnCode::kUnsupportedOp:
    case ReturnCode::kAmoUnsupportedOp:
    case ReturnCode::kAmoUnsupportedDt:
      return FI_EOPNOTSUPP;
    case ReturnCode::kUnsupportedSize:
    case ReturnCode::kTooLong:
      return FI_EMSGSIZE;
    case ReturnCode::kAtPerm:
    case ReturnCode::kPermViolation:
    case ReturnCode::kBadJobId:
      return FI_EACCES;
    case ReturnCode::kAtNoTrans:
    case ReturnCode::kAtOutOfRange:
    case ReturnCode::kBadAddr:
      return FI_EFAULT;
    case ReturnCode::kAmoUnsupportedSize:
    case ReturnCode::kAmoUnaligned:
      return FI_EINVAL;
    case ReturnCode::kOpViolation:
      return EPROTO;
    case ReturnCode::kBadIndex:
    case ReturnCode::kBadPid:
      return FI_ENODEV;
    case ReturnCode::kBadMkey:
      return FI_EKEYREJECTED;
    case ReturnCode::kCancelled:
      return FI_ECANCELED;
    case ReturnCode::kUndeliverable:
    case ReturnCode::kPeerSilent:
      return FI_EHOSTUNREACH;
    case ReturnCode::kTruncated:
      return FI_ETRUNC;
    case ReturnCode::kMessageTimeout:
      return FI_ETIMEDOUT;
    case ReturnCode::kNoMessage:
      return FI_ENOMSG;
    default:
      return FI_EIO;
  }
}

const char* describe_prov_errno(int prov_errno) {
  if (prov_errno >= prov_errno_of_own(0)) return fi_strerror(prov_errno - prov_errno_of_own(0));
  switch (static_cast<ReturnCode>(prov_errno)) {
    case ReturnCode::kNull:
    case ReturnCode::kOk:
      return "success";
    case ReturnCode::kBadGeneration:
      return "the receiving endpoint was re-enabled too often";
    case ReturnCode::kDisabled:
    case ReturnCode::kDisabledGen:
      return "the receiving endpoint is disabled";
    case ReturnCode::kNoMatch:
      return "no receive was posted and no room was left for unexpected messages";
    case ReturnCode::kUnsupportedOp:
      return "operation not supported by the target";
    case ReturnCode::kUnsupportedSize:
      return "larger than the target can take";
    case ReturnCode::kAtInvalid:
      return "address translation failed at the target";
    case ReturnCode::kAtPerm:
      return "the target's page does not allow this access";
    case ReturnCode::kAtAtsError:
      return "address translation service error at the target";
    case ReturnCode::kAtNoTrans:
      return "the target's memory is no longer mapped";
    case ReturnCode::kAtOutOfRange:
      return "virtual address out of range at the target";
    case ReturnCode::kHostPoisoned:
      return "poisoned memory at the target";
    case ReturnCode::kHostUnsuccessCmpl:
      return "the host, or a device, refused an access to its memory";
    case ReturnCode::kAmoUnsupportedOp:
      return "atomic operator not supported by the target";
    case ReturnCode::kAmoUnsupportedDt:
      return "atomic data type not supported by the target";
    case ReturnCode::kAmoUnsupportedSize:
      return "atomic of this length not supported by the target";
    case ReturnCode::kAmoUnaligned:
      return "atomic on an unaligned address";
    case ReturnCode::kAmoFpNan:
    case ReturnCode::kAmoFpUnderflow:
    case ReturnCode::kAmoFpOverflow:
    case ReturnCode::kAmoFpInexact:
      return "floating-point exception in an atomic";
    case ReturnCode::kPermViolation:
      return "the memory region or endpoint does not allow this access";
    case ReturnCode::kOpViolation:
      return "the operation contradicts itself or its earlier packets";
    case ReturnCode::kBadIndex:
      return "no endpoint has this resource index; if the process of the peer was started again, "
             "ask for its address anew";
    case ReturnCode::kBadPid:
      return "no process has this PIDonFEP";
    case ReturnCode::kBadJobId:
      return "the target knows no such job";
    case ReturnCode::kBadMkey:
      return "no memory region has this key";
    case ReturnCode::kBadAddr:
      return "outside the memory region";
    case ReturnCode::kCancelled:
      return "cancelled";
    case ReturnCode::kUndeliverable:
      return "the peer cannot be reached";
    case ReturnCode::kUncor:
      return "internal error at the target";
    case ReturnCode::kUncorTrnsnt:
      return "the target ran out of something for too long";
    case ReturnCode::kTooLong:
      return "longer than the receive, and the target refuses to truncate";
    case ReturnCode::kInitiatorErr:
      return "the sender gave up in the middle of the message";
    case ReturnCode::kDropped:
      return "the target dropped the message";
    case ReturnCode::kTruncated:
      return "longer than the receive";
    case ReturnCode::kPeerSilent:
      return "nothing heard from the peer for FI_UET_PEER_TIMEOUT";
    case ReturnCode::kMessageTimeout:
      return "the rest of the message never came";
    case ReturnCode::kNoMessage:
      return "no message matches";
    case ReturnCode::kExtended:  // announces codes that no version has
      break;
  }
  return "unknown return code";
}

int fi_error_of(PostError error) {
  switch (error) {
    case PostError::kAgain:
      return -FI_EAGAIN;
    case PostError::kTooLong:
      return -FI_EMSGSIZE;
    case PostError::kBadJob:
      return -FI_EACCES;
    case PostError::kKeyInUse:
      return -FI_ENOKEY;
    case PostError::kAddressInUse:
    case PostError::kAddressRests:
      return -FI_EADDRINUSE;
    case PostError::kNoResources:
      return -FI_ENOSPC;
    case PostError::kNotFound:
      return -FI_ENOENT;
    case PostError::kBadPeer:
    case PostError::kBadEndpoint:
    case PostError::kInjectTooLong:
    case PostError::kModeForbids:
    case PostError::kBadKey:
    case PostError::kBadArgument:
      return -FI_EINVAL;
  }
  return -FI_EOTHER;
}

int fi_error_of_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  } catch (const std::exception& e) {
    log_warning(std::string("internal error: ") + e.what());
  } catch (...) {
    log_warning("internal error: an exception of an unknown kind");
  }
  return -FI_EOTHER;
}

}  // namespace uet::provider
