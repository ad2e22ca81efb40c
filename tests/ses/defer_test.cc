// Sends that the target puts off, and has sent again when it has a receive. [SES 8]
#include <algorithm>
#include <set>

#include "tests/ses/defer_fixture.h"

namespace uet::ses::testing {
namespace {

// Covers: SES-54
TEST_F(DeferTest, no_buffer__initiator_stops_closes_and_waits) {
  open();
  tsend(message, 5);
  for (int i = 0; i < 3; ++i) fabric.cut_one_each();
  fabric.deliver(0);
  const ResponseView answer = fabric.reply_log.at(0).view();
  EXPECT_EQ(answer.code, ReturnCode::kOk);
  EXPECT_EQ(answer.list, ResponseList::kOverflow);
  EXPECT_EQ(answer.modified_length, 0u);
  EXPECT_TRUE(fabric.reply_log[0].guaranteed);
  fabric.reply(0);
  fabric.advance(Duration());
  fabric.run();
  const auto sent = sent_by(a);
  ASSERT_EQ(sent.size(), 4u);
  const RequestView& closing = sent[3];
  EXPECT_EQ(closing.opcode, SesOpcode::kDeferrableTsend);
  EXPECT_EQ(closing.message_id, sent[0].message_id);
  EXPECT_TRUE(!closing.som && closing.eom && closing.payload.empty());
  EXPECT_EQ(closing.message_offset, 3 * kM);
  EXPECT_NE(sent[0].initiator_token, 0u);
  for (const RequestView& r : sent) {
    EXPECT_EQ(r.initiator_token, sent[0].initiator_token);
    EXPECT_EQ(r.target_token, 0u);
  }
  // No byte is kept, no message is under way, and nothing is sent while it waits.
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  EXPECT_TRUE(sa().next_deadline().is_never());
  fabric.run_for(Duration::from_seconds(5));
  EXPECT_EQ(sent_by(a).size(), 4u);
  EXPECT_TRUE(at_a.all.empty());
  PeekRequest peek;
  peek.tag = 5;
  ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
  EXPECT_EQ(at_b.all.back().length, message.size());
}

// What is put off comes no second time before it is asked for.
TEST_F(DeferTest, peek__has_the_data_of_a_message_whose_first_packet_came_late) {
  open();
  tsend(message, 5, 1, 77);
  fabric.cut_all();
  fabric.deliver(1);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);  // longer than what is kept of such messages
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  PeekRequest peek;
  peek.tag = 5;
  ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all.back().data, 77u);
  tpost(into, 5);
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(at_b.all.back().data, 77u);
  EXPECT_EQ(into, message);
}

// Covers: SES-55
TEST_F(DeferTest, receive__has_the_whole_message_sent_again) {
  const auto first = put_off(77);
  const std::size_t before = first.size();
  tpost(into, 5);
  fabric.run();
  const auto asked = sent_by(b);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].opcode, SesOpcode::kDeferrableRtr);
  EXPECT_TRUE(asked[0].som && asked[0].eom);
  EXPECT_EQ(asked[0].request_length, 0u);
  EXPECT_EQ(asked[0].buffer_offset, 0u);
  EXPECT_EQ(asked[0].initiator, 4u);
  EXPECT_EQ(asked[0].mkey_match >> 32, first[0].initiator_token);
  EXPECT_NE(asked[0].target_token, 0u);
  const auto all = sent_by(a);
  ASSERT_EQ(all.size(), before + 10);
  EXPECT_TRUE(all[before].som);
  EXPECT_NE(all[before].message_id, first[0].message_id);
  EXPECT_EQ(tokens_of(all[before]), tokens_of(asked[0]));
  EXPECT_EQ(tokens_of(all.back()), tokens_of(asked[0]));
  ASSERT_FALSE(at_b.all.empty());
  EXPECT_EQ(at_b.all[0].data, 77u);
  EXPECT_EQ(at_b.all[0].tag, 5u);
  expect_one_completion_each();
}

