// Responses, errors, flags, cancelling, fences. [SES 10, 11, 12, 14, 17]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct OutcomeTest : PairTest {
  void send_with(Bytes& data, bool dc, bool fence, std::uint64_t context) {
    const iovec iov = piece(data);
    SendRequest r;
    r.peer = b_of_a;
    r.iov = {&iov, 1};
    r.delivery_complete = dc;
    r.fence = fence;
    r.context = context;
    ASSERT_TRUE(sa().send(fabric.now, ea, r));
  }
};

// Covers: SES-58
TEST_F(OutcomeTest, deferrable__with_a_buffer_is_a_plain_send) {
  open();
  Bytes into(8);
  post(into);
  RawRequest r;
  r.opcode = SesOpcode::kDeferrableSend;
  r.buffer_offset = 0x1234'5678'0000'0000;  // restart tokens, not an offset
  r.length = 3;
  r.payload = {1, 2, 3};
  EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kDefaultResponse);
  EXPECT_EQ(into[2], 3);
  EXPECT_EQ(at_b.all.size(), 1u);
}

// Covers: SES-64
TEST_F(OutcomeTest, errors__are_guaranteed_and_modify_nothing) {
  open();
  RawRequest r;
  r.opcode = SesOpcode::kWrite;
  r.key = 1;
  r.length = 4;
  r.payload = Bytes(4);
  const auto answer = inject(r);
  EXPECT_TRUE(answer.guaranteed);
  EXPECT_EQ(view(answer).opcode, ResponseOpcode::kResponse);
  EXPECT_EQ(view(answer).modified_length, 0u);
  EXPECT_EQ(view(answer).message_id, r.message_id);
  EXPECT_EQ(view(answer).job_id, r.job);
}

// Covers: SES-65
TEST_F(OutcomeTest, success__is_not_guaranteed_and_null_completes_too) {
  open();
  Bytes into(4);
  post(into);
  send({1, 2});
  fabric.cut_all();
  fabric.deliver(0);
  ASSERT_EQ(fabric.replies.size(), 1u);
  EXPECT_FALSE(fabric.replies[0].guaranteed);
  // What a PDS makes for a duplicate: default response, code NULL, ids 0.
  wire::SesResponse h;
  Bytes bytes(wire::SesResponse::kSize);
  wire::emit(h, bytes.data());
  fabric.replies[0].bytes = bytes;
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
}

// Covers: SES-66
TEST_F(OutcomeTest, only_no_response__is_not_complete) {
  open();
  Bytes into(2 * kM);
  post(into);
  send(pattern(2 * kM));
  fabric.cut_all();
  const pds::MessageToken token = fabric.flights[0].token;
  fabric.flights.clear();
  wire::SesResponse h;
  h.opcode = ResponseOpcode::kNoResponse;
  h.return_code = wire::ReturnCode::kOk;
  h.job_id = 7;
  Bytes none(wire::SesResponse::kSize);
  wire::emit(h, none.data());
  for (std::uint32_t s = 0; s < 2; ++s)
    sa().on_response(fabric.now, token, s, static_cast<std::uint8_t>(wire::NextHdr::kResponse),
                     none);
  EXPECT_TRUE(at_a.all.empty());
}

/// A send of one packet, delivered and answered NO_RESPONSE.
struct VerdictTest : OutcomeTest {
  void undecided() {
    open();
    post(into);
    Bytes data = pattern(kM);
    send_with(data, true, false, 1);
    fabric.cut_all();
    const Flight flight = fabric.flights[0];
    fabric.flights.clear();
    pdc = flight.channel->ref_at_from;
    verdict.message_id = flight.view(kM).message_id;
    verdict.job_id = flight.view(kM).job_id;
    wire::SesResponse none = verdict;
    none.opcode = ResponseOpcode::kNoResponse;
    Bytes bytes(wire::SesResponse::kSize);
    wire::emit(none, bytes.data());
    sa().on_response(fabric.now, flight.token, 0, kPlain, bytes);
    verdict.opcode = ResponseOpcode::kResponse;
    verdict.return_code = wire::ReturnCode::kOk;
  }
  void say(const wire::SesResponse& h, pds::PdcRef on) {
    Bytes bytes(wire::SesResponse::kSize);
    wire::emit(h, bytes.data());
    sa().on_further_response(fabric.now, on, kPlain, bytes);
  }
  static constexpr auto kPlain = static_cast<std::uint8_t>(wire::NextHdr::kResponse);
  Bytes into = Bytes(kM);
  pds::PdcRef pdc;
  wire::SesResponse verdict;
};

