// Messages that do not end well, and what their late packets are told.
#include "ses/receiver.h"

namespace uet::ses {

/// This packet ends a message that was going well. The first error stays. [SES 12]
pds::Answer Receiver::fail(Context& c, RxMessage& m, ReturnCode code) {
  if (m.target != RxTarget::kDiscard) abandon(c.now, m, code, code);
  return answer_discarded(c, m);
}

/// A packet of a message that was failed or thrown away.
pds::Answer Receiver::answer_discarded(Context& c, RxMessage& m) {
  const RequestView& r = c.request;
  const bool is_complete = m.is_complete();
  const ReturnCode code = m.code;
  const bool first = !m.code_was_told;
  std::uint8_t generation = r.ri_generation;
  if (code == ReturnCode::kBadGeneration)
    generation = gates_.generation_for(m.endpoint, m.key.source, is_tagged(r.opcode), generation);
  if (code != ReturnCode::kOk) m.code_was_told = true;
  if (is_complete) shares_.release(m);
  if (code != ReturnCode::kOk) return answer_error(r, code, generation, first);
  // Thrown away by the user: its sender has nothing to complain of. [SES 7.3] Put off: its sender knows already.
  return is_complete && first ? answer_thrown_away(r) : answer_pending(r);
}

/// From now on packets of `m` are only counted, and answered with `told`. A receive it was bound to
/// completes with `completed`.
void Receiver::abandon(Instant now, RxMessage& m, ReturnCode told, ReturnCode completed) {
  const RxTarget target = m.target;
  messages_.set_target(m, RxTarget::kDiscard);
  m.code = told;
  m.code_was_told = false;
  if (target == RxTarget::kReceive) {
    Receive& receive = *m.receive;
    m.receive = nullptr;
    Completion completion;
    completion.code = completed;
    completion.length = static_cast<std::size_t>(m.placed);
    completion.overflow_length = static_cast<std::size_t>(m.request_length - m.placed);
    completion.tag = m.mkey_match;
    completion.source = {m.key.source, m.job_id, m.initiator};
    if (receive.multi_recv)
      completion.buffer =
          static_cast<std::uint8_t*>(receive.iov.base()) + (m.start - m.buffer_offset);
    Unexpected* rendezvous = m.unexpected;
    m.unexpected = nullptr;
    complete_receive(now, *m.endpoint, receive, completion);
    if (rendezvous != nullptr) leave_fetching(now, *rendezvous, told);
  } else if (target == RxTarget::kCapture) {
    Unexpected& u = *m.unexpected;
    m.unexpected = nullptr;
    u.message = nullptr;
    u.is_rendezvous = false;
    store_.drop_payload(u, u.endpoint->use_of(u));
    if (u.is_held)
      u.is_gap = true;  // its number is still to be passed
    else if (u.claimed)
      u.failure = completed;  // claim_receive() will find out
    else
      release_unexpected(u);
  } else if (target == RxTarget::kRead) {
    returns_.fail(now, m.tally);
  }
}

void Receiver::on_pdc_gone(Instant now, pds::PdcRef pdc, const net::FabricAddress& peer) {
  reports_.on_pdc_gone(pdc);
  Sender* sender = senders_.find(0, peer);
  if (sender == nullptr) return;
  senders_.hold(*sender);
  returns_.on_pdc_gone(now, pdc, *sender);
  const auto end_all = [&](MessageList& list) {
    for (auto it = list.begin(); it != list.end();) {
      RxMessage& m = *it++;
      if (m.key.pdc != pdc) continue;
      if (m.target != RxTarget::kDiscard)
        abandon(now, m, ReturnCode::kUndeliverable, ReturnCode::kUndeliverable);
      shares_.release(m);
    }
  };
  end_all(sender->discarded);
  end_all(sender->live);
  senders_.unhold(*sender);
}

void Receiver::on_resume(Instant now) {
  reports_.submit(now);
  if (!reports_.has_waiting()) returns_.serve(now);
}

/// [SES 4.3 rules 9, 10] First the message is discarded, and answers what still comes of it; later it is forgotten.
void Receiver::drop_idle_messages(Instant now) {
  while (RxMessage* m = messages_.oldest()) {
    if (!clock_.is_past(m->active_at_ns, core_.config.message_idle)) return;
    if (m->target == RxTarget::kDiscard) {
      shares_.release(*m);
      continue;
    }
    abandon(now, *m, ReturnCode::kDropped, ReturnCode::kMessageTimeout);
    messages_.touch(*m, clock_.ns());
  }
}

void Receiver::on_deadline(Instant now) {
  if (now < clock_.next_tick()) return;
  clock_.advance(now);
  drop_idle_messages(now);
  drop_idle_headers(now);
  pass_idle_gaps(now);
  drop_idle_fetches(now);
  const bool is_idle =
      messages_.is_empty() && headers_.size() == 0 && holding_.empty() && fetches_.messages() == 0;
  clock_.end_tick(now, !is_idle);
}

Instant Receiver::next_deadline() const {
  return clock_.next_tick();
}

}  // namespace uet::ses
