// Messages without room of which the header alone is kept. [SES 7.2, decision 107]
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

// [SES 7.2] What does not fit is known by its header: it can be looked for, and it keeps no other message out.
struct HeaderOnlyTest : PairTest, ::testing::WithParamInterface<bool> {
  static SesConfig config() {
    SesConfig c;
    c.overflow_bytes = 16 * kM;
    return c;
  }
  HeaderOnlyTest() : PairTest(config()) {
    EndpointConfig c = standard_endpoint();
    c.sends_ordered = GetParam();
    open(c);
  }
  const Completion& peek(PeekAction action, std::uint64_t tag, std::uint64_t context) {
    PeekRequest r;
    r.tag = tag;
    r.action = action;
    r.context = context;
    EXPECT_TRUE(sb().peek(fabric.now, eb, r));
    return at_b.all.back();
  }
  bool claim_receive(Bytes& into, std::uint64_t context, bool discard = false) {
    const iovec iov = piece(into);
    ReceiveRequest r;
    r.tagged = true;
    r.iov = {&iov, 1};
    r.context = context;
    return sb().claim_receive(fabric.now, eb, r, discard).has_value();
  }
  /// Of a message with tag 1 and header data for which there is no room.
  static RawRequest first_packet() {
    return {.opcode = SesOpcode::kTaggedSend,
            .hd = true,
            .eom = false,
            .key = 1,
            .length = 40 * kM,
            .payload = Bytes(kM)};
  }
  const Bytes big = pattern(40 * kM, 1);
};
INSTANTIATE_TEST_SUITE_P(Order, HeaderOnlyTest, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "rod" : "rud"; });

TEST_P(HeaderOnlyTest, peek__sees_it_and_a_receive_gets_it) {
  tsend(big, 1, 1, 77);
  fabric.run_for(Duration::from_seconds(3));
  EXPECT_EQ(sb().gauges().header_only_messages, 1u);
  const Completion seen = peek(PeekAction::kPeek, 1, 10);
  EXPECT_EQ(seen.code, ReturnCode::kOk);
  EXPECT_EQ(seen.length, big.size());
  EXPECT_EQ(sb().find_source(seen.source), a_of_b);
  // Another source is served meanwhile.
  RawRequest other;
  other.opcode = SesOpcode::kTaggedSend;
  other.key = 2;
  other.length = 1;
  other.payload = {9};
  EXPECT_EQ(code_of(other, GetParam() ? pds::Mode::kRod : pds::Mode::kRud), ReturnCode::kOk);
  EXPECT_EQ(peek(PeekAction::kPeek, 2, 11).code, ReturnCode::kOk);
  Bytes into(big.size()), small(1);
  tpost(into, 1, 0, 12);
  tpost(small, 2, 0, 13);
  fabric.run_for(Duration::from_seconds(3));
  ASSERT_NE(at_b.find(12), nullptr);
  EXPECT_EQ(at_b.find(12)->code, ReturnCode::kOk);
  EXPECT_EQ(at_b.find(12)->data, 77u);
  EXPECT_EQ(into, big);
  EXPECT_EQ(at_a.find(1)->code, ReturnCode::kOk);
  expect_nothing_left();
}

TEST_P(HeaderOnlyTest, claim__goes_to_the_receive_of_the_claim_alone) {
  tsend(big, 1, 1);
  fabric.run_for(Duration::from_ms(100));
  Bytes any(big.size()), into(big.size());
  EXPECT_EQ(peek(PeekAction::kClaim, 1, 10).length, big.size());
  EXPECT_EQ(peek(PeekAction::kPeek, 1, 11).code, ReturnCode::kNoMessage);
  tpost(any, 0, ~0ull, 12);
  fabric.run_for(Duration::from_seconds(2));
  EXPECT_EQ(at_b.find(12), nullptr);
  ASSERT_TRUE(claim_receive(into, 10));
  EXPECT_FALSE(claim_receive(into, 10));
  at_b.all.clear();
  fabric.run_for(Duration::from_seconds(3));
  ASSERT_NE(at_b.find(10), nullptr);
  EXPECT_EQ(at_b.find(10)->code, ReturnCode::kOk);
  EXPECT_EQ(into, big);
  tsend({5}, 3, 2);
  fabric.run_for(Duration::from_seconds(2));
  EXPECT_EQ(any[0], 5);
  expect_nothing_left();
}

TEST_P(HeaderOnlyTest, discard__completes_the_sender) {
  for (const bool claimed : {false, true}) {
    at_a.all.clear();
    tsend(big, 1, 1);
    fabric.run_for(Duration::from_ms(100));
    Bytes none;
    if (claimed) {
      peek(PeekAction::kClaim, 1, 10);
      ASSERT_TRUE(claim_receive(none, 10, true));
    } else {
      peek(PeekAction::kDiscard, 1, 10);
    }
    EXPECT_EQ(peek(PeekAction::kPeek, 1, 11).code, ReturnCode::kNoMessage);
    fabric.run_for(Duration::from_seconds(3));
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    expect_nothing_left();
  }
}

TEST_P(HeaderOnlyTest, room__captures_it_in_its_old_place) {
  tsend(pattern(10 * kM, 2), 1, 1);
  tsend(pattern(10 * kM, 3), 2, 2);
  fabric.run_for(Duration::from_ms(50));
  EXPECT_EQ(sb().gauges().header_only_messages, 1u);
  RawRequest later;
  later.opcode = SesOpcode::kTaggedSend;
  later.key = 2;
  ASSERT_EQ(code_of(later), ReturnCode::kOk);
  Bytes into(10 * kM);
  tpost(into, 1);
  fabric.run_for(Duration::from_seconds(2));
  EXPECT_EQ(sb().gauges().header_only_messages, 0u);
  EXPECT_EQ(peek(PeekAction::kPeek, 2, 10).length, 10 * kM);
}