TEST_F(VerdictTest, response_after_no_response__completes_once) {
  undecided();
  EXPECT_TRUE(at_a.all.empty());
  say(verdict, pdc);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  say(verdict, pdc);
  EXPECT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(VerdictTest, error_after_no_response__is_the_outcome) {
  undecided();
  verdict.return_code = wire::ReturnCode::kPermViolation;
  say(verdict, pdc);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kPermViolation);
}

// What a PDS makes for a duplicate is no verdict; nor is what names another message, job or PDC.
TEST_F(VerdictTest, what_is_not_its_verdict__changes_nothing) {
  undecided();
  wire::SesResponse h = verdict;
  h.opcode = ResponseOpcode::kDefaultResponse;
  say(h, pdc);
  h.opcode = ResponseOpcode::kNoResponse;
  say(h, pdc);
  h = verdict;
  h.message_id = static_cast<std::uint16_t>(h.message_id ^ 0x8000);
  say(h, pdc);
  h = verdict;
  ++h.job_id;
  say(h, pdc);
  say(verdict, pds::PdcRef{pdc.value + 1});
  sa().on_further_response(fabric.now, pdc, kPlain, {});
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(sa().gauges().sends_active, 1u);
  say(verdict, pdc);
  EXPECT_EQ(at_a.all.size(), 1u);
}

// A response that is not to be had twice: the first one has decided, a second one is a copy or forged.
TEST_F(OutcomeTest, further_response_to_a_decided_message__changes_nothing) {
  open();
  Bytes into(2 * kM);
  post(into);
  send(pattern(2 * kM));
  fabric.cut_all();
  const Flight flight = fabric.flights[0];
  fabric.deliver(0);
  sa().on_response(fabric.now, flight.token, 0, 0, {});
  wire::SesResponse h;
  h.opcode = ResponseOpcode::kResponse;
  h.return_code = wire::ReturnCode::kPermViolation;
  h.message_id = flight.view(kM).message_id;
  h.job_id = flight.view(kM).job_id;
  Bytes bytes(wire::SesResponse::kSize);
  wire::emit(h, bytes.data());
  sa().on_further_response(fabric.now, flight.channel->ref_at_from,
                           static_cast<std::uint8_t>(wire::NextHdr::kResponse), bytes);
  fabric.replies.clear();
  fabric.deliver(0);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
}

// A target that says nothing more and lets the PDC end leaves no operation open for ever.
TEST_F(OutcomeTest, no_verdict_before_the_pdc_closes__is_an_error) {
  open();
  Bytes into(kM);
  post(into);
  send(pattern(kM));
  fabric.cut_all();
  const pds::MessageToken token = fabric.flights[0].token;
  const pds::PdcRef pdc = fabric.flights[0].channel->ref_at_from;
  fabric.flights.clear();
  wire::SesResponse h;
  h.opcode = ResponseOpcode::kNoResponse;
  h.job_id = 7;
  Bytes none(wire::SesResponse::kSize);
  wire::emit(h, none.data());
  sa().on_response(fabric.now, token, 0, static_cast<std::uint8_t>(wire::NextHdr::kResponse), none);
  sa().on_pdc_closed(fabric.now, pds::PdcRef{pdc.value + 1000}, b.address);
  EXPECT_TRUE(at_a.all.empty());
  sa().on_pdc_closed(fabric.now, pdc, b.address);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUncor);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

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

