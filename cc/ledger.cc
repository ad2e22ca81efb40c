#include "cc/ledger.h"

#include "cc/wire_counter.h"

namespace uet::cc {
namespace {

using Counted = Transmission::Counted;

// The destination rounds its counter up to whole units, so it may be ahead of the truth by less
// than one. [CC 3.8]
constexpr ByteCount kRoundingMax = kWireUnitBytes - 1;

}  // namespace

bool Ledger::on_send(Transmission& t, PdcShare& share, ByteCount bytes, bool is_retransmission) {
  if (is_retransmission && !t.is_counted()) return false;
  if (t.is_in_flight())
    close(t, share);
  else if (t.waits_for_resend())
    unmark(t, share);
  if (!is_retransmission) backlog_ = std::max<ByteCount>(backlog_ - bytes, 0);
  share.unacked_bytes += bytes - (is_retransmission ? ByteCount{t.nominal_bytes} : 0);
  t.nominal_bytes = static_cast<std::uint32_t>(bytes);
  t.counted = Counted::kInFlight;
  ++open_packets_;
  ++share.open_packets;
  share.inflight += bytes;
  return true;
}

void Ledger::close(Transmission& t, PdcShare& share) {
  end_flight(t, share);
  share.inflight -= t.nominal_bytes;
}

void Ledger::close_for_resend(Transmission& t, PdcShare& share) {
  close(t, share);
  t.counted = Counted::kForResend;
  ++resend_packets_;
  ++share.marked_packets;
  resend_bytes_ += t.nominal_bytes;
}

Ledger::Acknowledged Ledger::acknowledge(Transmission& t, PdcShare& share) {
  const ByteCount bytes = t.nominal_bytes;
  auto was = Acknowledged::kInFlight;
  if (t.is_in_flight()) {
    end_flight(t, share);
  } else {
    was = Acknowledged::kForResend;
    unmark(t, share);
    share.inflight += bytes;
  }
  share.unacked_bytes -= bytes;
  share.rcvd_ahead -= bytes;
  share.counted_ahead -= bytes;
  return was;
}

void Ledger::abandon(Transmission& t, PdcShare& share) {
  if (t.is_in_flight())
    close(t, share);
  else
    unmark(t, share);
  share.unacked_bytes -= t.nominal_bytes;
}

ByteCount Ledger::hold(Transmission& t, PdcShare& share) {
  t.counted = Counted::kHeld;
  share.held_bytes += t.nominal_bytes;
  return take_received(share);
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

void Ledger::attach(PdcShare& share) {
  if (share.attached) return;
  share.attached = true;
  ++attached_pdcs_;
}

// Whatever the PDC left open or marked goes with it, and so does the rounding of its receive counter.
bool Ledger::detach(PdcShare& share) {
  const ByteCount marked_bytes = share.unacked_bytes - (share.inflight + share.counted_ahead);
  open_packets_ -= share.open_packets;
  resend_packets_ -= share.marked_packets;
  if (share.marked_packets > 0) resend_bytes_ -= marked_bytes;
  const bool was_last = share.attached && --attached_pdcs_ == 0;
  share = PdcShare{};
  return was_last;
}

/// The transmission is no longer in the network.
void Ledger::end_flight(Transmission& t, PdcShare& share) {
  if (t.counted == Counted::kHeld) share.held_bytes -= t.nominal_bytes;
  t.counted = Counted::kNowhere;
  --open_packets_;
  --share.open_packets;
}

void Ledger::unmark(Transmission& t, PdcShare& share) {
  t.counted = Counted::kNowhere;
  --resend_packets_;
  --share.marked_packets;
  resend_bytes_ -= t.nominal_bytes;
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
