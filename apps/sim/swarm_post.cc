// Operations and receives of a world are posted, and posted again while there is no room.
#include <sys/uio.h>

#include <algorithm>

#include "apps/sim/swarm_state.h"

namespace uet::sim {

using base::Duration;

namespace {

const SimSpan kRetryPost = SimSpan::from(Duration::from_us(50));

}  // namespace

template <typename F>
void Swarm::retry_later(F&& again) {
  world_.events.call_at(world_.now() + kRetryPost, std::forward<F>(again));
}

void Swarm::post(OpState& s) {
  if (s.is_void || has_failed()) return;
  if (hosts_[s.op->from]->is_up() && try_post(s)) return;
  retry_later([this, &s] { post(s); });
}

void Swarm::post_receive(OpState& s) {
  if (s.receive_void || has_failed()) return;
  if (hosts_[s.op->to]->is_up() && try_post_receive(s)) return;
  retry_later([this, &s] { post_receive(s); });
}

bool Swarm::try_post(OpState& s) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.from];
  const iovec bytes{s.local.data(), s.local.size()};
  ses::PeerId& peer = peers_[op.from][op.to];
  if (peer == 0) {  // it was down when we looked
    if (!hosts_[op.to]->is_up()) return false;
    const auto added = host.ses().add_peer(hosts_[op.to]->address());
    if (!added.has_value()) return false;
    peer = added.value();
  }
  base::Result<ses::Posted, ses::PostError> posted = ses::PostError::kAgain;
  s.posted = true;
  s.post_order = ++ops_posted_;
  if (op.is_send()) {
    ses::SendRequest send;
    send.peer = peer;
    send.tagged = op.kind == SwarmOp::kTaggedSend;
    send.tag = op.id;
    send.iov = {&bytes, 1};
    if (op.wants_data) send.data = op.id;
    send.inject = op.inject;
    send.delivery_complete = op.delivery_complete;
    send.fence = op.fence;
    send.context = op.id;
    posted = host.ses().send(host.now(), host.endpoint(), send);
  } else {
    ses::RmaRequest rma;
    rma.peer = peer;
    rma.read = op.kind == SwarmOp::kRead;
    rma.iov = {&bytes, 1};
    rma.remote_offset = s.remote_at;
    rma.key = memories_[op.to].key;
    if (op.wants_data && !rma.read) rma.data = op.id;
    rma.inject = op.inject;
    rma.delivery_complete = op.delivery_complete;
    rma.fence = op.fence;
    rma.context = op.id;
    posted = host.ses().rma(host.now(), host.endpoint(), rma);
  }
  if (!posted.has_value()) {
    s.posted = false;
    if (posted.error() != ses::PostError::kAgain) {
      fail(fmt::format("op {}: post refused with error {}", op.id,
                       static_cast<int>(posted.error())));
    }
    return false;
  }
  host.node().poke();
  return true;
}

bool Swarm::try_post_receive(OpState& s) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.to];
  if (op.kind == SwarmOp::kSend && plan_.multi_receive[op.to])
    return s.receive_posted = try_post_multi_receive(op.to);
  if (op.peeks) peek(s);
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
  receive.context = op.id;
  s.receive_order = ++receives_posted_;
  s.receive_posted = true;
  const auto posted = host.ses().receive(host.now(), host.endpoint(), receive);
  if (!posted.has_value()) {
    s.receive_posted = false;
    if (posted.error() != ses::PostError::kAgain) {
      fail(fmt::format("op {}: receive refused with error {}", op.id,
                       static_cast<int>(posted.error())));
    }
    return false;
  }
  host.node().poke();
  return true;
}

}  // namespace uet::sim
