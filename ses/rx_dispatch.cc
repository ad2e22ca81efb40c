// The checks of a request, in the order of [SES 13].
#include <algorithm>

#include "ses/receiver.h"

namespace uet::ses {
namespace {

RiKind ri_kind(const RequestView& r) {
  switch (r.kind) {
    case OpcodeClass::kWrite:
    case OpcodeClass::kRead:
      return RiKind::kRma;
    case OpcodeClass::kSend:
    case OpcodeClass::kRendezvous:
    case OpcodeClass::kFillGap:
      return is_tagged(r.opcode) ? RiKind::kTagged : RiKind::kUntagged;
    case OpcodeClass::kDatagram:
      return RiKind::kDatagram;
    default:
      return RiKind::kAny;
  }
}

/// Step 3 and 4: is this combination of opcode, form, mode and flags possible? kOk when it is.
ReturnCode judge_form(const RequestView& r, pds::Mode mode) {
  const OpcodeClass c = r.kind;
  const bool is_plain = r.form == wire::NextHdr::kRequestStd && !r.is_sequenced &&
                        (mode == pds::Mode::kRud || mode == pds::Mode::kRod);
  if (c == OpcodeClass::kSend && is_plain) return ReturnCode::kOk;  // nothing can be wrong
  if (c == OpcodeClass::kUnsupported) return ReturnCode::kUnsupportedOp;
  const bool rma = c == OpcodeClass::kWrite || c == OpcodeClass::kRead;
  if (c == OpcodeClass::kDatagram) return ReturnCode::kOpViolation;  // only UUD carries it
  // [PDS 3.1] A packet that may be executed twice can announce nothing.
  if (mode == pds::Mode::kRudi && (!rma || !r.is_single() || r.hd)) return ReturnCode::kOpViolation;
  if (r.form != wire::NextHdr::kRequestStd && !r.is_single()) return ReturnCode::kOpViolation;
  if (c == OpcodeClass::kAtomic && !r.is_single()) return ReturnCode::kOpViolation;
  const bool reaches_memory = rma || (c == OpcodeClass::kAtomic && !is_tagged_atomic(r.opcode));
  if (r.is_small() && !reaches_memory) return ReturnCode::kOpViolation;
  if (c == OpcodeClass::kMsgError && (r.form != wire::NextHdr::kRequestStd || !r.eom))
    return ReturnCode::kOpViolation;
  if (r.form == wire::NextHdr::kRequestMedium && is_deferrable(r.opcode))
    return ReturnCode::kOpViolation;
  if (r.is_sequenced && mode != pds::Mode::kRud) return ReturnCode::kOpViolation;
  const bool names_message = c == OpcodeClass::kAwaitDelivery || c == OpcodeClass::kRestart;
  const bool is_bare = c == OpcodeClass::kNoOp || names_message || c == OpcodeClass::kFillGap;
  if (is_bare && (!r.is_single() || r.request_length != 0)) return ReturnCode::kOpViolation;
  if (names_message && r.form != wire::NextHdr::kRequestStd) return ReturnCode::kOpViolation;
  return ReturnCode::kOk;
}

}  // namespace

Receiver::Receiver(Core& core)
    : core_(core),
      receives_(core.config.max_receives),
      messages_(core.config.max_messages, core.hash_key),
      store_(core.config),
      reports_(core, store_),
      senders_(core.config.max_senders, core.config.max_streams, core.config.message_idle,
               core.hash_key),
      shares_(messages_, senders_, clock_),
      gates_(core.config, senders_, clock_),
      headers_(core.config, store_, senders_, clock_),
      returns_(core, senders_, shares_),
      rma_(core, messages_, shares_, returns_),
      fetches_(core, senders_, clock_) {
  core.fetch_sink = this;
}

Receiver::~Receiver() {
  holding_.clear();
}

pds::Answer Receiver::on_request(Instant now, const pds::RxRequest& packet) {
  Context c{now, packet, {}, {}, nullptr, nullptr};
  const pds::Answer answer = dispatch(c);
  shares_.let_go(c);
  return answer;
}

pds::Answer Receiver::dispatch(Context& c) {
  const pds::RxRequest& packet = c.packet;
  if (!parse_request(packet.next_hdr, packet.bytes, core_.payload_mtu, c.request)) {
    // PDS waits for an answer and the sender for an end, so a packet that cannot be read is refused
    // for good. [decision 0050]
    core_.trace.drop(c.now, base::DropReason::kSesMalformed, packet.bytes.size());
    return packet.mode == pds::Mode::kUud ? answer_nothing()
                                          : answer_error({}, ReturnCode::kOpViolation, 0, true);
  }
  if (packet.mode == pds::Mode::kUud) return on_datagram(c);
  c.key = {packet.source, packet.handle.pdc, c.request.message_id};
  pds::Answer answer = check_form(c);
  if (c.failure != ReturnCode::kOk) [[unlikely]]
    answer = answer_failed(c);
  // [SES 11.2] RUDI keeps no state, so none of its answers is kept.
  if (packet.mode == pds::Mode::kRudi) answer.guaranteed = false;
  return answer;
}

/// Steps 2 to 4, then 8: a message that is known needs no further search.
pds::Answer Receiver::check_form(Context& c) {
  const RequestView& r = c.request;
  const auto refuse = [&](ReturnCode code) { return answer_error(r, code, r.ri_generation, true); };
  if (r.version != 0) return refuse(ReturnCode::kUncor);
  if (const ReturnCode code = judge_form(r, c.packet.mode); code != ReturnCode::kOk)
    return refuse(code);
  if (r.is_sequenced && !core_.config.spray_ordered) return refuse(ReturnCode::kUnsupportedOp);
  if (r.kind == OpcodeClass::kMsgError) return on_message_error_packet(c);
  if (r.kind == OpcodeClass::kAtomic) return on_atomic(c);
  if (!fit_payload(c.request)) {
    core_.trace.drop(c.now, base::DropReason::kSesMalformed, c.packet.bytes.size());
    return refuse(ReturnCode::kOpViolation);
  }
  if (!r.is_single())
    if (RxMessage* m = messages_.find(c.key)) return proceed(c, *m);
  return check_address(c);
}

/// Steps 5 to 7. Null: `code` says why.
Endpoint* Receiver::find_endpoint(const Context& c, RiKind space, ReturnCode& code) {
  return c.request.is_small() ? core_.endpoints.route_process(c.request.target(), code)
                              : core_.endpoints.route(c.request.target(), space, code);
}

/// Steps 5 to 7, 9, and the packet's place in its message (15), which needs nothing of what comes
/// between.
pds::Answer Receiver::check_address(Context& c) {
  const RequestView& r = c.request;
  ReturnCode code = ReturnCode::kOk;
  c.endpoint = find_endpoint(c, ri_kind(r), code);
  if (c.endpoint == nullptr) [[unlikely]] {
    c.endpoint = rma_.find_source_endpoint(r);
    if (c.endpoint == nullptr) return answer_error(r, code, r.ri_generation, true);
  }
  if (c.packet.replayed_read && r.opcode == SesOpcode::kRead) return rma_.replay_read(c);
  if (r.ie) return reject(c, ReturnCode::kInitiatorErr);
  if (!is_well_segmented(r, core_.payload_mtu)) return reject(c, ReturnCode::kOpViolation);
  if (r.request_length > core_.config.max_message) return reject(c, ReturnCode::kUnsupportedSize);
  if (!r.is_single() && !closes_early(r) && messages_.look_at_first(r) != Coverage::Look::kNew)
    return answer_refuse();
  return begin(c);
}

pds::Answer Receiver::begin(Context& c) {
  switch (c.request.kind) {
    case OpcodeClass::kSend:
      return begin_send(c);
    case OpcodeClass::kRendezvous:
      return begin_rendezvous(c);
    case OpcodeClass::kWrite:
      return rma_.begin_write(c);
    case OpcodeClass::kRead:
      return rma_.begin_read(c);
    case OpcodeClass::kAwaitDelivery:
      return reports_.on_await(c);
    case OpcodeClass::kRestart:
      return on_restart(c);
    case OpcodeClass::kFillGap:
      return begin_sequenced(c, senders_.find(c.endpoint->id, c.packet.source));
    default:
      return answer_default(c.request);  // NO_OP: addressing was all there was to check
  }
}

/// A further packet of a message that is being received. [SES 4.3 rules 3 to 6]
pds::Answer Receiver::proceed(Context& c, RxMessage& m) {
  const RequestView& r = c.request;
  clock_.advance(c.now);
  messages_.touch(m, clock_.ns());
  if (!m.is_consistent_with(r)) {
    m.seen = std::min<std::uint64_t>(m.seen + r.covered, m.carried_length);
    return fail(
        c, m, m.mkey_match != r.mkey_match ? ReturnCode::kPermViolation : ReturnCode::kOpViolation);
  }
  if (!is_well_segmented(r, core_.payload_mtu)) return fail(c, m, ReturnCode::kOpViolation);
  if (m.target == RxTarget::kDiscard) {
    messages_.count(m, r);
    return answer_discarded(c, m);
  }
  if (!closes_early(r)) {
    switch (messages_.look(m, r)) {
      case Coverage::Look::kNew:
        break;
      case Coverage::Look::kTooFar:
        return answer_refuse();
      case Coverage::Look::kKnown:
      case Coverage::Look::kWrong:
        return fail(c, m, ReturnCode::kOpViolation);
    }
  }
  if (m.target != RxTarget::kRead || r.ie) messages_.count(m, r);  // a READ may yet be refused
  if (r.ie) return fail(c, m, ReturnCode::kInitiatorErr);
  c.endpoint = m.endpoint;
  switch (m.target) {
    case RxTarget::kReceive:
      return proceed_receive(c, m);
    case RxTarget::kCapture:
      return proceed_capture(c, m);
    case RxTarget::kRegion:
      return rma_.proceed_write(c, m);
    case RxTarget::kRead:
      return rma_.proceed_read(c, m);
    case RxTarget::kDiscard:
      break;
  }
  return answer_pending(r);
}

/// A part found why the message fails.
pds::Answer Receiver::answer_failed(Context& c) {
  return c.failed != nullptr ? fail(c, *c.failed, c.failure) : reject(c, c.failure);
}

/// The message fails at its first packet. Further packets must get the same answer, whatever has
/// changed by then, so a message of several packets is remembered. [SES 4.3 rule 10]
pds::Answer Receiver::reject(Context& c, ReturnCode code) {
  const RequestView& r = c.request;
  std::uint8_t generation = r.ri_generation;
  if (code == ReturnCode::kBadGeneration)
    generation =
        gates_.generation_for(c.endpoint, c.packet.source, is_tagged(r.opcode), generation);
  if (!r.is_single()) {
    clock_.advance(c.now);
    if (!shares_.has_place(c)) return answer_refuse();
    RxMessage& m = shares_.begin(c, RxTarget::kDiscard);
    m.seen = std::min<std::uint64_t>(r.covered, r.carried_length);
    m.code = code;
    m.code_was_told = true;
    if (m.is_complete()) shares_.release(m);
  }
  return answer_error(r, code, generation, true);
}

/// [SES 10] The initiator ends a message early.
pds::Answer Receiver::on_message_error_packet(Context& c) {
  const RequestView& r = c.request;
  RxMessage* m = messages_.find(c.key);
  if (m == nullptr) {
    // On RUD it may have overtaken the packets that it ends: those must not begin anything. Where there is nothing to begin, a
    // discarded one would only be in the way of a later message of that id.
    ReturnCode code = ReturnCode::kOk;
    const bool may_begin = core_.endpoints.route(r.target(), RiKind::kAny, code) != nullptr;
    if (!c.is_ordered() && may_begin && r.message_offset > 0 &&
        r.message_offset < r.request_length) {
      clock_.advance(c.now);
      if (!shares_.has_place(c)) return answer_refuse();
      m = &shares_.begin(c, RxTarget::kDiscard);
      m->end = r.message_offset;
      m->code = ReturnCode::kOpViolation;
      m->code_was_told = true;
    }
    return answer_error(r, ReturnCode::kOpViolation, r.ri_generation, true);
  }
  if (m->target != RxTarget::kDiscard)
    abandon(c.now, *m, ReturnCode::kInitiatorErr, ReturnCode::kCancelled);
  else if (m->code == ReturnCode::kOk)
    m->code = ReturnCode::kInitiatorErr;
  const ReturnCode code = m->code;
  m->code_was_told = true;
  m->end = std::min<std::uint64_t>(r.message_offset, m->carried_length);
  // The initiator believes the last answer: it must name the present generation as the first one did. [SES 2.5]
  std::uint8_t generation = r.ri_generation;
  if (code == ReturnCode::kBadGeneration)
    generation =
        gates_.generation_for(m->endpoint, m->key.source, is_tagged(m->opcode), generation);
  if (m->is_complete()) shares_.release(*m);
  return answer_error(r, code, generation, true);
}

/// UUD: into a posted buffer, or nowhere. No answer in any case. [SES 6.5]
pds::Answer Receiver::on_datagram(Context& c) {
  RequestView& r = c.request;
  ReturnCode code = ReturnCode::kOk;
  const bool is_legal = r.version == 0 && r.opcode == SesOpcode::kDatagramSend && !r.ie &&
                        r.is_single() && !r.is_small() && r.message_id == 0 &&
                        r.ri_generation == 0 && fit_payload(r) &&
                        r.covered <= core_.largest_payload();
  if (is_legal) c.endpoint = core_.endpoints.route(r.target(), RiKind::kDatagram, code);
  Receive* receive = nullptr;
  if (c.endpoint != nullptr &&
      (r.rel || c.endpoint->config.accept_any_job || r.job_id == c.endpoint->config.job_id))
    receive = match(c.now, c.endpoint->space(Space::kUntagged), c.incoming(), c.need());
  if (receive == nullptr)
    core_.trace.drop(c.now, base::DropReason::kDatagramNoBuffer, c.packet.bytes.size());
  else
    (void)deliver(c, c.endpoint->space(Space::kUntagged), *receive);
  return answer_nothing();
}

}  // namespace uet::ses
