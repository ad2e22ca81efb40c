/// What the headers of all requests say. Only for the files that cut segments.
#pragma once

#include "ses/tx_op.h"

namespace uet::ses {

template <typename H>
[[gnu::always_inline]] inline void fill_common(const TxOp& op, H& h) {
  h.opcode = op.wire_opcode();
  h.dc = op.delivery_complete;
  h.ie = op.memory_gone && op.length > 0 && !op.is_read();
  h.rel = op.peer->address.relative;
  h.hd = op.has_header_data;
  h.ri_generation = op.ri_generation;
  h.job_id = op.job_id;
  h.pid_on_fep = op.peer->address.pid_on_fep;
  h.resource_index = op.peer->address.resource_index;
  h.initiator = op.initiator_id;
  h.mkey_match = op.mkey_match;
}

inline constexpr std::uint64_t kMediumLengthMax = 0x3fff;  // 14 bits

/// [SES 5] One packet, and header data only without a buffer offset. Not where a verdict may follow: it names its message. [SES 14.1]
inline bool fits_medium(const TxOp& op) {
  return op.target_token == 0 && op.opcode != SesOpcode::kDeferrableRtr && !op.returns_data &&
         op.segments == 1 && !op.delivery_complete && op.length <= kMediumLengthMax &&
         !(op.has_header_data && op.buffer_offset != 0);
}

}  // namespace uet::ses
