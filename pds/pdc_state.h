/// The life of a PDC as data: which input leads from which state to which. [PDS 6.2, 16.2, 16.3]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace uet::pds {

/// Which end of a PDC this is. [PDS 4.1]
enum class Role : std::uint8_t { kInitiator, kTarget };

enum class PdcState : std::uint8_t {
  kClosed,
  kCreating,  ///< initiator: no answer yet, packets carry syn
  kPending,   ///< target, secure establishment only: Start_PSN not yet confirmed
  kEstablished,
  kQuiesce,       ///< initiator: no new messages
  kAckWait,       ///< initiator: everything sent, waits until everything is acknowledged and quiet
  kCloseAckWait,  ///< initiator: Close Command sent
  kCloseReq,      ///< target: has asked the initiator to close
  kClosing,       ///< target: Close Command received, SES still owes answers
};
inline constexpr std::size_t kPdcStateCount = 9;

enum class PdcInput : std::uint8_t {
  kFirstSend,       ///< initiator opens
  kSynAccepted,     ///< target accepts a SYN
  kSynUnconfirmed,  ///< target under TSS: Start_PSN must be confirmed first
  kSynConfirmed,    ///< target under TSS: SYN with the announced Start_PSN
  kPeerLearnt,      ///< initiator knows the target's PDCID
  kCloseWanted,     ///< any trigger of a graceful close
  kDrained,         ///< no message active or queued, no lock
  kCloseSent,       ///< everything acknowledged and quiet: Close Command leaves
  kCloseArrived,    ///< target: Close Command, but answers are missing
  kCloseDone,       ///< the Close Command is acknowledged (initiator) or answered (target)
  kFailed,          ///< fatal NACK, limits, abort, silence
};
inline constexpr std::size_t kPdcInputCount = 11;

struct PdcTransition {
  PdcState from;
  PdcInput on;
  PdcState to;
};

inline constexpr std::array kPdcTransitions = {
    PdcTransition{PdcState::kClosed, PdcInput::kFirstSend, PdcState::kCreating},
    PdcTransition{PdcState::kClosed, PdcInput::kSynAccepted, PdcState::kEstablished},
    PdcTransition{PdcState::kClosed, PdcInput::kSynUnconfirmed, PdcState::kPending},
    PdcTransition{PdcState::kPending, PdcInput::kSynConfirmed, PdcState::kEstablished},
    PdcTransition{PdcState::kCreating, PdcInput::kPeerLearnt, PdcState::kEstablished},
    // Initiator. There is no way back from QUIESCE.
    PdcTransition{PdcState::kEstablished, PdcInput::kCloseWanted, PdcState::kQuiesce},
    PdcTransition{PdcState::kQuiesce, PdcInput::kDrained, PdcState::kAckWait},
    PdcTransition{PdcState::kAckWait, PdcInput::kCloseSent, PdcState::kCloseAckWait},
    PdcTransition{PdcState::kCloseAckWait, PdcInput::kCloseDone, PdcState::kClosed},
    // A PDC on which nothing was ever sent has no peer to close it with.
    PdcTransition{PdcState::kCreating, PdcInput::kCloseDone, PdcState::kClosed},
    // Target.
    PdcTransition{PdcState::kEstablished, PdcInput::kCloseArrived, PdcState::kClosing},
    PdcTransition{PdcState::kEstablished, PdcInput::kCloseDone, PdcState::kClosed},
    PdcTransition{PdcState::kCloseReq, PdcInput::kCloseArrived, PdcState::kClosing},
    PdcTransition{PdcState::kCloseReq, PdcInput::kCloseDone, PdcState::kClosed},
    PdcTransition{PdcState::kClosing, PdcInput::kCloseDone, PdcState::kClosed},
    // Failure ends every state.
    PdcTransition{PdcState::kCreating, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kPending, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kEstablished, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kQuiesce, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kAckWait, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kCloseAckWait, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kCloseReq, PdcInput::kFailed, PdcState::kClosed},
    PdcTransition{PdcState::kClosing, PdcInput::kFailed, PdcState::kClosed},
};

/// Where `on` leads from `from`; nothing when the input is not allowed there. The one input whose
/// meaning depends on the role is kCloseWanted: a target goes to CLOSE_REQ instead of QUIESCE.
constexpr std::optional<PdcState> next_state(PdcState from, PdcInput on, Role role) {
  if (on == PdcInput::kCloseWanted && role == Role::kTarget) {
    if (from == PdcState::kEstablished) return PdcState::kCloseReq;
    return std::nullopt;
  }
  for (const PdcTransition& t : kPdcTransitions)
    if (t.from == from && t.on == on) return t.to;
  return std::nullopt;
}

std::string_view name_of(PdcState state);
std::string_view name_of(PdcInput input);

}  // namespace uet::pds
