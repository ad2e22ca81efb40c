// Matching, unexpected messages, peek, multi-receive. [SES 7]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct MatchingTest : PairTest {
  void peek(PeekAction action, std::uint64_t tag, std::uint64_t context) {
    PeekRequest r;
    r.tag = tag;
    r.action = action;
    r.context = context;
    ASSERT_TRUE(sb().peek(fabric.now, eb, r));
  }
  void post_multi(Bytes& bytes, std::uint64_t context) {
    const iovec iov = piece(bytes);
    ReceiveRequest r;
    r.iov = {&iov, 1};
    r.multi_recv = true;
    r.context = context;
    ASSERT_TRUE(sb().receive(fabric.now, eb, r));
  }
};

// Covers: SES-39
TEST_F(MatchingTest, tags__posting_order_decides) {
  open();
  Bytes buffer(8);
  tpost(buffer, 5, 0, 1);
  tpost(buffer, 0, ~0ull, 2);
  tsend({1}, 5);
  tsend({2}, 9);
  fabric.run();
  EXPECT_EQ(at_b.find(1)->tag, 5u);
  EXPECT_EQ(at_b.find(2)->tag, 9u);
  at_b.all.clear();
  tpost(buffer, 0, ~0ull, 3);
  tpost(buffer, 5, 0, 4);
  tsend({1}, 5);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].context, 3u);
}

// Covers: SES-40
TEST_F(MatchingTest, directed_receive__other_senders_do_not_match) {
  open();
  Bytes buffer(8), other(8);
  const iovec iov = piece(buffer);
  ReceiveRequest r;
  r.tagged = true;
  r.tag = 1;
  r.source = a_of_b;
  r.iov = {&iov, 1};
  r.context = 1;
  ASSERT_TRUE(sb().receive(fabric.now, eb, r));
  tpost(other, 1, 0, 2);
  RawRequest raw;
  raw.opcode = SesOpcode::kTaggedSend;
  raw.key = 1;
  raw.initiator = 3;  // A's number, from another address
  inject(raw);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].context, 2u);
  tsend({7}, 1);
  fabric.run();
  EXPECT_NE(at_b.find(1), nullptr);
  EXPECT_EQ(sb().find_source(at_b.find(1)->source), a_of_b);
}

// Covers: SES-41
TEST_F(MatchingTest, spaces__are_separate) {
  open();
  Bytes tagged(4), plain(4);
  tpost(tagged, 0, ~0ull, 1);
  post(plain, 2);
  send({1});
  tsend({2}, 0);
  fabric.run();
  EXPECT_EQ(plain[0], 1);
  EXPECT_EQ(tagged[0], 2);
}

// Covers: SES-42
TEST_F(MatchingTest, unexpected__is_kept_and_the_sender_is_done) {
  open();
  const Bytes data = pattern(3 * kM);
  send(data, 1, 55);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  const Reply& last = fabric.reply_log.back();
  EXPECT_TRUE(last.guaranteed);
  EXPECT_EQ(last.view().opcode, ResponseOpcode::kResponse);
  EXPECT_EQ(last.view().list, ResponseList::kOverflow);
  EXPECT_EQ(last.view().modified_length, data.size());
  EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
  EXPECT_GE(sb().gauges().unexpected_bytes, data.size());
  Bytes into(3 * kM);
  post(into);
  EXPECT_EQ(into, data);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].data, 55u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
}

TEST_F(MatchingTest, unexpected__arrival_order_decides) {
  open();
  for (std::uint8_t i = 0; i < 5; ++i) tsend({i}, i % 2);
  fabric.run();
  Bytes b1(1), b2(1), b3(1);
  tpost(b1, 1);
  tpost(b2, 0, ~0ull);
  tpost(b3, 1);
  EXPECT_EQ(b1[0], 1);
  EXPECT_EQ(b2[0], 0);
  EXPECT_EQ(b3[0], 3);
}

struct NoOverflowTest : PairTest {
  static SesConfig config() {
    SesConfig c;
    c.overflow_msgs = 0;
    return c;
  }
  explicit NoOverflowTest(SesConfig c = config()) : PairTest(c) {}
};

