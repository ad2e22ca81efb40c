/// NACK codes in both directions, as tables: what we refuse and which code says so, and what we do about a code that a peer
/// sends. [PDS 9.2, 14]
#pragma once

#include <cstdint>
#include <optional>

#include "cc/signals.h"
#include "lib/base/trace.h"
#include "lib/wire/enums.h"
#include "pds/pds.h"

namespace uet::pds {

/// Why a packet is not delivered.
enum class Refusal : std::uint8_t {
  kUnknownPdc,
  kOtherPeer,  ///< the PDC is another peer's
  kNoSource,   ///< spdcid 0
  kOtherMode,
  kOtherStart,  ///< a SYN that contradicts the start of its PDC
  kTombstone,   ///< a SYN of a PDC that is closed
  kEndedEarly,  ///< a SYN of an unproven PDC that made place for others
  kNoPlace,     ///< no PDC, or none that could be remembered
  kNoCcc,
  kNoTracker,  ///< no bitmap for a PDC that would be opened
  kBeyondWindow,
  kOutOfOrder,  ///< ROD: not the next PSN, or a SYN that is not the first packet
  kChallenged,  ///< secure establishment: start elsewhere
  kWrongRole,
  kBelowStart,
  kTooOld,
  kClosing,
  kCrossedClose,  ///< a Close Request that crosses our Close Command has what it wants
  kNoRoomForAnswer,
  kNoRecord,     ///< no bitmap for a packet out of order
  kNoRoomInSes,  ///< SES cannot take the message now
  kTrimmed,      ///< in the fabric
  kTrimmedLastHop,
  kNoRoomForReply,  ///< RUDI: no place for the response
  kNoBuffer,        ///< RUDI: no packet for the response
};
inline constexpr std::size_t kRefusalCount = static_cast<std::size_t>(Refusal::kNoBuffer) + 1;

struct RefusalRule {
  base::DropReason reason;
  std::optional<wire::NackCode> nack;  ///< nothing: dropped without a word
};
RefusalRule rule_of(Refusal refusal);
constexpr Refusal trimmed_refusal(bool last_hop) {
  return last_hop ? Refusal::kTrimmedLastHop : Refusal::kTrimmed;
}

/// What a NACK says of a PSN or a PDC without a packet being dropped for it.
enum class Notice : std::uint8_t {
  kMissing,       ///< the answer to an ACK Request: it has not come
  kInferredLost,  ///< later ones have come
  kSesBusy,       ///< it has come, and SES takes its time
  kResponseGone,  ///< it has come, and its guaranteed response cannot be repeated
  kUnexpectedClose,
  kEndedInError,
};
wire::NackCode code_of(Notice notice);

/// What the source does about a code. [PDS 14.2]
enum class Reaction : std::uint8_t {
  kResend,     ///< now
  kPause,      ///< after NACK_Retx_Time, counted
  kPauseLong,  ///< the same, doubling: PDC shortage lasts longer than buffer shortage
  kGoBack,     ///< ROD_OOO
  kWait,       ///< RCVD_SES_PROCG
  kFail,
  kNewStart,
  kIgnore,
};

struct CodeRule {
  Reaction reaction;
  PdsError error = PdsError::kPeerLost;
  cc::NackCause cause = cc::NackCause::kOther;
};
CodeRule rule_of(wire::NackCode code);

}  // namespace uet::pds
