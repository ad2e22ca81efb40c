// How PDCs end, alone: gracefully by the initiator, on request of the target, or in error. No Pds. [PDS 16]
#include "pds/close.h"

#include <gtest/gtest.h>

#include "tests/pds/life_parts.h"

namespace uet::pds::test {
namespace {

using Failed = std::vector<std::pair<MessageToken, PdsError>>;

TEST(Closing, begin__frees_an_initiator_that_has_sent_nothing) {
  Life t;
  t.closing.begin(kNow, *t.initiator(2));
  EXPECT_EQ(t.pdcs.size(), 0u);
  EXPECT_TRUE(t.ses.gone.empty());
}

TEST(Closing, begin__waits_for_the_target_of_an_initiator_that_has_sent_something) {
  Life t;
  Pdc& pdc = *t.initiator(2);
  t.send(pdc);
  t.closing.begin(kNow, pdc);
  EXPECT_EQ(pdc.state, PdcState::kCreating);
  EXPECT_EQ(t.states.close_wanted(), 1u);
  t.liveness.learn_peer(kNow, pdc, 77);
  EXPECT_EQ(pdc.state, PdcState::kAckWait);
  EXPECT_EQ(pdc.pending_control & kSendClose, 0);  // its packet is not acknowledged
}

TEST(Closing, proceed__sends_the_close_command_only_when_nothing_holds_the_pdc) {
  Life t;
  Pdc& pdc = t.established(2);
  pdc.locks = 1;
  t.closing.begin(kNow, pdc);
  EXPECT_EQ(pdc.state, PdcState::kQuiesce);
  pdc.locks = 0;
  t.closing.proceed(kNow, pdc);
  EXPECT_EQ(pdc.state, PdcState::kAckWait);
  EXPECT_EQ(pdc.pending_control & kSendClose, kSendClose);
}

// A read under way keeps the PDC; an operation that only waits for something lets go of it, once nothing else is outstanding.
TEST(Closing, proceed__asks_ses_for_the_locks_that_it_can_do_without) {
  Life t;
  Pdc& pdc = t.established(2);
  pdc.locks = 3;
  t.ses.yields = 2;
  t.closing.begin(kNow, pdc);
  EXPECT_EQ(pdc.locks, 1u);
  EXPECT_EQ(pdc.state, PdcState::kQuiesce);
  t.ses.yields = 5;  // more than there are
  t.closing.proceed(kNow, pdc);
  EXPECT_EQ(pdc.locks, 0u);
  EXPECT_EQ(pdc.state, PdcState::kAckWait);
  Pdc& busy = t.established(3);
  busy.locks = 1;
  t.ses.yields = 1;
  t.send(busy, 1);
  t.closing.begin(kNow, busy);
  EXPECT_EQ(busy.locks, 1u);  // the answer may end the wait
}

// A stray copy of a SYN packet must meet a target that still knows the PDC.
TEST(Closing, proceed__waits_after_a_syn_packet_was_sent_again) {
  Life t;
  Pdc& pdc = t.established(2);
  pdc.was_syn_resent = true;
  pdc.last_syn_sent = kNow;
  t.closing.begin(kNow, pdc);
  const Instant due = kNow + t.env.config.syn_retx_safety_time;
  EXPECT_EQ(pdc.pending_control & kSendClose, 0);
  EXPECT_EQ(pdc.deadline(PdcTimer::kClose), due);
  t.closing.on_timer(due, pdc);
  EXPECT_EQ(pdc.pending_control & kSendClose, kSendClose);
}

TEST(Closing, begin__asks_the_initiator_of_a_target_and_nothing_of_an_unproven_peer) {
  Life t;
  Pdc& unproven = t.served(2);
  t.closing.begin(kNow, unproven);
  EXPECT_EQ(unproven.state, PdcState::kEstablished);
  Pdc& proven = t.proven(3);
  t.closing.begin(kNow, proven);
  EXPECT_EQ(proven.state, PdcState::kCloseReq);
  EXPECT_EQ(proven.pending_control & kSendClose, kSendClose);
}

TEST(Closing, a_target_that_is_not_answered_in_time_fails_with_a_nack) {
  PdsConfig config;
  config.close_req_time = Duration::from_ms(1);
  Life t(config);
  Pdc& pdc = t.proven(2);
  t.closing.begin(kNow, pdc);
  pdc.tx.unacked = 1;  // the Close Request
  const Instant due = pdc.deadline(PdcTimer::kClose);
  EXPECT_EQ(due, kNow + Duration::from_ms(1));
  pdc.heard_at = due - Duration::from_us(1);  // something still happens on it
  t.closing.on_timer(due, pdc);
  EXPECT_EQ(pdc.state, PdcState::kCloseReq);
  pdc.tx.unacked = 0;
  pdc.tx.probe.sent_at = due;
  t.closing.on_timer(due + Duration::from_ms(2), pdc);
  EXPECT_EQ(t.take_nack(), NackCode::kClosingInErr);
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kPeerFailed});
  EXPECT_EQ(t.pdcs.size(), 0u);
}

TEST(Closing, on_command__in_order_ends_the_target_and_leaves_its_last_ack) {
  Life t;
  Pdc& pdc = t.proven(2);
  const Psn command = pdc.rx.edge + 1;
  t.closing.on_command(kNow, pdc, Life::packet_of(pdc, command));
  EXPECT_EQ(t.ses.closed, 1);
  EXPECT_EQ(t.pdcs.size(), 0u);
  ASSERT_EQ(t.shared.built.size(), 1u);
  const net::TxPacket last = t.shared.built.pop();
  const auto ack = wire::decode<wire::PdsAckCcNscc>(std::as_const(last.packet).bytes().data());
  EXPECT_EQ(ack.type, wire::PdsType::kAckCc);
  EXPECT_EQ(ack.cack_psn, command);
}

