// How attempts and operations end, without the part that hears of it. [SES 2.5, 4.4, 10]
#include "ses/outcomes.h"

#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

struct OutcomesTest : TxPartsTest {
  explicit OutcomesTest(const SesConfig& config = {}, const EndpointConfig& endpoint_config = {})
      : TxPartsTest(config, endpoint_config) {}

  /// Every packet of the attempt was sent and has its answer.
  void answer(TxOp& op, ReturnCode code = ReturnCode::kOk) {
    op.emitted = op.answered = op.segments;
    if (code == ReturnCode::kOk)
      op.succeed();
    else
      op.fail(code);
    outcomes.advance(now, op);
  }
  /// All bytes of a READ are here.
  void take_all_data(TxOp& op) {
    const std::vector<std::uint8_t> bytes(op.length);
    ResponseView data;
    data.has_data = true;
    data.opcode = ResponseOpcode::kResponseWData;
    data.data = bytes;
    (void)responses.take_data(op, data);
  }
  /// The code with which the only operation of the test ended.
  ReturnCode end() const {
    EXPECT_EQ(sink.all.size(), 1u);
    return sink.all.empty() ? ReturnCode::kNull : sink.all[0].code;
  }

  Outcomes outcomes{core, operations, sources, responses, queues};
};

SesConfig with_rendezvous() {
  SesConfig c;
  c.rendezvous = true;
  c.rendezvous_from = 4096;
  return c;
}
struct SilentPeerTest : OutcomesTest {
  SilentPeerTest() : OutcomesTest(with_rendezvous(), with_ordered_sends()) {}
};

struct UnnumberedTest : OutcomesTest {
  UnnumberedTest() : OutcomesTest(with_sprayed_order(), with_ordered_sends()) {}
};

TEST_F(OutcomesTest, advance__completes_when_the_last_packet_is_answered) {
  TxOp& op = send(2048, 7);
  op.succeed();
  op.answered = 1;
  outcomes.advance(now, op);
  EXPECT_TRUE(sink.all.empty());
  answer(op);
  EXPECT_EQ(end(), ReturnCode::kOk);
  EXPECT_EQ(sink.all[0].context, 7u);
  EXPECT_EQ(sink.all[0].length, 2048u);
  EXPECT_EQ(operations.in_use(), 0u);
  EXPECT_EQ(endpoint->sends, 0u);
}

TEST_F(OutcomesTest, advance__waits_for_read_data_as_long_as_its_pdc_is_open) {
  TxOp& op = read(64);
  op.pdc = pds::PdcRef{5};
  answer(op);
  EXPECT_TRUE(sink.all.empty());
  outcomes.on_pdc_closed(now, pds::PdcRef{6});
  EXPECT_TRUE(sink.all.empty());
  outcomes.on_pdc_closed(now, pds::PdcRef{5});
  EXPECT_EQ(end(), ReturnCode::kUncor);
  EXPECT_EQ(carrier.unlocked, 1);
}

TEST_F(OutcomesTest, conclude__what_was_refused_for_now_is_sent_again) {
  TxOp& op = send(64);
  answer(op, ReturnCode::kNoMatch);
  EXPECT_EQ(op.state, OpState::kBackoff);
  EXPECT_EQ(queues.pop_expired(queues.next_deadline()), nullptr);
  EXPECT_EQ(carrier.taken.size(), 2u);
  answer(op);
  EXPECT_EQ(end(), ReturnCode::kOk);
}

TEST_F(OutcomesTest, conclude__as_often_as_the_limit_says) {
  core.config.retry_limit = 1;
  TxOp& op = send(64);
  answer(op, ReturnCode::kNoMatch);
  queues.pop_expired(queues.next_deadline());
  answer(op, ReturnCode::kNoMatch);
  EXPECT_EQ(end(), ReturnCode::kNoMatch);
}