// Covers: SES-43
TEST_F(NoOverflowTest, rud_without_room__retries_until_a_buffer_is_posted) {
  open();
  send(pattern(3 * kM));
  fabric.run_for(Duration::from_seconds(10));
  EXPECT_TRUE(at_a.all.empty());
  // 1..2 ms doubled up to 1 s: about ten tries in the first seconds, one a second after.
  const auto tries = a.trace.count(base::EventId::kMessageRetried);
  EXPECT_GE(tries, 12u);
  EXPECT_LE(tries, 22u);
  Bytes into(3 * kM);
  post(into);
  fabric.run_for(Duration::from_seconds(2));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(into, pattern(3 * kM));
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

struct FiveTriesTest : NoOverflowTest {
  static SesConfig limited() {
    SesConfig c = config();
    c.retry_limit = 5;
    return c;
  }
  FiveTriesTest() : NoOverflowTest(limited()) {}
};

TEST_F(FiveTriesTest, retry_limit__ends_with_an_error) {
  open();
  send({1});
  fabric.run_for(Duration::from_seconds(5));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kNoMatch);
  EXPECT_EQ(a.trace.count(base::EventId::kMessageRetried), 5u);
}

// Covers: SES-45
TEST_F(MatchingTest, longer_than_its_buffer__is_cut_off) {
  open();
  for (const std::size_t length : {std::size_t{100}, std::size_t{3 * kM}}) {
    at_a.all.clear();
    at_b.all.clear();
    Bytes into(kM + 10, 0xee), small(64, 0xee);
    Bytes& target = length == 100 ? small : into;
    post(target);
    const Bytes data = pattern(length);
    send(data);
    fabric.run();
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    EXPECT_EQ(at_b.all[0].code, ReturnCode::kTruncated);
    EXPECT_EQ(at_b.all[0].length, target.size());
    EXPECT_EQ(at_b.all[0].overflow_length, length - target.size());
    EXPECT_TRUE(std::equal(target.begin(), target.end(), data.begin()));
    const Reply& last = fabric.reply_log.back();
    EXPECT_EQ(last.view().opcode, ResponseOpcode::kResponse);
    EXPECT_EQ(last.view().modified_length, target.size());
    EXPECT_TRUE(last.guaranteed);
  }
}

struct RejectLongTest : PairTest {
  static SesConfig config() {
    SesConfig c;
    c.reject_long = true;
    return c;
  }
  RejectLongTest() : PairTest(config()) {}
};

TEST_F(RejectLongTest, longer_than_its_buffer__nothing_is_written) {
  open();
  Bytes into(64, 0xee);
  post(into);
  send(pattern(3 * kM));
  fabric.run();
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kTooLong);
  EXPECT_EQ(into, Bytes(64, 0xee));
  EXPECT_TRUE(at_b.all.empty());
}

// Covers: SES-46
TEST_F(MatchingTest, receive_posted_during_capture__gets_both_halves) {
  open();
  const Bytes data = pattern(6 * kM);
  send(data);
  fabric.cut_all();
  fabric.deliver(5);
  fabric.deliver(1);
  fabric.deliver(3);
  Bytes into(6 * kM);
  post(into);
  EXPECT_TRUE(at_b.all.empty());
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].length, data.size());
  EXPECT_EQ(into, data);
}

// Covers: SES-47
TEST_F(MatchingTest, peek_claim_discard) {
  open();
  peek(PeekAction::kPeek, 1, 10);
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kNoMessage);
  EXPECT_EQ(at_b.all.back().kind, OpKind::kTaggedPeek);
  const Bytes data = pattern(2 * kM);
  tsend(data, 1, 1, 99);
  tsend({5}, 1, 2);
  fabric.run();
  peek(PeekAction::kPeek, 1, 11);
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all.back().length, data.size());
  EXPECT_EQ(at_b.all.back().data, 99u);
  peek(PeekAction::kClaim, 1, 12);
  EXPECT_EQ(at_b.all.back().length, data.size());
  Bytes other(8);
  tpost(other, 1, 0, 13);
  EXPECT_EQ(other[0], 5);  // the claimed one is invisible
  Bytes into(2 * kM);
  const iovec iov = piece(into);
  ReceiveRequest claim;
  claim.tagged = true;
  claim.iov = {&iov, 1};
  claim.context = 12;
  ASSERT_TRUE(sb().claim_receive(fabric.now, eb, claim, false));
  EXPECT_EQ(into, data);
  EXPECT_EQ(sb().claim_receive(fabric.now, eb, claim, false).error(), PostError::kNotFound);
  // Discard while packets still come: they are discarded too, the sender completes.
  at_a.all.clear();
  tsend(pattern(4 * kM), 2, 3);
  fabric.cut_all();
  fabric.deliver(0);
  peek(PeekAction::kDiscard, 2, 14);
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
  const std::size_t before = at_b.all.size();
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all.size(), before);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

