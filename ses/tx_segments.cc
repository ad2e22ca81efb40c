#include "ses/tx_segments.h"

#include <algorithm>
#include <cstring>

#include "ses/memory_table.h"
#include "ses/tx_atomics.h"
#include "ses/tx_header.h"

namespace uet::ses {
namespace {

/// `carried`: bytes of the message in its packets.
[[gnu::always_inline]] inline void fill_first(const TxOp& op, std::uint64_t carried,
                                              wire::SesStandardFirst& h) {
  h.som = true;
  // By length, not by the count of segments: that may shrink when the message is truncated.
  h.eom = carried <= op.piece;
  h.message_id = op.message_id;
  h.buffer_offset = op.buffer_offset;
  h.header_data = op.header_data;
  h.request_length = static_cast<std::uint32_t>(op.length);
}

[[gnu::always_inline]] inline void fill_next(const TxOp& op, std::uint64_t carried,
                                             std::uint64_t offset, std::size_t covered,
                                             wire::SesStandardNext& h) {
  h.som = false;
  h.eom = offset + covered == carried;
  h.message_id = op.message_id;
  h.buffer_offset = op.buffer_offset;
  h.payload_length = static_cast<std::uint16_t>(covered);
  h.message_offset = static_cast<std::uint32_t>(offset);
  h.request_length = static_cast<std::uint32_t>(op.length);
}

/// The index of the key is where other headers have the resource index.
void emit_small(const TxOp& op, std::uint8_t* out) {
  wire::SesSmall h;
  h.opcode = op.opcode;
  h.dc = op.delivery_complete;
  h.ie = op.memory_gone && op.length > 0 && !op.is_read();
  h.rel = op.peer->address.relative;
  h.request_length = static_cast<std::uint16_t>(op.length);
  h.job_id = op.job_id;
  h.pid_on_fep = op.peer->address.pid_on_fep;
  h.resource_index = static_cast<std::uint16_t>(op.mkey_match & kKeyOptimizedMask);
  h.buffer_offset = op.buffer_offset;
  wire::emit(h, out);
}

/// [SES 5] One packet that reaches memory by an optimized key, without header data, at a peer that takes it. RUDI has no PDC that
/// could tell reads apart, and a verdict that follows names its message. [SES 14.1]
bool fits_small(const TxOp& op) {
  return (op.mkey_match & kKeyOptimized) != 0 &&
         (op.opcode == SesOpcode::kWrite || op.opcode == SesOpcode::kRead) &&
         (op.peer->address.fep_cap & kTakesSmall) != 0 && !op.is_connectionless() &&
         op.segments == 1 && op.length <= kMediumLengthMax && !op.has_header_data &&
         !op.delivery_complete;
}

/// Returns the bytes of the message that the segment covers.
std::size_t emit_header(const TxOp& op, std::uint32_t segment, net::Packet& packet) {
  const std::uint64_t offset = std::uint64_t{segment} * op.piece;
  const auto covered =
      static_cast<std::size_t>(std::min<std::uint64_t>(op.piece, op.length - offset));
  if (op.small) {
    emit_small(op, packet.append(wire::SesSmall::kSize));
    return covered;
  }
  if (op.medium) {
    wire::SesMedium h;
    fill_common(op, h);
    h.request_length = static_cast<std::uint16_t>(op.length);
    h.hdr_or_offset = op.has_header_data ? op.header_data : op.buffer_offset;
    wire::emit(h, packet.append(wire::SesMedium::kSize));
    return covered;
  }
  std::uint8_t* out = packet.append(wire::SesStandardFirst::kSize);
  if (segment == 0) {
    wire::SesStandardFirst h;
    fill_common(op, h);
    fill_first(op, op.length, h);
    if (op.is_read() && !op.has_header_data && !h.eom)
      h.header_data = op.piece;  // [decision 125] nothing else tells
    wire::emit(h, out);
  } else {
    wire::SesStandardNext h;
    fill_common(op, h);
    fill_next(op, op.length, offset, covered, h);
    if (op.is_read() && op.has_header_data)  // a wide one
      h.payload_length = static_cast<std::uint16_t>(op.header_data);
    wire::emit(h, out);
  }
  return covered;
}

/// [SES 9] The header of the whole message, and where its rest can be read, in each packet of the eager part.
std::size_t emit_rendezvous(const TxOp& op, std::uint32_t segment, net::Packet& packet) {
  const std::uint64_t offset = std::uint64_t{segment} * op.piece;
  const auto covered =
      static_cast<std::size_t>(std::min<std::uint64_t>(op.piece, op.eager - offset));
  std::uint8_t* out = packet.append(wire::SesStandardFirst::kSize);
  if (segment == 0) {
    wire::SesStandardFirst h;
    fill_common(op, h);
    h.opcode = op.rendezvous_opcode();
    fill_first(op, op.eager, h);
    wire::emit(h, out);
  } else {
    wire::SesStandardNext h;
    fill_common(op, h);
    h.opcode = op.rendezvous_opcode();
    fill_next(op, op.eager, offset, covered, h);
    wire::emit(h, out);
  }
  wire::ExtRendezvous ext;
  ext.eager_length = op.eager;
  ext.read_pid_on_fep = op.source_pid;
  ext.read_resource_index = op.source_index;
  ext.read_memory_key = op.source_key;
  wire::emit(ext, packet.append(wire::ExtRendezvous::kSize));
  return covered;
}

/// [decision 105] Asks about the message that had this message id.
void emit_await_delivery(const TxOp& op, net::Packet& packet) {
  wire::SesStandardFirst h;
  fill_common(op, h);
  h.opcode = kAwaitDeliveryOpcode;
  h.ie = h.hd = false;
  h.som = h.eom = true;
  h.message_id = op.message_id;
  wire::emit(h, packet.append(wire::SesStandardFirst::kSize));
}

/// [SES 10] Ends the message behind the segments that were sent, if any.
void emit_message_error(const TxOp& op, net::Packet& packet) {
  wire::SesStandardNext h;
  fill_common(op, h);
  h.opcode = op.is_deferrable ? op.wire_opcode() : SesOpcode::kMsgError;  // [SES 8.2]
  h.ie = false;
  h.som = false;
  h.eom = true;
  h.message_id = op.message_id;
  h.buffer_offset = op.buffer_offset;
  h.payload_length = 0;
  h.message_offset = static_cast<std::uint32_t>(std::uint64_t{op.error_segment - 1} * op.piece);
  h.request_length = static_cast<std::uint32_t>(op.length);
  wire::emit(h, packet.append(wire::SesStandardNext::kSize));
}

/// Sends of one packet go as they are, and so do ordered ones: what is sent again would come behind what was sent later. The token
/// stays through all attempts, and its lower half finds the operation. [SES 8.2]
void make_deferrable(TxOp& op, pds::TxMessage& message) {
  const bool is_send = op.opcode == SesOpcode::kSend || op.opcode == SesOpcode::kTaggedSend;
  if (!is_send || op.awaits_delivery || op.fills_gap) return;
  op.is_deferrable = op.mode == pds::Mode::kRud && !op.may_spray && !op.is_rendezvous &&
                     (op.segments > 1 || op.target_token != 0);
  // Not 0 whatever the attempt, and the place in the pool.
  if (op.is_deferrable && op.own_token == 0)
    op.own_token = ((op.attempt + 1) % 0xffff + 1) << 16 | op.pool_index;
  op.buffer_offset = op.is_deferrable ? std::uint64_t{op.own_token} << 32 | op.target_token : 0;
  if (!op.is_withdrawn) return;
  // [decision 143] Of the restarted message only the closing packet goes.
  op.segments = message.segments = op.error_segment = 1;
  message.payload_bytes = message.segment_payload = 0;
}

void plan_rendezvous(TxOp& op, pds::TxMessage& message) {
  op.medium = false;
  message.ses_header_bytes = wire::SesStandardFirst::kSize;
  if (op.awaits_delivery) return;
  op.segments = segments_for(op.eager, op.piece);
  message.segments = op.segments;
  message.ses_header_bytes += wire::ExtRendezvous::kSize;
  message.payload_bytes = op.eager;
}

/// [decision 170] A request costs what a packet of data costs: each asks for several. The target copies what an ordered one asks
/// for, so that is no more than a packet may carry. Data that may ride on ACKs comes one packet a request.
void widen(const Core& core, TxOp& op) {
  op.has_header_data = false;
  op.header_data = 0;
  if (op.length <= op.piece) return;
  const std::uint32_t payload = payload_for(op.length, op.piece);
  const std::uint32_t most =
      op.mode == pds::Mode::kRod ? kLargestPayload / payload : WideAsk::kMostPackets;
  const WideAsk ask{std::min(most, CoveragePool::most_asked(core.config.requests_under_way)),
                    payload};
  op.has_header_data = ask.is_valid() && !core.data_fits_acks(op.length) &&
                       !op.is_connectionless() && knows_wide_reads(op.peer->address.fep_cap);
  if (op.has_header_data) {
    op.header_data = ask.pack();
    op.piece = ask.bytes();
  } else if (op.piece == kEthernetPayload) {
    op.piece = kSmallestPayload;  // the data of others is not cut into 1,280
  }
}

/// Of a short send that asks for nothing else, which fits one packet of any way: all of the plan. False of any other operation.
[[gnu::always_inline]] inline bool plan_plain(const Core& core, TxOp& op, pds::TxMessage& message) {
  const bool is_send = op.opcode == SesOpcode::kSend || op.opcode == SesOpcode::kTaggedSend;
  const bool is_short =
      op.length > 0 && op.length < kSmallestPayload && op.length <= core.payload_mtu;
  op.is_plain = is_send && is_short && !op.awaits_delivery && !op.is_rendezvous &&
                !core.config.sends_deferrable && !core.config.medium_headers;
  if (!op.is_plain) return false;
  op.piece = core.payload_mtu;
  op.segments = 1;
  op.small = op.medium = false;
  message.segments = 1;
  message.ses_header_bytes = wire::SesStandardFirst::kSize;
  message.payload_bytes = op.length;
  message.segment_payload = op.piece;
  return true;
}

/// The packet of such a send. Its payload is copied whatever it lies in: to borrow so little costs more.
[[gnu::always_inline]] inline pds::SegmentInfo cut_plain(const TxOp& op, net::Packet& packet) {
  const auto n = static_cast<std::size_t>(op.length);
  std::uint8_t* const out = packet.append(wire::SesStandardFirst::kSize + n);
  wire::SesStandardFirst h;
  fill_common(op, h);
  fill_first(op, op.length, h);
  wire::emit(h, out);
  if (!op.iov.gather(0, out + wire::SesStandardFirst::kSize, n)) [[unlikely]]
    wire::set_initiator_error(packet.data());
  return {static_cast<std::uint8_t>(wire::NextHdr::kRequestStd)};
}

}  // namespace

void plan_segments(const Core& core, Instant now, TxOp& op, bool is_numbered,
                   pds::TxMessage& message) {
  if (plan_plain(core, op, message)) [[likely]]
    return;
  op.piece = op.is_connectionless() ? core.payload_mtu : core.payload_to(now, *op.peer, op.length);
  if (op.is_read())
    widen(core, op);
  else if (op.atomic == nullptr)
    op.piece = payload_for(op.length, op.piece);
  op.segments = op.awaits_delivery ? 1 : segments_for(op.length, op.piece);
  op.medium = core.config.medium_headers && !is_numbered && fits_medium(op);
  op.small = core.config.small_headers && fits_small(op);
  message.segments = op.segments;
  message.ses_header_bytes = op.medium ? wire::SesMedium::kSize : wire::SesStandardFirst::kSize;
  if (op.small) message.ses_header_bytes = wire::SesSmall::kSize;
  const bool is_bare = op.returns_data || op.awaits_delivery;
  message.payload_bytes = is_bare ? 0 : op.length;
  message.segment_payload = is_bare ? 0 : op.piece;
  if (op.atomic != nullptr) plan_atomic(core, op, message);
  if (core.config.sends_deferrable || op.peer->address.limits_sends()) make_deferrable(op, message);
  if (op.is_rendezvous) plan_rendezvous(op, message);
}

pds::SegmentInfo cut_segment(const TxOp& op, std::uint32_t segment, net::Packet& packet) {
  if (op.is_plain && op.error_segment == 0 && !op.memory_gone) [[likely]]
    return cut_plain(op, packet);
  if (op.error_segment != 0 && segment + 1 == op.error_segment) {
    emit_message_error(op, packet);
    return {static_cast<std::uint8_t>(wire::NextHdr::kRequestStd)};
  }
  if (op.awaits_delivery) {
    emit_await_delivery(op, packet);
    return {static_cast<std::uint8_t>(wire::NextHdr::kRequestStd)};
  }
  if (op.atomic != nullptr) {
    emit_atomic(op, segment, packet);
    return {static_cast<std::uint8_t>(op.form())};
  }
  const std::size_t n =
      op.is_rendezvous ? emit_rendezvous(op, segment, packet) : emit_header(op, segment, packet);
  if (n > 0 && !op.is_read()) {
    const std::size_t from = std::size_t{segment} * op.piece;
    if (op.memory_gone)
      std::memset(packet.append(n), 0, n);
    else if (op.inject_block != nullptr)  // ours: another operation's when this one is over
      op.iov.gather(from, packet.append(n), n);
    else if (!op.iov.append_to(packet, from, n))
      wire::set_initiator_error(packet.data());
  }
  return {static_cast<std::uint8_t>(op.form())};
}

}  // namespace uet::ses
