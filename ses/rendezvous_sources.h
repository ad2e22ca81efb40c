/// Sends of which the target reads the rest: what an initiator lets a target read, and how far that is. [SES 9, decision 142]
#pragma once

#include "ses/core.h"
#include "ses/responses.h"
#include "ses/tx_op.h"

namespace uet::ses {

/// The regions in the table of memory that are sources of rendezvous: each is one user's buffer, for one reader, from begin() until
/// withdraw().
class RendezvousSources {
 public:
  explicit RendezvousSources(Core& core) : core_(core) {}

  /// Makes a send a rendezvous that carries `eager` bytes; the target can read the user's buffer from now on. False when that is not
  /// for this target, or there is no place for one more region: the send goes as it is.
  bool begin(TxOp& op, std::uint32_t eager);
  /// The user's buffer is not read any more.
  void withdraw(const TxOp& op);
  /// A send that was refused for lack of room may find some for its header. True when its next attempt is another one.
  bool shrink(TxOp& op);

  /// What a response says of how much the target will read.
  static void note_wanted(TxOp& op, const ResponseView& response);
  /// The target has read `length` more bytes of the rest, and acknowledged them.
  static void note_read(TxOp& op, std::uint64_t length);

 private:
  bool may_begin(const TxOp& op) const;

  Core& core_;
};

}  // namespace uet::ses