// The target forgot the PDC and not the message: it is asked again. What it does not know then may have been in another process.
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
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUndeliverable);
  post(into);
  fabric.run_for(Duration::from_ms(10));
  ASSERT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(at_a.all[1].code, ReturnCode::kOk);
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

// Covers: SES-68
TEST_F(OutcomeTest, initiator_error__ends_the_message_unless_it_had_failed_before) {
  open();
  const Bytes data = pattern(5 * kM);
  Bytes into(5 * kM, 0xee);
  post(into);
  const auto packet = [&](std::uint32_t i) {
    RawRequest r;
    r.length = 5 * kM;
    r.offset = i * kM;
    r.som = i == 0;
    r.eom = i == 4;
    r.payload.assign(data.begin() + i * kM, data.begin() + (i + 1) * kM);
    return r;
  };
  inject(packet(0));
  inject(packet(1));
  RawRequest bad = packet(2);
  bad.ie = true;
  EXPECT_EQ(code_of(bad), ReturnCode::kInitiatorErr);
  EXPECT_EQ(Bytes(into.begin() + 2 * kM, into.begin() + 3 * kM), Bytes(kM, 0xee));
  EXPECT_EQ(code_of(packet(3)), ReturnCode::kInitiatorErr);
  EXPECT_EQ(code_of(packet(4)), ReturnCode::kInitiatorErr);
  EXPECT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);

  Bytes again(5 * kM);
  post(again);
  inject(packet(0));
  RawRequest changed = packet(1);
  changed.initiator = 9;
  EXPECT_EQ(code_of(changed), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(bad), ReturnCode::kOpViolation);
}

// Covers: SES-69
TEST_F(OutcomeTest, cancel_in_the_middle__sends_one_message_error) {
  open();
  Bytes into(9 * kM);
  post(into);
  send(pattern(9 * kM), 5);
  for (int i = 0; i < 4; ++i) fabric.cut_one_each();
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 5));
  EXPECT_FALSE(sa().cancel(fabric.now, ea, 5));
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 5u);
  const RequestView v = fabric.sent_log[4].view(kM);
  EXPECT_EQ(v.opcode, SesOpcode::kMsgError);
  EXPECT_TRUE(!v.som && v.eom);
  EXPECT_EQ(v.message_offset, 4 * kM);
  EXPECT_TRUE(v.payload.empty());
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(at_b.all[0].length, 4 * kM);
  EXPECT_EQ(fabric.reply_log.back().view().code, ReturnCode::kInitiatorErr);
  EXPECT_TRUE(fabric.reply_log.back().guaranteed);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  RawRequest unknown;
  unknown.opcode = SesOpcode::kMsgError;
  unknown.som = false;
  EXPECT_EQ(code_of(unknown), ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(OutcomeTest, message_error_that_overtakes__late_packets_begin_nothing) {
  open();
  Bytes into(9 * kM);
  post(into);
  send(pattern(9 * kM), 5);
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 5));
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 3u);
  fabric.deliver(2);
  fabric.run();
  EXPECT_TRUE(at_b.all.empty());
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  EXPECT_EQ(at_a.all.size(), 1u);
}

