// Responses, errors, flags, fences, closing. [SES 10, 11, 12, 14, 17]
#include <algorithm>

#include "tests/ses/outcome_fixture.h"

namespace uet::ses::testing {
namespace {

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

TEST_F(OutcomeTest, hurry__asks_for_what_one_endpoint_has_sent) {
  open();
  Recorder other_sink;
  const EndpointId other = *sa().open_endpoint(fabric.now, {}, other_sink);
  Bytes data = pattern(64);
  const iovec iov = piece(data);
  SendRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.inject = true;
  ASSERT_TRUE(sa().send(fabric.now, ea, r));
  r.completion_may_wait = true;
  for (const EndpointId from : {ea, ea, other}) ASSERT_TRUE(sa().send(fabric.now, from, r));
  std::vector<pds::MessageToken>& hurried = a.hurried;
  sa().hurry(fabric.now, ea);
  EXPECT_EQ(hurried.size(), 2u);
  sa().hurry(fabric.now, other);
  EXPECT_EQ(hurried.size(), 3u);
  sa().hurry(fabric.now, 12345);  // there is none
  EXPECT_EQ(hurried.size(), 3u);
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
  for (const auto& flight : fabric.flights) EXPECT_EQ(flight.channel->mode, pds::Mode::kRod);
  while (at_b.find(OpKind::kReceive) == nullptr) ASSERT_TRUE(fabric.deliver(0));
  EXPECT_EQ(memory, data);
}

// Covers: SES-28
TEST_F(OutcomeTest, unsupported_header_type__is_told_so) {
  open();
  const auto answer = inject_bytes(encode(RawRequest{}), wire::NextHdr::kNone);
  EXPECT_EQ(view(answer).code, ReturnCode::kUnsupportedOp);
  EXPECT_TRUE(answer.guaranteed);
}

// [WIRE 5.15] Nothing is asked but whether the endpoint is there.
TEST_F(OutcomeTest, no_op__in_any_form) {
  open();
  RawRequest r;
  r.opcode = SesOpcode::kNoOp;
  const auto code_in = [&](wire::NextHdr form) {
    const Bytes bytes = form == wire::NextHdr::kRequestSmall    ? encode_small(r)
                        : form == wire::NextHdr::kRequestMedium ? encode_medium(r)
                                                                : encode(r);
    return view(inject_bytes(bytes, form)).code;
  };
  for (const auto form :
       {wire::NextHdr::kRequestStd, wire::NextHdr::kRequestMedium, wire::NextHdr::kRequestSmall}) {
    r.ri = 5;
    EXPECT_EQ(code_in(form), ReturnCode::kOk) << static_cast<int>(form);
    r.ri = 6;
    EXPECT_EQ(code_in(form), ReturnCode::kBadIndex) << static_cast<int>(form);
  }
  EXPECT_TRUE(at_b.all.empty());
}

TEST_F(OutcomeTest, unreadable_packets__get_an_error_and_are_counted) {
  open();
  EXPECT_EQ(view(inject_bytes(Bytes(10), wire::NextHdr::kRequestStd)).code,
            ReturnCode::kOpViolation);
  EXPECT_EQ(b.trace.drops(base::DropReason::kSesMalformed), 1u);
  EXPECT_EQ(view(inject_bytes(Bytes(10), wire::NextHdr::kRequestSmall)).code,
            ReturnCode::kOpViolation);
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
