#include "ses/tx_atomics.h"

#include <algorithm>

#include "ses/tx_header.h"

namespace uet::ses {
namespace {

std::size_t bytes_of(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

bool gather(std::span<const iovec> pieces, DeviceMemory* device, std::uint8_t* to) {
  for (const iovec& piece : pieces) {
    const auto* const from = static_cast<const std::uint8_t*>(piece.iov_base);
    if (device == nullptr)
      std::copy_n(from, piece.iov_len, to);
    else if (!device->read(from, to, piece.iov_len))
      return false;
    to += piece.iov_len;
  }
  return true;
}

/// Operands that a packet carries behind its extension.
std::size_t atomic_payload(const TxOp& op, std::uint32_t segment) {
  if (op.returns_data) return op.atomic->operand_bytes;
  if (!has_operand(op.atomic->op)) return 0;
  const std::uint64_t offset = std::uint64_t{segment} * op.piece;
  return static_cast<std::size_t>(std::min<std::uint64_t>(op.piece, op.length - offset));
}

}  // namespace

bool is_well_formed(const AtomicRequest& r) {
  if (judge_amo(r.op, r.type, r.fetching) != ReturnCode::kOk) return false;
  if (r.count == 0 || (r.fetching && (r.count != 1 || r.data))) return false;
  const std::size_t element = amo_bytes(r.type);
  const std::size_t operand = has_operand(r.op) ? r.count * element : 0;
  const std::size_t compare = has_compare_operands(r.op) ? element : 0;
  const std::size_t result = r.fetching ? element : 0;
  return bytes_of(r.operand) == operand && bytes_of(r.compare) == compare &&
         bytes_of(r.result) == result;
}

bool fill_atomic(const AtomicRequest& r, AtomicPart& part) {
  part.op = r.op;
  part.type = r.type;
  const bool compares = has_compare_operands(r.op);
  const std::size_t element = amo_bytes(r.type);
  part.extension_bytes = compares ? wire::ExtCompareSwap::kSize : wire::ExtAtomic::kSize;
  part.operand_bytes =
      static_cast<std::uint8_t>(r.fetching && has_operand(r.op) && !compares ? element : 0);
  if (r.fetching && !gather(r.operand, r.operand_device, part.operand.data())) return false;
  if (!compares) return true;
  std::array<std::uint8_t, kLargestElement> value;
  if (!gather(r.compare, r.compare_device, value.data())) return false;
  part.compare = to_operand_field(r.type, value.data());
  part.swap = to_operand_field(r.type, part.operand.data());
  return true;
}

void plan_atomic(const Core& core, TxOp& op, pds::TxMessage& message) {
  const bool is_one = is_indivisible(op.is_tagged(), op.has_header_data);
  op.piece =
      atomic_payload_of(is_one ? core.payload_mtu : op.piece);  // the way may have been wider
  op.segments = message.segments = segments_for(op.length, op.piece);
  op.medium = core.config.medium_headers && fits_medium(op);
  message.ses_header_bytes = (op.medium ? wire::SesMedium::kSize : wire::SesStandardFirst::kSize) +
                             op.atomic->extension_bytes;
  const bool is_plain = !op.returns_data && has_operand(op.atomic->op);
  message.payload_bytes = is_plain ? op.length : op.atomic->operand_bytes;
  message.segment_payload = op.piece;
}

/// Every packet is a request of its own, whole and for its part of the memory. They share the message id, which only the old
/// value of a fetching one is looked up by. [decision 140]
void emit_atomic(const TxOp& op, std::uint32_t segment, net::Packet& packet) {
  constexpr std::uint32_t kCompareOperands = 32;
  const AtomicPart& amo = *op.atomic;
  const std::uint64_t offset = std::uint64_t{segment} * op.piece;
  const bool compares = has_compare_operands(amo.op);
  const auto length =
      compares ? kCompareOperands
               : static_cast<std::uint32_t>(std::min<std::uint64_t>(op.piece, op.length - offset));
  const auto fill = [&](auto header) {
    fill_common(op, header);
    header.som = header.eom = true;
    header.request_length = static_cast<decltype(header.request_length)>(length);
    return header;
  };
  if (op.medium) {
    auto h = fill(wire::SesMedium{});
    h.hdr_or_offset = op.has_header_data ? op.header_data : op.buffer_offset + offset;
    wire::emit(h, packet.append(wire::SesMedium::kSize));
  } else {
    auto h = fill(wire::SesStandardFirst{});
    h.message_id = op.message_id;
    h.buffer_offset = op.buffer_offset + offset;
    h.header_data = op.header_data;
    wire::emit(h, packet.append(wire::SesStandardFirst::kSize));
  }
  if (compares) {
    wire::ExtCompareSwap e{.amo_opcode = amo.op, .amo_datatype = amo.type};
    e.sem_cpu_coherent = true;
    e.compare_value = amo.compare;
    e.swap_value = amo.swap;
    wire::emit(e, packet.append(wire::ExtCompareSwap::kSize));
    return;
  }
  wire::ExtAtomic e{.amo_opcode = amo.op, .amo_datatype = amo.type};
  e.sem_cpu_coherent = true;
  wire::emit(e, packet.append(wire::ExtAtomic::kSize));
  const std::size_t n = atomic_payload(op, segment);
  if (n == 0) return;
  std::uint8_t* const out = packet.append(n);
  if (op.returns_data)
    std::copy_n(amo.operand.data(), n, out);
  else if (op.memory_gone)
    std::fill_n(out, n, std::uint8_t{0});
  else if (!op.iov.gather(static_cast<std::size_t>(offset), out, n))
    wire::set_initiator_error(packet.data());
}

}  // namespace uet::ses
