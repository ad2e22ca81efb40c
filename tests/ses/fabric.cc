#include "tests/ses/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace uet::ses::testing {

HeapPool::HeapPool(std::size_t count) : buffers_(count), memory_(count * kBytes) {
  for (std::size_t i = 0; i < count; ++i) {
    buffers_[i].room = memory_.data() + i * kBytes;
    buffers_[i].capacity = kBytes;
    buffers_[i].pool = this;
    free_.push_back(&buffers_[i]);
  }
}

bool HeapPool::refill() {
  while (cached_ < kCacheSize / 2 && !free_.empty()) {
    cache_[cached_++] = free_.back();
    free_.pop_back();
  }
  return cached_ > 0;
}

void HeapPool::spill() {
  for (std::size_t i = 0; i < kCacheSize / 2; ++i) free_.push_back(cache_[--cached_]);
}

std::size_t Recorder::count(OpKind kind) const {
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](const Completion& c) { return c.kind == kind; }));
}

const Completion* Recorder::find(std::uint64_t context) const {
  for (const Completion& c : all)
    if (c.context == context) return &c;
  return nullptr;
}

const Completion* Recorder::find(OpKind kind) const {
  for (const Completion& c : all)
    if (c.kind == kind) return &c;
  return nullptr;
}

RequestView Flight::view(std::uint32_t mtu) const {
  RequestView v;
  EXPECT_TRUE(parse_request(next_hdr, bytes, mtu, v));
  return v;
}

ResponseView Reply::view() const {
  ResponseView v;
  EXPECT_TRUE(parse_response(next_hdr, bytes, v));
  return v;
}

// --- Node --------------------------------------------------------------------------------------

Node::Node(Fabric& f, std::uint32_t number, const SesConfig& config, std::uint32_t payload_mtu)
    : fabric(f),
      address(net::FabricAddress::from_v4(0x0a000000 + number)),
      rng(number * 7919 + 1),
      ses(config, payload_mtu, address, rng, trace) {
  ses.attach(*this);
}

pds::SubmitResult Node::submit(Instant, const pds::TxMessage& message) {
  if (fabric.queued_at(*this) >= fabric.queue_limit || fabric.full_towards == message.destination)
    return pds::SubmitResult::kAgain;
  for (auto& node : fabric.nodes) {
    if (node->address != message.destination) continue;
    Channel& c = fabric.channel(*this, *node, message.mode, message.rod_context);
    c.queue.push_back({message});
    if (message.lock) ++locks;
    return pds::SubmitResult::kQueued;
  }
  if (fabric.deaf == message.destination) {
    fabric.unheard.push_back({this, message});
    if (message.lock) ++locks;
    return pds::SubmitResult::kQueued;
  }
  ADD_FAILURE() << "message to an unknown endpoint";
  return pds::SubmitResult::kQueued;
}

pds::SubmitResult Node::submit_return(Instant, pds::RxHandle request,
                                      const pds::TxMessage& message) {
  Channel* forward = fabric.find_channel_at(*this, request.pdc);
  if (forward == nullptr || request.return_direction) return pds::SubmitResult::kNever;
  if (fabric.returns_queued_at(*this) >= fabric.return_limit) return pds::SubmitResult::kAgain;
  auto& back = fabric.returns_[forward];
  if (back == nullptr) {
    back = std::make_unique<Channel>();
    back->from = this;
    back->to = forward->from;
    back->mode = forward->mode;
    back->is_return = true;
    back->ref_at_from = forward->ref_at_to;
    back->ref_at_to = forward->ref_at_from;
  }
  back->queue.push_back({message});
  return pds::SubmitResult::kQueued;
}

void Node::unlock(Instant, pds::PdcRef) {
  ASSERT_GT(locks, 0);
  --locks;
}

void Node::abort(Instant, pds::MessageToken token) {
  std::erase_if(fabric.unheard, [&](const Fabric::Unheard& m) {
    if (m.from != this || m.message.token != token) return false;
    if (m.message.lock) --locks;
    return true;
  });
  for (auto& [key, channel] : fabric.channels_) {
    if (channel->from != this) continue;
    std::erase_if(channel->queue, [&](const Channel::Queued& q) {
      if (q.message.token != token) return false;
      EXPECT_EQ(q.sent, 0u);
      if (q.message.lock) --locks;
      return true;
    });
  }
}