// Only the first packet brings the data that a program may know a sender by.
TEST_F(MatchingTest, peek__sees_no_message_before_its_first_packet) {
  open();
  std::uint64_t context = 10;
  for (const PeekAction action : {PeekAction::kPeek, PeekAction::kClaim, PeekAction::kDiscard}) {
    at_a.all.clear();
    const Bytes data = pattern(4 * kM, static_cast<std::uint32_t>(context));
    tsend(data, 1, 1, 99);
    tsend({5}, 2, 2, 98);
    fabric.cut_all();
    fabric.deliver(1);
    EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
    peek(action, 1, ++context);
    EXPECT_EQ(at_b.all.back().code, ReturnCode::kNoMessage);
    fabric.deliver(0);
    peek(action, 1, ++context);
    EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
    EXPECT_EQ(at_b.all.back().length, data.size());
    EXPECT_TRUE(at_b.all.back().has_data);
    EXPECT_EQ(at_b.all.back().data, 99u);
    fabric.run();
    Bytes into(data.size()), small(1);
    const iovec iov = piece(into);
    ReceiveRequest claim;
    claim.tagged = true;
    claim.iov = {&iov, 1};
    claim.context = context;
    if (action == PeekAction::kClaim) {
      ASSERT_TRUE(sb().claim_receive(fabric.now, eb, claim, false));
    }
    if (action == PeekAction::kPeek) tpost(into, 1);
    if (action != PeekAction::kDiscard) {
      EXPECT_EQ(at_b.all.back().data, 99u);
      EXPECT_EQ(into, data);
    }
    tpost(small, 2);
    EXPECT_EQ(at_b.all.back().data, 98u);
    fabric.run();
    EXPECT_EQ(at_a.all.size(), 2u);
    expect_nothing_left();
  }
}

TEST_F(MatchingTest, receive__has_the_data_of_a_first_packet_that_comes_later) {
  open();
  const Bytes data = pattern(4 * kM);
  tsend(data, 1, 1, 99);
  fabric.cut_all();
  fabric.deliver(2);
  Bytes into(data.size());
  tpost(into, 1, 0, 10);
  fabric.run();
  ASSERT_NE(at_b.find(10), nullptr);
  EXPECT_EQ(at_b.find(10)->data, 99u);
  EXPECT_TRUE(at_b.find(10)->has_data);
  EXPECT_EQ(into, data);
}

// One forged packet must not hold up the sends of the host in whose name it comes.
TEST_F(MatchingTest, ordered_message_without_room__closes_no_gate_before_its_source_is_proven) {
  open();
  RawRequest long_one;
  long_one.length = 0xffff'ffff;
  long_one.payload = Bytes(kM);
  long_one.eom = false;
  RawRequest short_one;
  short_one.length = 10;
  short_one.payload = Bytes(10);
  const pds::PdcRef own = raw_pdc;
  raw_pdc = pds::PdcRef{8888};
  raw_is_proven = false;
  EXPECT_NE(code_of(long_one, pds::Mode::kRod), ReturnCode::kOk);
  EXPECT_NE(code_of(short_one), ReturnCode::kOk);
  raw_is_proven = true;
  EXPECT_NE(code_of(short_one), ReturnCode::kOk);  // of the PDC of the closer, whose order is kept
  raw_pdc = own;
  EXPECT_EQ(code_of(short_one), ReturnCode::kOk);
  EXPECT_NE(code_of(long_one, pds::Mode::kRod), ReturnCode::kOk);
  EXPECT_NE(code_of(short_one), ReturnCode::kOk);  // it has closed its own gate
  sb().on_pdc_gone(fabric.now, pds::PdcRef{8888}, net::FabricAddress::from_v4(0x0a000063),
                   pds::PdsError::kPeerSilent);
  EXPECT_NE(code_of(short_one), ReturnCode::kOk);
}

