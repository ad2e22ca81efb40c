/// How messages are cut into packets: planned when a message is submitted, cut out of the user's buffer when a packet may leave.
#pragma once

#include "ses/core.h"
#include "ses/tx_op.h"

namespace uet::ses {

/// How the next attempt of the operation is cut: header form, segments, bytes of the message in each. Fills what packet delivery has
/// to know of it. `is_numbered`: it goes with a number of its stream.
void plan_segments(const Core& core, Instant now, TxOp& op, bool is_numbered,
                   pds::TxMessage& message);

/// One packet: SES headers and payload, behind what `packet` has. The same bytes at each call of one attempt, unless the buffer went
/// away in between: then the packet says so (IE).
pds::SegmentInfo cut_segment(const TxOp& op, std::uint32_t segment, net::Packet& packet);

}  // namespace uet::ses