// Covers: SES-56
TEST_F(DeferTest, restart__of_what_is_not_known_is_refused) {
  const auto first = put_off();
  const std::uint64_t right = std::uint64_t{first[0].initiator_token} << 32 | 99;
  const std::size_t sent = fabric.sent_log.size();
  EXPECT_EQ(restart(right + (std::uint64_t{1} << 48)), ReturnCode::kOpViolation);
  EXPECT_EQ(restart(right + (std::uint64_t{1} << 32)), ReturnCode::kOpViolation);
  EXPECT_EQ(restart(right, 7, 99), ReturnCode::kOpViolation);
  EXPECT_NE(restart(right, 8), ReturnCode::kOk);
  fabric.run();
  EXPECT_EQ(fabric.sent_log.size(), sent);
  tpost(into, 5);
  fabric.run();
  expect_one_completion_each();
  EXPECT_EQ(restart(right), ReturnCode::kOpViolation);
}

// The target has no buffer under the token that it names, and says so.
TEST_F(DeferTest, restarted_message__with_a_token_that_was_not_given) {
  const auto first = put_off();
  EXPECT_EQ(restart(std::uint64_t{first[0].initiator_token} << 32 | 99), ReturnCode::kOk);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOpViolation);
}

// [SES 22.2] An older draft has the tokens the other way round.
TEST_F(DeferTest, restart__tokens_in_the_old_order) {
  restart_with([](auto& h) { h.mkey_match = h.mkey_match << 32 | h.mkey_match >> 32; });
  expect_one_completion_each();
}

// [WIRE 5.8] Its length is to be ignored: one peer leaves it 0, another names that of the message.
TEST_F(DeferTest, restart__with_the_length_of_the_message) {
  restart_with([this](auto& h) { h.request_length = static_cast<std::uint32_t>(message.size()); });
  expect_one_completion_each();
}

// The target completes its receive with the error, and asks no second time: without an end of its own the send would wait for ever.
TEST_F(DeferTest, restart__that_is_refused_ends_the_send) {
  restart_with([](auto& h) { h.ie = true; });
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kInitiatorErr);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_NE(at_b.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// Covers: SES-57
TEST_F(DeferTest, restarted_message__is_not_put_off_again) {
  const auto first = put_off();
  tpost(into, 5);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);
  fabric.advance(Duration());
  fabric.cut_one_each();
  ASSERT_EQ(fabric.flights.size(), 1u);
  const RequestView again = fabric.flights[0].view(kM);
  ASSERT_NE(again.target_token, 0u);
  // A target that has no buffer for it after all breaks its word.
  const auto answer = answer_ok(again, ResponseList::kOverflow, 0).response;
  sa().on_response(fabric.now, fabric.flights[0].token, 0, answer.next_hdr,
                   {answer.header.data(), answer.header_bytes});
  fabric.flights.clear();
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOpViolation);
  // And ours refuses a message with a token that has been used or belongs to another.
  RawRequest r{.opcode = SesOpcode::kDeferrableTsend,
               .message_id = 9,
               .buffer_offset = tokens_of(again),
               .key = 5,
               .length = 10 * kM,
               .payload = pattern(kM)};
  r.eom = false;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
}

// Covers: SES-59
TEST_F(DeferTest, receive__two_minutes_later) {
  put_off();
  fabric.run_for(Duration::from_seconds(120));
  tpost(into, 5);
  fabric.run();
  expect_one_completion_each();
}

struct LimitedDeferTest : DeferTest {
  static SesConfig limited() {
    SesConfig c = deferring();
    c.restart_limit = Duration::from_seconds(5);
    return c;
  }
  LimitedDeferTest() : DeferTest(limited()) {}
};

// Covers: SES-59
TEST_F(LimitedDeferTest, restart__comes_too_late) {
  const auto first = put_off();
  fabric.run_for(Duration::from_seconds(4));
  EXPECT_TRUE(at_a.all.empty());
  fabric.run_for(Duration::from_seconds(2));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(restart(std::uint64_t{first[0].initiator_token} << 32 | 1), ReturnCode::kOpViolation);
  tpost(into, 5);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOpViolation);
  expect_nothing_left();
}

struct PlainPairTest : PairTest {
  explicit PlainPairTest(bool ordered = false) : PairTest(SesConfig{}) {
    EndpointConfig c = standard_endpoint();
    c.sends_ordered = ordered;
    open(c);
  }
  /// B, as one that says of itself what `change` sets.
  template <typename Change>
  PeerId peer(Change change) {
    Address address = sb().address_of(eb);
    change(address);
    return *sa().add_peer(address);
  }
  PostResult<Posted> send_to(PeerId to, std::size_t bytes) {
    kept.push_back(std::make_unique<Bytes>(pattern(bytes)));
    const iovec iov = piece(*kept.back());
    SendRequest r;
    r.peer = to;
    r.iov = {&iov, 1};
    return sa().send(fabric.now, ea, r);
  }
};

