/// What is known of the latest transmission of one PSN, and what a PDC has in the network. [UET 3.6]
#pragma once

#include <cstdint>

#include "lib/base/units.h"

namespace uet::cc {

using base::ByteCount;
using base::Duration;
using base::Instant;

/// The PDS owns one per outstanding PSN, hands it to every call about that PSN, and only reads it; the CCC writes it, and so counts
/// each transmission exactly once. These facts are kept here and nowhere else; what became of the packet is the state that the PDS
/// keeps beside it. [congestion control, "counted once"]
struct Transmission {
  /// Where its bytes are counted.
  enum class Counted : std::uint8_t {
    kNowhere,    ///< not sent yet, acknowledged or abandoned
    kInFlight,   ///< in the network, not yet closed by ACK, NACK or inferred loss
    kHeld,       ///< the same, and the destination said that it has it, but not what became of it
    kLeftOut,    ///< in the network, and not counted in the window: see Ccc::leave_out()
    kForResend,  ///< waits to be sent again
  };

  Instant sent_at;                  ///< of the latest transmission
  std::uint32_t nominal_bytes = 0;  ///< transport size + 40
  std::uint16_t entropy = 0;        ///< of the latest transmission
  std::uint8_t plane = 0;
  std::uint8_t resent = 0;  ///< retransmissions, saturating at 2
  Counted counted = Counted::kNowhere;
  bool timed_out = false;  ///< latest loss was a timeout: the next copy must take another path
  bool is_delivery_known = false;  ///< the path table has counted its arrival, acknowledged or not
  bool copy_unanswered =
      false;  ///< a retransmission was given up without an answer, and one may still come

  /// In the network and counted there.
  bool is_in_flight() const { return counted == Counted::kInFlight || counted == Counted::kHeld; }
  bool is_left_out() const { return counted == Counted::kLeftOut; }
  bool waits_for_resend() const { return counted == Counted::kForResend; }
  /// Sent, and neither acknowledged nor abandoned.
  bool is_counted() const { return counted != Counted::kNowhere; }

  /// A copy leaves at `now`. Control packets are not congestion controlled: for them this is all.
  void leave(Instant now, bool is_retransmission) {
    sent_at = now;
    if (is_retransmission && resent < 2) ++resent;
  }
};

/// Per PDC (and direction): which part of Rcvd_Bytes was already counted, and this PDC's share of
/// inflight. Written by the CCC only. Two sources say what has arrived, the destination's byte
/// counter and the acknowledged PSNs; whichever is ahead counts, so that neither a lost nor a plain
/// nor a wrong counter lets inflight drift: `inflight == bytes of transmissions in flight -
/// counted_ahead` after every event.
struct PdcShare {
  std::uint32_t last_rcvd_units = 0;  ///< 24-bit wire counter, 256-byte units
  std::uint32_t open_packets = 0;     ///< transmissions in the network
  std::uint32_t marked_packets = 0;   ///< waiting to be sent again
  bool attached = false;              ///< has sent something through its CCC
  ByteCount inflight = 0;
  ByteCount left_out_bytes = 0;  ///< of transmissions with Counted::kLeftOut
  ByteCount unacked_bytes = 0;   ///< sent at least once, not acknowledged, not abandoned
  ByteCount rcvd_ahead = 0;      ///< bytes by the counter minus bytes by acknowledged PSNs
  ByteCount counted_ahead =
      0;  ///< bytes taken out of inflight as received minus bytes by acknowledged PSNs
  ByteCount held_bytes =
      0;  ///< of transmissions with Counted::kHeld: the counter may not have said so yet
};

}  // namespace uet::cc
