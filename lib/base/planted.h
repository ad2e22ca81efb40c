/// Bugs on purpose. A test build can break one known rule at a time, to show that the random worlds of `uet-sim swarm` notice.
///
/// In every other build planted() is a constant false and leaves no trace in the code. To plant one more: a name here, and
/// `&& !planted(...)` next to the rule.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uet::base {

enum class PlantedBug : std::uint8_t {
  kNone,
  kPlainCompare,         ///< PSNs of arriving packets are compared as plain numbers
  kCackPastStored,       ///< CACK passes a guaranteed response that is not cleared
  kClearNeverRefreshed,  ///< Requests and Clear Commands always carry the first CLEAR_PSN
  kDuplicateDelivered,   ///< a duplicate goes up to SES
  kSackIsAck,            ///< a SACK bit completes a packet whose response is missing
  kNoTombstone,          ///< a closed PDC is forgotten at once
  kWindowIgnored,        ///< more is sent than the peer granted
  kWrongSegmentResent,   ///< a retransmission carries the segment before
  kRodOrderIgnored,      ///< ROD delivers what comes after a gap
  kLockIgnored,          ///< a PDC closes while read data is due
  kUnexpectedLeak,       ///< the budget of unexpected messages never comes back
  kRudiRepeatIgnored,    ///< a RUDI request that is sent again is not answered again
  kNullContext,  ///< a NACK about order makes use of a congestion context that a target may not have
  kReturnServed,  ///< a READ that a target sends in the return direction is served, and waits for ever
  kAckBelowStart,    ///< an ACK of PSNs before the start of the PDC is believed
  kBytesNotCovered,  ///< segments of a message are counted, whichever they are
  kReplayIgnored,    ///< a TSC that was seen is accepted again
  kIvWithoutEpoch,   ///< the IV has the counter alone
  kAnIgnored,        ///< packets are opened with the key that ours leave under
  kTrimmedBelieved,  ///< a trimmed packet passes without an ICV
  kKdfWithoutSsi,    ///< all senders with an SSI derive one key
  kGuardOff,         ///< every opening is accepted at once
  kClearBelieved,    ///< a packet in clear passes
  kNumbersIgnored,   ///< ordered messages that come over all paths are matched as they arrive
  kCloseKeepsReads,  ///< read data that waits for a place outlives the close of its PDC, and waits for ever
  kPeekBeforeFirst,  ///< a peek reports a message whose first packet has not come
  kCount
};

constexpr std::string_view name_of(PlantedBug bug) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(PlantedBug::kCount)> kNames = {
      "none",
      "plain-compare",
      "cack-past-stored",
      "clear-never-refreshed",
      "duplicate-delivered",
      "sack-is-ack",
      "no-tombstone",
      "window-ignored",
      "wrong-segment-resent",
      "rod-order-ignored",
      "lock-ignored",
      "unexpected-leak",
      "rudi-repeat-ignored",
      "null-context",
      "return-served",
      "ack-below-start",
      "bytes-not-covered",
      "replay-ignored",
      "iv-without-epoch",
      "an-ignored",
      "trimmed-believed",
      "kdf-without-ssi",
      "guard-off",
      "clear-believed",
      "numbers-ignored",
      "close-keeps-reads",
      "peek-before-first"};
  return kNames[static_cast<std::size_t>(bug)];
}

#ifdef UET_PLANTED_BUGS
inline namespace with_planted_bugs {  // its own name, since files without bugs are linked with those
inline PlantedBug planted_bug = PlantedBug::kNone;
inline bool planted(PlantedBug bug) {
  return planted_bug == bug;
}
}  // namespace with_planted_bugs
#else
inline namespace without_planted_bugs {
constexpr bool planted(PlantedBug) {
  return false;
}
}  // namespace without_planted_bugs
#endif

}  // namespace uet::base
