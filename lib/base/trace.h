/// What happened, as typed events. Counters, the flight recorder, the JSON log and the assertions of tests
/// all see the same events.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/drop_reason.h"
#include "lib/base/serial.h"
#include "lib/base/units.h"

namespace uet::base {

// One line per event: X(enumerator, "name", "meaning of a", "meaning of b").
// `pdc` and `psn` are there where they make sense; a and b are free.
#define UET_EVENTS(X)                                                       \
  /* fep, net */                                                            \
  X(kPacketReceived, "packet-received", "bytes", "pds type")                \
  X(kPacketSent, "packet-sent", "bytes", "pds type")                        \
  X(kPacketDropped, "packet-dropped", "drop reason", "bytes")               \
  X(kPortBusy, "port-busy", "packets held back", "")                        \
  /* pds */                                                                 \
  X(kPdcOpened, "pdc-opened", "role: 0 initiator, 1 target", "mode")        \
  X(kPdcEstablished, "pdc-established", "peer pdcid", "")                   \
  X(kPdcStateChanged, "pdc-state", "from", "to")                            \
  X(kPdcClosed, "pdc-closed", "1 after an error", "error code")             \
  X(kMessageQueued, "message-queued", "packets", "bytes")                   \
  X(kRequestSent, "request-sent", "payload bytes", "entropy value")         \
  X(kPacketRetransmitted, "retransmitted", "cause", "entropy value")        \
  X(kRequestDelivered, "request-delivered", "payload bytes", "")            \
  X(kDuplicateReceived, "duplicate", "answered", "")                        \
  X(kAckSent, "ack-sent", "cack psn", "pds type")                           \
  X(kAckReceived, "ack-received", "cack psn", "newly acknowledged packets") \
  X(kNackSent, "nack-sent", "nack code", "")                                \
  X(kNackReceived, "nack-received", "nack code", "")                        \
  X(kControlSent, "control-sent", "control type", "payload")                \
  X(kControlReceived, "control-received", "control type", "payload")        \
  X(kTimeout, "rto", "timeouts of this packet", "rto ns")                   \
  X(kInferredLoss, "inferred-loss", "cause", "entropy value")               \
  X(kClearMoved, "clear", "clear psn", "")                                  \
  /* cc */                                                                  \
  X(kWindowChanged, "cwnd", "bytes", "inflight bytes")                      \
  X(kCreditGranted, "credit-granted", "bytes", "")                          \
  X(kPathEvicted, "path-evicted", "entropy value", "")                      \
  X(kPathRestored, "path-restored", "entropy value", "")                    \
  X(kPlanesChanged, "planes-changed", "planes with a link", "")             \
  /* ses */                                                                 \
  X(kMessageSubmitted, "message-submitted", "opcode", "bytes")              \
  X(kMessageCompleted, "message-completed", "return code", "bytes")         \
  X(kMessageMatched, "message-matched", "opcode", "bytes")                  \
  X(kMessageHeld, "message-held", "number", "expected")                     \
  X(kOrderGapPassed, "order-gap-passed", "number", "expected")              \
  X(kMessageUnexpected, "message-unexpected", "opcode", "bytes")            \
  X(kMessageDelivered, "message-delivered", "return code", "bytes")         \
  X(kMessageRetried, "message-retried", "return code", "attempt")           \
  /* net; a later one, so that the numbers of the others stay */            \
  X(kLinkRetried, "link-retried", "attempts without a link", "")

enum class EventId : std::uint8_t {
#define UET_X(enumerator, name, a, b) enumerator,
  UET_EVENTS(UET_X)
#undef UET_X
      kCount
};

inline constexpr std::size_t kEventCount = static_cast<std::size_t>(EventId::kCount);

struct EventDescription {
  std::string_view name, a, b;
};

inline constexpr std::array<EventDescription, kEventCount> kEventDescriptions = {{
#define UET_X(enumerator, name, a, b) {name, a, b},
    UET_EVENTS(UET_X)
#undef UET_X
}};

constexpr const EventDescription& describe(EventId id) {
  return kEventDescriptions[static_cast<std::size_t>(id)];
}

/// One event. 40 bytes; copied into the flight recorder.
struct Event {
  Instant at;
  EventId id{};
  std::uint16_t pdc = 0;  ///< local PDCID, 0 where none
  Psn psn;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

/// Receives every event of one endpoint, in order, on the endpoint's thread.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void on_event(const Event& event) = 0;
};

/// The one object protocol code reports to: counts, records, and forwards to sinks. One per FEP.
class Trace {
 public:
  /// `recorder_size` events are kept for dumps (rounded up to a power of two).
  explicit Trace(std::size_t recorder_size = 1024);

  void emit(Instant at, EventId id, std::uint16_t pdc = 0, Psn psn = {}, std::uint64_t a = 0,
            std::uint64_t b = 0) {
    ++counts_[static_cast<std::size_t>(id)];
    Event& slot = recorder_[next_++ & recorder_mask_];
    slot = Event{at, id, pdc, psn, a, b};
    if (!sinks_.empty()) forward(slot);
  }
  /// A received (or not sendable) packet ends here.
  void drop(Instant at, DropReason reason, std::size_t bytes = 0, std::uint16_t pdc = 0,
            Psn psn = {}) {
    ++drops_[static_cast<std::size_t>(reason)];
    emit(at, EventId::kPacketDropped, pdc, psn, static_cast<std::uint64_t>(reason), bytes);
  }

  /// `n` packets that were dropped before we saw them (by a kernel socket): counted, with one event.
  void drop_elsewhere(Instant at, DropReason reason, std::uint64_t n) {
    drops_[static_cast<std::size_t>(reason)] += n;
    emit(at, EventId::kPacketDropped, 0, {}, static_cast<std::uint64_t>(reason), 0);
  }

  /// Sinks are not owned and must outlive their registration.
  void add_sink(TraceSink& sink);
  void remove_sink(TraceSink& sink);

  std::uint64_t count(EventId id) const { return counts_[static_cast<std::size_t>(id)]; }
  std::uint64_t drops(DropReason r) const { return drops_[static_cast<std::size_t>(r)]; }
  std::uint64_t drops_total() const;

  /// The recorded events, oldest first; of one PDC when `pdc` is not 0.
  std::vector<Event> recorded(std::uint16_t pdc = 0) const;

 private:
  void forward(const Event& event);

  std::array<std::uint64_t, kEventCount> counts_{};
  std::array<std::uint64_t, kDropReasonCount> drops_{};
  std::vector<Event> recorder_;
  std::size_t recorder_mask_;
  std::size_t next_ = 0;
  std::vector<TraceSink*> sinks_;
};

}  // namespace uet::base