std::uint32_t Node::truncate(Instant, pds::MessageToken token, std::uint32_t extra) {
  for (auto& [key, c] : fabric.channels_)
    for (Channel::Queued& q : c->queue)
      if (q.message.token == token && c->from == this) {
        q.message.segments = q.sent + extra;
        return q.sent;
      }
  ADD_FAILURE() << "truncation of a message that is not queued";
  return 0;
}

// --- Fabric ------------------------------------------------------------------------------------

Node& Fabric::add_node(const SesConfig& config) {
  nodes.push_back(std::make_unique<Node>(*this, static_cast<std::uint32_t>(nodes.size() + 1),
                                         config, payload_mtu));
  return *nodes.back();
}

Channel& Fabric::channel(Node& from, Node& to, pds::Mode mode, std::uint32_t context) {
  auto& c = channels_[{&from, &to, mode, context}];
  if (c == nullptr) {
    c = std::make_unique<Channel>();
    c->from = &from;
    c->to = &to;
    c->mode = mode;
    if (mode == pds::Mode::kRudi || mode == pds::Mode::kUud) return *c;  // there is no PDC
    c->ref_at_from.value = next_pdc_++;
    c->ref_at_to.value = next_pdc_++;
  }
  return *c;
}

Channel* Fabric::find_channel_at(const Node& to, pds::PdcRef ref) {
  for (auto& [key, c] : channels_)
    if (c->to == &to && c->ref_at_to == ref) return c.get();
  return nullptr;
}

void Fabric::cut(Channel& c) {
  Channel::Queued& q = c.queue.front();
  Flight f;
  f.channel = &c;
  f.token = q.message.token;
  f.segment = q.sent++;
  f.psn = c.next_psn++;
  const bool is_last = q.sent >= q.message.segments;
  for (int round = 0; round < 2; ++round) {
    net::Packet packet = pool.allocate();
    ASSERT_TRUE(packet);
    const auto info =
        c.from->ses.emit_segment(f.token, f.segment, c.ref_at_from, base::Psn(f.psn), packet);
    std::vector<std::uint8_t> bytes(packet.bytes().begin(), packet.bytes().end());
    if (round == 1) {
      // A retransmission is cut again and must be the same.
      EXPECT_EQ(bytes, f.bytes);
    }
    f.next_hdr = info.next_hdr;
    f.bytes = std::move(bytes);
  }
  flights.push_back(f);
  sent_log.push_back(f);
  if (is_last) c.queue.pop_front();
  if (c.mode == pds::Mode::kUud) c.from->ses.on_response(now, f.token, 0, 0, {});
}

bool Fabric::cut_one_each() {
  bool any = false;
  const auto cut_if = [&](Channel& c) {
    if (c.queue.empty()) return;
    cut(c);
    any = true;
  };
  for (auto& [key, c] : channels_) cut_if(*c);
  for (auto& [key, c] : returns_) cut_if(*c);
  if (any)
    for (auto& node : nodes) node->ses.on_resume(now);
  return any;
}

void Fabric::cut_all() {
  while (cut_one_each()) {
  }
}

bool Fabric::deliver(std::size_t index) {
  if (index >= flights.size()) return false;
  Flight f = std::move(flights[index]);
  flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(index));
  Channel& c = *f.channel;
  pds::RxRequest r;
  r.handle = {c.ref_at_to, base::Psn(f.psn), c.is_return};
  r.mode = c.mode;
  r.next_hdr = f.next_hdr;
  r.source = c.from->address;
  r.is_proven = true;
  r.bytes = f.bytes;
  const pds::Answer answer = c.to->ses.on_request(now, r);
  switch (answer.kind) {
    case pds::Answer::Kind::kRespond:
      finish(f, answer.response, answer.guaranteed);
      break;
    case pds::Answer::Kind::kLater:
      ADD_FAILURE() << "an answer that comes later holds the window";
      break;
    case pds::Answer::Kind::kRefuse:
      ++refused;
      flights.push_back(std::move(f));
      break;
    case pds::Answer::Kind::kNone:
      break;
  }
  return true;
}

void Fabric::finish(const Flight& f, const pds::SesResponse& response, bool guaranteed) {
  Reply r{f.channel, f.token, f.segment, f.psn, response.next_hdr, guaranteed, {}};
  r.bytes.assign(response.header.begin(), response.header.begin() + response.header_bytes);
  r.bytes.insert(r.bytes.end(), response.data.begin(), response.data.end());
  replies.push_back(r);
  reply_log.push_back(std::move(r));
}

