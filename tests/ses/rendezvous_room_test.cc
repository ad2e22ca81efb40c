// Messages for which the target had no room begin again as a rendezvous; peers that do not know it, and peers that lie.
// [SES 9, decision 142]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig small_store() {
  SesConfig c;
  c.rendezvous = true;
  c.overflow_bytes = 8 * kM;
  c.overflow_msgs = 1000;
  c.retry_backoff_min = Duration::from_ms(1);
  c.message_idle = Duration::from_seconds(10);
  return c;
}

enum class Way { kUnordered, kOrdered, kNumbered };

struct RoomTest : PairTest, ::testing::WithParamInterface<Way> {
  explicit RoomTest(SesConfig c = small_store()) : PairTest(adapted(c)) {}
  static SesConfig adapted(SesConfig c) {
    c.spray_ordered = GetParam() == Way::kNumbered;
    return c;
  }
  void open_pair() {
    EndpointConfig c = standard_endpoint();
    c.sends_ordered = GetParam() != Way::kUnordered;
    open(c);
  }
  std::size_t peek_length(std::uint64_t tag) {
    PeekRequest r;
    r.tag = tag;
    r.context = 900;
    EXPECT_TRUE(sb().peek(fabric.now, eb, r));
    const Completion seen = at_b.all.back();
    at_b.all.pop_back();
    return seen.code == ReturnCode::kOk ? seen.length : 0;
  }
  void receive_and_expect(const Bytes& message, std::uint64_t tag) {
    Bytes into(message.size());
    tpost(into, tag);
    fabric.run_for(Duration::from_ms(50));
    EXPECT_EQ(into, message) << tag;
  }
};
std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  constexpr std::array kNames = {"unordered", "ordered", "numbered"};
  return kNames[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Ways, RoomTest,
                         ::testing::Values(Way::kUnordered, Way::kOrdered, Way::kNumbered),
                         name_of);

// A message that is longer than the store: it is seen, is received when its turn comes, and holds up none behind it.
TEST_P(RoomTest, message_larger_than_the_store__holds_up_no_other) {
  open_pair();
  const Bytes large = pattern(40 * kM, 1), small = pattern(100, 2), larger = pattern(90 * kM, 3);
  tsend(large, 1, 1, 11);
  tsend(small, 2, 2);
  tsend(larger, 3, 3);
  fabric.run_for(Duration::from_ms(50));
  EXPECT_EQ(peek_length(1), large.size());
  EXPECT_EQ(peek_length(2), small.size());
  EXPECT_EQ(peek_length(3), larger.size());
  EXPECT_EQ(sb().gauges().header_only_messages, 0u);
  const std::size_t sent = fabric.sent_log.size();
  fabric.run_for(Duration::from_seconds(5));
  EXPECT_EQ(fabric.sent_log.size(), sent);  // nothing is sent in vain while it waits
  receive_and_expect(larger, 3);
  receive_and_expect(small, 2);
  receive_and_expect(large, 1);
  EXPECT_EQ(at_b.find(OpKind::kTaggedReceive)->length, larger.size());
  EXPECT_EQ(at_a.all.size(), 3u);
  for (const Completion& c : at_a.all) EXPECT_EQ(c.code, ReturnCode::kOk);
  expect_nothing_left();
}

// The store is full to the last byte, or nearly: what comes then is announced all the same, and receives may be posted in any order.
TEST_P(RoomTest, announcement__needs_no_bytes_of_the_store) {
  open_pair();
  constexpr std::uint64_t kSends = 5;
  std::size_t messages = 0;
  for (std::size_t first = 5 * kM; first <= 8 * kM; first += kM / 4) {
    SCOPED_TRACE(first);
    std::vector<Bytes> sent;
    for (std::uint32_t i = 0; i < kSends; ++i) {
      sent.push_back(pattern(i == 0 ? first : 20 * kM, i));
      tsend(sent.back(), i, 1 + i);
    }
    fabric.run_for(Duration::from_ms(50));
    for (std::uint64_t i = kSends; i-- > 0;) receive_and_expect(sent[i], i);
    messages += kSends;
    EXPECT_EQ(at_a.all.size(), messages);
  }
  expect_nothing_left();
}

