#include "ses/rx_failures.h"

#include <algorithm>

namespace uet::ses {

/// Further packets must get the same answer, whatever has changed by then, so a message of several packets is remembered.
/// [SES 4.3 rule 10]
pds::Answer Failures::reject(RequestContext& c, ReturnCode code) {
  const RequestView& r = c.request;
  std::uint8_t generation = r.ri_generation;
  if (code == ReturnCode::kBadGeneration)
    generation =
        shared_.gates.generation_for(c.endpoint, c.packet.source, is_tagged(r.opcode), generation);
  if (!r.is_single()) {
    shared_.clock.advance(c.now);
    if (!shared_.shares.has_place(c)) return answer_refuse();
    RxMessage& m = shared_.shares.begin(c, RxTarget::kDiscard);
    shared_.messages.count(m, r);
    m.code = code;
    m.code_was_told = true;
    if (m.is_complete()) shared_.shares.release(m);
  }
  return answer_error(r, code, generation, true);
}

pds::Answer Failures::fail(RequestContext& c, RxMessage& m, ReturnCode code) {
  if (m.target != RxTarget::kDiscard) abandon(c.now, m, code, code);
  return answer_discarded(c, m);
}

pds::Answer Failures::give_up(RequestContext& c, RxMessage& m) {
  take_back(c.now, m);
  return answer_discarded(c, m);
}

pds::Answer Failures::answer(RequestContext& c) {
  return c.failed != nullptr ? fail(c, *c.failed, c.failure) : reject(c, c.failure);
}

pds::Answer Failures::answer_discarded(RequestContext& c, RxMessage& m) {
  const RequestView& r = c.request;
  const bool is_complete = m.is_complete();
  const ReturnCode code = m.code;
  const bool first = !m.code_was_told;
  std::uint8_t generation = r.ri_generation;
  if (code == ReturnCode::kBadGeneration)
    generation =
        shared_.gates.generation_for(m.endpoint, m.key.source, is_tagged(r.opcode), generation);
  if (code != ReturnCode::kOk) m.code_was_told = true;
  if (is_complete) shared_.shares.release(m);
  if (code != ReturnCode::kOk) return answer_error(r, code, generation, first);
  // Discarded by the user: its sender has nothing to complain of. [SES 7.3] Put off: its sender knows already.
  return is_complete && first ? answer_unwanted(r) : answer_pending(r);
}

/// From now on packets of `m` are only counted, and answered with `told`. A receive it was bound to
/// completes with `completed`.
void Failures::abandon(Instant now, RxMessage& m, ReturnCode told, ReturnCode completed) {
  const RxTarget target = m.target;
  shared_.messages.set_target(m, RxTarget::kDiscard);
  m.code = told;
  m.code_was_told = false;
  if (target == RxTarget::kReceive) {
    Receive& receive = *m.receive;
    m.receive = nullptr;
    Completion completion = completion_in(receive,
                                          {.length = m.request_length,
                                           .placed = m.placed,
                                           .begin = m.start - m.buffer_offset,
                                           .tag = m.mkey_match,
                                           .source = {m.key.source, m.job_id, m.initiator}},
                                          completed);
    UnexpectedMessage* rendezvous = m.unexpected;
    m.unexpected = nullptr;
    shared_.receives.complete(now, *m.endpoint, receive, completion);
    if (rendezvous != nullptr) rendezvous_.leave(now, *rendezvous, told);
  } else if (target == RxTarget::kCapture) {
    UnexpectedMessage& u = *m.unexpected;
    m.unexpected = nullptr;
    u.message = nullptr;
    u.is_rendezvous = false;
    shared_.store.drop_payload(u, u.endpoint->use_of(u));
    if (u.is_held)
      u.is_gap = true;  // its number is still to be passed
    else if (u.claimed)
      u.failure = completed;  // claim_receive() will find out
    else
      shared_.unexpected.release(u);
  } else if (target == RxTarget::kRead) {
    returns_.fail(now, m.progress);
  }
}

/// Its initiator does not want it any more. Where it was asked for, others may be asked for in its place.
void Failures::take_back(Instant now, RxMessage& m) {
  abandon(now, m, ReturnCode::kInitiatorErr, ReturnCode::kCancelled);
  rendezvous_.serve(now);
}

pds::Answer Failures::on_message_error(RequestContext& c) {
  const RequestView& r = c.request;
  RxMessage* m = shared_.messages.find(c.key);
  if (m == nullptr) {
    // On RUD it may have overtaken the packets that it ends: those must not begin anything. Where there is nothing to begin, a
    // discarded one would only be in the way of a later message of that id.
    ReturnCode code = ReturnCode::kOk;
    const bool may_begin = shared_.core.endpoints.route(r.target(), RiKind::kAny, code) != nullptr;
    if (!c.is_ordered() && may_begin && r.message_offset > 0 &&
        r.message_offset < r.request_length) {
      shared_.clock.advance(c.now);
      if (!shared_.shares.has_place(c)) return answer_refuse();
      m = &shared_.shares.begin(c, RxTarget::kDiscard);
      m->end = r.message_offset;
      m->code = ReturnCode::kOpViolation;
      m->code_was_told = true;
    }
    return answer_error(r, ReturnCode::kOpViolation, r.ri_generation, true);
  }
  if (m->target != RxTarget::kDiscard)
    take_back(c.now, *m);
  else if (m->code == ReturnCode::kOk)
    m->code = ReturnCode::kInitiatorErr;
  const ReturnCode code = m->code;
  m->code_was_told = true;
  m->end = std::min<std::uint64_t>(r.message_offset, m->carried_length);
  // The initiator believes the last answer: it must name the present generation as the first one did. [SES 2.5]
  std::uint8_t generation = r.ri_generation;
  if (code == ReturnCode::kBadGeneration)
    generation =
        shared_.gates.generation_for(m->endpoint, m->key.source, is_tagged(m->opcode), generation);
  if (m->is_complete()) shared_.shares.release(*m);
  return answer_error(r, code, generation, true);
}

void Failures::on_pdc_gone(Instant now, pds::PdcRef pdc, Sender& sender) {
  // Only where it has any, and from the newest on: a peer with many messages may end one PDC after the other.
  const std::uint32_t& left = shared_.messages.use().of(pdc);
  const auto end_all = [&](MessageList& list) {
    for (auto it = list.end(); left > 0 && it != list.begin();) {
      RxMessage& m = *--it;
      if (m.key.pdc != pdc) {
        ++passed_;
        continue;
      }
      ++it;
      if (m.target != RxTarget::kDiscard)
        abandon(now, m, ReturnCode::kUndeliverable, ReturnCode::kUndeliverable);
      shared_.shares.release(m);
    }
  };
  end_all(sender.discarded);
  end_all(sender.live);
}

void Failures::close(Instant now, Endpoint& endpoint) {
  shared_.messages.for_each([&](RxMessage& m) {
    if (m.endpoint != &endpoint) return;
    if (m.target == RxTarget::kReceive && --m.receive->in_flight == 0 && !m.receive->is_posted)
      shared_.receives.set_aside(*m.receive);
    if (m.target == RxTarget::kCapture) m.unexpected->message = nullptr;
    if (m.target == RxTarget::kRead) returns_.fail(now, m.progress);
    if (m.target != RxTarget::kDiscard) {
      shared_.messages.set_target(m, RxTarget::kDiscard);
      m.code = ReturnCode::kCancelled;
      m.code_was_told = false;
    }
    m.receive = nullptr;
    m.unexpected = nullptr;
    m.endpoint = nullptr;
  });
}

void Failures::drop_idle(Instant now) {
  while (RxMessage* m = shared_.messages.oldest()) {
    if (!shared_.clock.is_past(m->active_at_ns, shared_.core.config.message_idle)) return;
    if (m->target == RxTarget::kDiscard) {
      shared_.shares.release(*m);
      continue;
    }
    abandon(now, *m, ReturnCode::kDropped, ReturnCode::kMessageTimeout);
    shared_.messages.touch(*m, shared_.clock.ns());
  }
}

}  // namespace uet::ses