bool Fabric::reply(std::size_t index) {
  if (index >= replies.size()) return false;
  Reply r = std::move(replies[index]);
  replies.erase(replies.begin() + static_cast<std::ptrdiff_t>(index));
  // What is not guaranteed may be hidden by a cumulative acknowledgement.
  const bool hidden = !r.guaranteed && hide_replies > 0 && rng.chance(hide_replies);
  r.channel->from->ses.on_response(now, r.token, r.segment, hidden ? 0 : r.next_hdr,
                                   hidden ? std::span<const std::uint8_t>{} : r.bytes);
  return true;
}

void Fabric::run() {
  for (int i = 0; i < 1'000'000; ++i) {
    advance(Duration::from_us(1));
    const bool cut_any = cut_one_each();
    if (!deliver(0) && !reply(0) && !cut_any) return;
  }
  ADD_FAILURE() << "does not come to rest";
}

bool Fabric::may_deliver(std::size_t index) const {
  const Flight& f = flights[index];
  if (f.channel->mode != pds::Mode::kRod) return true;
  return std::none_of(flights.begin(), flights.end(),
                      [&](const Flight& g) { return g.channel == f.channel && g.psn < f.psn; });
}

void Fabric::run_randomly() {
  for (int i = 0; i < 3'000'000; ++i) {
    advance(Duration::from_us(1));
    const bool quiet = flights.empty() && replies.empty() && !has_queued();
    if (quiet) return;
    switch (rng.below(3)) {
      case 0:
        cut_one_each();
        break;
      case 1:
        if (!flights.empty()) {
          const std::size_t at = rng.below(static_cast<std::uint32_t>(flights.size()));
          if (may_deliver(at)) deliver(at);
        }
        break;
      default:
        if (!replies.empty()) reply(rng.below(static_cast<std::uint32_t>(replies.size())));
    }
  }
  ADD_FAILURE() << "does not come to rest";
}

bool Fabric::has_queued() const {
  for (auto& [key, c] : channels_)
    if (!c->queue.empty()) return true;
  for (auto& [key, c] : returns_)
    if (!c->queue.empty()) return true;
  return false;
}

std::size_t Fabric::queued_at(const Node& node) const {
  std::size_t n = 0;
  for (auto& [key, c] : channels_)
    if (c->from == &node) n += c->queue.size();
  return n;
}

std::size_t Fabric::returns_queued_at(const Node& node) const {
  std::size_t n = 0;
  for (auto& [key, c] : returns_)
    if (c->from == &node) n += c->queue.size();
  return n;
}

void Fabric::advance(Duration by) {
  now = now + by;
  for (auto& node : nodes)
    if (node->ses.next_deadline() <= now) node->ses.on_deadline(now);
}

void Fabric::run_for(Duration time) {
  const Instant end = now + time;
  for (int i = 0; i < 1'000'000; ++i) {
    run();
    Instant next = end;
    for (auto& node : nodes) next = std::min(next, node->ses.next_deadline());
    if (next > now) now = next;
    if (now >= end) break;
    advance(Duration());
  }
  advance(Duration());
  run();
}

void Fabric::fail_message(Node& node, pds::MessageToken token, pds::PdsError error) {
  std::erase_if(flights,
                [&](const Flight& f) { return f.token == token && f.channel->from == &node; });
  std::erase_if(replies,
                [&](const Reply& r) { return r.token == token && r.channel->from == &node; });
  for (auto& [key, c] : channels_)
    if (c->from == &node)
      std::erase_if(c->queue, [&](const Channel::Queued& q) { return q.message.token == token; });
  node.ses.on_message_error(now, token, error);
}

void Fabric::lose_pdc(Channel& c, pds::PdsError error) {
  std::erase_if(flights, [&](const Flight& f) { return f.channel == &c; });
  std::erase_if(replies, [&](const Reply& r) { return r.channel == &c; });
  c.queue.clear();
  if (const auto back = returns_.find(&c); back != returns_.end()) {
    for (const Channel::Queued& q : back->second->queue)
      c.to->ses.on_message_error(now, q.message.token, error);
    back->second->queue.clear();
  }
  c.from->ses.on_pdc_gone(now, c.ref_at_from, c.to->address, error);
  c.to->ses.on_pdc_gone(now, c.ref_at_to, c.from->address, error);
}

}  // namespace uet::ses::testing
