// Operations and receives of a world are posted, and posted again while there is no room.
#include <sys/uio.h>

#include <algorithm>

#include "apps/sim/swarm_state.h"

namespace uet::sim {

using base::Duration;

namespace {

// The longer something has waited for room, the less often it is tried.
SimSpan retry_after(SimSpan waited) {
  return std::clamp(SimSpan::from_ps(waited.ps() / 16), SimSpan::from(Duration::from_us(50)),
                    SimSpan::from(Duration::from_ms(2)));
}

}  // namespace

template <typename F>
void Swarm::retry_later(SimTime since, F&& again) {
  simulation_.events.call_at(simulation_.now() + retry_after(simulation_.now() - since),
                             std::forward<F>(again));
}

void Swarm::post(OpState& s) {
  if (s.is_void || has_failed()) return;
  if (hosts_[s.op->from]->is_up() && try_post(s)) return;
  retry_later(s.op->at, [this, &s] { post(s); });
}

void Swarm::post_receive(OpState& s) {
  if (s.receive_void || has_failed()) return;
  if (hosts_[s.op->to]->is_up() && try_post_receive(s)) return;
  retry_later(s.op->receive_at, [this, &s] { post_receive(s); });
}

/// To be called when the operation, or its receive, was posted.
void Swarm::cancel_if_due(OpState& s) {
  if (!s.op->is_cancelled() || !s.posted || !s.receive_posted) return;
  simulation_.events.call_at(simulation_.now() + *s.op->cancel_after, [this, &s] {
    if (s.completions > 0) return;
    Host& host = *hosts_[s.op->from];
    s.is_cancelled = true;  // it may complete within the call
    s.is_cancelled = host.ses().cancel(host.now(), host.endpoint(), s.op->id);
    host.node().poke();
  });
}

/// Its message will not come. Where the target knows of the message already, nothing is left to cancel: the receive ends with it.
void Swarm::cancel_receive(OpState& s) {
  simulation_.events.call_at(simulation_.now(), [this, &s] {
    if (s.receive_completions > 0) return;
    Host& host = *hosts_[s.op->to];
    (void)host.ses().cancel(host.now(), host.endpoint(), context_of(Context::kOp, s.op->id));
    host.node().poke();
  });
}

/// The peer that `op` goes to; 0 while it cannot be known.
ses::PeerId Swarm::find_peer(const PlannedOp& op) {
  ses::PeerId& peer = (op.is_datagram() ? datagram_peers_ : peers_)[op.from][op.to];
  if (peer != 0) return peer;
  // It was down when we looked, or this is the first datagram.
  Host& target = *hosts_[op.to];
  if (!target.is_up()) return 0;
  const ses::Address address =
      op.is_datagram() ? target.ses().address_of(datagram_endpoints_[op.to]) : target.address();
  const auto added = hosts_[op.from]->ses().add_peer(address);
  if (added.has_value()) peer = added.value();
  return peer;
}

base::Result<ses::Posted, ses::PostError> Swarm::send(OpState& s, ses::PeerId peer) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.from];
  const iovec bytes{s.local.data(), s.local.size()};
  ses::SendRequest send;
  send.peer = peer;
  send.delivery = op.is_datagram() ? ses::Delivery::kDatagram : ses::Delivery::kReliable;
  send.tagged = op.kind == SwarmOp::kTaggedSend;
  send.tag = op.id;
  send.iov = {&bytes, 1};
  if (op.wants_data) send.data = op.id;
  send.inject = op.inject;
  send.completion_may_wait = op.completion_may_wait;
  send.delivery_complete = op.delivery_complete;
  send.fence = op.fence && has_fences_;
  send.context = op.id;
  return host.ses().send(host.now(),
                         op.is_datagram() ? datagram_endpoints_[op.from] : host.endpoint(), send);
}

base::Result<ses::Posted, ses::PostError> Swarm::rma(OpState& s, ses::PeerId peer) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.from];
  const iovec bytes{s.local.data(), s.local.size()};
  ses::RmaRequest rma;
  rma.peer = peer;
  rma.delivery = op.is_rudi() ? ses::Delivery::kIdempotent : ses::Delivery::kReliable;
  rma.read = op.is_read();
  rma.iov = {&bytes, 1};
  rma.remote_offset = s.remote_at;
  rma.key = op.is_rudi() ? memories_[op.to].rudi_key : memories_[op.to].key;
  if (op.wants_data && !rma.read) rma.data = op.id;
  rma.inject = op.inject;
  rma.completion_may_wait = op.completion_may_wait;
  rma.delivery_complete = op.delivery_complete;
  rma.fence = op.fence && has_fences_;
  rma.context = op.id;
  return host.ses().rma(host.now(), host.endpoint(), rma);
}

bool Swarm::try_post(OpState& s) {
  const PlannedOp& op = *s.op;
  const ses::PeerId peer = find_peer(op);
  if (peer == 0) return false;
  if (s.post_order == 0) s.ready_at = std::max(s.ready_at, simulation_.now());
  s.posted = true;
  s.post_order = ++ops_posted_;
  const auto posted = op.has_slot() ? rma(s, peer) : send(s, peer);
  if (!posted.has_value()) {
    s.posted = false;
    if (posted.error() != ses::PostError::kAgain) {
      fail(fmt::format("op {}: post refused with error {}", op.id,
                       static_cast<int>(posted.error())));
    }
    return false;
  }
  if (op.inject && !op.is_read()) s.local.poison();  // its bytes are the user's again
  cancel_if_due(s);
  hosts_[op.from]->node().poke();
  return true;
}

bool Swarm::try_post_receive(OpState& s) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.to];
  if (op.kind == SwarmOp::kSend && plan_.multi_receive[op.to])
    return s.receive_posted = try_post_multi_receive(op.to);
  if (op.peek && !s.has_looked) return try_peek(s);
  // Any untagged message may take any untagged receive: all are large enough for all.
  std::size_t room = op.receive_bytes;
  if (op.kind == SwarmOp::kSend) {
    for (const PlannedOp& other : plan_.ops) {
      if (other.kind == SwarmOp::kSend && other.to == op.to)
        room = std::max<std::size_t>(room, other.bytes);
    }
  }
  if (!s.receive.exists()) s.receive.make(room, kGuard);
  const iovec bytes{s.receive.data(), s.receive.size()};
  ses::ReceiveRequest receive;
  receive.tagged = op.kind == SwarmOp::kTaggedSend;
  receive.tag = op.id;
  receive.iov = {&bytes, 1};
  receive.context = context_of(op.peek ? Context::kPeek : Context::kOp, op.id);
  s.ready_at = std::max(s.ready_at, simulation_.now());
  s.receive_order = ++receives_posted_;
  s.receive_posted = true;
  const auto posted = s.is_claimed
                          ? host.ses().claim_receive(host.now(), host.endpoint(), receive, false)
                          : host.ses().receive(host.now(), host.endpoint(), receive);
  if (!posted.has_value()) {
    s.receive_posted = false;
    if (posted.error() != ses::PostError::kAgain) {
      fail(fmt::format("op {}: receive refused with error {}", op.id,
                       static_cast<int>(posted.error())));
    }
    return false;
  }
  cancel_if_due(s);
  host.node().poke();
  return true;
}

}  // namespace uet::sim
