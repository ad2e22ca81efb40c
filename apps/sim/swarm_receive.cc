// Ways to receive that are not one receive for one message.
#include <sys/uio.h>

#include <algorithm>

#include "apps/sim/swarm_state.h"

namespace uet::sim {

namespace {

const SimSpan kRepost = SimSpan::from(base::Duration::from_us(5));
constexpr std::uint16_t kDatagramIndex = 2;  ///< resource index of the endpoints for datagrams
constexpr std::size_t kDatagramReceives = 4;

}  // namespace

// --- Multi-receive ------------------------------------------------------------------------------

/// One buffer at a time, of about a third of everything that this host is sent. True when one is posted.
bool Swarm::try_post_multi_receive(HostId at) {
  if (has_multi_receive_[at]) return true;
  std::size_t largest = 0, total = 0;
  for (const PlannedOp& op : plan_.ops) {
    if (op.kind != SwarmOp::kSend || op.to != at) continue;
    largest = std::max<std::size_t>(largest, op.bytes);
    total += op.bytes + 64;
  }
  Host& host = *hosts_[at];
  auto shared = std::make_unique<SharedReceive>();
  shared->host = at;
  shared->life = lives_[at];
  shared->buffer.make(std::max(largest + 64, total / 3), kGuard);
  const iovec bytes{shared->buffer.data(), shared->buffer.size()};
  ses::ReceiveRequest receive;
  receive.iov = {&bytes, 1};
  receive.multi_recv = true;
  receive.context = context_of(Context::kMultiReceive, multi_receives_.size());
  multi_receives_.push_back(std::move(shared));
  has_multi_receive_[at] = true;
  if (!host.ses().receive(host.now(), host.endpoint(), receive).has_value()) {
    has_multi_receive_[at] = false;
    multi_receives_.pop_back();
    return false;
  }
  host.node().poke();
  return true;
}

void Swarm::on_multi_received(std::size_t index, const ses::Completion& c) {
  SharedReceive& shared = *multi_receives_[index];
  if (c.multi_recv_released) {
    has_multi_receive_[shared.host] = false;
    simulation_.events.call_at(simulation_.now() + kRepost,
                               [this, host = shared.host, life = shared.life] {
                                 if (hosts_[host]->is_up() && lives_[host] == life)
                                   try_post_multi_receive(host);
                               });
  }
  if (c.buffer == nullptr) return;  // only the buffer's end
  if (c.code != ses::ReturnCode::kOk) {
    if (!any_crash_)
      fail(fmt::format("multi-receive failed with code {:#x}", static_cast<int>(c.code)));
    return;
  }
  OpState* s = c.has_data ? find(c.data) : nullptr;
  if (s == nullptr || s->op->kind != SwarmOp::kSend || s->op->to != shared.host)
    return fail("multi-receive got a message that was not sent to it");
  const PlannedOp& op = *s->op;
  if (++s->deliveries > 1 && !plan_.crashes(op.to))
    return fail(fmt::format("message {} was delivered twice", op.id));
  auto* at = static_cast<std::uint8_t*>(c.buffer);
  const auto offset = static_cast<std::size_t>(at - shared.buffer.data());
  if (at < shared.buffer.data() || offset + op.bytes > shared.buffer.size() || c.length != op.bytes)
    return fail(fmt::format("message {}: wrong place or length in a multi-receive", op.id));
  if (!is_pattern({at, op.bytes}, op.id))
    return fail(fmt::format("message {}: wrong bytes in a multi-receive", op.id));
  std::fill_n(at, op.bytes, kPoison);
  s->taken_by = std::uint64_t{index} << 32 | offset;
  s->receive_completions = 1;
  ++result_.counters.multi_received;
}

// --- Datagrams ----------------------------------------------------------------------------------

void Swarm::open_datagrams(HostId at) {
  if (!plan_.has(SwarmMode::kUud)) return;
  Host& host = *hosts_[at];
  ses::EndpointConfig config;
  config.resource_index = kDatagramIndex;
  const auto opened = host.ses().open_endpoint(host.now(), config, host);
  if (!opened.has_value()) return fail("no endpoint for datagrams");
  datagram_endpoints_[at] = opened.value();
  datagram_peers_[at].assign(plan_.fabric.hosts, 0);
  for (std::size_t i = 0; i < kDatagramReceives; ++i) {
    auto shared = std::make_unique<SharedReceive>();
    shared->host = at;
    shared->life = lives_[at];
    datagram_receives_.push_back(std::move(shared));
    post_datagram_receive(datagram_receives_.size() - 1);
  }
}

/// Each buffer is posted again a little after it was taken; what comes when all are taken is lost.
void Swarm::post_datagram_receive(std::size_t index) {
  SharedReceive& shared = *datagram_receives_[index];
  Host& host = *hosts_[shared.host];
  if (!host.is_up() || shared.life != lives_[shared.host]) return;
  shared.buffer.make(plan_.fabric.mtu_payload, kGuard);
  const iovec bytes{shared.buffer.data(), shared.buffer.size()};
  ses::ReceiveRequest receive;
  receive.iov = {&bytes, 1};
  receive.context = context_of(Context::kDatagram, index);
  const auto posted = host.ses().receive(host.now(), datagram_endpoints_[shared.host], receive);
  if (!posted.has_value()) fail("a receive for datagrams was refused");
}

/// Anything may be missing, but what comes must be whole, and come again only where the network makes copies.
void Swarm::on_datagram(std::size_t index, const ses::Completion& c) {
  SharedReceive& shared = *datagram_receives_[index];
  OpState* s = c.has_data ? find(c.data) : nullptr;
  if (s == nullptr || !s->op->is_datagram() || s->op->to != shared.host || !s->posted)
    return fail("a datagram that was not sent to this host");
  const PlannedOp& op = *s->op;
  if (c.code != ses::ReturnCode::kOk || c.length != op.bytes)
    return fail(fmt::format("datagram {}: code {:#x}, {} of {} bytes", op.id,
                            static_cast<int>(c.code), c.length, op.bytes));
  if (!shared.buffer.has_pattern(op.id, op.bytes) || !shared.buffer.is_all(kGuard, op.bytes) ||
      !shared.buffer.guards_intact())
    return fail(fmt::format("datagram {}: wrong bytes", op.id));
  const bool is_copied = plan_.faults.duplicate != 0 || plan_.faults.late_duplicate != 0 ||
                         plan_.secure.attack_rate != 0;
  // A replay window keeps copies out, as long as its host lives.
  const bool has_window = plan_.secure.domain.replay_window != 0 && !plan_.crashes(op.to);
  if (++s->deliveries > 1 && (!is_copied || has_window))
    return fail(fmt::format("datagram {} came twice without a copy in the network", op.id));
  simulation_.events.call_at(simulation_.now() + kRepost,
                             [this, index] { post_datagram_receive(index); });
}

// --- Peek ---------------------------------------------------------------------------------------

/// Looks for the message before its receive is posted.
bool Swarm::try_peek(OpState& s) {
  Host& host = *hosts_[s.op->to];
  ses::PeekRequest request;
  request.action = *s.op->peek;
  request.tag = s.op->id;
  request.context = context_of(Context::kPeek, s.op->id);
  ++peeks_;
  if (!host.ses().peek(host.now(), host.endpoint(), request).has_value()) {
    --peeks_;
    return false;
  }
  host.node().poke();  // what is thrown away may have to be asked for first
  return true;
}

/// A message that is there has been seen, or is claimed for the receive, or is gone; then nothing is left to receive.
void Swarm::on_peeked(OpState& s, const ses::Completion& c) {
  SwarmCounters& counters = result_.counters;
  const auto post_now = [&] {
    simulation_.events.call_at(simulation_.now(), [this, &s] { post_receive(s); });
  };
  ++peeks_answered_;
  s.has_looked = true;
  if (c.code == ses::ReturnCode::kNoMessage) return post_now();
  if (c.code != ses::ReturnCode::kOk || c.tag != s.op->id || c.length != s.op->bytes)
    return fail(fmt::format("peek for message {}: code {:#x}, {} bytes", s.op->id,
                            static_cast<int>(c.code), c.length));
  if (s.op->wants_data != c.has_data || (c.has_data && c.data != s.op->id))
    return fail(fmt::format("peek for message {}: wrong header data", s.op->id));
  ++counters.peeked;
  if (s.op->peek != ses::PeekAction::kDiscard) {
    s.is_claimed = s.op->peek == ses::PeekAction::kClaim;
    counters.claimed += s.is_claimed;
    return post_now();
  }
  ++counters.discarded;
  s.receive_completions = 1;
  if (++s.deliveries > 1 && !plan_.crashes(s.op->to))
    fail(fmt::format("message {} was there again after it was received", s.op->id));
}

}  // namespace uet::sim
