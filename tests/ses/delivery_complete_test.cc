// Delivery-complete sends: done when the message is in the buffer of its user. [SES 14.1]
#include "tests/ses/outcome_fixture.h"

namespace uet::ses::testing {
namespace {

// Covers: SES-67
TEST_F(OutcomeTest, delivery_complete__waits_for_the_users_buffer) {
  open();
  Bytes one = pattern(100), three = pattern(3 * kM);
  send_with(one, true, false, 1);
  send_with(three, true, false, 2);
  fabric.run();
  // No answer is held back: whatever is sent behind these finds an open window.
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(a.locks, 2);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  EXPECT_TRUE(sa().next_deadline().is_never());
  EXPECT_FALSE(sa().cancel(fabric.now, ea, 1));
  Bytes into(3 * kM);
  post(into);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), into.begin()));
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].context, 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_a.all[0].length, 100u);
  post(into);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(into, three);
  EXPECT_EQ(a.locks, 0);
  // With a buffer there is nothing to wait for, nor to ask.
  post(into);
  const std::size_t sent = fabric.sent_log.size();
  send_with(three, true, false, 3);
  fabric.run();
  EXPECT_EQ(at_a.all.size(), 3u);
  EXPECT_EQ(fabric.sent_log.size() - sent, 3u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
}

// The receive may take the message while the question is on its way.
TEST_F(OutcomeTest, delivery_complete__question_that_comes_too_late) {
  open();
  Bytes one = pattern(100), into(100);
  send_with(one, true, false, 1);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);
  post(into);
  EXPECT_TRUE(at_a.all.empty());
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(a.locks, 0);
}

/// A program that has its message may close its endpoint and go, as MPICH's do.
// Covers: SES-67
TEST_F(OutcomeTest, delivery_complete__question_after_the_endpoint_was_closed) {
  open();
  Bytes taken = pattern(100), left = pattern(200), into(100);
  send_with(taken, true, false, 1);
  send_with(left, true, false, 2);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.deliver(0);
  post(into);
  EXPECT_EQ(into, taken);
  sb().close_endpoint(fabric.now, eb);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(at_a.find(1)->code, ReturnCode::kOk);
  EXPECT_EQ(at_a.find(2)->code, ReturnCode::kCancelled) << "no receive ever took it";
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
}

TEST_F(OutcomeTest, delivery_complete__discard_and_close_are_told) {
  open();
  Bytes one = pattern(100);
  send_with(one, true, false, 1);
  send_with(one, true, false, 2);
  fabric.run();
  PeekRequest discard;
  discard.tagged = false;
  discard.action = PeekAction::kDiscard;
  ASSERT_TRUE(sb().peek(fabric.now, eb, discard));
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  sb().close_endpoint(fabric.now, eb);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(at_a.all[1].code, ReturnCode::kCancelled);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
}

// A target of another make keeps the message, says so, and knows no such question: that is all there will be.
TEST_F(OutcomeTest, delivery_complete__target_that_cannot_tell) {
  open();
  Bytes one = pattern(100);
  send_with(one, true, false, 1);
  fabric.run();
  const Flight& question = fabric.sent_log.back();
  ASSERT_EQ(question.view(kM).opcode, kAwaitDeliveryOpcode);
  ASSERT_TRUE(at_a.all.empty());
  const auto answer = answer_error(question.view(kM), ReturnCode::kUnsupportedOp, 0, true).response;
  // As if it had been the first answer to this packet.
  sa().on_response(fabric.now, question.token, 0, answer.next_hdr,
                   {answer.header.data(), answer.header_bytes});
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
}

TEST_F(OutcomeTest, delivery_complete__dead_target_is_an_error) {
  open();
  Bytes one = pattern(100);
  send_with(one, true, false, 1);
  fabric.run();
  fabric.lose_pdc(*fabric.sent_log.back().channel, pds::PdsError::kPeerSilent);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kPeerSilent);
}

// The target forgot the PDC and not the message: it is asked again. The same process says what became of it.
TEST_F(OutcomeTest, delivery_complete__lost_pdc_is_asked_again) {
  open();
  Bytes one = pattern(100), into(100);
  send_with(one, true, false, 1);
  send_with(one, true, false, 2);
  fabric.run();
  post(into);  // its report is lost with the PDC
  fabric.cut_all();
  fabric.lose_pdc(*fabric.sent_log.front().channel, pds::PdsError::kPeerLost);
  fabric.run_for(Duration::from_ms(10));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  post(into);
  fabric.run_for(Duration::from_ms(10));
  ASSERT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(at_a.all[1].code, ReturnCode::kOk);
}

/// A question that was asked once, has let go of its PDC, and is out again.
struct PausedQuestionTest : OutcomeTest {
  Bytes one = pattern(100), into = Bytes(100);
  /// Locks that the question on the PDC of `f` lets go of.
  std::uint32_t yield(const Flight& f) {
    const std::uint32_t n = sa().yield_locks(fabric.now, f.channel->ref_at_from);
    a.locks -= static_cast<int>(n);
    return n;
  }
  void ask() {
    open();
    send_with(one, true, false, 1);
    fabric.run();
    ASSERT_EQ(a.locks, 1);
  }
};

// While others want the place of its PDC, the question holds none; then it asks again, and hears the report.
TEST_F(PausedQuestionTest, delivery_complete__gives_its_place_up_and_asks_again) {
  ask();
  const std::size_t sent = fabric.sent_log.size();
  EXPECT_EQ(yield(fabric.sent_log.back()), 1u);
  EXPECT_EQ(yield(fabric.sent_log.back()), 0u);
  EXPECT_EQ(a.locks, 0);
  fabric.run();
  EXPECT_EQ(fabric.sent_log.size(), sent);  // not at once
  fabric.run_for(Duration::from_ms(5));
  EXPECT_EQ(fabric.sent_log.size(), sent + 1);
  EXPECT_EQ(a.locks, 1);
  post(into);
  fabric.run();
  EXPECT_EQ(into, one);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(a.locks, 0);
}

TEST_F(PausedQuestionTest, delivery_complete__receive_takes_it_while_the_question_pauses) {
  ask();
  EXPECT_EQ(yield(fabric.sent_log.back()), 1u);
  post(into);
  fabric.run_for(Duration::from_ms(5));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(a.locks, 0);
}

// What does not know the message now is not what had it.
TEST_F(PausedQuestionTest, delivery_complete__another_process_is_an_error) {
  ask();
  EXPECT_EQ(yield(fabric.sent_log.back()), 1u);
  for (int i = 0; i < 5 && fabric.flights.empty(); ++i) {
    fabric.advance(Duration::from_ms(1));
    fabric.cut_all();
  }
  ASSERT_EQ(fabric.flights.size(), 1u);
  const Flight& question = fabric.flights[0];
  const ResponseView first = fabric.reply_log.back().view();
  const auto answer = answer_await(question.view(kM), false, first.modified_length ^ 2).response;
  sa().on_response(fabric.now, question.token, 0, answer.next_hdr,
                   {answer.header.data(), answer.header_bytes});
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUndeliverable);
}

TEST_F(OutcomeTest, delivery_complete__close_of_the_sender_frees_what_waits) {
  open();
  Bytes one = pattern(100), into(100);
  send_with(one, true, false, 1);
  fabric.run();
  sa().close_endpoint(fabric.now, ea);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  EXPECT_EQ(a.locks, 0);
  post(into);
  fabric.run();
  EXPECT_EQ(into, one);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
