#include "cc/ledger.h"

#include "cc/wire_counter.h"

namespace uet::cc {
namespace {

// The destination rounds its counter up to whole units, so it may be ahead of the truth by less
// than one. [CC 3.8]
constexpr ByteCount kRoundingMax = kWireUnitBytes - 1;

}  // namespace

void Ledger::close_for_resend(Transmission& t, PdcShare& share) {
  close(t, share);
  t.counted = Transmission::Counted::kForResend;
  ++resend_packets_;
  ++share.marked_packets;
  resend_bytes_ += t.nominal_bytes;
}

void Ledger::abandon(Transmission& t, PdcShare& share) {
  if (t.is_in_flight())
    close(t, share);
  else
    unmark(t, share);
  share.unacked_bytes -= t.nominal_bytes;
}

ByteCount Ledger::hold(Transmission& t, PdcShare& share) {
  t.counted = Transmission::Counted::kHeld;
  share.held_bytes += t.nominal_bytes;
  return take_received(share);
}

ByteCount Ledger::leave_out(Transmission& t, PdcShare& share) {
  t.counted = Transmission::Counted::kLeftOut;
  share.left_out_bytes += t.nominal_bytes;
  share.inflight -= t.nominal_bytes;
  return t.nominal_bytes;
}

ByteCount Ledger::take_in(Transmission& t, PdcShare& share) {
  t.counted = Transmission::Counted::kInFlight;
  share.left_out_bytes -= t.nominal_bytes;
  share.inflight += t.nominal_bytes;
  return t.nominal_bytes;
}

ByteCount Ledger::take_newly_received(PdcShare& share, const AckSignal& ack) {
  if (ack.has_nscc_state) {
    const auto units = units_ahead(ack.rcvd_units & kWireCounterMask, share.last_rcvd_units);
    if (units > 0) share.last_rcvd_units = ack.rcvd_units & kWireCounterMask;
    share.rcvd_ahead += ByteCount{units} * kWireUnitBytes;
  }
  // No destination can have received more than was sent: a counter that says so is wrong, and
  // believing it would open the window for ever.
  const ByteCount believable = share.unacked_bytes + kRoundingMax;
  share.rcvd_ahead = std::min(share.rcvd_ahead, believable);
  return take_received(share);
}

// Whatever the PDC left open or marked goes with it, and so does the rounding of its receive counter.
bool Ledger::detach(PdcShare& share) {
  const ByteCount marked_bytes =
      share.unacked_bytes - (share.inflight + share.counted_ahead + share.left_out_bytes);
  open_packets_ -= share.open_packets;
  resend_packets_ -= share.marked_packets;
  if (share.marked_packets > 0) resend_bytes_ -= marked_bytes;
  const bool was_last = share.attached && --attached_pdcs_ == 0;
  share = PdcShare{};
  return was_last;
}

/// What has arrived is what the counter says, or what single answers said, whichever is more.
ByteCount Ledger::take_received(PdcShare& share) {
  const ByteCount received = std::max(share.rcvd_ahead, share.held_bytes);
  const ByteCount fresh = std::max<ByteCount>(received - share.counted_ahead, 0);
  share.counted_ahead += fresh;
  share.inflight -= fresh;
  return fresh;
}

}  // namespace uet::cc
