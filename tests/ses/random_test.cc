// Everything at once, at random, checked byte by byte.
#include <algorithm>
#include <map>
#include <utility>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct RandomTest : ::testing::TestWithParam<std::uint64_t> {};

/// How order is kept.
enum class Kept { kNot, kByContext, kByNumbers };

SesConfig tight() {
  SesConfig c;
  c.max_messages = 6;
  c.overflow_bytes = 40 * kM;
  c.overflow_msgs = 8;
  c.max_read_returns = 8;
  c.asked_packets = 3;
  c.retry_backoff_min = Duration::from_us(50);
  c.retry_backoff_max = Duration::from_ms(2);
  return c;
}

/// Both sides send tagged messages that carry their own description, write and read each other's memory, and post receives
/// late or early. In the end every message was received once, unchanged, and nothing is left anywhere.
void run_mix(std::uint64_t seed, Kept kept, bool rendezvous = false) {
  const bool ordered = kept != Kept::kNot, sprayed = kept == Kept::kByNumbers;
  SCOPED_TRACE("seed " + std::to_string(seed));
  base::Rng rng(seed);
  Fabric fabric(seed, kM);
  fabric.queue_limit = 5;
  fabric.hide_replies = 0.3;
  struct Side {
    Node* node = nullptr;
    EndpointId endpoint = 0;
    PeerId peer = 0;
    Recorder sink;
    Bytes memory;
    std::uint64_t key = 0;
    std::vector<std::unique_ptr<Bytes>> buffers;
    std::map<std::uint64_t, Bytes*> receives;  ///< by context
    std::vector<std::uint32_t> sent_seeds;     ///< what this side sent
    std::map<std::uint64_t, std::pair<Bytes*, std::size_t>> reads;
  };
  Side sides[2];
  for (Side& s : sides) {
    SesConfig config = tight();
    config.spray_ordered = sprayed;
    if (sprayed && rng.chance(0.5)) {  // else the store holds one message that came early
      config.overflow_bytes = 400 * kM;
      config.overflow_msgs = 80;
    }
    if (rendezvous) {  // some that begin so, and those that were refused
      config.rendezvous = rng.chance(0.9);
      if (rng.chance(0.5)) config.rendezvous_from = rng.below(6 * kM);
      config.rendezvous_eager = rng.below(4) * 1000;
      config.max_fetches = 1 + rng.below(4);
      config.overflow_msgs = 4 + rng.below(100);
      config.medium_headers = rng.chance(0.3);
    }
    s.node = &fabric.add_node(config);
    EndpointConfig c;
    c.sends_ordered = ordered;
    c.rma_ordered = ordered && !sprayed && rng.chance(0.5);
    s.endpoint = *s.node->ses.open_endpoint(fabric.now, c, s.sink);
    s.memory = pattern(64 * kM, 5);
    const iovec iov = piece(s.memory);
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = m.remote_write = true;
    m.virtual_addressing = false;
    s.key = *s.node->ses.register_memory(m);
  }
  for (int i = 0; i < 2; ++i)
    sides[i].peer =
        *sides[i].node->ses.add_peer(sides[1 - i].node->ses.address_of(sides[1 - i].endpoint));

  std::uint64_t context = 1;
  std::uint32_t message_seed = 1;
  std::size_t operations[2] = {0, 0};
  std::size_t receives_due[2] = {0, 0};
  // Reads touch the lower half, writes the upper half in slots of their own, so results do not depend on the order.
  std::size_t write_slot[2] = {32 * kM, 32 * kM};
  std::vector<std::pair<std::size_t, Bytes*>> written[2];
  const auto post = [&](int i) {
    Side& s = sides[i];
    s.buffers.push_back(std::make_unique<Bytes>(10 * kM));
    const iovec iov = piece(*s.buffers.back());
    ReceiveRequest r;
    r.tagged = true;
    r.ignore = ~0ull;
    r.iov = {&iov, 1};
    r.context = context++;
    s.receives[r.context] = s.buffers.back().get();
    EXPECT_TRUE(s.node->ses.receive(fabric.now, s.endpoint, r));
  };
  for (int step = 0; step < 120; ++step) {
    const int i = static_cast<int>(rng.below(2));
    Side& s = sides[i];
    switch (rng.below(4)) {
      case 0: {
        const std::uint32_t id = message_seed++;
        s.buffers.push_back(std::make_unique<Bytes>(pattern(rng.below(9 * kM), id)));
        const iovec iov = piece(*s.buffers.back());
        SendRequest r;
        r.peer = s.peer;
        r.tagged = true;
        r.tag = id;
        r.data = id * 3;
        r.iov = {&iov, 1};
        r.inject = iov.iov_len <= 4096 && rng.chance(0.3);
        r.delivery_complete = rng.chance(0.2);
        r.fence = rng.chance(0.1);
        r.context = context++;
        EXPECT_TRUE(s.node->ses.send(fabric.now, s.endpoint, r));
        s.sent_seeds.push_back(id);
        ++operations[i];
        ++receives_due[1 - i];
        break;
      }
      case 1: {
        const std::size_t n = rng.below(3 * kM);
        if (write_slot[i] + n > 64 * kM) break;
        s.buffers.push_back(std::make_unique<Bytes>(pattern(n, message_seed++)));
        const iovec iov = piece(*s.buffers.back());
        RmaRequest r;
        r.peer = s.peer;
        r.iov = {&iov, 1};
        r.key = sides[1 - i].key;
        r.remote_offset = write_slot[i];
        r.context = context++;
        EXPECT_TRUE(s.node->ses.rma(fabric.now, s.endpoint, r));
        written[1 - i].emplace_back(write_slot[i], s.buffers.back().get());
        write_slot[i] += n;
        ++operations[i];
        break;
      }
      case 2: {
        const std::size_t n = rng.below(6 * kM), at = rng.below(20 * kM);
        s.buffers.push_back(std::make_unique<Bytes>(n));
        const iovec iov = piece(*s.buffers.back());
        RmaRequest r;
        r.peer = s.peer;
        r.read = true;
        r.iov = {&iov, 1};
        r.key = sides[1 - i].key;
        r.remote_offset = at;
        r.context = context++;
        EXPECT_TRUE(s.node->ses.rma(fabric.now, s.endpoint, r));
        s.reads[r.context] = {s.buffers.back().get(), at};
        ++operations[i];
        break;
      }
      default:
        if (receives_due[i] > 0) {
          --receives_due[i];
          post(i);
        }
    }
    if (rng.chance(0.3)) fabric.run_randomly();
  }
  for (int i = 0; i < 2; ++i)
    while (receives_due[i]-- > 0) post(i);
  for (int round = 0; round < 400; ++round) {
    fabric.run_randomly();
    fabric.advance(Duration::from_us(200));
  }
  const Bytes original = pattern(64 * kM, 5);
  for (int i = 0; i < 2; ++i) {
    Side& s = sides[i];
    std::size_t done = 0;
    std::vector<std::uint32_t> got;
    for (const Completion& c : s.sink.all) {
      ASSERT_EQ(c.code, ReturnCode::kOk);
      if (c.kind == OpKind::kTaggedReceive) {
        const Bytes& into = *s.receives.at(c.context);
        const Bytes expected = pattern(c.length, static_cast<std::uint32_t>(c.tag));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), into.begin()));
        EXPECT_EQ(c.data, c.tag * 3);
        got.push_back(static_cast<std::uint32_t>(c.tag));
      } else if (c.kind == OpKind::kRead) {
        const auto& [into, at] = s.reads.at(c.context);
        EXPECT_TRUE(std::equal(into->begin(), into->end(),
                               original.begin() + static_cast<std::ptrdiff_t>(at)));
        ++done;
      } else if (c.kind == OpKind::kTaggedSend || c.kind == OpKind::kWrite) {
        ++done;
      }
    }
    EXPECT_EQ(done, operations[i]);
    if (ordered) {
      // Receives are all wildcards, so messages land in the receives in the order in which they were sent.
      std::map<std::uint64_t, std::uint64_t> by_receive;
      for (const Completion& c : s.sink.all)
        if (c.kind == OpKind::kTaggedReceive) by_receive[c.context] = c.tag;
      std::vector<std::uint32_t> in_order;
      for (const auto& [receive, tag] : by_receive)
        in_order.push_back(static_cast<std::uint32_t>(tag));
      EXPECT_EQ(in_order, sides[1 - i].sent_seeds);
    } else {
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, sides[1 - i].sent_seeds);
    }
    for (const auto& [at, bytes] : written[i])
      EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(),
                             s.memory.begin() + static_cast<std::ptrdiff_t>(at)));
    const Ses::Gauges g = s.node->ses.gauges();
    EXPECT_EQ(g.sends_active, 0u);
    EXPECT_EQ(g.receives_posted, 0u);
    EXPECT_EQ(g.messages_receiving, 0u);
    EXPECT_EQ(g.unexpected_messages, 0u);
    EXPECT_EQ(g.unexpected_bytes, 0u);
    EXPECT_EQ(g.messages_held, 0u);
    EXPECT_EQ(g.messages_fetching, 0u);
    EXPECT_EQ(g.memory_regions, 1u);
    EXPECT_EQ(s.node->locks, 0);
  }
}