TEST_F(MatchingTest, multi_recv__packs_messages_and_releases_the_buffer) {
  open();
  sb().set_min_multi_recv(eb, 64);
  Bytes buffer(200), next(200);
  post_multi(buffer, 1);
  post_multi(next, 2);
  for (int i = 0; i < 3; ++i) send(pattern(50, static_cast<std::uint32_t>(i)));
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Completion& c = at_b.all[i];
    EXPECT_EQ(c.context, 1u);
    EXPECT_EQ(c.buffer, buffer.data() + i * 56);
    const Bytes data = pattern(50, static_cast<std::uint32_t>(i));
    EXPECT_TRUE(
        std::equal(data.begin(), data.end(), buffer.begin() + static_cast<std::ptrdiff_t>(i * 56)));
    EXPECT_EQ(c.multi_recv_released, i == 2);  // 32 bytes are left
  }
  // Larger than the rest but not than a buffer: on to the next, and the old one is given back.
  at_b.all.clear();
  post_multi(buffer, 3);
  send(pattern(100, 7));
  fabric.run();
  EXPECT_EQ(at_b.all.back().context, 2u);
  send(pattern(150, 8));
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 3u);
  EXPECT_EQ(at_b.all[1].context, 2u);
  EXPECT_TRUE(at_b.all[1].multi_recv_released);
  EXPECT_EQ(at_b.all[1].length, 0u);
  EXPECT_EQ(at_b.all[2].context, 3u);
  EXPECT_TRUE(at_b.all[2].multi_recv_released);
  // Larger than any: truncated.
  post_multi(buffer, 4);
  send(pattern(300, 9));
  fabric.run();
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kTruncated);
  EXPECT_EQ(at_b.all.back().length, 200u);
  EXPECT_TRUE(at_b.all.back().multi_recv_released);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

// The offset of a peer may be any: nothing of it may lie where a message is that the user was told of.
TEST_F(MatchingTest, multi_recv__an_offset_that_wraps_around_uses_the_buffer_up) {
  open();
  sb().set_min_multi_recv(eb, 64);
  for (const bool is_unexpected : {false, true}) {
    Bytes buffer(200), next(200);
    post_multi(buffer, 1);
    const Bytes first = pattern(50, 1);
    send(first);
    fabric.run();
    RawRequest back;
    back.buffer_offset = 0 - std::uint64_t{56};
    if (is_unexpected) {
      post_multi(next, 2);
      ASSERT_EQ(code_of(back), ReturnCode::kOk);
      ASSERT_EQ(code_of(back), ReturnCode::kOk);  // for the one that will be posted
      Bytes last(200);
      post_multi(last, 3);
      send(pattern(50, 2));
      fabric.run();
      EXPECT_TRUE(std::equal(first.begin(), first.end(), buffer.begin()));
      sb().cancel(fabric.now, eb, 3);
    } else {
      ASSERT_EQ(code_of(back), ReturnCode::kOk);
      ASSERT_EQ(at_b.all.size(), 2u);
      EXPECT_EQ(at_b.all[1].length, 0u);
      EXPECT_TRUE(at_b.all[1].multi_recv_released);
      post_multi(next, 2);
      send(pattern(50, 2));
      fabric.run();
      EXPECT_EQ(at_b.all.back().context, 2u);
      EXPECT_TRUE(std::equal(first.begin(), first.end(), buffer.begin()));
      sb().cancel(fabric.now, eb, 2);
    }
    at_b.all.clear();
  }
}

