/// When the source of a direction asks for ACKs, the `ar` of its Requests. [PDS 8, decisions 150 and 167]
#pragma once

#include <cstdint>

#include "lib/base/serial.h"
#include "lib/base/units.h"

namespace uet::pds {

/// A packet is told of when it leaves, and `ar` covers what left before it. The end of a message asks, unless another message
/// follows at once and asks for both: what leaves in one go is acknowledged in one go. A message whose ACK may wait lets the next
/// one ask even if that is not there yet, as long as experience says that there will be one.
class Asking {
 public:
  /// The packet that ends a message is about to leave. True when it asks. `is_last`: nothing is queued behind it. `patience`: how
  /// long a message whose ACK may wait goes unasked for, zero if none may.
  bool at_end(base::Instant now, bool may_wait, bool is_last, base::Duration patience) {
    // Where many PDCs take turns "at once" may be long.
    constexpr base::Duration kLongestWait = base::Duration::from_us(10);
    if (!may_wait || !is_patient(patience)) is_waited_for_ = true;
    const base::Duration longest = is_waited_for_ ? kLongestWait : patience;
    const bool waited_long = has_unasked() && now - since_ >= longest;
    return waited_long || (is_waited_for_ && is_last);
  }
  /// A Request has left. Of one that left again, `psn` is the youngest that has left at all.
  void on_sent(base::Instant now, base::Psn psn, bool ar, bool ends_message) {
    if (ar)
      cover(psn);
    else if (ends_message && !has_unasked())
      since_ = now;
  }
  /// What asks for the ACKs of all packets up to this one has left.
  void cover(base::Psn psn) {
    covered_ = psn;
    since_ = base::Instant::never();
    is_waited_for_ = false;
  }
  /// The messages that were sent are waited for after all.
  void hurry() { is_waited_for_ = true; }
  /// No message came that would have asked for those before it: the next ones ask themselves.
  void lose_patience() { prompt_ = kPromptMessages; }

  /// A message has left that no packet has asked for.
  bool has_unasked() const { return !since_.is_never(); }
  /// So has this packet, and its peer need not say anything.
  bool is_unasked(base::Psn psn) const { return has_unasked() && psn.is_after(covered_); }

 private:
  static constexpr std::uint8_t kPromptMessages = 32;

  bool is_patient(base::Duration patience) {
    if (patience <= base::Duration{}) return false;
    if (prompt_ == 0) return true;
    --prompt_;
    return false;
  }

  base::Instant since_ = base::Instant::never();  ///< when the first of them left
  base::Psn covered_;                             ///< valid with has_unasked()
  std::uint8_t prompt_ = 0;                       ///< messages that will ask at once
  bool is_waited_for_ = false;  ///< some message that left, or is about to, may not wait
};

}  // namespace uet::pds