// Many that do not fit all together: order is kept among those that were refused and those that came as they are.
TEST_P(RoomTest, order__is_kept_among_both_kinds) {
  open_pair();
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < 40; ++i) messages.push_back(pattern(1 + (i * 977) % (3 * kM), i));
  for (std::uint32_t i = 0; i < 40; ++i) tsend(messages[i], i, 1 + i);
  fabric.run_for(Duration::from_ms(100));
  std::vector<Bytes> into(40, Bytes(3 * kM));
  for (std::uint32_t i = 0; i < 40; ++i) tpost(into[i], 0, ~0ull, 100 + i);
  fabric.run_for(Duration::from_ms(500));
  ASSERT_EQ(at_b.all.size(), 40u);
  for (const Completion& c : at_b.all) {
    const Bytes& message = messages[c.tag];
    EXPECT_TRUE(std::equal(message.begin(), message.end(), into[c.context - 100].begin()));
    if (GetParam() != Way::kUnordered) {
      EXPECT_EQ(c.tag, c.context - 100);
    }
  }
  EXPECT_EQ(at_a.all.size(), 40u);
  expect_nothing_left();
}

// Its header was claimed, or discarded, before it came again.
TEST_P(RoomTest, claim__of_a_header_that_came_as_it_is) {
  open_pair();
  for (const bool discard : {false, true}) {
    at_a.all.clear();
    const Bytes large = pattern(40 * kM, 1);
    tsend(large, 1, 1);
    for (int i = 0; i < 1000 && sb().gauges().header_only_messages == 0; ++i) {
      fabric.cut_one_each();
      fabric.deliver(0);
      fabric.advance(Duration());
    }
    PeekRequest r;
    r.tag = 1;
    r.action = discard ? PeekAction::kDiscard : PeekAction::kClaim;
    r.context = 60;
    ASSERT_TRUE(sb().peek(fabric.now, eb, r));
    Bytes into(40 * kM);
    const iovec iov = piece(into);
    ReceiveRequest claim;
    claim.tagged = true;
    claim.iov = {&iov, 1};
    claim.context = 60;
    if (!discard) {
      ASSERT_TRUE(sb().claim_receive(fabric.now, eb, claim, false));
    }
    fabric.run_for(Duration::from_ms(50));
    EXPECT_EQ(into == large, !discard);
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    expect_nothing_left();
  }
}

// The address promises what the target does not do: it is asked once, and the message goes as it is.
TEST_P(RoomTest, target_that_only_claims_to_fetch) {
  SesConfig without = adapted(small_store());
  without.rendezvous = false;
  Node& c = fabric.add_node(without);
  Recorder at_c;
  EndpointConfig config = standard_endpoint();
  config.sends_ordered = GetParam() != Way::kUnordered;
  config.initiator_id = 3;
  ea = *a.ses.open_endpoint(fabric.now, config, at_a);
  config.initiator_id = 9;
  const EndpointId ec = *c.ses.open_endpoint(fabric.now, config, at_c);
  for (const std::uint16_t claim : {kFetchesRendezvous, std::uint16_t{0b100}}) {
    at_a.all.clear();
    Address address = c.ses.address_of(ec);
    EXPECT_EQ(address.fep_cap & kFetchesRendezvous, 0);
    address.fep_cap |= claim;
    b_of_a = *a.ses.add_peer(address);
    const Bytes one = pattern(20 * kM, 1), two = pattern(15 * kM, 2);
    tsend(one, 1, 1);
    tsend(two, 2, 2);
    fabric.run_for(Duration::from_ms(100));
    Bytes into_one(20 * kM), into_two(15 * kM);
    const auto post_at_c = [&](Bytes& into, std::uint64_t tag) {
      const iovec iov = piece(into);
      ReceiveRequest r;
      r.tagged = true;
      r.tag = tag;
      r.iov = {&iov, 1};
      ASSERT_TRUE(c.ses.receive(fabric.now, ec, r));
    };
    post_at_c(into_one, 1);
    post_at_c(into_two, 2);
    fabric.run_for(Duration::from_seconds(5));
    EXPECT_EQ(into_one, one);
    EXPECT_EQ(into_two, two);
    EXPECT_EQ(at_a.all.size(), 2u);
  }
  std::size_t refused = 0;
  for (const Flight& f : fabric.sent_log)
    refused += f.next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kRequestStd) &&
                       !f.channel->is_return && f.view(kM).kind == OpcodeClass::kRendezvous
                   ? 1
                   : 0;
  EXPECT_GT(refused, 0u);
  EXPECT_LE(refused, 8u);  // each message once for each address at most
  EXPECT_EQ(a.ses.gauges().memory_regions, 0u);
}