TEST_F(OutcomesTest, on_error__a_send_is_repeated_only_where_nothing_can_have_arrived) {
  TxOp& op = send(2048);
  outcomes.on_error(now, op, pds::PdsError::kPeerLost);
  EXPECT_EQ(op.state, OpState::kBackoff);
  queues.pop_expired(queues.next_deadline());
  op.answered = 1;
  outcomes.on_error(now, op, pds::PdsError::kPeerLost);
  EXPECT_EQ(end(), ReturnCode::kUndeliverable);
}

// Its PDC ended before all its packets were answered, but one answer was enough.
TEST_F(OutcomesTest, on_error__what_was_refused_for_now_is_sent_again) {
  TxOp& op = send(2048);
  op.answered = 1;
  op.fail(ReturnCode::kNoMatch);
  outcomes.on_error(now, op, pds::PdsError::kNackExhausted);
  EXPECT_EQ(op.state, OpState::kBackoff);
  queues.pop_expired(queues.next_deadline());
  op.answered = 1;
  op.fail(ReturnCode::kPermViolation);
  outcomes.on_error(now, op, pds::PdsError::kNackExhausted);
  EXPECT_EQ(end(), ReturnCode::kPermViolation);
}

TEST_F(OutcomesTest, on_error__a_silent_peer_is_not_asked_again) {
  TxOp& op = send(2048);
  op.answered = 1;
  op.fail(ReturnCode::kNoMatch);
  outcomes.on_error(now, op, pds::PdsError::kPeerSilent);
  EXPECT_EQ(end(), ReturnCode::kPeerSilent) << "the refusal would have passed";
}

TEST_F(OutcomesTest, on_error__a_refusal_for_good_says_more_than_the_silence_behind_it) {
  TxOp& op = send(2048);
  op.answered = 1;
  op.fail(ReturnCode::kPermViolation);
  outcomes.on_error(now, op, pds::PdsError::kPeerSilent);
  EXPECT_EQ(end(), ReturnCode::kPermViolation);
}

// The descriptors were used before, by operations that failed for reasons of their own.
TEST_F(SilentPeerTest, on_error__what_waits_behind_a_rendezvous_to_a_silent_peer_fails_for_that) {
  for (int i = 0; i < 32; ++i) answer(write(64), ReturnCode::kBadMkey);
  sink.all.clear();
  TxOp& first = send(8000, 1);
  send(100, 2);
  outcomes.on_error(now, first, pds::PdsError::kPeerSilent);
  ASSERT_EQ(sink.all.size(), 2u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kPeerSilent);
  EXPECT_EQ(sink.all[1].code, ReturnCode::kPeerSilent);
}

TEST_F(OutcomesTest, on_error__a_read_with_all_its_data_is_complete) {
  TxOp& op = read(64);
  take_all_data(op);
  outcomes.on_error(now, op, pds::PdsError::kPeerLost);
  EXPECT_EQ(end(), ReturnCode::kOk);
  EXPECT_EQ(carrier.taken.size(), 1u);
}

// The READ of two packets, of which one was answered with an error.
TEST_F(OutcomesTest, on_error__a_refused_read_with_all_its_data_is_refused) {
  TxOp& op = read(64);
  take_all_data(op);
  op.fail(ReturnCode::kPermViolation);
  outcomes.on_error(now, op, pds::PdsError::kPeerSilent);
  EXPECT_EQ(end(), ReturnCode::kPermViolation);
}

TEST_F(OutcomesTest, on_error__a_cancelled_read_with_all_its_data_is_cancelled) {
  TxOp& op = read(64);
  take_all_data(op);
  op.cancelled = true;
  outcomes.on_error(now, op, pds::PdsError::kPeerLost);
  EXPECT_EQ(end(), ReturnCode::kCancelled);
}

TEST_F(OutcomesTest, on_error__a_write_without_notice_may_be_repeated) {
  TxOp& op = write(2048);
  op.answered = 1;
  outcomes.on_error(now, op, pds::PdsError::kInDoubt);
  EXPECT_EQ(op.state, OpState::kBackoff);
}

