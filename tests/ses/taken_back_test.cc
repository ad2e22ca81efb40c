// Sends that were put off, and are taken back. [SES 8.2, decision 143]
#include <algorithm>

#include "tests/ses/defer_fixture.h"

namespace uet::ses::testing {
namespace {

/// A sends what it was asked for no more. B has been told that it comes, and does not keep its receive for it.
struct TakenBackTest : DeferTest {
  /// The message waits, and the request of B for it arrives at A when `before` was called.
  template <typename Before = void (*)()>
  void ask_for_it(Before&& before = [] {}) {
    put_off();
    tpost(into, 5);
    fabric.cut_all();
    ASSERT_EQ(fabric.flights.size(), 1u);
    tokens = fabric.flights[0].view(kM).mkey_match;
    std::forward<Before>(before)();
    fabric.deliver(0);
    EXPECT_EQ(fabric.reply_log.back().view().code, ReturnCode::kOk);
    sent = sent_by(a).size();
  }
  /// Two packets are out, of which one has told A that the message is put off, when B asks for it.
  void ask_while_first_attempt_is_out() {
    open();
    tsend(message, 5);
    for (int i = 0; i < 2; ++i) fabric.cut_one_each();
    fabric.deliver(0);
    tpost(into, 5);
    fabric.advance(Duration());
    fabric.cut_one_each();
    const auto request =
        std::ranges::find(fabric.flights, &b, [](const Flight& f) { return f.channel->from; });
    ASSERT_NE(request, fabric.flights.end());
    tokens = request->view(kM).mkey_match;
    fabric.deliver(static_cast<std::size_t>(request - fabric.flights.begin()));
  }
  void expect_cancelled(const Recorder& at) {
    ASSERT_EQ(at.all.size(), 1u);
    EXPECT_EQ(at.all[0].code, ReturnCode::kCancelled);
  }
  /// Nothing of the message but the packet that closes it has gone under the token.
  void expect_closing_packet() {
    const auto all = sent_by(a);
    ASSERT_EQ(all.size(), sent + 1);
    const RequestView& closing = all.back();
    EXPECT_EQ(closing.opcode, SesOpcode::kDeferrableTsend);
    EXPECT_TRUE(!closing.som && closing.eom && !closing.ie && closing.payload.empty());
    EXPECT_EQ(closing.message_offset, 0u);
    EXPECT_EQ(closing.request_length, message.size());
    EXPECT_EQ(tokens_of(closing), tokens);
    for (std::size_t i = 0; i < sent; ++i) EXPECT_NE(closing.message_id, all[i].message_id);
  }
  void expect_both_cancelled() {
    expect_cancelled(at_a);
    fabric.run();
    expect_cancelled(at_b);
    expect_closing_packet();
    expect_nothing_left();
  }

  std::uint64_t tokens = 0;  ///< of the request
  std::size_t sent = 0;      ///< by A before it takes back what it promised
};

TEST_F(TakenBackTest, cancel__before_the_first_packet) {
  ask_for_it();
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  expect_both_cancelled();
}

TEST_F(TakenBackTest, cancel__while_packet_delivery_has_no_room) {
  ask_for_it([this] { fabric.full_towards = b.address; });
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  expect_cancelled(at_a);
  fabric.full_towards.reset();
  sa().on_resume(fabric.now);
  expect_both_cancelled();
}

TEST_F(TakenBackTest, close_endpoint__before_the_first_packet) {
  ask_for_it();
  sa().close_endpoint(fabric.now, ea);
  fabric.run();
  EXPECT_TRUE(at_a.all.empty());
  expect_cancelled(at_b);
  expect_closing_packet();
  expect_nothing_left();
}

TEST_F(TakenBackTest, cancel__while_the_first_attempt_is_out) {
  ask_while_first_attempt_is_out();
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.run();
  expect_cancelled(at_a);
  expect_cancelled(at_b);
  EXPECT_EQ(tokens_of(sent_by(a).back()), tokens);
  expect_nothing_left();
}

// The user takes the message back, and then its PDC is lost.
TEST_F(TakenBackTest, cancel__and_the_first_attempt_fails) {
  ask_while_first_attempt_is_out();
  const Flight& first = fabric.sent_log.front();
  const pds::MessageToken token = first.token;
  Channel* const channel = first.channel;
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.fail_message(a, token, pds::PdsError::kPeerLost);
  fabric.lose_pdc(*channel, pds::PdsError::kPeerLost);
  fabric.run();
  expect_cancelled(at_a);
  expect_cancelled(at_b);
  EXPECT_EQ(tokens_of(sent_by(a).back()), tokens);
  expect_nothing_left();
}

// What is asked for in the place of those that were taken back is asked for at once, not with the next tick of the clock.
struct FewFetchesTest : DeferTest {
  static SesConfig config() {
    SesConfig c = deferring();
    c.max_fetches = 4;  // of one source: half
    return c;
  }
  FewFetchesTest() : DeferTest(config()) {}
};
TEST_F(FewFetchesTest, cancel__those_that_wait_for_a_place_are_asked_for) {
  constexpr std::uint32_t kSends = 6, kAskedFor = 2;
  std::vector<Bytes> buffers(kSends, Bytes(message.size()));
  open();
  for (std::uint32_t i = 0; i < kSends; ++i) tsend(message, i, 1 + i);
  fabric.run();
  for (std::uint32_t i = 0; i < kSends; ++i) tpost(buffers[i], i, 0, 100 + i);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), kAskedFor);
  for (std::uint32_t i = 0; i < kAskedFor; ++i) fabric.deliver(0);
  for (std::uint32_t i = 0; i < kAskedFor; ++i) fabric.reply(0);
  for (std::uint32_t i = 0; i < kAskedFor; ++i) EXPECT_TRUE(sa().cancel(fabric.now, ea, 1 + i));
  const Instant then = fabric.now;
  fabric.run();
  EXPECT_LT(fabric.now - then, Duration::from_ms(1));
  for (std::uint32_t i = 0; i < kSends; ++i) {
    const ReturnCode code = i < kAskedFor ? ReturnCode::kCancelled : ReturnCode::kOk;
    ASSERT_NE(at_a.find(1 + i), nullptr) << i;
    EXPECT_EQ(at_a.find(1 + i)->code, code) << i;
    ASSERT_NE(at_b.find(100 + i), nullptr) << i;
    EXPECT_EQ(at_b.find(100 + i)->code, code) << i;
  }
  expect_nothing_left();
}