// The end of a message that began nothing must not be in the way of the next one with its id: a sender comes round to an id
// after eight attempts of one operation.
TEST_F(OutcomeTest, message_error_that_overtakes_nothing__leaves_no_stone) {
  open();
  RawRequest end;
  end.opcode = SesOpcode::kMsgError;
  end.som = false;
  end.length = 3 * kM;
  end.offset = kM;
  EXPECT_EQ(code_of(end, pds::Mode::kRod), ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  end.ri = 6;  // refused at each of its packets
  EXPECT_EQ(code_of(end), ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  RawRequest next;
  next.length = 3 * kM;
  next.payload = Bytes(kM);
  next.eom = false;
  EXPECT_EQ(view(inject(next, pds::Mode::kRod)).opcode, ResponseOpcode::kNoResponse);
}

// Refused again and again, with eight ids that come round: no attempt meets what an earlier one left.
TEST_F(OutcomeTest, message_refused_many_times__leaves_nothing_behind_each_time) {
  for (const bool ordered : {false, true}) {
    Fabric f(7, kM);
    SesConfig no_room;
    no_room.overflow_msgs = 0;
    Node &from = f.add_node(), &to = f.add_node(no_room);
    Recorder at_from, at_to;
    EndpointConfig config = standard_endpoint();
    config.sends_ordered = ordered;
    const EndpointId source = *from.ses.open_endpoint(f.now, config, at_from);
    const EndpointId target = *to.ses.open_endpoint(f.now, config, at_to);
    const PeerId peer = *from.ses.add_peer(to.ses.address_of(target));
    Bytes data = pattern(9 * kM);
    const iovec iov = piece(data);
    SendRequest r;
    r.peer = peer;
    r.iov = {&iov, 1};
    ASSERT_TRUE(from.ses.send(f.now, source, r));
    for (int i = 0; i < 30; ++i) {
      f.run_randomly();
      EXPECT_EQ(to.ses.gauges().messages_receiving, 0u) << i;
      f.advance(Duration::from_seconds(1));
    }
    EXPECT_GE(from.trace.count(base::EventId::kMessageRetried), 20u);
    EXPECT_TRUE(at_from.all.empty());
  }
}

TEST_F(OutcomeTest, cancel__before_anything_left_sends_nothing) {
  open();
  send(pattern(9 * kM), 5);
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 5));
  fabric.run();
  EXPECT_TRUE(fabric.sent_log.empty());
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
}

TEST_F(OutcomeTest, cancel__after_everything_left_is_refused) {
  open();
  send(pattern(100), 5);
  fabric.cut_all();
  EXPECT_FALSE(sa().cancel(fabric.now, ea, 5));
}

TEST_F(OutcomeTest, target_error_in_the_middle__ends_with_message_error) {
  open();
  Bytes data = pattern(50 * kM);
  rma(false, data, 1, 0);
  for (int i = 0; i < 4; ++i) fabric.cut_one_each();
  fabric.deliver(0);
  fabric.reply(0);
  fabric.run();
  EXPECT_LT(fabric.sent_log.size(), 10u);
  EXPECT_EQ(fabric.sent_log.back().view(kM).opcode, SesOpcode::kMsgError);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kBadMkey);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

// Covers: SES-70
TEST_F(OutcomeTest, undeliverable__completes_once) {
  open();
  send(pattern(3 * kM), 1);
  fabric.cut_all();
  const auto token = fabric.flights[0].token;
  fabric.deliver(0);
  fabric.fail_message(a, token, pds::PdsError::kRtoExhausted);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUndeliverable);
  sa().on_message_error(fabric.now, token, pds::PdsError::kRtoExhausted);
  EXPECT_EQ(at_a.all.size(), 1u);
  send({1}, 2);
  fabric.cut_all();
  fabric.fail_message(a, fabric.flights.back().token, pds::PdsError::kPeerSilent);
  EXPECT_EQ(at_a.all.back().code, ReturnCode::kPeerSilent);
}

TEST_F(OutcomeTest, retryable_loss__is_repeated_unless_it_would_show) {
  open();
  Bytes memory(4 * kM), data = pattern(3 * kM);
  rma(false, data, expose(memory), 0, 1);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);
  fabric.fail_message(a, fabric.flights[0].token, pds::PdsError::kPeerLost);
  send({2}, 2);
  fabric.cut_all();
  fabric.fail_message(a, fabric.flights[0].token, pds::PdsError::kPeerLost);
  Bytes into(3 * kM);
  post(into);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(at_a.find(1)->code, ReturnCode::kOk);
  EXPECT_EQ(at_a.find(2)->code, ReturnCode::kOk);
  EXPECT_EQ(into[0], 2);
  EXPECT_EQ(memory[0], data[0]);
  // Part of this one was taken: twice would be wrong.
  send(data, 3);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);
  fabric.fail_message(a, fabric.flights[0].token, pds::PdsError::kPeerLost);
  EXPECT_EQ(at_a.find(3)->code, ReturnCode::kUndeliverable);
}