TEST_F(OutcomesTest, advance__an_error_cuts_off_the_rest_when_the_upcall_is_over) {
  TxOp& op = send(4096);
  op.emitted = op.answered = 1;
  carrier.sent = 1;
  op.fail(ReturnCode::kBadIndex);
  ++core.upcall_depth;
  outcomes.advance(now, op);
  --core.upcall_depth;
  EXPECT_TRUE(outcomes.has_work());
  EXPECT_EQ(op.segments, 4u);
  outcomes.truncate_wanted(now);
  EXPECT_FALSE(outcomes.has_work());
  EXPECT_EQ(op.error_segment, 2u);
  EXPECT_EQ(op.segments, 2u);
}

TEST_F(OutcomesTest, cancel__what_no_peer_has_heard_of_ends_at_once) {
  TxOp& op = send(64);
  const pds::MessageToken token = op.token();
  EXPECT_TRUE(outcomes.cancel(now, op));
  EXPECT_EQ(carrier.aborted, std::vector<pds::MessageToken>{token});
  EXPECT_EQ(end(), ReturnCode::kCancelled);
}

TEST_F(OutcomesTest, cancel__what_is_all_sent_cannot_be_taken_back) {
  TxOp& op = send(64);
  op.emitted = 1;
  EXPECT_FALSE(outcomes.cancel(now, op));
  answer(op);
  EXPECT_EQ(end(), ReturnCode::kOk);
}

TEST_F(OutcomesTest, detach__no_completion_and_no_look_at_the_memory) {
  TxOp& op = send(2048);
  op.emitted = 1;
  carrier.sent = 1;
  outcomes.detach(now, op);
  EXPECT_TRUE(op.memory_gone);
  EXPECT_EQ(op.iov.size(), 0u);
  answer(op);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(operations.in_use(), 0u);
}

// Covers: SES-20
TEST_F(OutcomesTest, detach__a_read_keeps_its_message_id_while_its_data_may_come) {
  TxOp& op = read(4096);
  op.pdc = pds::PdcRef{5};
  answer(op);
  outcomes.detach(now, op);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(carrier.unlocked, 1);
  EXPECT_EQ(operations.in_use(), 0u);
  EXPECT_EQ(operations.find_returning(op.message_id), &op);
  outcomes.on_pdc_gone(now, pds::PdcRef{6}, pds::PdsError::kPeerLost);
  EXPECT_EQ(operations.ended(), 1u);
  outcomes.on_pdc_closed(now, pds::PdcRef{5});
  EXPECT_EQ(operations.ended(), 0u);
}

TEST_F(OutcomesTest, detach__a_question_keeps_its_message_id_while_its_report_may_come) {
  TxOp& op = send(64);
  op.delivery_complete = true;
  op.captured = true;
  answer(op);
  ASSERT_TRUE(op.awaits_delivery);
  op.pdc = pds::PdcRef{5};
  answer(op);
  outcomes.detach(now, op);
  EXPECT_EQ(operations.ended(), 1u);
  outcomes.on_pdc_gone(now, pds::PdcRef{5}, pds::PdsError::kPeerLost);
  EXPECT_EQ(operations.ended(), 0u);
}

TEST_F(OutcomesTest, conclude__a_read_that_was_refused_in_part_is_owed_the_rest) {
  TxOp& op = read(4096);
  op.pdc = pds::PdcRef{5};
  op.refused = 1024;
  answer(op, ReturnCode::kPermViolation);
  EXPECT_EQ(end(), ReturnCode::kPermViolation);
  EXPECT_EQ(operations.in_use(), 0u);
  EXPECT_EQ(operations.ended(), 1u);
  EXPECT_EQ(op.owed, 3072u);
}

TEST_F(OutcomesTest, conclude__a_read_that_was_refused_is_owed_nothing) {
  TxOp& op = read(4096);
  op.pdc = pds::PdcRef{5};
  op.refused = 4096;
  answer(op, ReturnCode::kPermViolation);
  EXPECT_EQ(end(), ReturnCode::kPermViolation);
  EXPECT_EQ(operations.ended(), 0u);
}

