// Atomics at the initiator. [SES 16]
#include <algorithm>

#include "ses/tx_common.h"
#include "ses/tx_header.h"

namespace uet::ses {
namespace {

std::size_t bytes_of(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

void gather(std::span<const iovec> pieces, DeviceMemory* device, std::uint8_t* to) {
  for (const iovec& piece : pieces) {
    const auto* const from = static_cast<const std::uint8_t*>(piece.iov_base);
    if (device != nullptr)
      device->read(from, to, piece.iov_len);
    else
      std::copy_n(from, piece.iov_len, to);
    to += piece.iov_len;
  }
}

SesOpcode opcode_of(const AtomicRequest& r) {
  if (r.tagged) return r.fetching ? SesOpcode::kTsendFetchAtomic : SesOpcode::kTsendAtomic;
  return r.fetching ? SesOpcode::kFetchingAtomic : SesOpcode::kAtomic;
}

/// The operator exists, and the spans hold what it needs.
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

/// Two packets would find two receives, or announce the data twice.
bool is_indivisible(bool tagged, bool has_data) {
  return tagged || has_data;
}

}  // namespace

PostResult<Posted> Transmitter::atomic(Instant now, Endpoint& endpoint,
                                       const AtomicRequest& request) {
  auto part = describe_atomic(now, request);
  if (!part) return part.error();
  Common common(request);
  if (request.fetching) {  // its operand is in `part`
    common.iov = request.result;
    common.device = request.result_device;
    common.inject = false;
  }
  auto prepared = prepare(now, endpoint, common, opcode_of(request));
  if (!prepared) {
    atomics_.release(*part);
    return prepared.error();
  }
  TxOp& op = **prepared;
  op.atomic = *part;
  op.returns_data = request.fetching;
  op.length = request.count * amo_bytes(request.type);  // INVAL carries nothing
  op.mkey_match = request.key;
  op.buffer_offset = request.remote_offset;
  const bool ordered = endpoint.config.atomics_ordered;
  op.lane = ordered ? kOrderedLane : kUnorderedLane;
  op.mode = ordered ? pds::Mode::kRod : pds::Mode::kRud;
  enqueue(now, op);
  return Posted{};
}

/// Checks the request as far as prepare() will not. It fills one packet at most; where the way carries less than our packets
/// hold it becomes several, if it may.
PostResult<AtomicPart*> Transmitter::describe_atomic(Instant now, const AtomicRequest& r) {
  if (!is_well_formed(r)) return PostError::kBadArgument;
  const std::size_t element = amo_bytes(r.type);
  const Peer* peer = core_.peers.find(r.peer);
  if (peer == nullptr) return PostError::kBadPeer;
  if (r.count > atomic_payload_of(core_.payload_mtu) / element) return PostError::kTooLong;
  const std::size_t bytes = r.count * element;
  const std::uint32_t payload = core_.payload_to(now, *peer, bytes);
  if (is_indivisible(r.tagged, r.data.has_value()) && bytes > atomic_payload_of(payload))
    return PostError::kTooLong;
  AtomicPart* part = atomics_.acquire();
  if (part == nullptr) return PostError::kAgain;
  part->op = r.op;
  part->type = r.type;
  const bool compares = has_compare_operands(r.op);
  part->extension_bytes = compares ? wire::ExtCompareSwap::kSize : wire::ExtAtomic::kSize;
  part->operand_bytes =
      static_cast<std::uint8_t>(r.fetching && has_operand(r.op) && !compares ? element : 0);
  if (r.fetching) gather(r.operand, r.operand_device, part->operand.data());
  if (compares) {
    std::array<std::uint8_t, kLargestElement> value;
    gather(r.compare, r.compare_device, value.data());
    part->compare = to_operand_field(r.type, value.data());
    part->swap = to_operand_field(r.type, part->operand.data());
  }
  return part;
}

/// Operands that a packet carries behind its extension.
std::size_t Transmitter::atomic_payload(const TxOp& op, std::uint32_t segment) const {
  if (op.returns_data) return op.atomic->operand_bytes;
  if (!has_operand(op.atomic->op)) return 0;
  const std::uint64_t offset = std::uint64_t{segment} * op.piece;
  return static_cast<std::size_t>(std::min<std::uint64_t>(op.piece, op.length - offset));
}

void Transmitter::size_atomic(TxOp& op, pds::TxMessage& message) const {
  const bool is_one = is_indivisible(op.is_tagged(), op.has_header_data);
  op.piece =
      atomic_payload_of(is_one ? core_.payload_mtu : op.piece);  // the way may have been wider
  op.segments = message.segments = segments_for(op.length, op.piece);
  op.medium = core_.config.medium_headers && fits_medium(op);
  message.ses_header_bytes = (op.medium ? wire::SesMedium::kSize : wire::SesStandardFirst::kSize) +
                             op.atomic->extension_bytes;
  const bool is_plain = !op.returns_data && has_operand(op.atomic->op);
  message.payload_bytes = is_plain ? op.length : op.atomic->operand_bytes;
  message.segment_payload = op.piece;
}

/// Every packet is a request of its own, whole and for its part of the memory. They share the message id, which only the old
/// value of a fetching one is looked up by. [decision 140]
void Transmitter::emit_atomic(const TxOp& op, std::uint32_t segment, net::Packet& packet) const {
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
  else
    op.iov.gather(static_cast<std::size_t>(offset), out, n);
}

}  // namespace uet::ses