// RUD may deliver the closing packet before those that it comes behind.
TEST_F(TakenBackTest, cancel__the_closing_packet_overtakes_the_others) {
  ask_for_it();
  fabric.reply(0);
  fabric.advance(Duration());
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  ASSERT_EQ(fabric.flights.size(), 2u);
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 3u);
  EXPECT_EQ(fabric.flights[2].view(kM).message_offset, 2 * kM);
  fabric.deliver(2);
  fabric.run();
  expect_cancelled(at_a);
  expect_cancelled(at_b);
  expect_nothing_left();
}

// The initiator could not read its buffer.
TEST_F(TakenBackTest, initiator_error__in_the_first_packet_ends_the_receive) {
  ask_for_it();
  fabric.reply(0);
  fabric.advance(Duration());
  fabric.cut_one_each();
  ASSERT_EQ(fabric.flights.size(), 1u);
  wire::set_initiator_error(fabric.flights[0].bytes.data());
  fabric.run();
  for (const Recorder* at : {&at_a, &at_b}) {
    ASSERT_EQ(at->all.size(), 1u);
    EXPECT_EQ(at->all[0].code, ReturnCode::kInitiatorErr);
  }
  expect_nothing_left();
}

// Thrown away by the user of B, and then asked for.
TEST_F(TakenBackTest, cancel__of_what_the_target_wants_to_discard) {
  put_off();
  discard();
  fabric.cut_all();
  fabric.deliver(0);
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  expect_cancelled(at_a);
  fabric.run();
  expect_nothing_left();
}

/// Sends that are taken back at any moment, in any order of packets, answers, requests and receives.
struct RandomCancelTest : DeferTest {
  /// One of what waits at this moment.
  std::uint32_t any_of(std::size_t size) { return rng.below(static_cast<std::uint32_t>(size)); }
  void move_a_little() {
    for (std::uint32_t steps = rng.below(20); steps > 0; --steps) {
      fabric.cut_one_each();
      if (!fabric.flights.empty()) fabric.deliver(any_of(fabric.flights.size()));
      if (!fabric.replies.empty()) fabric.reply(any_of(fabric.replies.size()));
      fabric.advance(Duration::from_us(1));
    }
  }
  /// Sends `i`, with a receive sooner or later, of which one is taken back.
  void send_and_cancel(std::uint32_t i) {
    tsend(message, i, 1 + i);
    move_a_little();
    tpost(buffers[i], i, 0, 1000 + i);
    move_a_little();
    (void)sa().cancel(fabric.now, ea, 1 + i - any_of(std::min(i + 1, 8u)));
  }

  base::Rng rng{7};
  std::vector<Bytes> buffers;
};

// Every send ends, and so does every receive that a message has met: none of them by the clock. The others can be cancelled.
TEST_F(RandomCancelTest, random__what_is_taken_back_leaves_nothing) {
  open();
  constexpr std::uint32_t kSends = 300;
  buffers.resize(kSends, Bytes(message.size()));
  for (std::uint32_t i = 0; i < kSends; ++i) send_and_cancel(i);
  fabric.run_randomly();
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(at_a.all.size(), kSends);
  std::size_t cancelled = 0;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    cancelled += at_a.find(1 + i)->code == ReturnCode::kCancelled ? 1 : 0;
    const Completion* const received = at_b.find(1000 + i);
    if (received == nullptr) {
      EXPECT_TRUE(sb().cancel(fabric.now, eb, 1000 + i)) << i;
      EXPECT_EQ(at_a.find(1 + i)->code, ReturnCode::kCancelled) << i;
    } else if (received->code == ReturnCode::kOk) {
      EXPECT_EQ(buffers[i], message) << i;
    }
  }
  EXPECT_GT(cancelled, kSends / 20);
  EXPECT_LT(cancelled, kSends * 9 / 10);
  // But for headers: a message whose first packet came late was refused, and its sender does not say that it is taken back.
  fabric.run_for(deferring().message_idle * 2);
  expect_nothing_left();
}

}  // namespace
}  // namespace uet::ses::testing
