/// What targets say about messages of ours, and the data that they return. [SES 4.4, 11]
#pragma once

#include "lib/base/trace.h"
#include "ses/responses.h"
#include "ses/tx_op.h"

namespace uet::ses {

/// Reads responses and returned data into the operation that they are for: its verdict, its code, its buffer. Owns what is
/// remembered of data that came out of order.
class ResponseReader {
 public:
  /// `max`: operations that can have such data at a time.
  ResponseReader(std::uint32_t max, base::Trace& trace) : windows_(max, max), trace_(trace) {}

  /// One response: what it does to the state of the message. False when it refuses its packet.
  bool read(Instant now, TxOp& op, std::uint8_t next_hdr, std::span<const std::uint8_t> bytes);

  /// Returned data that is so far ahead of what is missing that it has to come again.
  bool is_too_far(const TxOp& op, const ResponseView& response);
  /// What came in the return direction for the operation, and what its source is told.
  pds::Answer take_data(TxOp& op, const ResponseView& response);
  /// Bytes of what an operation is owed for which such a packet stands.
  static std::uint64_t worth(const TxOp& op, const ResponseView& response);
  /// Of an operation that ended: nothing is done with it.
  static pds::Answer refuse_late(const TxOp& op, const ResponseView& response);
  /// It is for no operation that we know.
  static pds::Answer refuse(const ResponseView& response);

  /// What may still come in the return direction for an attempt whose packets are all answered: bytes of data, or 1 for a report of
  /// delivery. Its message id must not name another message before. [SES 4.1]
  static std::uint64_t owed_to(const TxOp& op);

  /// The attempt is over.
  void forget(TxOp& op) { op.returned.clear(windows_); }

 private:
  /// False when the data does not belong to what was asked for.
  bool place(TxOp& op, const ResponseView& response);

  CoveragePool windows_;
  base::Trace& trace_;
};

}  // namespace uet::ses