TEST_P(HeaderOnlyTest, sender_that_never_comes_again__is_forgotten_and_claims_are_told) {
  RawRequest gone;
  gone.opcode = SesOpcode::kTaggedSend;
  gone.length = 40 * kM;
  gone.payload = Bytes(kM);
  gone.eom = false;
  const auto mode = GetParam() ? pds::Mode::kRod : pds::Mode::kRud;
  for (std::uint64_t tag = 1; tag <= 3; ++tag) {
    gone.key = tag;
    gone.message_id = static_cast<std::uint16_t>(tag);
    inject(gone, GetParam() && tag == 1 ? mode : pds::Mode::kRud);
  }
  const std::size_t known = GetParam() ? 1 : 3;  // behind a refused one nothing is looked at
  EXPECT_EQ(sb().gauges().header_only_messages, known);
  Bytes into(40 * kM);
  peek(PeekAction::kClaim, 1, 10);
  if (!GetParam()) {
    peek(PeekAction::kClaim, 2, 11);
    ASSERT_TRUE(claim_receive(into, 11));
  }
  for (int i = 0; i < 70; ++i) fabric.run_for(Duration::from_seconds(1));
  EXPECT_EQ(sb().gauges().header_only_messages, 0u);
  at_b.all.clear();
  ASSERT_TRUE(claim_receive(into, 10));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kMessageTimeout);
  for (int i = 0; i < 70; ++i) fabric.run_for(Duration::from_seconds(1));
  expect_nothing_left();
}

TEST_P(HeaderOnlyTest, cancel_and_close__leave_nothing) {
  tsend(big, 1, 1);
  fabric.run_for(Duration::from_ms(100));
  Bytes into(big.size());
  peek(PeekAction::kClaim, 1, 10);
  ASSERT_TRUE(claim_receive(into, 10));
  EXPECT_TRUE(sb().cancel(fabric.now, eb, 10));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kCancelled);
  EXPECT_EQ(peek(PeekAction::kClaim, 1, 11).code, ReturnCode::kOk);
  ASSERT_TRUE(claim_receive(into, 11));
  sb().close_endpoint(fabric.now, eb);
  fabric.run_for(Duration::from_seconds(3));
  EXPECT_EQ(at_a.all.size(), 1u);
  expect_nothing_left();
}

TEST_P(HeaderOnlyTest, peek__sees_no_header_before_the_first_packet) {
  RawRequest first = first_packet();
  first.header_data = 77;
  RawRequest second = first;
  second.som = false;
  second.offset = kM;
  EXPECT_EQ(code_of(second), ReturnCode::kNoMatch);
  EXPECT_EQ(peek(PeekAction::kPeek, 1, 10).code, ReturnCode::kNoMessage);
  EXPECT_EQ(peek(PeekAction::kClaim, 1, 10).code, ReturnCode::kNoMessage);
  inject(first);
  EXPECT_EQ(peek(PeekAction::kPeek, 1, 10).code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all.back().data, 77u);
}

// One packet of a stranger would blind every probe for any source, for as long as its header is kept.
TEST_P(HeaderOnlyTest, peek__sees_others_behind_a_header_without_a_first_packet) {
  RawRequest part = first_packet();
  part.som = false;
  part.offset = kM;
  raw_is_proven = false;
  EXPECT_EQ(code_of(part), ReturnCode::kNoMatch);
  RawRequest other = part;
  other.som = other.eom = true;
  other.offset = 0;
  other.initiator = part.initiator + 1;
  other.message_id = part.message_id + 1;
  other.payload = Bytes(5);
  other.length = 5;
  inject(other);
  EXPECT_EQ(peek(PeekAction::kPeek, 1, 10).length, 5u);
  other.initiator = part.initiator;
  EXPECT_EQ(peek(PeekAction::kDiscard, 1, 11).length, 5u);
  ++other.message_id;
  inject(other);
  EXPECT_EQ(peek(PeekAction::kPeek, 1, 12).code, ReturnCode::kNoMessage) << "in their order";
}

// The gate is closed to what comes behind: of those only the first one waits.
TEST_P(HeaderOnlyTest, peek__has_the_data_of_the_message_that_closed_the_gate) {
  RawRequest r = first_packet();
  for (const std::uint16_t id : {std::uint16_t{1}, std::uint16_t{2}}) {
    r.message_id = id;
    r.header_data = id;
    EXPECT_EQ(code_of(r, pds::Mode::kRod), ReturnCode::kDisabledGen);
  }
  EXPECT_EQ(peek(PeekAction::kPeek, 1, 10).data, 1u);
}

TEST_P(HeaderOnlyTest, headers__are_bounded_by_sender) {
  RawRequest r = first_packet();
  for (std::uint64_t tag = 0; tag < 100; ++tag) {
    r.key = tag;
    r.message_id = static_cast<std::uint16_t>(tag + 1);
    EXPECT_EQ(code_of(r), ReturnCode::kNoMatch);
  }
  EXPECT_EQ(sb().gauges().header_only_messages, 16u);
}

}  // namespace
}  // namespace uet::ses::testing