// Then the next copy of the command is answered with INV_DPDCID, which means the same.
TEST(Closing, on_command__ends_the_target_also_when_there_is_no_room_for_its_last_ack) {
  PdsConfig config;
  config.built_queue_max = 1;
  Life t(config);
  t.shared.built.push({});
  Pdc& pdc = t.proven(2);
  t.closing.on_command(kNow, pdc, Life::packet_of(pdc, pdc.rx.edge + 1));
  EXPECT_EQ(t.ses.closed, 1);
  EXPECT_EQ(t.shared.built.size(), 1u);
}

TEST(Closing, on_command__out_of_order_is_an_error_of_the_initiator) {
  Life t;
  Pdc& pdc = t.proven(2);
  t.closing.on_command(kNow, pdc, Life::packet_of(pdc, pdc.rx.edge + 2));
  EXPECT_EQ(t.take_nack(), NackCode::kUnexpEvent);
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kPeerLost});
}

TEST(Closing, on_command__waits_for_the_answers_that_ses_owes) {
  Life t;
  Pdc& pdc = t.proven(2);
  const Psn asked = pdc.rx.edge + 1;
  t.receiver.accept(kNow, pdc, Life::packet_of(pdc, asked),
                    Answer{.kind = Answer::Kind::kLater, .response = {}});
  t.closing.on_command(kNow, pdc, Life::packet_of(pdc, asked + 1));
  EXPECT_EQ(pdc.state, PdcState::kClosing);
  t.closing.finish_if_answered(kNow, pdc);
  EXPECT_EQ(t.ses.closed, 0);
  ASSERT_TRUE(t.receiver.respond(kNow, pdc, asked, {}, false));
  t.closing.finish_if_answered(kNow, pdc);
  EXPECT_EQ(t.ses.closed, 1);
}

TEST(Closing, on_command__while_read_data_is_out_fails_the_pdc) {
  Life t;
  Pdc& pdc = t.proven(2);
  ASSERT_TRUE(t.lifecycle.attach_congestion(kNow, pdc));
  t.send(pdc, 8);
  t.closing.on_command(kNow, pdc, Life::packet_of(pdc, pdc.rx.edge + 1));
  EXPECT_EQ(t.take_nack(), NackCode::kClosingInErr);
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kPeerClosing});
}

TEST(Closing, fail__reports_every_message_once_those_that_were_sent_first) {
  Life t;
  Pdc& pdc = t.established(2);
  t.submit(pdc, 3);
  pdc.tx.queue.clear();
  Message& queued = *t.messages.find(3);
  t.send(pdc, 1);
  t.send(pdc, 2);
  pdc.tx.queue.push_back(queued);
  t.closing.fail(kNow, pdc, PdsError::kPeerSilent);
  EXPECT_EQ(
      t.ses.failed,
      (Failed{{1, PdsError::kPeerSilent}, {2, PdsError::kPeerSilent}, {3, PdsError::kPeerSilent}}));
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kPeerSilent});
  EXPECT_EQ(t.messages.size(), 0u);
  EXPECT_EQ(t.window.records().in_use(), 0u);
}

// See docs/decisions/0051: a packet that was refused each time did not arrive, one that was lost may have.
TEST(Closing, fail__tells_messages_that_may_have_arrived_from_those_that_cannot) {
  Life t;
  Pdc& pdc = t.established(2);
  const Psn first = t.send(pdc, 1);
  const Psn lost = t.send(pdc, 2);
  TxRecord& record = t.window.records().at(pdc.tx.ring, lost);
  for (const TxEvent event : {TxEvent::kLost, TxEvent::kSent})
    SendWindow::move(pdc.tx, record, event);
  t.closing.fail(kNow, pdc, PdsError::kPeerLost, Closing::Refused{first, true});
  EXPECT_EQ(t.ses.failed, (Failed{{1, PdsError::kPeerLost}, {2, PdsError::kInDoubt}}));
}

TEST(Closing, on_timeouts_exhausted__of_a_close_command_alone_is_a_graceful_end) {
  Life t;
  Pdc& pdc = t.established(2);
  t.closing.begin(kNow, pdc);
  t.states.change(kNow, pdc, PdcInput::kCloseSent);
  t.closing.on_timeouts_exhausted(kNow, pdc);
  EXPECT_EQ(t.ses.closed, 1);
  EXPECT_TRUE(t.ses.gone.empty());
  t.closing.on_timeouts_exhausted(kNow, t.established(3));
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kRtoExhausted});
}

TEST(Closing, is_given_up__when_the_fifth_close_request_goes_unanswered) {
  Life t;
  Pdc& pdc = t.proven(2);
  EXPECT_FALSE(t.closing.is_given_up(kNow + Duration::from_seconds(60), pdc));
  t.closing.begin(kNow, pdc);
  TxRecord& request = t.send_control(pdc);
  request.rto_cnt = 4;
  EXPECT_FALSE(t.closing.is_given_up(kNow, pdc));
  request.rto_cnt = 5;
  EXPECT_TRUE(t.closing.is_given_up(kNow, pdc));
}

TEST(Closing, close_all__begins_the_close_of_every_pdc) {
  Life t;
  t.initiator(2);
  Pdc& established = t.established(3);
  Pdc& target = t.proven(4);
  Pdc& unproven = t.served(5);
  t.closing.close_all(kNow);
  EXPECT_EQ(established.state, PdcState::kAckWait);
  EXPECT_EQ(target.state, PdcState::kCloseReq);
  EXPECT_EQ(unproven.state, PdcState::kCloseReq);
  EXPECT_EQ(t.pdcs.size(), 3u);
}

}  // namespace
}  // namespace uet::pds::test
