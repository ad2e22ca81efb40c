// What every completion of a world must be, and what must be true in the end.
#include <algorithm>

#include "apps/sim/swarm_state.h"

namespace uet::sim {

using base::Duration;

namespace {

/// An earlier operation that is not over although a fence stands before `s`, which its target has; null when there is none. Of
/// those whose completion may wait the user hears later.
const OpState* behind_its_fence(const std::vector<OpState>& states, const OpState& s) {
  for (const OpState& e : states) {
    const bool is_before = e.posted && !e.is_void && e.post_order < s.post_order &&
                           e.op->from == s.op->from && e.op->to == s.op->to;
    if (is_before && e.completions == 0 && !e.op->is_datagram() && !e.op->is_rudi() &&
        !e.op->completion_may_wait)
      return &e;
  }
  return nullptr;
}

}  // namespace

void Swarm::on_completion(Host&, const ses::Completion& c) {
  ++result_.counters.completions;
  if (c.kind == ses::OpKind::kRemoteWrite) return on_remote_write(c);
  if (c.kind == ses::OpKind::kRemoteRead) return;
  const auto index = static_cast<std::size_t>(c.context & 0xffff'ffff);
  const auto kind = static_cast<Context>(c.context >> 32);
  if (kind == Context::kMultiReceive) return on_multi_received(index, c);
  if (kind == Context::kDatagram) return on_datagram(index, c);
  if (kind == Context::kLure) return hostile_->on_lured(index, c);
  if (kind == Context::kBait) return hostile_->on_bait(index, c);
  OpState* s = find(index);
  if (s == nullptr) return fail(fmt::format("completion for unknown operation {}", c.context));
  if (kind == Context::kPeek && !s->has_looked) return on_peeked(*s, c);
  if (c.kind == ses::OpKind::kReceive || c.kind == ses::OpKind::kTaggedReceive) {
    on_received(*s, c);
  } else {
    on_initiator_done(*s, c);
  }
}

void Swarm::on_initiator_done(OpState& s, const ses::Completion& c) {
  const PlannedOp& op = *s.op;
  if (!s.posted) return fail(fmt::format("op {} completed before it was posted", op.id));
  if (++s.completions > 1) return fail(fmt::format("op {} completed twice", op.id));
  if (s.is_cancelled && c.code == ses::ReturnCode::kCancelled) {
    ++result_.counters.cancelled;
    return cancel_receive(s);
  }
  if (c.code != ses::ReturnCode::kOk) {
    ++result_.counters.failed_ops;
    was_refused_ |= may_be_refused(c.code);
    if (!s.error_allowed) {
      fail(fmt::format("op {} failed with code {:#x} although no crash explains it", op.id,
                       static_cast<int>(c.code)));
    }
    return;
  }
  check_wait(s);
  s.succeeded = true;
  result_.counters.bytes += op.bytes;
  if (op.is_read()) {
    if (c.length != op.bytes)
      return fail(fmt::format("op {}: read {} of {} bytes", op.id, c.length, op.bytes));
    if (!s.local.has_pattern(op.id, op.bytes))
      return fail(fmt::format("op {}: wrong bytes read", op.id));
    s.local.poison();
  }
  if (op.kind == SwarmOp::kWrite || op.kind == SwarmOp::kRudiWrite) check_write_landed(s);
}

/// Attackers hold nothing up for long among honest hosts. Where something else is wrong too, or tables are so small that honest
/// hosts fill them, the time is not known.
void Swarm::check_wait(const OpState& s) {
  if ((!hostile_ && !secure_) || !plan_.is_calm()) return;
  const SimSpan waited = simulation_.now() - s.ready_at;
  if (waited > SimSpan::from(HostilePromises::kLongestWait)) {
    fail(fmt::format("op {} ({} {}->{}) took {:.3f} ms in spite of a healthy path", s.op->id,
                     name_of(s.op->kind), s.op->from, s.op->to, waited.us() / 1000));
  }
}

bool Swarm::has_written_pattern(const OpState& s) const {
  const std::uint8_t* at = memories_[s.op->to].bytes.data() + s.remote_at;
  return is_pattern({at, s.op->bytes}, s.op->id);
}

void Swarm::check_write_landed(OpState& s) {
  const PlannedOp& op = *s.op;
  if (!has_written_pattern(s))
    return fail(fmt::format("op {}: write is complete but not all its bytes are there", op.id));
  if (op.is_rudi()) return;  // it may land again, so the end of the world looks once more
  std::uint8_t* at = memories_[op.to].bytes.data() + s.remote_at;
  // Whatever arrives from now on would be a second delivery.
  std::fill_n(at, op.bytes, kPoison);
}

void Swarm::on_remote_write(const ses::Completion& c) {
  if (!c.has_data || c.source.job_id == Lure::kJob) return;
  OpState* s = find(c.data);
  if (s == nullptr || s->op->kind != SwarmOp::kWrite)
    return fail(fmt::format("notification of unknown write {}", c.data));
  if (++s->deliveries > 1 && !plan_.crashes(s->op->to))
    fail(fmt::format("op {}: write notified twice", s->op->id));
  if (s->op->fence && has_fences_ && !any_crash_)
    if (const OpState* const e = behind_its_fence(states_, *s))
      fail(fmt::format("op {} overtook op {} in spite of its fence", s->op->id, e->op->id));
  if (c.code != ses::ReturnCode::kOk) return;
  if (c.length != s->op->bytes)
    fail(fmt::format("op {}: notified of {} of {} bytes", s->op->id, c.length, s->op->bytes));
  // Once its initiator knows, the bytes are overwritten.
  if (!s->succeeded && !has_written_pattern(*s))
    fail(fmt::format("op {}: write notified before all its bytes are there", s->op->id));
}

void Swarm::on_received(OpState& receive, const ses::Completion& c) {
  const std::uint32_t rid = receive.op->id;
  if (!receive.receive_posted)
    return fail(fmt::format("receive {} completed before it was posted", rid));
  if (++receive.receive_completions > 1)
    return fail(fmt::format("receive {} completed twice", rid));
  if (OpState* next = receive.next_receive; next != nullptr)
    simulation_.events.call_at(simulation_.now(), [this, next] { post_receive(*next); });
  const bool truncated = c.code == ses::ReturnCode::kTruncated;
  if (c.code != ses::ReturnCode::kOk && !truncated) {
    // Cancelled with its message; but not because it heard nothing more of that for long.
    const bool is_explained = receive.is_cancelled && c.code != ses::ReturnCode::kMessageTimeout;
    if (!any_crash_ && !is_explained)
      fail(fmt::format("receive {} failed with code {:#x} although nothing crashed", rid,
                       static_cast<int>(c.code)));
    return;
  }
  // Whose message is it? A tagged receive takes its own; an untagged one carries the number as
  // header data.
  OpState* s = receive.op->kind == SwarmOp::kTaggedSend ? &receive
               : c.has_data                             ? find(c.data)
                                                        : nullptr;
  if (s == nullptr)
    return fail(fmt::format("receive {} got a message without or with an unknown number", rid));
  const PlannedOp& op = *s->op;
  if (op.kind != receive.op->kind || op.to != receive.op->to) {
    return fail(fmt::format("receive {} got message {} of another kind or host", rid, op.id));
  }
  if (c.kind == ses::OpKind::kTaggedReceive && c.tag != op.id)
    return fail(fmt::format("receive {}: wrong tag", rid));
  if (op.wants_data != c.has_data || (c.has_data && c.data != op.id)) {
    return fail(fmt::format("receive {}: wrong header data", rid));
  }
  // A target that started again cannot know what its earlier life received.
  if (++s->deliveries > 1 && !plan_.crashes(op.to)) {
    return fail(fmt::format("message {} was delivered twice", op.id));
  }
  if (op.fence && has_fences_ && !any_crash_)
    if (const OpState* const e = behind_its_fence(states_, *s))
      fail(fmt::format("op {} overtook op {} in spite of its fence", op.id, e->op->id));
  s->taken_by = receive.receive_order;
  const std::size_t expected = std::min<std::size_t>(op.bytes, receive.receive.size());
  if (truncated != (op.bytes > receive.receive.size()))
    return fail(fmt::format("receive {}: truncation misreported", rid));
  if (truncated) ++result_.counters.truncated;
  if (c.length != expected)
    return fail(fmt::format("receive {}: length {} instead of {}", rid, c.length, expected));
  if (!receive.receive.has_pattern(op.id, expected))
    return fail(fmt::format("receive {}: wrong bytes of message {}", rid, op.id));
  if (!receive.receive.is_all(kGuard, expected))
    return fail(fmt::format("receive {}: bytes behind the end of message {}", rid, op.id));
  receive.receive.poison();
}

// --- The end ------------------------------------------------------------------------------------

/// Complete when a receive has it: with delivery complete, or because its target reads it then.
bool Swarm::waits_for_its_receive(const PlannedOp& op) const {
  return op.is_send() && (op.delivery_complete || (plan_.has_rendezvous() && op.bytes > 0));
}

/// A send that waits for a receive which went with a crash is never delivered. A fence waits for it, and when such sends hold
/// every place that the host has for sends, no further operation of it can begin.
bool Swarm::waits_for_the_undelivered(const PlannedOp& op) const {
  std::size_t undelivered = 0;
  bool is_same_way = false, has_fence = false;
  for (const OpState& s : states_) {
    if (s.op->from != op.from || !plan_.crashes(s.op->to) || s.is_void || s.completions > 0)
      continue;
    const bool is_undelivered = waits_for_its_receive(*s.op);
    undelivered += is_undelivered ? 1 : 0;
    is_same_way |= is_undelivered && s.op->to == op.to;
    has_fence |= s.op->fence && s.op->to == op.to;
  }
  const auto& host = hosts_[op.from];
  const bool is_full = undelivered > 0 && host->is_up() &&
                       host->ses().gauges().sends_active >= host->fep().config().ses.max_sends;
  return is_full || (is_same_way && has_fence) || is_shut_out_by_the_undelivered(op);
}

/// The same sends hold PDCs at the host that lost their receives, and of a tiny table targets may have half. For clear worlds the
/// judge does without this, since their course hangs on when it is content.
bool Swarm::is_shut_out_by_the_undelivered(const PlannedOp& op) const {
  const auto& target = hosts_[op.to];
  if (!plan_.secure.is_on || !plan_.has(Trouble::kTinyTables) || !plan_.crashes(op.to) ||
      !target->is_up() || target->fep().pds().gauges().pdcs_open * 2 < plan_.fep.pds.max_pdc)
    return false;
  return std::any_of(states_.begin(), states_.end(), [this, &op](const OpState& s) {
    return s.op->to == op.to && waits_for_its_receive(*s.op) && !s.is_void && s.completions == 0;
  });
}

bool Swarm::all_done() const {
  return std::all_of(states_.begin(), states_.end(), [this](const OpState& s) {
    const bool is_send = s.op->is_send();
    // No receive is posted in the new life of a host for a message of the old one: its sender tries again for kPatience (see
    // swarm_plan.cc), one after the other. What waits behind such a send must end, but not these themselves: that takes long.
    const bool is_open = !s.is_void && s.completions == 0;
    const bool is_to_the_dead = is_send && plan_.crashes(s.op->to);
    if (is_open && !is_to_the_dead && !waits_for_the_undelivered(*s.op)) return false;
    if (!is_send || s.receive_void) return true;
    if (s.receive_completions > 0) return true;
    // After a crash, messages and receives may have lost their partner.
    return any_crash_;
  });
}

std::string Swarm::unfinished() const {
  std::string list;
  int shown = 0;
  for (const OpState& s : states_) {
    const bool is_send = s.op->is_send();
    const bool op_open = !s.is_void && s.completions == 0;
    const bool receive_open =
        is_send && !s.receive_void && s.receive_completions == 0 && !any_crash_;
    if (!op_open && !receive_open) continue;
    if (++shown > 5) return list + " ...";
    list += fmt::format(" {}({} {}->{}{}{}{})", s.op->id, name_of(s.op->kind), s.op->from, s.op->to,
                        s.posted ? "" : " not posted", op_open ? " op open" : "",
                        receive_open ? " receive open" : "");
  }
  return list;
}

/// Everything is back where it came from. After a crash, half-received messages wait for their
/// timeout.
bool Swarm::is_quiet() {
  for (const auto& host : hosts_) {
    if (!host->is_up()) continue;
    if (!host->fep().is_idle()) return false;
    const auto p = host->fep().pds().gauges();
    if (p.outstanding_packets + p.queued_messages + p.rudi_outstanding + p.pdcs_open +
            p.pdcs_half_open >
        0)
      return false;
    const auto s = host->ses().gauges();
    if (s.sends_active + s.messages_receiving + s.reads_returning + s.returns_open +
            s.returns_waiting + (hostile_ || any_crash_ ? 0 : s.messages_fetching) +
            (hostile_ || any_crash_ ? 0 : s.messages_held) >
        0)
      return false;
    // Unexpected messages of attackers, which match no receive, stay within their bound.
    if (!any_crash_ && !hostile_ && s.unexpected_messages + s.unexpected_bytes > 0) return false;
  }
  return simulation_.frames.in_use() == 0;
}

void Swarm::check_memory() {
  if (peeks_ != peeks_answered_)
    fail(fmt::format("{} of {} peeks were answered", peeks_answered_, peeks_));
  for (const auto& shared : multi_receives_)
    if (!shared->buffer.guards_intact()) fail("bytes outside a multi-receive buffer");
  for (const auto& shared : datagram_receives_)
    if (!shared->buffer.guards_intact()) fail("bytes outside a receive for datagrams");
  for (const OpState& s : states_) {
    if (!s.local.guards_intact())
      fail(fmt::format("op {}: bytes outside its local buffer", s.op->id));
    if (s.local.is_poisoned() && !s.local.is_all(kPoison))
      fail(fmt::format("op {}: read data written after completion", s.op->id));
    if (s.receive.exists() && !s.receive.guards_intact())
      fail(fmt::format("receive {}: bytes outside its buffer", s.op->id));
    if (s.receive.is_poisoned() && !s.receive.is_all(kPoison))
      fail(fmt::format("receive {}: written after completion", s.op->id));
    if (!s.op->has_slot()) continue;
    const std::uint8_t* at = memories_[s.op->to].bytes.data() + s.remote_at;
    const auto is_guard = [](std::uint8_t b) { return b == kGuard; };
    if (!std::all_of(at - kGuardBytes, at, is_guard) ||
        !std::all_of(at + s.op->bytes, at + s.op->bytes + kGuardBytes, is_guard)) {
      fail(fmt::format("op {}: bytes outside its remote slot", s.op->id));
    }
    if (s.op->kind == SwarmOp::kRudiWrite && s.succeeded && !has_written_pattern(s))
      fail(fmt::format("op {}: the bytes of a complete RUDI write have changed", s.op->id));
    if (s.op->kind == SwarmOp::kWrite && s.op->wants_data && s.succeeded && !any_crash_ &&
        s.deliveries == 0)
      fail(fmt::format("op {}: write is complete and was not notified", s.op->id));
    // A late copy of a first packet may open a PDC with the new life of a host that crashed, unless security judges openings.
    const bool was_poisoned = s.op->kind == SwarmOp::kWrite && s.succeeded &&
                              (!plan_.crashes(s.op->to) || plan_.secure.is_on);
    if (was_poisoned &&
        !std::all_of(at, at + s.op->bytes, [](std::uint8_t b) { return b == kPoison; })) {
      fail(fmt::format("op {}: write delivered again after completion", s.op->id));
    }
  }
}

/// Untagged messages of an ordered endpoint take receives in the order in which they were sent.
void Swarm::check_order() {
  if (any_crash_) return;
  std::map<std::pair<HostId, HostId>, std::vector<const OpState*>> streams;
  for (const OpState& s : states_) {
    if (s.op->kind == SwarmOp::kSend && plan_.ordered[s.op->from] && s.deliveries > 0) {
      streams[{s.op->from, s.op->to}].push_back(&s);
    }
  }
  for (auto& [hosts, messages] : streams) {
    std::sort(messages.begin(), messages.end(),
              [](const OpState* a, const OpState* b) { return a->post_order < b->post_order; });
    for (std::size_t i = 1; i < messages.size(); ++i) {
      if (messages[i]->taken_by >= messages[i - 1]->taken_by) continue;
      fail(fmt::format("messages {} and {} of an ordered endpoint were matched the wrong way round",
                       messages[i - 1]->op->id, messages[i]->op->id));
    }
  }
}

void Swarm::check_pools() {
  if (simulation_.frames.in_use() != 0)
    fail(fmt::format("{} frames are still held", simulation_.frames.in_use()));
  if (simulation_.packets_pool.in_use() != 0) fail("copied packets are still held");
  for (HostId h = 0; h < hosts_.size(); ++h) {
    const std::size_t held = fabric_.port(h).slab_pool().in_use();
    if (held != 0) fail(fmt::format("host {}: {} packets did not come back to the pool", h, held));
  }
}

}  // namespace uet::sim
