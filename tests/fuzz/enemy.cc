#include "tests/fuzz/enemy.h"

#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include "apps/sim/attack_plan.h"
#include "fep/settings/settings.h"
#include "lib/base/check.h"

namespace uet::fuzz {

using base::Duration;
using base::Instant;

namespace {

constexpr std::size_t kMemoryBytes = 16 * 1024, kReceiveBytes = 4096;

net::FabricAddress peer_address(std::size_t peer) {
  return net::FabricAddress::from_v4(0x0a000002u + static_cast<std::uint32_t>(peer));
}

/// What a program has that sets nothing, with tables that a fuzzer's input can fill.
fep::FepConfig small_config(const net::PortFacts& facts, std::uint32_t payload_mtu) {
  fep::FepConfig c = fep::Settings::default_config(facts);
  c.protection = fep::DataProtection::kNone;  // bytes of the fuzzer reach the parsers
  c.pds.security_overhead = 0;
  c.payload_mtu = payload_mtu;
  c.pds.max_pdc = 16;
  c.pds.gtd_store_max = 32;
  c.pds.max_tombstones = 32;
  c.pds.max_messages = 64;
  c.pds.max_messages_per_pdc = 32;
  c.pds.ack_queue_max = 64;
  c.pds.held_packets_max = 32;
  c.ses.max_endpoints = 4;
  c.ses.max_sends = 32;
  c.ses.max_receives = 64;
  c.ses.max_messages = 32;
  c.ses.max_peers = 16;
  c.ses.max_memory_regions = 8;
  c.ses.max_read_returns = 64;
  c.ses.overflow_msgs = 16;
  c.ses.overflow_msgs_total = 32;
  c.ses.overflow_bytes = 64 * 1024;
  c.ses.overflow_bytes_total = 128 * 1024;
  c.ses.read_copy_bytes = 64 * 1024;
  return c;
}

}  // namespace

// --- Port -----------------------------------------------------------------------------------------

EnemyPort::EnemyPort() {
  facts_.name = "enemy";
  facts_.address = net::FabricAddress::from_v4(0x0a000001u);
  facts_.ip_mtu = 1500;
  facts_.link_rate = base::BitRate::from_gbps(25);
}

void EnemyPort::arrive(net::FabricAddress from, Bytes bytes, net::TosByte tos) {
  net::Packet p = pool_.allocate();
  if (!p) return;
  const std::size_t n = std::min(bytes.size(), p.tailroom());
  std::copy_n(bytes.begin(), n, p.append(n));
  waiting_.push_back({std::move(p), from, facts_.address, 7, tos});
  ++packets_;
}

std::size_t EnemyPort::receive(Instant, std::span<net::RxPacket> out) {
  std::size_t n = 0;
  for (; n < out.size() && !waiting_.empty(); ++n) {
    out[n] = std::move(waiting_.front());
    waiting_.pop_front();
  }
  return n;
}

std::size_t EnemyPort::send(Instant, std::span<net::TxPacket> in) {
  for (net::TxPacket& tx : in) {
    const auto bytes = std::as_const(tx.packet).bytes();
    sent_.emplace_back(tx.destination, std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
    if (sent_.size() > kRemembered) sent_.pop_front();
    tx.packet.reset();
    ++packets_;
  }
  return in.size();
}

// --- Enemy ----------------------------------------------------------------------------------------

Enemy::Enemy() : memory_(kMemoryBytes, 0x33), local_(kMemoryBytes, 0x44) {
  fep_ = std::make_unique<fep::Fep>(small_config(port_.facts(), kMtu), port_, rng_, trace_, now_);
  ses::Ses& ses = fep_->ses();
  ses::EndpointConfig config;
  config.job_id = sim::Lure::kJob;
  config.resource_index = sim::Lure::kIndex;
  const auto opened = ses.open_endpoint(now_, config, *this);
  UET_CHECK(opened.has_value());
  endpoint_ = *opened;
  const iovec bytes{memory_.data(), memory_.size()};
  ses::MemoryRequest memory;
  memory.iov = {&bytes, 1};
  memory.remote_read = memory.remote_write = true;
  memory.virtual_addressing = false;
  memory.key = sim::Lure::kKey;
  UET_CHECK(ses.register_memory(memory).has_value());
  for (std::size_t i = 0; i < kPeers; ++i) {
    ses::Address address = ses.address_of(endpoint_);
    address.fabric_address = peer_address(i);
    const auto peer = ses.add_peer(address);
    UET_CHECK(peer.has_value());
    peers_[i] = *peer;
  }
}

Enemy::~Enemy() = default;

void Enemy::on_completion(ses::EndpointId, const ses::Completion& c) {
  if (c.kind == ses::OpKind::kRemoteWrite || c.kind == ses::OpKind::kRemoteRead) return;
  UET_CHECK(c.context < done_.size());
  UET_CHECK(!done_[c.context]);  // exactly once
  done_[c.context] = true;
}

void Enemy::step(Choices& in) {
  ++steps_;
  const std::uint8_t what = in.u8();
  if (what < 160) {
    packet(in);
  } else if (what < 208) {
    pass_time(in);
  } else {
    operate(in);
  }
  turn();
  learn();
}

void Enemy::packet(Choices& in) {
  const Conversations::Packet p = talks_.packet(in);
  port_.arrive(peer_address(p.peer), p.bytes, net::TosByte::of(p.is_trimmed ? 26 : 46, 1));
}

void Enemy::pass_time(Choices& in) {
  constexpr std::array kSpans = {Duration::from_us(1),      Duration::from_us(100),
                                 Duration::from_ms(1),      Duration::from_ms(25),
                                 Duration::from_ms(110),    Duration::from_ms(1100),
                                 Duration::from_seconds(3), Duration::from_seconds(61)};
  const std::uint8_t choice = in.u8();
  if (choice >= 192) {
    const Instant next = fep_->next_deadline();
    if (!next.is_never()) run_until(std::max(next, now_));
    return;
  }
  run_until(now_ + kSpans[choice % kSpans.size()]);
}

void Enemy::operate(Choices& in) {
  const std::uint8_t what = in.u8();
  const std::size_t length = in.u16() % local_.size();
  ses::Ses& ses = fep_->ses();
  const iovec bytes{local_.data(), length};
  const std::uint64_t context = done_.size();
  done_.push_back(false);
  bool posted = false;
  switch (what % 6) {
    case 0:
    case 1: {
      ses::SendRequest send;
      send.peer = peers_[what / 6 % kPeers];
      send.tagged = what % 6 == 1;
      send.tag = sim::Lure::kTag;
      send.iov = {&bytes, 1};
      send.delivery_complete = (what & 0x80) != 0;
      send.context = context;
      posted = ses.send(now_, endpoint_, send).has_value();
      break;
    }
    case 2:
    case 3: {
      ses::RmaRequest rma;
      rma.peer = peers_[what / 6 % kPeers];
      rma.read = what % 6 == 3;
      rma.iov = {&bytes, 1};
      rma.key = sim::Lure::kKey;
      rma.context = context;
      posted = ses.rma(now_, endpoint_, rma).has_value();
      break;
    }
    case 4: {
      const iovec room{local_.data(), kReceiveBytes};
      ses::ReceiveRequest receive;
      receive.iov = {&room, 1};
      receive.tagged = (what & 0x40) != 0;
      receive.tag = sim::Lure::kTag;
      receive.ignore = 3;
      receive.multi_recv = (what & 0x80) != 0 && !receive.tagged;
      // A multi-receive completes many times, so it has no context that may be used once.
      if (receive.multi_recv) break;
      receive.context = context;
      posted = ses.receive(now_, endpoint_, receive).has_value();
      break;
    }
    default:
      ses.cancel(now_, endpoint_, length % done_.size());
      break;
  }
  if (!posted && !done_.empty() && context + 1 == done_.size()) done_.pop_back();
}

// --- Time -----------------------------------------------------------------------------------------

void Enemy::turn() {
  constexpr int kMostAtOnce = 10'000;
  int left = kMostAtOnce;
  do {
    UET_CHECK(left-- > 0);  // the loop finds no end at one instant
    ++turns_;
  } while (fep_->turn(now_) || port_.has_waiting());
}

void Enemy::run_until(Instant end) {
  for (Instant next = fep_->next_deadline(); next <= end; next = fep_->next_deadline()) {
    now_ = std::max(next, now_ + Duration::from_ns(100));
    turn();
    learn();
    check_turns();
  }
  now_ = std::max(now_, end);
}

/// An endpoint that is woken without end burns a core.
void Enemy::check_turns() const {
  constexpr std::uint64_t kForPacket = 40, kForSecond = 3000, kForStart = 20'000;
  const auto seconds = static_cast<std::uint64_t>((now_ - begin_).seconds());
  UET_CHECK(turns_ <= kForStart + (port_.packets() + steps_) * kForPacket + seconds * kForSecond);
}

void Enemy::finish() {
  check_turns();
  // Peers that were heard are given up after a minute of silence, halves of messages too.
  run_until(now_ + Duration::from_seconds(260));
  const auto p = fep_->pds().gauges();
  const auto s = fep_->ses().gauges();
  UET_CHECK(p.pdcs_open + p.pdcs_half_open == 0);
  UET_CHECK(p.outstanding_packets + p.queued_messages + p.rudi_outstanding == 0);
  UET_CHECK(p.stored_responses == 0);
  UET_CHECK(s.sends_active == 0);
  UET_CHECK(s.messages_receiving == 0);
  UET_CHECK(port_.packets_held() == 0);
  // And then the endpoint sleeps.
  constexpr std::uint64_t kTurnsAtRest = 100;
  const std::uint64_t before = turns_;
  run_until(now_ + Duration::from_seconds(2));
  UET_CHECK(turns_ - before <= kTurnsAtRest);
}

// --- What the endpoint says -----------------------------------------------------------------------

void Enemy::learn() {
  while (!port_.sent().empty()) {
    const auto [to, bytes] = std::move(port_.sent().front());
    port_.sent().pop_front();
    talks_.learn(to.v4() - peer_address(0).v4(), bytes);
  }
}

void endpoint(Bytes input) {
  constexpr int kSteps = 300;
  Enemy enemy;
  Choices in(input);
  for (int i = 0; i < kSteps && !in.is_empty(); ++i) enemy.step(in);
  enemy.finish();
}

}  // namespace uet::fuzz