TEST_F(OutcomeTest, pdc_gone__open_receives_fail_and_reads_are_asked_again) {
  open();
  Bytes into(4 * kM), captured(10);
  post(into);
  send(pattern(4 * kM, 1), 1);
  send(pattern(4 * kM, 2), 2);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.deliver(3);
  EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
  const auto first = fabric.flights.front().token, second = fabric.flights.back().token;
  Channel& channel = *fabric.flights[0].channel;
  fabric.lose_pdc(channel, pds::PdsError::kPeerLost);
  sa().on_message_error(fabric.now, first, pds::PdsError::kPeerLost);
  sa().on_message_error(fabric.now, second, pds::PdsError::kPeerLost);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kUndeliverable);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(at_a.all.size(), 2u);
  Bytes rest(4 * kM);
  post(rest);
  post(rest);
  EXPECT_EQ(sb().gauges().messages_receiving + sb().gauges().unexpected_messages, 0u);

  Bytes memory = pattern(4 * kM), back(4 * kM);
  rma(true, back, expose(memory), 0, 3);
  fabric.cut_all();
  while (fabric.deliver(0) && !fabric.flights.empty()) {
  }
  while (fabric.reply(0)) {
  }
  std::erase_if(fabric.sent_log, [](const Flight&) { return true; });
  fabric.lose_pdc(channel, pds::PdsError::kPeerLost);
  EXPECT_EQ(at_a.find(3), nullptr);
  fabric.run_for(Duration::from_ms(10));
  ASSERT_NE(at_a.find(3), nullptr);
  EXPECT_EQ(back, memory);
}

TEST_F(OutcomeTest, fence__waits_for_all_before_and_holds_all_behind) {
  open();
  std::vector<Bytes> into(4, Bytes(2 * kM)), data(4, pattern(2 * kM));
  for (auto& i : into) post(i);
  send_with(data[0], false, false, 1);
  send_with(data[1], false, false, 2);
  send_with(data[2], false, true, 3);
  send_with(data[3], false, false, 4);
  fabric.cut_all();
  EXPECT_EQ(fabric.sent_log.size(), 4u);
  for (int i = 0; i < 3; ++i) fabric.deliver(0);
  while (fabric.reply(0)) {
  }
  fabric.advance(Duration());
  fabric.cut_all();
  EXPECT_EQ(fabric.sent_log.size(), 4u);
  fabric.run();
  EXPECT_EQ(fabric.sent_log.size(), 8u);
  EXPECT_EQ(at_a.all.size(), 4u);
}

TEST_F(OutcomeTest, close_of_the_sender__injected_data_still_arrives) {
  open();
  Bytes into(64), data = pattern(64);
  post(into);
  const iovec iov = piece(data);
  SendRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.inject = true;
  ASSERT_TRUE(sa().send(fabric.now, ea, r));
  sa().close_endpoint(fabric.now, ea);
  fabric.run();
  EXPECT_EQ(into, data);
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(OutcomeTest, close_of_the_sender__its_memory_is_not_touched_again) {
  open();
  Bytes into(9 * kM);
  post(into);
  send(pattern(9 * kM), 5);
  for (int i = 0; i < 4; ++i) fabric.cut_one_each();
  sa().close_endpoint(fabric.now, ea);
  kept.clear();
  fabric.run();
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kCancelled);
}