TEST_F(MatchingTest, multi_recv__cancelled_while_a_message_arrives_it_is_given_back_by_that) {
  open();
  sb().set_min_multi_recv(eb, 64);
  Bytes buffer(8 * kM);
  post_multi(buffer, 1);
  send(pattern(3 * kM, 1));
  fabric.cut_all();
  fabric.deliver(0);
  EXPECT_TRUE(sb().cancel(fabric.now, eb, 1));
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 1));
  EXPECT_TRUE(at_b.all.empty());  // bytes still come
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOk);
  EXPECT_TRUE(at_b.all[0].multi_recv_released);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

TEST_F(MatchingTest, multi_recv__takes_what_waits) {
  open();
  for (int i = 0; i < 5; ++i) send(pattern(50, static_cast<std::uint32_t>(i)));
  fabric.run();
  Bytes buffer(200);
  post_multi(buffer, 1);
  ASSERT_EQ(at_b.all.size(), 3u);
  EXPECT_TRUE(at_b.all[2].multi_recv_released);
  EXPECT_FALSE(at_b.all[1].multi_recv_released);
  EXPECT_EQ(sb().gauges().unexpected_messages, 2u);
  post_multi(buffer, 2);
  ASSERT_EQ(at_b.all.size(), 5u);
  EXPECT_FALSE(at_b.all[4].multi_recv_released);
  EXPECT_EQ(at_b.all[4].buffer, buffer.data() + 56);
  send(pattern(10));
  fabric.run();
  EXPECT_EQ(at_b.all[5].buffer, buffer.data() + 112);
}

TEST_F(MatchingTest, multi_recv__is_released_by_the_last_message_in_it) {
  open();
  Bytes buffer(4 * kM);
  post_multi(buffer, 1);
  send(pattern(2 * kM, 1));
  send(pattern(2 * kM, 2));
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 4u);
  fabric.deliver(0);
  fabric.deliver(1);
  fabric.deliver(1);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_FALSE(at_b.all[0].multi_recv_released);
  fabric.deliver(0);
  ASSERT_EQ(at_b.all.size(), 2u);
  EXPECT_TRUE(at_b.all[1].multi_recv_released);
}

// A message that is still arriving keeps the buffer in use, so there is nothing to report when the next one does not fit.
TEST_F(MatchingTest, multi_recv__is_not_given_back_while_a_message_arrives) {
  open();
  sb().set_min_multi_recv(eb, 64);
  send(pattern(3 * kM, 1));
  fabric.cut_all();
  fabric.deliver(0);
  RawRequest other;  // of another sender
  other.length = 1000;
  other.payload = pattern(1000, 2);
  ASSERT_EQ(code_of(other), ReturnCode::kOk);
  Bytes buffer(3 * kM + 200);
  post_multi(buffer, 1);
  EXPECT_TRUE(at_b.all.empty());
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].length, 3 * kM);
  EXPECT_EQ(at_b.all[0].buffer, buffer.data());
  EXPECT_TRUE(at_b.all[0].multi_recv_released);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
}

TEST_F(MatchingTest, cancel__posted_receive_only) {
  open();
  Bytes into(4 * kM);
  tpost(into, 1, 0, 50);
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 51));
  EXPECT_TRUE(sb().cancel(fabric.now, eb, 50));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kCancelled);
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 50));
  tpost(into, 1, 0, 52);
  tsend(pattern(2 * kM), 1);
  fabric.cut_all();
  fabric.deliver(0);
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 52));
  fabric.run();
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
}

TEST_F(MatchingTest, close_endpoint__frees_everything_and_answers_cancelled) {
  open();
  Bytes into(4 * kM), other(10);
  tpost(into, 1);
  tpost(other, 2);
  tsend(pattern(4 * kM), 1, 1);
  tsend(pattern(4 * kM), 3, 2);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.deliver(4);
  sb().close_endpoint(fabric.now, eb);
  fabric.run();
  EXPECT_TRUE(at_b.all.empty());
  ASSERT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(at_a.all[1].code, ReturnCode::kCancelled);
  const auto g = sb().gauges();
  EXPECT_EQ(g.receives_posted + g.messages_receiving + g.unexpected_messages + g.unexpected_bytes,
            0u);
}

}  // namespace
}  // namespace uet::ses::testing