TEST_F(OutcomesTest, yield_locks__a_question_is_asked_again_later) {
  TxOp& op = send(64);
  op.delivery_complete = true;
  op.captured = true;
  answer(op);  // it has no receive: now the operation asks
  ASSERT_TRUE(op.awaits_delivery);
  op.pdc = pds::PdcRef{5};
  answer(op);
  EXPECT_EQ(outcomes.yield_locks(now, pds::PdcRef{6}), 0u);
  EXPECT_EQ(outcomes.yield_locks(now, pds::PdcRef{5}), 1u);
  EXPECT_EQ(op.state, OpState::kBackoff);
  EXPECT_EQ(outcomes.yield_locks(now, pds::PdcRef{5}), 0u);
}

// A target that has us close a PDC has this asked with each of its ACKs.
TEST_F(OutcomesTest, yield_locks__looks_at_nothing_where_no_question_waits) {
  TxOp& question = send(64);
  question.delivery_complete = true;
  question.captured = true;
  answer(question);
  question.pdc = pds::PdcRef{5};
  answer(question);
  for (int i = 0; i < 20; ++i) {
    TxOp& op = read(64);
    op.pdc = pds::PdcRef{6};
    answer(op);
  }
  EXPECT_EQ(outcomes.yield_locks(now, pds::PdcRef{6}), 0u);
  EXPECT_EQ(outcomes.yield_locks(now, pds::PdcRef{5}), 1u);
  EXPECT_EQ(outcomes.yield_locks(now, pds::PdcRef{5}), 0u);
  EXPECT_EQ(outcomes.passed(), 0u);
}

// Peers open and end PDCs as they like, with addresses of others, too.
TEST_F(OutcomesTest, on_pdc_gone__looks_at_nothing_where_nothing_waits) {
  for (int i = 0; i < 20; ++i) {
    TxOp& op = read(64);
    op.pdc = pds::PdcRef{i < 10 ? 5u : 6u};
    answer(op);
    if (i % 2 == 0) outcomes.detach(now, op);
  }
  EXPECT_EQ(operations.ended(), 10u);
  for (int i = 0; i < 100; ++i) {
    outcomes.on_pdc_gone(now, pds::PdcRef{7}, pds::PdsError::kPeerSilent);
    outcomes.on_pdc_closed(now, pds::PdcRef{7});
  }
  EXPECT_EQ(outcomes.passed() + operations.passed(), 0u);
  outcomes.on_pdc_gone(now, pds::PdcRef{6}, pds::PdsError::kPeerSilent);
  EXPECT_EQ(sink.all.size(), 5u);
  EXPECT_EQ(outcomes.passed(), 5u);  // older ones
  EXPECT_EQ(operations.passed(), 0u);
  outcomes.on_pdc_closed(now, pds::PdcRef{5});
  EXPECT_EQ(operations.in_use() + operations.ended(), 0u);
}

TEST_F(OutcomesTest, on_restart__what_was_put_off_goes_again_under_the_token) {
  TxOp& op = send(64);
  op.was_deferred = true;
  answer(op);
  ASSERT_EQ(op.state, OpState::kDeferred);
  EXPECT_EQ(outcomes.on_restart(now, op, 9), ReturnCode::kOk);
  EXPECT_EQ(op.target_token, 9u);
  EXPECT_EQ(carrier.taken.size(), 2u);
  EXPECT_EQ(outcomes.on_restart(now, op, 9), ReturnCode::kOk);  // a copy
  EXPECT_EQ(outcomes.on_restart(now, op, 8), ReturnCode::kOpViolation);
  EXPECT_EQ(carrier.taken.size(), 2u);
}

// The target may hold what came behind the number, so it is told.
TEST_F(UnnumberedTest, finish__what_ended_with_a_number_tells_the_target) {
  TxOp& first = send(64);
  send(64);
  answer(first, ReturnCode::kTooLong);
  EXPECT_EQ(end(), ReturnCode::kTooLong);
  EXPECT_TRUE(first.fills_gap);
  EXPECT_EQ(first.length, 0u);
  queues.pump_ready(now);
  EXPECT_EQ(carrier.taken.size(), 3u);
  EXPECT_EQ(first.place.number, 0u);
  EXPECT_EQ(first.wire_opcode(), SesOpcode::kSequencedGap);
}

}  // namespace
}  // namespace uet::ses::testing