TEST_F(OutcomeTest, close_of_the_sender__a_packet_cut_again_says_that_its_bytes_are_gone) {
  open();
  send(pattern(100), 5);
  fabric.cut_all();
  sa().close_endpoint(fabric.now, ea);
  kept.clear();
  net::Packet packet = fabric.pool.allocate();
  sa().emit_segment(fabric.flights[0].token, 0, fabric.flights[0].channel->ref_at_from,
                    base::Psn(1), packet);
  RequestView v;
  ASSERT_TRUE(parse_request(3, packet.bytes(), kM, v));
  EXPECT_TRUE(v.ie);
  EXPECT_EQ(Bytes(v.payload.begin(), v.payload.end()), Bytes(100));
  packet.reset();
  fabric.run();
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(OutcomeTest, close_of_a_reader__data_on_its_way_back_is_refused) {
  open();
  Bytes memory(4 * kM);
  auto into = std::make_unique<Bytes>(4 * kM);
  rma(true, *into, expose(memory), 0);
  fabric.cut_all();
  while (!fabric.flights.empty()) fabric.deliver(0);
  fabric.cut_all();
  sa().close_endpoint(fabric.now, ea);
  into.reset();
  fabric.run();
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(at_b.count(OpKind::kRemoteRead), 0u);
}

TEST_F(OutcomeTest, cancel_of_a_read__ends_once) {
  open();
  Bytes memory(9 * kM), into(9 * kM);
  rma(true, into, expose(memory), 0, 5);
  for (int i = 0; i < 4; ++i) fabric.cut_one_each();
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 5));
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

// Covers: SES-79
TEST_F(OutcomeTest, datagram__is_delivered_or_dropped_without_an_answer) {
  open();
  RawRequest r;
  r.opcode = SesOpcode::kDatagramSend;
  r.message_id = 0;
  r.length = 2;
  r.payload = {1, 2};
  EXPECT_EQ(inject(r, pds::Mode::kUud).kind, pds::Answer::Kind::kNone);
  EXPECT_EQ(b.trace.drops(base::DropReason::kDatagramNoBuffer), 1u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
  Bytes into(2);
  post(into);
  EXPECT_EQ(inject(r, pds::Mode::kUud).kind, pds::Answer::Kind::kNone);
  EXPECT_EQ(into, (Bytes{1, 2}));
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  r.opcode = SesOpcode::kSend;
  EXPECT_EQ(inject(r, pds::Mode::kUud).kind, pds::Answer::Kind::kNone);
  EXPECT_EQ(b.trace.drops(base::DropReason::kDatagramNoBuffer), 2u);
}

// Covers: SES-81
TEST_F(OutcomeTest, rod__write_is_visible_when_the_send_behind_it_is_received) {
  EndpointConfig c = standard_endpoint();
  c.sends_ordered = c.rma_ordered = true;
  open(c);
  Bytes memory(4 * kM), into(1), data = pattern(4 * kM);
  post(into);
  rma(false, data, expose(memory), 0);
  send({1}, 2);
  fabric.cut_all();
  EXPECT_EQ(fabric.flights.front().channel, fabric.flights.back().channel);
  while (at_b.find(OpKind::kReceive) == nullptr) ASSERT_TRUE(fabric.deliver(0));
  EXPECT_EQ(memory, data);
}

TEST_F(OutcomeTest, unreadable_packets__get_an_error_and_are_counted) {
  open();
  EXPECT_EQ(view(inject_bytes(Bytes(10), wire::NextHdr::kRequestStd)).code,
            ReturnCode::kOpViolation);
  EXPECT_EQ(b.trace.drops(base::DropReason::kSesMalformed), 1u);
  RawRequest r;
  r.version = 1;
  EXPECT_EQ(code_of(r), ReturnCode::kUncor);
  r.version = 0;
  r.length = 100;  // without them
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  sa().on_response(fabric.now, 12345, 0, 4, {});
  EXPECT_EQ(a.trace.drops(base::DropReason::kSesUnknownResponse), 1u);
}

}  // namespace
}  // namespace uet::ses::testing