void make_ai(Address& a) {
  a.fep_cap = kAiBase;
}
void make_one_packet(Address& a) {
  a.one_packet_messages = true;
}

// Covers: SES-83
TEST_F(PlainPairTest, sends__to_peers_that_take_one_packet_are_deferrable) {
  const auto opcodes_to = [&](PeerId to) {
    std::set<SesOpcode> opcodes;
    for (const std::size_t bytes : {kM, 3 * kM}) {
      fabric.sent_log.clear();
      EXPECT_TRUE(send_to(to, bytes));
      fabric.cut_all();
      for (const Flight& f : fabric.sent_log) opcodes.insert(f.view(kM).opcode);
      fabric.run();
    }
    return opcodes;
  };
  const std::set<SesOpcode> plain{SesOpcode::kSend};
  const std::set<SesOpcode> both{SesOpcode::kSend, SesOpcode::kDeferrableSend};
  EXPECT_EQ(opcodes_to(peer([](Address&) {})), plain);
  EXPECT_EQ(opcodes_to(peer([](Address& address) { address.fep_cap = kProfiles; })), plain);
  EXPECT_EQ(opcodes_to(peer(make_ai)), both);
  EXPECT_EQ(opcodes_to(peer(make_one_packet)), both);
}

struct OrderedPairTest : PlainPairTest {
  OrderedPairTest() : PlainPairTest(true) {}
};

// What is put off would come behind what was sent later.
TEST_F(OrderedPairTest, sends__of_several_packets_to_such_peers_are_refused) {
  EXPECT_TRUE(send_to(peer([](Address&) {}), kM + 1));
  for (const PeerId to : {peer(make_ai), peer(make_one_packet)}) {
    EXPECT_TRUE(send_to(to, kM));
    const auto refused = send_to(to, kM + 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), PostError::kTooLong);
  }
}

// Covers: SES-83
TEST_F(DeferTest, sends__of_more_than_one_packet_are_deferrable) {
  open();
  send(pattern(kM));
  send(pattern(kM + 1));
  tsend(pattern(kM), 1);
  tsend(pattern(kM + 1), 1);
  fabric.run();
  const auto sent = sent_by(a);
  const auto count = [&](SesOpcode opcode) {
    return std::count_if(sent.begin(), sent.end(),
                         [&](const RequestView& r) { return r.opcode == opcode && r.som; });
  };
  EXPECT_EQ(count(SesOpcode::kSend), 1);
  EXPECT_EQ(count(SesOpcode::kDeferrableSend), 1);
  EXPECT_EQ(count(SesOpcode::kTaggedSend), 1);
  EXPECT_EQ(count(SesOpcode::kDeferrableTsend), 1);
}

TEST_F(DeferTest, short_receive__is_filled_and_told) {
  put_off();
  Bytes small(3 * kM + 7);
  tpost(small, 5);
  fabric.run();
  EXPECT_TRUE(std::equal(small.begin(), small.end(), message.begin()));
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kTruncated);
  EXPECT_EQ(at_b.all[0].length, small.size());
  EXPECT_EQ(at_b.all[0].overflow_length, message.size() - small.size());
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// [SES 22.9] Its initiator shall not wait for ever.
TEST_F(DeferTest, discard__the_message_is_sent_to_be_discarded) {
  put_off();
  discard_and_expect_ok();
}

struct KeepingDeferTest : DeferTest {
  static SesConfig keeping() {
    SesConfig c = deferring();
    c.overflow_max = 1 << 20;
    return c;
  }
  KeepingDeferTest() : DeferTest(keeping()) {}
};

// Nor shall it take a message that was kept in part, and discarded then, for one that was put off.
TEST_F(KeepingDeferTest, discard__of_a_message_that_is_still_arriving) {
  open();
  tsend(message, 5);
  fabric.cut_one_each();
  fabric.deliver(0);
  discard_and_expect_ok();
}

