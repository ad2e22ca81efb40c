/// The life of one outstanding PSN at its source as data: which event leads from which state to which. [PDS 4.3, 13, 14]
///
///                 sent                acknowledged (from every state below UNSENT)
///        UNSENT ---------> IN_FLIGHT ------------------------------------------------> ACKED
///                           |     ^ sent
///                 overtaken |     +--------- QUEUED <------------+ resumed
///                           v                   |  ^             |
///                       SUSPECTED               |  | lost,       |
///                                        paused |  | refused,    |
///                                               |  | window      |
///                                               v  | shrank      |
///                                   BACKED_OFF or PLACE_WANTED --+
///
/// "arrived" (SACK) and "busy" (NACK SES_PROCG) lead from all of these but UNSENT and ACKED to ARRIVED, and from there on the
/// question is not sent again but asked:
///
///        ARRIVED --answer missing--> ASK_DUE --asked--> ASKED --answer missing--> ASK_AGAIN --asked--> ASKED
///
/// The state says what the deadline of the record means.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace uet::pds {

enum class TxState : std::uint8_t {
  kUnsent,     ///< has its PSN, and leaves with it
  kInFlight,   ///< deadline: retransmission timeout
  kSuspected,  ///< packets sent later have arrived; deadline: end of the reordering window
  // The peer has it, its response is missing. Deadline: retransmission timeout, at which the response is asked for.
  kArrived,
  kAskDue,    ///< an ACK Request is to be sent for it
  kAsked,     ///< one has been sent
  kAskAgain,  ///< one has been sent and the next one is to be
  kAcked,     ///< the response was handed to SES, the record waits for the left edge; no deadline
  // The transmission is over and the packet goes again.
  kQueued,       ///< waits for window and congestion control; no deadline
  kBackedOff,    ///< was refused; deadline: end of the pause
  kPlaceWanted,  ///< the same, because the target had no place to keep the response: a place that is made ends the pause
};
inline constexpr std::size_t kTxStateCount = 11;

enum class TxEvent : std::uint8_t {
  kSent,            ///< handed to the port, for the first time or again
  kOvertaken,       ///< packets sent later have arrived
  kWindowShrank,    ///< the peer's window excludes it now, and nothing came of it
  kArrived,         ///< a SACK names it
  kBusy,            ///< a NACK says that the peer has it and that SES takes its time
  kAnswerMissing,   ///< the response is to be asked for
  kAsked,           ///< an ACK Request has left
  kLost,            ///< timeout, inference, go-back, or the answer to an ACK Request
  kRefused,         ///< a NACK, or another Start_PSN: this transmission was not taken
  kPaused,          ///< not before the end of a pause
  kPausedForPlace,  ///< the same, for lack of a place for the response
  kResumed,         ///< the pause is over
  kAcknowledged,
};
inline constexpr std::size_t kTxEventCount = 13;

/// Nothing but the transmission itself is known: it may be lost.
constexpr bool is_out(TxState s) {
  return s == TxState::kInFlight || s == TxState::kSuspected;
}
/// The peer has it; its response is missing.
constexpr bool has_arrived(TxState s) {
  return s >= TxState::kArrived && s <= TxState::kAskAgain;
}
/// It was asked whether the peer has it, and an answer may come.
constexpr bool was_asked(TxState s) {
  return s == TxState::kAsked || s == TxState::kAskAgain;
}
/// An ACK Request is to be sent.
constexpr bool is_ask_due(TxState s) {
  return s == TxState::kAskDue || s == TxState::kAskAgain;
}
constexpr bool is_paused(TxState s) {
  return s > TxState::kQueued;
}
/// To be sent again, now or after a pause.
constexpr bool waits_for_resend(TxState s) {
  return s >= TxState::kQueued;
}

struct TxTransition {
  TxState from;
  TxEvent on;
  TxState to;
};

