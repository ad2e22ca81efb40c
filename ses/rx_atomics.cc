#include "ses/rx_atomics.h"

#include <algorithm>
#include <array>

#include "ses/amo.h"

namespace uet::ses {

/// The extension of a request, and what it asks for.
struct AtomicTarget::Amo {
  AmoOperation operation;
  ReturnCode code = ReturnCode::kOk;  ///< of what is wrong with it, whatever memory it names
  std::uint32_t bytes = 0;            ///< of memory; 0 when there is a code
  std::array<std::uint8_t, sizeof(wire::U128)> compare{}, swap{};

  /// `most`: bytes that one packet can carry, so that it cannot ask for more work either.
  bool parse(const RequestView& r, std::uint32_t most);

 private:
  bool parse_compare(const RequestView& r);
  ReturnCode judge_length(const RequestView& r, std::uint32_t most) const;
};

/// False when the packet is too short for what it announces.
bool AtomicTarget::Amo::parse(const RequestView& r, std::uint32_t most) {
  if (r.payload.size() < wire::ExtAtomic::kSize) return false;
  const auto h = wire::decode<wire::ExtAtomic>(r.payload.data());
  operation.op = h.amo_opcode;
  operation.type = h.amo_datatype;
  code = judge_amo(h.amo_opcode, h.amo_datatype, is_fetching(r.opcode));
  if (has_compare_operands(h.amo_opcode)) return parse_compare(r);
  const auto operands = r.payload.subspan(wire::ExtAtomic::kSize);
  if (has_operand(h.amo_opcode) && operands.size() < r.request_length) return false;
  operation.operand = has_operand(h.amo_opcode) ? operands.data() : nullptr;
  if (code == ReturnCode::kOk) code = judge_length(r, most);
  bytes = code == ReturnCode::kOk ? r.request_length : 0;
  return true;
}

/// [WIRE 5.11] The operands count as 32 bytes of the message; some may count one element. [SES 22.13]
bool AtomicTarget::Amo::parse_compare(const RequestView& r) {
  constexpr std::uint32_t kOperands = 2 * sizeof(wire::U128);
  if (r.payload.size() < wire::ExtCompareSwap::kSize) return false;
  const std::size_t element = amo_bytes(operation.type);
  if (code == ReturnCode::kOk && r.request_length != kOperands && r.request_length != element)
    code = ReturnCode::kAmoUnsupportedSize;
  if (code != ReturnCode::kOk) return true;
  const auto h = wire::decode<wire::ExtCompareSwap>(r.payload.data());
  from_operand_field(operation.type, h.compare_value, compare.data());
  from_operand_field(operation.type, h.swap_value, swap.data());
  operation.compare = compare.data();
  operation.operand = swap.data();
  bytes = static_cast<std::uint32_t>(element);
  return true;
}

ReturnCode AtomicTarget::Amo::judge_length(const RequestView& r, std::uint32_t most) const {
  const std::size_t element = amo_bytes(operation.type);
  const bool fits = r.request_length > 0 && r.request_length <= most &&
                    r.request_length % element == 0 &&
                    (!is_fetching(r.opcode) || r.request_length == element);
  return fits ? ReturnCode::kOk : ReturnCode::kAmoUnsupportedSize;
}

namespace {

bool is_aligned(const std::uint8_t* element, AmoDatatype type) {
  return reinterpret_cast<std::uintptr_t>(element) % amo_alignment(type) == 0;
}

/// Whether every element is aligned, and none is torn between two pieces of memory.
bool is_reachable(const IovList& memory, std::uint64_t start, std::uint32_t bytes,
                  AmoDatatype type) {
  if (const std::uint8_t* all = memory.find(start, bytes)) return is_aligned(all, type);
  const std::size_t element = amo_bytes(type);
  for (std::size_t done = 0; done < bytes; done += element) {
    const std::uint8_t* at = memory.find(start + done, element);
    if (at == nullptr || !is_aligned(at, type)) return false;
  }
  return true;
}

/// In a copy. Operations of peers all come through here, so they are atomic to each other as in the CPU's memory; to what the
/// device does itself they are not. False: a part of it was not carried out.
bool execute_on_device(const IovList& memory, std::uint64_t start, std::uint32_t bytes,
                       const AmoOperation& amo, std::uint8_t* old) {
  const std::size_t element = amo_bytes(amo.type);
  const auto at = static_cast<std::size_t>(start);
  alignas(sizeof(wire::U128)) std::array<std::uint8_t, 64 * sizeof(wire::U128)> copy;
  AmoOperation part = amo;
  for (std::size_t done = 0, n = 0; done < bytes; done += n) {
    n = std::min<std::size_t>(copy.size(), bytes - done);
    if (!memory.gather(at + done, copy.data(), n)) return false;
    execute(part, copy.data(), n / element, old);
    if (amo.op != AmoOpcode::kRead && !memory.scatter(at + done, copy.data(), n)) return false;
    if (part.operand != nullptr) part.operand += n;
  }
  return memory.settle();
}

bool execute_on(const IovList& memory, std::uint64_t start, std::uint32_t bytes, AmoOperation amo,
                std::uint8_t* old) {
  const std::size_t element = amo_bytes(amo.type);
  if (memory.device() != nullptr) return execute_on_device(memory, start, bytes, amo, old);
  if (std::uint8_t* all = memory.find(start, bytes)) {
    execute(amo, all, bytes / element, old);
    return true;
  }
  for (std::size_t done = 0; done < bytes; done += element) {
    execute(amo, memory.find(start + done, element), 1, old);  // several: none is fetched
    if (amo.operand != nullptr) amo.operand += element;
  }
  return true;
}

}  // namespace

pds::Answer AtomicTarget::begin(RequestContext& c) {
  RequestView& r = c.request;
  if (r.ie) return failures_.reject(c, ReturnCode::kInitiatorErr);
  Amo amo;
  if (!amo.parse(r, shared_.core.largest_payload())) {
    shared_.core.trace.drop(c.now, base::DropReason::kSesMalformed, c.packet.bytes.size());
    return failures_.reject(c, ReturnCode::kOpViolation);
  }
  r.request_length = r.covered = amo.bytes;
  return is_tagged_atomic(r.opcode) ? begin_in_receive(c, amo) : begin_in_region(c, amo);
}

pds::Answer AtomicTarget::refuse(RequestContext& c, ReturnCode code) {
  shared_.core.trace.drop(c.now, base::DropReason::kAtomicRefused, c.packet.bytes.size());
  return failures_.reject(c, code);
}

/// Steps 12 to 14. It both reads and writes, so it needs both rights. [SES 15]
pds::Answer AtomicTarget::begin_in_region(RequestContext& c, const Amo& amo) {
  std::uint64_t start = 0;
  ReturnCode code = ReturnCode::kOk;
  MemoryRegion* region = rma_.find_region(c, true, start, code);
  if (region == nullptr) return refuse(c, code);
  if (!region->remote_read) return refuse(c, ReturnCode::kPermViolation);
  if (amo.code != ReturnCode::kOk) return refuse(c, amo.code);
  if (!is_reachable(region->iov, start, amo.bytes, amo.operation.type))
    return refuse(c, ReturnCode::kAmoUnaligned);
  if (c.request.hd && !c.endpoint->config.accept_remote_data)
    return refuse(c, ReturnCode::kOpViolation);
  const std::uint64_t key = region->key;
  pds::Answer answer;
  if (perform(c, amo, region->iov, start, answer)) complete(c, key);
  return answer;
}

/// [SES 6.7] The memory is the receive that a tagged send with this tag would find. Where there is none nothing is kept: the
/// initiator comes again. [decision 140]
pds::Answer AtomicTarget::begin_in_receive(RequestContext& c, const Amo& amo) {
  const RequestView& r = c.request;
  RiSpace& space = c.endpoint->space(true);
  Sender* sender = shared_.senders.find(c.endpoint->id, c.packet.source);
  const Gate* gate = sender == nullptr ? nullptr : &sender->gates[1];
  const std::uint8_t generation = gate == nullptr ? 0 : gate->generation;
  if (r.ri_generation != generation)
    return answer_error(r, ReturnCode::kBadGeneration, generation, true);
  if (gate != nullptr && gate->is_closed_to(c.packet.handle.pdc, c.packet.is_proven))
    return failures_.reject(c, shared_.gates.code_of_closed());
  if (!r.rel && !c.endpoint->config.accepts_job(r.job_id))
    return refuse(c, ReturnCode::kPermViolation);
  if (amo.code != ReturnCode::kOk) return refuse(c, amo.code);
  Receive* receive = space.posted->find({r.mkey_match, r.job_id, r.initiator, c.packet.source});
  if (receive == nullptr) return refuse_unmatched(c, space);
  const Place at = place_in(*receive, r.buffer_offset, amo.bytes);
  const std::uint64_t start = at.start;
  if (at.limit < amo.bytes) return refuse(c, ReturnCode::kBadAddr);
  if (!is_reachable(receive->iov, start, amo.bytes, amo.operation.type))
    return refuse(c, ReturnCode::kAmoUnaligned);
  pds::Answer answer;
  if (!perform(c, amo, receive->iov, start, answer)) return answer;
  shared_.receives.take(space, *receive, at);
  Completion completion = completion_in(*receive, {.length = amo.bytes,
                                                   .placed = amo.bytes,
                                                   .begin = start - r.buffer_offset,
                                                   .tag = r.mkey_match,
                                                   .source = c.source(),
                                                   .data = r.header_data,
                                                   .has_data = r.hd});
  shared_.receives.complete(c.now, *c.endpoint, *receive, completion);
  return answer;
}

/// On ROD later ones must not be executed before it, so it closes the gate of its source as a send does that finds no room.
pds::Answer AtomicTarget::refuse_unmatched(RequestContext& c, RiSpace& space) {
  shared_.clock.advance(c.now);
  if (!c.is_ordered()) return failures_.reject(c, ReturnCode::kNoMatch);
  Sender* sender = shared_.senders.find_or_make(c.endpoint->id, c.packet.source, shared_.clock.ns(),
                                                c.packet.is_proven);
  if (sender == nullptr) return answer_refuse();
  return failures_.reject(c, shared_.gates.close(c, space, *sender));
}

/// Everything is checked. True: executed, and `answer` says so; PDS delivers no packet twice and keeps the answer with the old
/// value until it is cleared. [SES 16.1]
bool AtomicTarget::perform(RequestContext& c, const Amo& amo, const IovList& memory,
                           std::uint64_t start, pds::Answer& answer) {
  const bool is_old_wanted = is_fetching(c.request.opcode);
  if (is_old_wanted && amo.bytes > shared_.core.config.max_ack_data)
    return perform_and_return(c, amo, memory, start, answer);
  std::uint8_t* const old = is_old_wanted ? rma_.ack_data().data() : nullptr;
  if (!execute_on(memory, start, amo.bytes, amo.operation, old)) {
    answer = refuse(c, ReturnCode::kHostUnsuccessCmpl);
    return false;
  }
  answer = is_old_wanted ? rma_.answer_carrying(c) : answer_default(c.request);
  return true;
}

/// The old value fits no ACK: it goes back as read data does, from a copy. All that can be refused is done before the memory
/// changes.
bool AtomicTarget::perform_and_return(RequestContext& c, const Amo& amo, const IovList& memory,
                                      std::uint64_t start, pds::Answer& answer) {
  answer = answer_refuse();
  ReadProgress* progress = returns_.begin_read(c);
  if (progress == nullptr) return false;
  progress->was_counted = progress->all_requested = true;
  ReadReturn* r = returns_.make(c, {}, memory, start, *progress);
  if (r == nullptr) {
    returns_.settle(c.now, *progress);
    return false;
  }
  if (returns_.begin(c, *r, *progress) == pds::SubmitResult::kNever) {
    returns_.settle(c.now, *progress);
    answer = answer_error(c.request, ReturnCode::kUndeliverable, 0, true);
    return false;
  }
  r->is_lost |= !execute_on(memory, start, amo.bytes, amo.operation, r->copy->bytes());
  answer = answer_default(c.request);
  return !r->is_lost;
}

/// [SES 4.5] One per request; the user counts or ignores those without header data.
void AtomicTarget::complete(RequestContext& c, std::uint64_t key) {
  const RequestView& r = c.request;
  Completion completion;
  completion.kind = is_fetching(r.opcode) ? OpKind::kRemoteFetchingAtomic : OpKind::kRemoteAtomic;
  completion.length = r.request_length;
  completion.data = r.hd ? r.header_data : 0;
  completion.has_data = r.hd;
  completion.source = c.source();
  completion.mr_key = r.is_small() ? 0 : key;
  shared_.core.trace.emit(c.now, base::EventId::kMessageDelivered, 0, {},
                          static_cast<std::uint64_t>(ReturnCode::kOk), r.request_length);
  c.endpoint->complete(completion);
}

}  // namespace uet::ses