TEST_F(DeferTest, claim__has_the_message_sent_again) {
  put_off();
  PeekRequest claim;
  claim.tag = 5;
  claim.action = PeekAction::kClaim;
  claim.context = 60;
  ASSERT_TRUE(sb().peek(fabric.now, eb, claim));
  at_b.all.clear();
  const iovec iov = piece(into);
  ReceiveRequest r;
  r.tagged = true;
  r.iov = {&iov, 1};
  r.context = 60;
  ASSERT_TRUE(sb().claim_receive(fabric.now, eb, r, false));
  fabric.run();
  expect_one_completion_each();
}

// What one peer may have put off is bounded; the rest is refused until there is a receive, as it is for all other peers.
TEST_F(DeferTest, bound__of_one_peer) {
  open();
  constexpr std::uint64_t kSends = 20;
  for (std::uint64_t i = 0; i < kSends; ++i) tsend(message, i, 1 + i);
  fabric.run_for(Duration::from_ms(5));
  EXPECT_EQ(at_a.all.size(), kSends - SesConfig{}.max_deferred_of_peer);  // kept whole
  std::vector<Bytes> buffers(kSends, Bytes(message.size()));
  for (std::uint64_t i = 0; i < kSends; ++i) tpost(buffers[i], i, 0, 100 + i);
  fabric.run_for(Duration::from_ms(50));
  for (const Bytes& buffer : buffers) EXPECT_EQ(buffer, message);
  EXPECT_EQ(at_a.all.size(), kSends);
  EXPECT_EQ(at_b.all.size(), kSends);
  expect_nothing_left();
}

// A stranger's message cannot be asked for: it is kept, or refused.
TEST_F(DeferTest, stranger__is_not_put_off) {
  open();
  RawRequest r{.opcode = SesOpcode::kDeferrableSend,
               .buffer_offset = std::uint64_t{9} << 32,
               .initiator = 99,
               .length = 2 * kM,
               .payload = pattern(kM)};
  r.eom = false;
  EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kNoResponse);
  EXPECT_GT(sb().gauges().unexpected_bytes, 0u);
}

// An initiator that never sends again loses its receive to the clock; what was put off at a closed endpoint goes with it.
TEST_F(DeferTest, initiator__that_does_not_send_again) {
  put_off();
  sa().close_endpoint(fabric.now, ea);
  ASSERT_TRUE(at_a.all.empty());
  tpost(into, 5);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_NE(at_b.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// The target closes its endpoint while it asks, and while the message comes again.
TEST_F(DeferTest, close_of_the_target__in_the_middle) {
  put_off();
  tpost(into, 5);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 1u);
  fabric.deliver(0);
  fabric.cut_one_each();
  sb().close_endpoint(fabric.now, eb);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_NE(at_a.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// Any order of packets, answers, requests and receives.
TEST_F(DeferTest, random__everything_arrives_once) {
  open();
  constexpr std::uint32_t kSends = 60;
  base::Rng rng(5);
  std::vector<Bytes> messages, buffers;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    messages.push_back(pattern(rng.below(6 * kM), i));
    buffers.emplace_back(messages.back().size());
  }
  for (std::uint32_t i = 0; i < kSends; ++i) {
    tsend(messages[i], i, 1 + i);
    for (std::uint32_t steps = rng.below(20); steps > 0; --steps) {
      fabric.cut_one_each();
      if (!fabric.flights.empty())
        fabric.deliver(rng.below(static_cast<std::uint32_t>(fabric.flights.size())));
      if (!fabric.replies.empty())
        fabric.reply(rng.below(static_cast<std::uint32_t>(fabric.replies.size())));
      fabric.advance(Duration::from_us(1));
    }
    if (i >= 10) tpost(buffers[i - 10], i - 10, 0, 100 + i);
  }
  for (std::uint32_t i = kSends - 10; i < kSends; ++i) tpost(buffers[i], i, 0, 200 + i);
  fabric.run_randomly();
  fabric.run_for(Duration::from_ms(100));
  for (std::uint32_t i = 0; i < kSends; ++i) EXPECT_EQ(buffers[i], messages[i]) << i;
  EXPECT_EQ(at_a.all.size(), kSends);
  EXPECT_EQ(at_b.all.size(), kSends);
  expect_nothing_left();
}

}  // namespace
}  // namespace uet::ses::testing