inline constexpr std::array kTxTransitions = {
    TxTransition{TxState::kUnsent, TxEvent::kSent, TxState::kInFlight},
    TxTransition{TxState::kInFlight, TxEvent::kOvertaken, TxState::kSuspected},
    // The peer has it.
    TxTransition{TxState::kInFlight, TxEvent::kArrived, TxState::kArrived},
    TxTransition{TxState::kSuspected, TxEvent::kArrived, TxState::kArrived},
    TxTransition{TxState::kQueued, TxEvent::kArrived, TxState::kArrived},
    TxTransition{TxState::kBackedOff, TxEvent::kArrived, TxState::kArrived},
    TxTransition{TxState::kPlaceWanted, TxEvent::kArrived, TxState::kArrived},
    TxTransition{TxState::kInFlight, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kSuspected, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kArrived, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kAskDue, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kAsked, TxEvent::kBusy, TxState::kAsked},
    TxTransition{TxState::kAskAgain, TxEvent::kBusy, TxState::kAsked},
    TxTransition{TxState::kQueued, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kBackedOff, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kPlaceWanted, TxEvent::kBusy, TxState::kArrived},
    TxTransition{TxState::kArrived, TxEvent::kAnswerMissing, TxState::kAskDue},
    TxTransition{TxState::kAskDue, TxEvent::kAnswerMissing, TxState::kAskDue},
    TxTransition{TxState::kAsked, TxEvent::kAnswerMissing, TxState::kAskAgain},
    TxTransition{TxState::kAskAgain, TxEvent::kAnswerMissing, TxState::kAskAgain},
    TxTransition{TxState::kAskDue, TxEvent::kAsked, TxState::kAsked},
    TxTransition{TxState::kAskAgain, TxEvent::kAsked, TxState::kAsked},
    // The transmission is over.
    TxTransition{TxState::kInFlight, TxEvent::kLost, TxState::kQueued},
    TxTransition{TxState::kSuspected, TxEvent::kLost, TxState::kQueued},
    TxTransition{TxState::kInFlight, TxEvent::kWindowShrank, TxState::kQueued},
    TxTransition{TxState::kSuspected, TxEvent::kWindowShrank, TxState::kQueued},
    TxTransition{TxState::kArrived, TxEvent::kLost, TxState::kQueued},
    TxTransition{TxState::kAskDue, TxEvent::kLost, TxState::kQueued},
    TxTransition{TxState::kAsked, TxEvent::kLost, TxState::kQueued},
    TxTransition{TxState::kAskAgain, TxEvent::kLost, TxState::kQueued},
    TxTransition{TxState::kInFlight, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kSuspected, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kArrived, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kAskDue, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kAsked, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kAskAgain, TxEvent::kRefused, TxState::kQueued},
    // Another Start_PSN refuses whatever was sent, also what waits.
    TxTransition{TxState::kQueued, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kBackedOff, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kPlaceWanted, TxEvent::kRefused, TxState::kQueued},
    TxTransition{TxState::kQueued, TxEvent::kPaused, TxState::kBackedOff},
    TxTransition{TxState::kQueued, TxEvent::kPausedForPlace, TxState::kPlaceWanted},
    TxTransition{TxState::kBackedOff, TxEvent::kResumed, TxState::kQueued},
    TxTransition{TxState::kPlaceWanted, TxEvent::kResumed, TxState::kQueued},
    TxTransition{TxState::kQueued, TxEvent::kSent, TxState::kInFlight},
    // An acknowledgement ends every state in which something was sent.
    TxTransition{TxState::kInFlight, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kSuspected, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kArrived, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kAskDue, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kAsked, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kAskAgain, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kQueued, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kBackedOff, TxEvent::kAcknowledged, TxState::kAcked},
    TxTransition{TxState::kPlaceWanted, TxEvent::kAcknowledged, TxState::kAcked},
};

namespace detail {

inline constexpr auto kNoTxState = static_cast<TxState>(0xff);

/// The transitions by state and event: a packet looks several of them up.
inline constexpr auto kTxMatrix = [] {
  std::array<std::array<TxState, std::bit_ceil(kTxEventCount)>, kTxStateCount> matrix{};
  for (auto& row : matrix) row.fill(kNoTxState);
  for (const TxTransition& t : kTxTransitions)
    matrix[static_cast<std::size_t>(t.from)][static_cast<std::size_t>(t.on)] = t.to;
  return matrix;
}();

constexpr TxState tx_matrix_at(TxState from, TxEvent on) {
  return kTxMatrix[static_cast<std::size_t>(from)][static_cast<std::size_t>(on)];
}

inline constexpr auto kCanLeadToResend = [] {
  std::array<bool, kTxEventCount> can{};
  for (const TxTransition& t : kTxTransitions)
    if (waits_for_resend(t.to)) can[static_cast<std::size_t>(t.on)] = true;
  return can;
}();

}  // namespace detail

/// Where `on` leads from `from`; nothing when the event is not allowed there.
constexpr std::optional<TxState> next_state(TxState from, TxEvent on) {
  const TxState to = detail::tx_matrix_at(from, on);
  if (to == detail::kNoTxState) return std::nullopt;
  return to;
}

/// `on` can lead to a state in which the packet waits to be sent again.
constexpr bool can_lead_to_resend(TxEvent on) {
  return detail::kCanLeadToResend[static_cast<std::size_t>(on)];
}

std::string_view name_of(TxState state);
std::string_view name_of(TxEvent event);

}  // namespace uet::pds
