/// What one CCC has in the network and what waits for it, each transmission counted once. [CC 3.8]
///
/// Knows transmissions and the shares of PDCs, no algorithm and no path. The bytes in flight of all PDCs together are a variable of
/// the window rules, which take bytes out in an order that matters: the caller hands on what a method returns or names.
#pragma once

#include <algorithm>

#include "cc/signals.h"

namespace uet::cc {

class Ledger {
 public:
  /// Nominal bytes of packets to come; negative when messages were aborted.
  void on_new_data(ByteCount bytes) { backlog_ = std::max<ByteCount>(backlog_ + bytes, 0); }

  bool has_data() const { return backlog_ > 0 || resend_packets_ > 0; }
  bool is_idle() const { return !has_data() && open_packets_ == 0; }
  ByteCount backlog() const { return backlog_; }
  ByteCount resend_bytes() const { return resend_bytes_; }
  std::uint32_t open_packets() const { return open_packets_; }

  /// A packet leaves. One record counts one copy: of an earlier one that is still in flight the caller has taken the bytes out of
  /// inflight. False when its bytes are not counted: it was acknowledged before, so no ACK would ever take them out.
  bool on_send(Transmission& t, PdcShare& share, ByteCount bytes, bool is_retransmission);
  /// It is no longer in the network, and nothing more is expected of it.
  void close(Transmission& t, PdcShare& share);
  /// The same, and it will be sent again.
  void close_for_resend(Transmission& t, PdcShare& share);

  enum class Acknowledged : std::uint8_t {
    kInFlight,  ///< its bytes leave inflight with what the destination has received
    kForResend,  ///< the same, though they had left it before, or never were in it: the caller puts them back before
  };
  /// `t` is counted and acknowledged for the first time.
  Acknowledged acknowledge(Transmission& t, PdcShare& share);
  /// `t` is counted and will never be sent again.
  void abandon(Transmission& t, PdcShare& share);

  /// The destination has this transmission, whatever its counter says. Bytes that leave inflight because of it.
  ByteCount hold(Transmission& t, PdcShare& share);
  /// The window is not to count this transmission, which is in flight, or is to count it after all. Bytes that leave inflight, or
  /// come back.
  static ByteCount leave_out(Transmission& t, PdcShare& share);
  static ByteCount take_in(Transmission& t, PdcShare& share);
  /// Bytes that this ACK shows to have left the network and that were not counted before.
  ByteCount take_newly_received(PdcShare& share, const AckSignal& ack);

  /// A PDC sends through this CCC, and leaves it. detach() is true when it was the last one.
  void attach(PdcShare& share) {
    if (share.attached) return;
    share.attached = true;
    ++attached_pdcs_;
  }
  bool detach(PdcShare& share);

 private:
  void end_flight(Transmission& t, PdcShare& share);
  void unmark(Transmission& t, PdcShare& share);
  static ByteCount take_received(PdcShare& share);

  ByteCount backlog_ = 0;
  ByteCount resend_bytes_ = 0;
  std::uint32_t resend_packets_ = 0;
  std::uint32_t open_packets_ = 0;
  std::uint32_t attached_pdcs_ = 0;
};

// What every packet does.

inline bool Ledger::on_send(Transmission& t, PdcShare& share, ByteCount bytes,
                            bool is_retransmission) {
  if (is_retransmission && !t.is_counted()) return false;
  if (t.is_in_flight())
    close(t, share);
  else if (t.waits_for_resend())
    unmark(t, share);
  if (!is_retransmission) backlog_ = std::max<ByteCount>(backlog_ - bytes, 0);
  share.unacked_bytes += bytes - (is_retransmission ? ByteCount{t.nominal_bytes} : 0);
  t.nominal_bytes = static_cast<std::uint32_t>(bytes);
  t.counted = Transmission::Counted::kInFlight;
  ++open_packets_;
  ++share.open_packets;
  share.inflight += bytes;
  return true;
}

inline void Ledger::close(Transmission& t, PdcShare& share) {
  end_flight(t, share);
  share.inflight -= t.nominal_bytes;
}

inline Ledger::Acknowledged Ledger::acknowledge(Transmission& t, PdcShare& share) {
  const ByteCount bytes = t.nominal_bytes;
  auto was = Acknowledged::kInFlight;
  if (t.is_in_flight()) {
    end_flight(t, share);
  } else {
    was = Acknowledged::kForResend;
    if (t.is_left_out()) {
      take_in(t, share);
      end_flight(t, share);
    } else {
      unmark(t, share);
      share.inflight += bytes;
    }
  }
  share.unacked_bytes -= bytes;
  share.rcvd_ahead -= bytes;
  share.counted_ahead -= bytes;
  return was;
}

/// The transmission is no longer in the network.
inline void Ledger::end_flight(Transmission& t, PdcShare& share) {
  if (t.counted == Transmission::Counted::kHeld) share.held_bytes -= t.nominal_bytes;
  t.counted = Transmission::Counted::kNowhere;
  --open_packets_;
  --share.open_packets;
}

inline void Ledger::unmark(Transmission& t, PdcShare& share) {
  t.counted = Transmission::Counted::kNowhere;
  --resend_packets_;
  --share.marked_packets;
  resend_bytes_ -= t.nominal_bytes;
}

}  // namespace uet::cc