// Covers: SES-82
TEST_P(RandomTest, rud__everything_arrives_once) {
  run_mix(GetParam(), Kept::kNot);
}

TEST_P(RandomTest, rod__everything_arrives_once_and_sends_in_order) {
  run_mix(GetParam(), Kept::kByContext);
}

TEST_P(RandomTest, sprayed__everything_arrives_once_and_sends_in_order) {
  run_mix(GetParam(), Kept::kByNumbers);
}

TEST_P(RandomTest, rendezvous__everything_arrives_once_and_sends_in_order) {
  for (const Kept kept : {Kept::kNot, Kept::kByContext, Kept::kByNumbers})
    run_mix(GetParam(), kept, true);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTest, ::testing::Range<std::uint64_t>(1, 61));

/// Headers made of chosen and random values, straight into the target: nothing may crash, hang or leak.
TEST(HostileTest, random_requests_change_nothing_but_counters) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Rng rng(seed);
    Fabric fabric(seed, kM);
    SesConfig config = tight();
    config.rendezvous =
        seed % 2 == 0;  // what is read of the source is lost, or acknowledged and never sent
    config.max_fetches = 4;
    config.message_idle = Duration::from_seconds(10);
    fabric.deaf = net::FabricAddress::from_v4(0x0a000063);
    Node& node = fabric.add_node(config);
    Recorder sink;
    EndpointConfig c;
    c.job_id = 7;
    c.resource_index = 5;
    const EndpointId endpoint = *node.ses.open_endpoint(fabric.now, c, sink);
    Address source = node.ses.address_of(endpoint);
    source.fabric_address = *fabric.deaf;
    source.initiator_id = RawRequest().initiator;
    ASSERT_TRUE(node.ses.add_peer(source));
    Bytes memory(4 * kM), guard_low(kM, 0xaa);
    const iovec iov = piece(memory);
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = m.remote_write = true;
    m.virtual_addressing = false;
    m.key = 1;
    ASSERT_TRUE(node.ses.register_memory(m));
    std::vector<Bytes> buffers(64, Bytes(2 * kM));
    for (int i = 0; i < 20000; ++i) {
      RawRequest r;
      r.opcode = static_cast<SesOpcode>(rng.below(rng.chance(0.1) ? 64 : 16));
      r.version = rng.chance(0.02) ? 1 : 0;
      r.dc = rng.chance(0.1);
      r.ie = rng.chance(0.05);
      r.hd = rng.chance(0.2);
      r.som = rng.chance(0.4);
      r.eom = rng.chance(0.4);
      r.rel = rng.chance(0.98);
      r.message_id = static_cast<std::uint16_t>(rng.below(6));
      r.generation = static_cast<std::uint8_t>(rng.chance(0.9) ? 0 : rng.below(4));
      r.key = rng.below(3);
      r.buffer_offset = rng.chance(0.7) ? 0 : rng.chance(0.5) ? rng.below(8 * kM) : rng.next_u64();
      r.length = rng.chance(0.9) ? rng.below(5 * kM) : rng.next_u32();
      r.offset = rng.chance(0.8) ? rng.below(5) * kM : rng.next_u32();
      r.payload = Bytes(rng.chance(0.6) ? kM : rng.below(kM + 200));
      if (rng.chance(0.1)) r.covered = static_cast<std::uint16_t>(rng.below(0x4000));
      if (config.rendezvous && rng.chance(0.3)) {
        r.opcode = rng.chance(0.5) ? SesOpcode::kRendezvousSend : SesOpcode::kRendezvousTsend;
        r.rendezvous.emplace();
        r.rendezvous->eager_length = rng.chance(0.5) ? r.length : rng.below(3 * kM);
        r.rendezvous->read_resource_index = static_cast<std::uint16_t>(rng.below(4096));
        r.rendezvous->read_offset = rng.next_u64();
      }
      Bytes bytes;
      auto form = wire::NextHdr::kRequestStd;
      switch (rng.below(8)) {
        case 0:
          bytes = encode_medium(r);
          form = wire::NextHdr::kRequestMedium;
          break;
        case 1:
          bytes = encode_small(r);
          form = wire::NextHdr::kRequestSmall;
          break;
        default:
          bytes = encode(r);
      }
      if (rng.chance(0.05)) bytes.resize(rng.below(static_cast<std::uint32_t>(bytes.size())));
      if (rng.chance(0.05)) form = static_cast<wire::NextHdr>(rng.below(16));
      pds::RxRequest packet;
      packet.handle = {pds::PdcRef{1}, base::Psn(static_cast<std::uint32_t>(i)), false};
      packet.mode = static_cast<pds::Mode>(rng.chance(0.8) ? rng.below(2) : rng.below(4));
      packet.next_hdr = static_cast<std::uint8_t>(form);
      packet.source = net::FabricAddress::from_v4(0x0a000063);
      packet.is_proven = rng.chance(0.5);
      packet.bytes = bytes;
      (void)node.ses.on_request(fabric.now, packet);
      if (rng.chance(0.02)) {
        Bytes& into = buffers[rng.below(64)];
        const iovec to = piece(into);
        ReceiveRequest rr;
        rr.tagged = rng.chance(0.5);
        rr.ignore = rng.chance(0.5) ? ~0ull : 0;
        rr.multi_recv = rng.chance(0.2);
        rr.iov = {&to, 1};
        rr.context = rng.below(50);
        if (!rr.tagged && rng.chance(0.9)) (void)node.ses.receive(fabric.now, endpoint, rr);
        (void)node.ses.cancel(fabric.now, endpoint, rng.below(50));
      }
      if (rng.chance(0.001)) fabric.advance(Duration::from_seconds(2));
      if (!fabric.unheard.empty() && rng.chance(0.05)) {
        const pds::TxMessage read = fabric.unheard.back().message;
        fabric.unheard.pop_back();
        if (rng.chance(0.5))
          node.ses.on_message_error(fabric.now, read.token, pds::PdsError::kPeerSilent);
        else
          for (std::uint32_t n = 0; n < read.segments; ++n)
            node.ses.on_response(fabric.now, read.token, n, 0, {});
      }
    }
    EXPECT_LE(node.ses.gauges().sends_active, 4u);
    EXPECT_LE(node.ses.gauges().messages_receiving, 6u);
    EXPECT_LE(node.ses.gauges().unexpected_messages, 16u);
    node.ses.on_pdc_gone(fabric.now, pds::PdcRef{1}, net::FabricAddress::from_v4(0x0a000063),
                         pds::PdsError::kPeerLost);
    EXPECT_EQ(node.ses.gauges().messages_receiving, 0u);
    node.ses.close_endpoint(fabric.now, endpoint);
    EXPECT_EQ(node.ses.gauges().messages_fetching, 0u);
    EXPECT_EQ(node.ses.gauges().receives_posted, 0u);
    EXPECT_EQ(node.ses.gauges().unexpected_messages, 0u);
    for (const Fabric::Unheard& read : std::exchange(fabric.unheard, {}))
      node.ses.on_message_error(fabric.now, read.message.token, pds::PdsError::kPeerSilent);
    EXPECT_EQ(node.ses.gauges().sends_active, 0u);
    EXPECT_EQ(guard_low, Bytes(kM, 0xaa));
  }
}

}  // namespace
}  // namespace uet::ses::testing
