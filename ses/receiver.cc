#include "ses/receiver.h"

#include <algorithm>

namespace uet::ses {
namespace {

RiKind ri_kind(const RequestView& r) {
  switch (r.kind) {
    case OpcodeClass::kWrite:
    case OpcodeClass::kRead:
      return RiKind::kRma;
    case OpcodeClass::kAtomic:
      return is_tagged_atomic(r.opcode) ? RiKind::kTagged : RiKind::kRma;
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

bool is_request(std::uint8_t next_hdr) {
  const auto form = static_cast<wire::NextHdr>(next_hdr);
  return form == wire::NextHdr::kRequestStd || form == wire::NextHdr::kRequestMedium ||
         form == wire::NextHdr::kRequestSmall;
}

/// Steps 3 and 4: is this combination of opcode, form, mode and flags possible? kOk when it is.
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
  if (r.is_small() && !reaches_memory && c != OpcodeClass::kNoOp) return ReturnCode::kOpViolation;
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
    : shared_(core),
      returns_(core, shared_.senders, shared_.shares),
      rma_(core, shared_.messages, shared_.shares, returns_),
      rendezvous_(shared_),
      deferrals_(shared_, rendezvous_),
      failures_(shared_, rendezvous_, returns_),
      posting_(shared_, rendezvous_),
      sends_(shared_, rendezvous_, deferrals_, failures_),
      streams_(shared_, posting_, sends_, failures_),
      atomics_(shared_, rma_, returns_, failures_) {}

pds::Answer Receiver::on_request(Instant now, const pds::RxRequest& packet) {
  RequestContext c{now, packet, {}, {.source = packet.source, .pdc = packet.handle.pdc}};
  const pds::Answer answer = dispatch(c);
  shared_.shares.let_go(c);
  return answer;
}

/// All checks of a plain send at once. Sets the endpoint if none finds anything: then nothing is left but to take the send in.
inline bool Receiver::look_at_plain_send(RequestContext& c) {
  const Core& core = shared_.core;
  const auto longest = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(core.config.max_message, core.largest_payload()));
  if (!parse_plain_send(c.packet.bytes, longest, c.request)) return false;
  ReturnCode code = ReturnCode::kOk;
  c.endpoint = core.endpoints.route(
      c.request.target(), is_tagged(c.request.opcode) ? RiKind::kTagged : RiKind::kUntagged, code);
  return c.endpoint != nullptr;
}

/// All checks of a further packet of a write or a send but those of its place. Sets the message if there is one.
inline bool Receiver::look_at_plain_next(RequestContext& c) {
  if (!parse_plain_next(c.packet.bytes, c.request)) return false;
  c.key.message_id = c.request.message_id;
  c.message = shared_.messages.find(c.key);
  return c.message != nullptr;
}

pds::Answer Receiver::dispatch(RequestContext& c) {
  const pds::RxRequest& packet = c.packet;
  const bool has_standard_header =
      packet.next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kRequestStd);
  if (has_standard_header && (packet.mode == pds::Mode::kRud || packet.mode == pds::Mode::kRod))
      [[likely]]
    if (look_at_plain_send(c) || look_at_plain_next(c)) [[likely]]
      return decide(c);
  if (!parse_request(packet.next_hdr, packet.bytes, shared_.core.payload_mtu, c.request)) {
    // PDS waits for an answer and the sender for an end, so a packet that cannot be read is refused
    // for good. [decision 0050] Where the header is of no request, nothing in it can be repeated. [SES 5]
    shared_.core.trace.drop(c.now, base::DropReason::kSesMalformed, packet.bytes.size());
    const ReturnCode code =
        is_request(packet.next_hdr) ? ReturnCode::kOpViolation : ReturnCode::kUnsupportedOp;
    return packet.mode == pds::Mode::kUud ? answer_nothing() : answer_error({}, code, 0, true);
  }
  return packet.mode == pds::Mode::kUud ? on_datagram(c) : decide(c);
}

/// Every answer is built where it is read: what was just written one field at a time is slow to copy.
pds::Answer Receiver::decide(RequestContext& c) {
  c.key.message_id = c.request.message_id;
  pds::Answer answer = c.endpoint != nullptr  ? begin_send(c)
                       : c.message != nullptr ? proceed(c, *c.message)
                                              : check_form(c);
  if (c.failure != ReturnCode::kOk) [[unlikely]]
    answer = failures_.answer(c);
  if (c.request.kind == OpcodeClass::kRestart) [[unlikely]]
    end_refused(c, answer);
  // [SES 11.2] RUDI keeps no state, so none of its answers is kept.
  if (c.packet.mode == pds::Mode::kRudi) answer.guaranteed = false;
  return answer;
}

/// Steps 2 to 4, then 8: a message that is known needs no further search.
pds::Answer Receiver::check_form(RequestContext& c) {
  const RequestView& r = c.request;
  const auto refuse = [&](ReturnCode code) { return answer_error(r, code, r.ri_generation, true); };
  if (r.version != 0) return refuse(ReturnCode::kUncor);
  if (const ReturnCode code = judge_form(r, c.packet.mode); code != ReturnCode::kOk)
    return refuse(code);
  if (r.kind == OpcodeClass::kMsgError) return failures_.on_message_error(c);
  if (r.kind == OpcodeClass::kAtomic) return check_atomic(c);
  if (!fit_payload(c.request)) {
    shared_.core.trace.drop(c.now, base::DropReason::kSesMalformed, c.packet.bytes.size());
    return refuse(ReturnCode::kOpViolation);
  }
  if (!r.is_single())
    if (RxMessage* m = shared_.messages.find(c.key)) return proceed(c, *m);
  if (r.is_sequenced && !shared_.core.config.spray_ordered)
    return failures_.reject(c, ReturnCode::kUnsupportedOp);
  return check_address(c);
}

/// Steps 5 to 7: sets the endpoint of the packet, or says why there is none.
ReturnCode Receiver::find_endpoint(RequestContext& c) {
  const RequestView& r = c.request;
  EndpointTable& endpoints = shared_.core.endpoints;
  ReturnCode code = ReturnCode::kOk;
  // In the place of a resource index a small request has that of its key; a NO_OP has no key.
  const bool has_key_index = r.is_small() && r.kind != OpcodeClass::kNoOp;
  c.endpoint = has_key_index ? endpoints.route_process(r.target(), code)
                             : endpoints.route(r.target(), ri_kind(r), code);
  return code;
}

pds::Answer Receiver::check_atomic(RequestContext& c) {
  const ReturnCode code = find_endpoint(c);
  return c.endpoint != nullptr ? atomics_.begin(c)
                               : answer_error(c.request, code, c.request.ri_generation, true);
}

/// Steps 5 to 7, 9, and the packet's place in its message (15), which needs nothing of what comes
/// between.
pds::Answer Receiver::check_address(RequestContext& c) {
  const RequestView& r = c.request;
  const ReturnCode code = find_endpoint(c);
  if (c.endpoint == nullptr) [[unlikely]] {
    // A user that closed an endpoint has what its receives took, and the senders of these messages may ask only now.
    if (r.kind == OpcodeClass::kAwaitDelivery) return shared_.reports.on_await(c);
    c.endpoint = rma_.find_source_endpoint(r);
    if (c.endpoint == nullptr) return failures_.reject(c, code);
  }
  const bool has_failed = r.ie && !names_receive(r);  // else that receive ends too
  if (has_failed) return failures_.reject(c, ReturnCode::kInitiatorErr);
  if (!is_well_segmented(r, shared_.core.payload_mtu))
    return failures_.reject(c, ReturnCode::kOpViolation);
  if (r.request_length > shared_.core.config.max_message)
    return failures_.reject(c, ReturnCode::kUnsupportedSize);
  if (!r.is_single() && !closes_early(r) &&
      shared_.messages.look_at_first(r) != Coverage::Look::kNew)
    return answer_refuse();
  return begin(c);
}

pds::Answer Receiver::begin(RequestContext& c) {
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
      return shared_.reports.on_await(c);
    case OpcodeClass::kRestart:
      return on_restart(c);
    case OpcodeClass::kFillGap:
      return streams_.begin(c, shared_.senders.find(c.endpoint->id, c.packet.source));
    default:
      return answer_default(c.request);  // NO_OP: addressing was all there was to check
  }
}

pds::Answer Receiver::begin_send(RequestContext& c) {
  const RequestView& r = c.request;
  RiSpace& space = c.endpoint->space(is_tagged(r.opcode));
  Sender* sender = shared_.senders.find(c.endpoint->id, c.packet.source);
  const Gate* gate = sender == nullptr ? nullptr : &sender->gates[is_tagged(r.opcode) ? 1 : 0];
  // [SES 2.5 rules 1, 2] Without generations the only one there is is 0, which it then stays.
  if (r.ri_generation != (gate == nullptr ? 0 : gate->generation))
    return failures_.reject(c, ReturnCode::kBadGeneration);
  if (gate != nullptr && gate->is_closed_to(c.packet.handle.pdc, c.packet.is_proven) &&
      !sends_.reopens(c, space, *sender))
    return sends_.refuse_closed(c, *sender);
  if (!r.rel && !c.endpoint->config.accepts_job(r.job_id))
    return failures_.reject(c, ReturnCode::kPermViolation);
  if (!r.is_single()) {
    if (!shared_.shares.has_place(c)) return answer_refuse();
    // Making place for the message may have made a record of its source in the place of an idle one: this one, perhaps.
    sender = shared_.senders.find(c.endpoint->id, c.packet.source);
  }
  if (r.target_token != 0) [[unlikely]]
    return sends_.begin_restarted(c);
  return r.is_sequenced ? streams_.begin(c, sender) : sends_.take_in(c, space, sender);
}

/// READs go to known peers only: a source address may be forged, and the host that has it need not know us. A source that is no
/// known peer is refused, and sends the message as it is. [SES 8.1 has it so for restarts]
pds::Answer Receiver::begin_rendezvous(RequestContext& c) {
  const RequestView& r = c.request;
  if (!shared_.core.config.rendezvous || shared_.core.peers.find_source(c.source()) == kAnyPeer)
    return failures_.reject(c, ReturnCode::kUnsupportedOp);
  if (r.form != wire::NextHdr::kRequestStd || r.carried_length > r.request_length)
    return failures_.reject(c, ReturnCode::kOpViolation);
  return begin_send(c);
}

/// A further packet of a message that is being received. [SES 4.3 rules 3 to 6]
pds::Answer Receiver::proceed(RequestContext& c, RxMessage& m) {
  const RequestView& r = c.request;
  shared_.clock.advance(c.now);
  shared_.messages.touch(m, shared_.clock.ns());
  if (!m.is_consistent_with(r)) {
    m.seen = std::min<std::uint64_t>(m.seen + r.covered, m.carried_length);
    return failures_.fail(
        c, m, m.mkey_match != r.mkey_match ? ReturnCode::kPermViolation : ReturnCode::kOpViolation);
  }
  const bool is_next = !r.eom && m.target != RxTarget::kRead &&
                       m.coverage.is_next(r.message_offset, r.covered, m.carried_length);
  if (!is_next && !is_well_segmented(r, shared_.core.payload_mtu))
    return failures_.fail(c, m, ReturnCode::kOpViolation);
  if (m.target == RxTarget::kDiscard) {
    shared_.messages.count(m, r);
    if (r.som) sends_.take_late_header(c, m);
    return failures_.answer_discarded(c, m);
  }
  if (!is_next && !closes_early(r)) {
    switch (shared_.messages.look(m, r)) {
      case Coverage::Look::kNew:
        break;
      case Coverage::Look::kTooFar:
        return answer_refuse();
      case Coverage::Look::kKnown:
      case Coverage::Look::kWrong:
        return failures_.fail(c, m, ReturnCode::kOpViolation);
    }
  }
  if (m.target != RxTarget::kRead || r.ie)
    shared_.messages.count(m, r);  // a READ may yet be refused
  if (r.ie) return failures_.fail(c, m, ReturnCode::kInitiatorErr);
  c.endpoint = m.endpoint;
  switch (m.target) {
    case RxTarget::kReceive:
      return sends_.proceed_receive(c, m);
    case RxTarget::kCapture:
      return sends_.proceed_capture(c, m);
    case RxTarget::kRegion:
      return rma_.proceed_write(c, m);
    case RxTarget::kRead:
      return rma_.proceed_read(c, m);
    case RxTarget::kDiscard:
      break;
  }
  return answer_pending(r);
}

/// UUD: into a posted buffer, or nowhere. No answer in any case. [SES 6.5] The generation is of no index there. [SES 2.5]
pds::Answer Receiver::on_datagram(RequestContext& c) {
  RequestView& r = c.request;
  ReturnCode code = ReturnCode::kOk;
  const bool is_legal = r.version == 0 && r.opcode == SesOpcode::kDatagramSend && !r.ie &&
                        r.is_single() && !r.is_small() && r.message_id == 0 && fit_payload(r) &&
                        r.covered <= shared_.core.largest_payload();
  if (is_legal) c.endpoint = shared_.core.endpoints.route(r.target(), RiKind::kDatagram, code);
  Receive* receive = nullptr;
  if (c.endpoint != nullptr && (r.rel || c.endpoint->config.accepts_job(r.job_id)))
    receive =
        shared_.receives.match(c.now, c.endpoint->space(Space::kUntagged), c.incoming(), c.need());
  if (receive == nullptr)
    shared_.core.trace.drop(c.now, base::DropReason::kDatagramNoBuffer, c.packet.bytes.size());
  else
    (void)sends_.deliver(c, c.endpoint->space(Space::kUntagged), *receive);
  return answer_nothing();
}

/// A target asks for a message that was put off: here is the initiator of that message. [SES 8.2]
pds::Answer Receiver::on_restart(RequestContext& c) {
  const RequestView& r = c.request;
  const ReturnCode code = shared_.core.restarts->on_restart(c.now, *c.endpoint, c.packet.source, r);
  if (code == ReturnCode::kOk) return answer_default(r);
  shared_.core.trace.drop(c.now, base::DropReason::kSesUnknownResponse, c.packet.bytes.size());
  return answer_error(r, code, r.ri_generation, true);
}

/// [SES 8.3] The target that hears of an error completes its receive with it, and asks for the message no second time.
void Receiver::end_refused(const RequestContext& c, const pds::Answer& answer) {
  ResponseView told;
  const bool is_error =
      parse_response(answer.response.next_hdr,
                     {answer.response.header.data(), answer.response.header_bytes}, told) &&
      told.code != ReturnCode::kOk;
  if (is_error)
    shared_.core.restarts->on_refused_restart(c.now, c.packet.source, c.request, told.code);
}

void Receiver::close(Instant now, Endpoint& endpoint) {
  failures_.close(now, endpoint);
  posting_.close(now, endpoint);
  streams_.close(now, endpoint);
  for (RiSpace& space : endpoint.spaces) shared_.gates.open_all(space);
  posting_.end_close(now, endpoint);
}

void Receiver::on_memory_enabled(EndpointId endpoint) {
  if (Endpoint* e = shared_.core.endpoints.find(endpoint))
    for (RiSpace& space : e->spaces) shared_.gates.open_all(space);
}

void Receiver::on_pdc_gone(Instant now, pds::PdcRef pdc, const net::FabricAddress& peer) {
  shared_.reports.on_pdc_gone(pdc, peer);
  while (Gate* gate = shared_.gates.closed_on(pdc)) {
    Endpoint* const endpoint = shared_.core.endpoints.find(gate->sender->endpoint);
    UET_CHECK(endpoint != nullptr);  // one that is closed has no gates
    shared_.gates.undo_close(endpoint->space(gate == &gate->sender->gates[1]), *gate);
  }
  Sender* sender = shared_.senders.find(0, peer);
  if (sender == nullptr) return;
  shared_.senders.hold(*sender);
  returns_.on_pdc_gone(now, pdc, *sender);
  failures_.on_pdc_gone(now, pdc, *sender);
  shared_.senders.unhold(*sender);
}

void Receiver::on_resume(Instant now) {
  shared_.reports.submit(now);
  returns_.serve(now);
}

std::uint32_t Receiver::fill_of(EndpointId endpoint) const {
  const Endpoint* const e = shared_.core.endpoints.find(endpoint);
  return e == nullptr ? 0 : shared_.store.fill(e->overflow);
}

void Receiver::on_deadline(Instant now) {
  if (now < shared_.clock.next_tick()) return;
  shared_.clock.advance(now);
  failures_.drop_idle(now);
  posting_.drop_idle_headers(now);
  streams_.pass_idle_gaps(now);
  rendezvous_.drop_idle(now);
  const bool is_idle = shared_.messages.is_empty() && shared_.headers.size() == 0 &&
                       streams_.is_empty() && rendezvous_.messages() == 0;
  shared_.clock.end_tick(now, !is_idle);
}

}  // namespace uet::ses