// On an ordered lane nothing passes a rendezvous that turns out not to be known.
TEST_P(RoomTest, order__is_kept_where_the_target_only_claims_to_fetch) {
  SesConfig from_20k = adapted(small_store());
  from_20k.rendezvous_from = 20 * kM;
  SesConfig without = adapted(small_store());
  without.rendezvous = false;
  without.overflow_bytes = 1000 * kM;
  Node& c = fabric.add_node(from_20k);
  Node& d = fabric.add_node(without);
  Recorder at_c, at_d;
  EndpointConfig config = standard_endpoint();
  config.sends_ordered = GetParam() != Way::kUnordered;
  const EndpointId ec = *c.ses.open_endpoint(fabric.now, config, at_c);
  const EndpointId ed = *d.ses.open_endpoint(fabric.now, config, at_d);
  Address address = d.ses.address_of(ed);
  address.fep_cap |= kFetchesRendezvous;
  const PeerId d_of_c = *c.ses.add_peer(address);
  std::vector<Bytes> messages, into(10, Bytes(30 * kM));
  for (std::uint32_t i = 0; i < 10; ++i) messages.push_back(pattern(i % 3 == 1 ? 30 * kM : 10, i));
  for (std::uint32_t i = 0; i < 10; ++i) {
    const iovec to = piece(into[i]), from = piece(messages[i]);
    ASSERT_TRUE(d.ses.receive(fabric.now, ed,
                              {.tagged = true, .ignore = ~0ull, .iov = {&to, 1}, .context = i}));
    ASSERT_TRUE(
        c.ses.send(fabric.now, ec, {.peer = d_of_c, .tagged = true, .tag = i, .iov = {&from, 1}}));
  }
  fabric.run_for(Duration::from_seconds(1));
  ASSERT_EQ(at_d.all.size(), 10u);
  EXPECT_EQ(at_c.all.size(), 10u);
  for (const Completion& got : at_d.all) {
    EXPECT_EQ(got.code, ReturnCode::kOk);
    if (GetParam() != Way::kUnordered) {
      EXPECT_EQ(got.context, got.tag);
    }
  }
}

// --- What a source may do to the target

struct LyingSourceTest : PairTest {
  LyingSourceTest() : PairTest(small_store()) {
    fabric.deaf = net::FabricAddress::from_v4(0x0a000063);
  }

  void open_pair() {
    open();
    Address liar = sa().address_of(ea);
    liar.fabric_address = *fabric.deaf;
    ASSERT_TRUE(sb().add_peer(liar));
  }
  RawRequest offer(std::uint64_t tag, std::uint32_t length) {
    RawRequest r;
    r.opcode = SesOpcode::kRendezvousTsend;
    r.message_id = static_cast<std::uint16_t>(1 + fabric.unheard.size() + tag);
    r.key = tag;
    r.length = length;
    r.rendezvous.emplace();
    r.rendezvous->read_resource_index = 9;
    r.rendezvous->read_memory_key = 0x1234;
    return r;
  }
};

TEST_F(LyingSourceTest, malformed__changes_nothing) {
  open_pair();
  Bytes into(4 * kM);
  tpost(into, 1);
  RawRequest r = offer(1, kM);
  r.rendezvous->eager_length = kM + 1;  // more than there is
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  r = offer(1, 4 * kM);
  r.rendezvous->eager_length = 2 * kM;  // the first packet is no full one
  r.eom = false;
  r.payload.resize(kM - 1);
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  r.payload.resize(kM);
  r.som = false;
  r.eom = true;
  r.offset = 2 * kM;  // behind the eager part
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  Bytes cut = encode(offer(1, kM));
  cut.pop_back();
  EXPECT_EQ(view(inject_bytes(cut, wire::NextHdr::kRequestStd)).code, ReturnCode::kUnsupportedOp);
  RawRequest medium = offer(1, 0);
  EXPECT_EQ(view(inject_bytes(encode_medium(medium), wire::NextHdr::kRequestMedium)).code,
            ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
  EXPECT_TRUE(fabric.unheard.empty());
  // A later packet says something else of the eager part.
  r = offer(1, 4 * kM);
  r.message_id = 500;
  r.rendezvous->eager_length = 3 * kM;
  r.eom = false;
  r.payload.resize(kM);
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  r.som = false;
  r.eom = true;
  r.offset = kM;
  r.rendezvous->eager_length = 2 * kM;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().messages_fetching, 0u);
}

