/// Atomics at the initiator: what a request must be, and how it is cut into packets. [SES 16]
#pragma once

#include "ses/core.h"
#include "ses/tx_op.h"

namespace uet::ses {

/// Two packets would find two receives, or announce the data twice.
constexpr bool is_indivisible(bool tagged, bool has_data) {
  return tagged || has_data;
}

/// The operator exists, and the spans hold what it needs.
bool is_well_formed(const AtomicRequest& request);
/// Of a well-formed request: what its packets carry besides their headers. False: a device failed.
bool fill_atomic(const AtomicRequest& request, AtomicPart& part);

/// The part of plan_segments() and of cut_segment() for operations with an AtomicPart.
void plan_atomic(const Core& core, TxOp& op, pds::TxMessage& message);
void emit_atomic(const TxOp& op, std::uint32_t segment, net::Packet& packet);

}  // namespace uet::ses