// Who is not among the peers may be anywhere, or nowhere.
TEST_F(LyingSourceTest, stranger__is_not_read_from) {
  open();
  Bytes into(4 * kM);
  tpost(into, 1);
  EXPECT_EQ(code_of(offer(1, kM)), ReturnCode::kUnsupportedOp);
  RawRequest other = offer(1, kM);
  Address known = sa().address_of(ea);
  known.fabric_address = *fabric.deaf;
  ASSERT_TRUE(sb().add_peer(known));
  other.initiator = 99;  // of a known address, but not who is there
  EXPECT_EQ(code_of(other), ReturnCode::kUnsupportedOp);
  fabric.advance(Duration::from_ms(1));
  EXPECT_TRUE(fabric.unheard.empty());
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
}

// Nothing is read before a receive takes the message; then one packet only, until the source has shown that it is there.
TEST_F(LyingSourceTest, source_that_never_served__is_asked_for_one_packet) {
  open_pair();
  EXPECT_EQ(code_of(offer(1, 1u << 30)), ReturnCode::kOk);
  fabric.advance(Duration::from_ms(1));
  EXPECT_TRUE(fabric.unheard.empty());
  Bytes into(64 * kM);
  tpost(into, 1);
  fabric.advance(Duration::from_ms(1));
  ASSERT_EQ(fabric.unheard.size(), 1u);
  EXPECT_EQ(fabric.unheard[0].message.segments, 1u);
  EXPECT_EQ(fabric.unheard[0].message.destination, *fabric.deaf);
}

TEST_F(LyingSourceTest, reads__are_bounded_and_leave_places_to_others) {
  open_pair();
  std::vector<Bytes> into(400, Bytes(kM));
  for (std::uint64_t i = 0; i < into.size(); ++i) {
    tpost(into[i], i, 0, 1000 + i);
    EXPECT_EQ(code_of(offer(i, kM)), ReturnCode::kOk);
  }
  fabric.advance(Duration::from_ms(1));
  EXPECT_EQ(fabric.unheard.size(), 128u);
  EXPECT_EQ(sb().gauges().messages_fetching, 400u);
  // Another pair is served meanwhile, and B's own operations find their descriptors.
  const Bytes large = pattern(40 * kM, 1);
  tsend(large, 5000, 1);
  Bytes other(40 * kM);
  tpost(other, 5000);
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(other, large);
  EXPECT_EQ(sb().free_sends(), SesConfig().max_sends);
  // In the end the receives are given back.
  for (int i = 0; i < 60; ++i) fabric.advance(Duration::from_ms(1500));
  EXPECT_EQ(at_b.all.size(), 401u);
  EXPECT_EQ(
      std::count_if(at_b.all.begin(), at_b.all.end(),
                    [](const Completion& c) { return c.code == ReturnCode::kMessageTimeout; }),
      400);
  EXPECT_EQ(sb().gauges().messages_fetching, 0u);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
  // What the carrier still has of them goes with the PDC.
  const auto left = fabric.unheard;
  for (const auto& m : left)
    b.ses.on_message_error(fabric.now, m.message.token, pds::PdsError::kPeerSilent);
  EXPECT_EQ(sb().gauges().sends_active, 0u);
}

// An unmatched one takes a descriptor and what came with it of its source's share, and no more.
TEST_F(LyingSourceTest, unmatched__stay_within_the_share_of_their_source) {
  open_pair();
  std::size_t taken = 0;
  for (std::uint64_t i = 0; i < 2000; ++i)
    taken += code_of(offer(i, 1u << 31)) == ReturnCode::kOk ? 1 : 0;
  EXPECT_EQ(taken, 876u);  // seven eighths of 1000
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  send(pattern(100, 1));
  fabric.run();
  EXPECT_EQ(at_a.all.size(), 1u);
  sb().close_endpoint(fabric.now, eb);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
