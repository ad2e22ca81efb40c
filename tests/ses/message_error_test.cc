// Messages that their initiator ends or cancels. [SES 10, 12, 17]
#include "tests/ses/outcome_fixture.h"

namespace uet::ses::testing {
namespace {

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

// The end of a message that began nothing must not be in the way of the next one with its id: of other senders an id may come soon.
TEST_F(OutcomeTest, message_error_that_overtakes_nothing__leaves_nothing_to_discard) {
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

// The first packets were refused, and the MSG_ERROR that ends the message finds that they were.
TEST_F(OutcomeTest, message_error__at_an_endpoint_without_the_space_leaves_nothing_to_discard) {
  EndpointConfig config = standard_endpoint();
  config.has_rma = false;
  open(config);
  Bytes data = pattern(9 * kM);
  rma(false, data, 1, 0, 5);
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  for (int i = 0; i < 2; ++i) fabric.deliver(0);
  for (int i = 0; i < 2; ++i) fabric.reply(0);
  fabric.advance(Duration::from_ns(1));
  fabric.run();
  EXPECT_EQ(fabric.sent_log.back().view(kM).opcode, SesOpcode::kMsgError);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kBadIndex);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(OutcomeTest, endpoint_that_opens_in_the_middle__takes_nothing_of_the_message) {
  open();
  sb().close_endpoint(fabric.now, eb);
  fabric.advance(Duration::from_seconds(3));  // its index is free again
  send(pattern(9 * kM), 5);
  fabric.cut_all();
  for (int i = 0; i < 4; ++i) fabric.deliver(0);
  EndpointConfig config = standard_endpoint();
  config.initiator_id = 4;
  eb = *sb().open_endpoint(fabric.now, config, at_b);
  Bytes into(9 * kM);
  post(into);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kBadJobId);
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  send(pattern(100), 6);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].length, 100u);
}

// A target that takes no numbered sends, though its address says that it does.
TEST(SequencedRefusalTest, message_error__ends_what_was_refused_for_its_number) {
  SesConfig numbers;
  numbers.spray_ordered = true;
  Fabric fabric(1, kM);
  Node &from = fabric.add_node(numbers), &to = fabric.add_node();
  Recorder at_from, at_to;
  EndpointConfig config;
  config.job_id = 7;
  config.resource_index = 5;
  config.sends_ordered = true;
  const EndpointId source = *from.ses.open_endpoint(fabric.now, config, at_from);
  const EndpointId target = *to.ses.open_endpoint(fabric.now, config, at_to);
  Address address = to.ses.address_of(target);
  address.fep_cap |= kRestoresOrder;
  const PeerId peer = *from.ses.add_peer(address);
  Bytes data = pattern(9 * kM), into(9 * kM);
  const iovec out = piece(data), in = piece(into);
  ReceiveRequest receive;
  receive.iov = {&in, 1};
  ASSERT_TRUE(to.ses.receive(fabric.now, target, receive));
  SendRequest r;
  r.peer = peer;
  r.iov = {&out, 1};
  ASSERT_TRUE(from.ses.send(fabric.now, source, r));
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  for (int i = 0; i < 2; ++i) fabric.deliver(0);
  for (int i = 0; i < 2; ++i) fabric.reply(0);
  fabric.advance(Duration::from_ns(1));
  fabric.run_for(Duration::from_seconds(1));
  EXPECT_EQ(into, data);
  EXPECT_EQ(to.ses.gauges().messages_receiving, 0u);
}

// A message is numbered or not, whether or not the target takes numbers.
struct MixedNumbersTest : PairTest, ::testing::WithParamInterface<bool> {
  MixedNumbersTest() : PairTest(config()) { open(); }
  static SesConfig config() {
    SesConfig c;
    c.spray_ordered = GetParam();
    return c;
  }
  /// Of a message of four packets that say they carry an MTU each.
  static RawRequest packet(std::uint32_t i, bool is_numbered, std::size_t payload) {
    RawRequest r;
    r.opcode = is_numbered ? SesOpcode::kSequencedSend : SesOpcode::kSend;
    r.length = 4 * kM;
    r.offset = i * kM;
    r.som = i == 0;
    r.eom = i == 3;
    r.covered = kM;
    r.payload = Bytes(payload, 0x11);
    return r;
  }
  void expect_failed(const Bytes& into) {
    ASSERT_EQ(at_b.all.size(), 1u);
    EXPECT_EQ(at_b.all[0].code, ReturnCode::kOpViolation);
    EXPECT_EQ(at_b.all[0].length, kM);
    EXPECT_EQ(at_b.all[0].overflow_length, 3 * kM);
    EXPECT_EQ(Bytes(into.begin() + kM, into.end()), Bytes(3 * kM, 0xee));
  }
};
INSTANTIATE_TEST_SUITE_P(TakesNumbers, MixedNumbersTest, ::testing::Bool());

TEST_P(MixedNumbersTest, numbered_packet_of_a_plain_message__ends_it) {
  Bytes into(4 * kM, 0xee);
  post(into);
  inject(packet(0, false, kM));
  EXPECT_EQ(code_of(packet(1, true, kM)), ReturnCode::kOpViolation);
  expect_failed(into);
  inject(packet(2, false, kM));
  inject(packet(3, false, kM));
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_P(MixedNumbersTest, numbered_packet_without_its_payload__completes_nothing) {
  Bytes into(4 * kM, 0xee);
  inject(packet(0, false, kM));
  for (std::uint32_t i = 1; i < 4; ++i)
    EXPECT_EQ(code_of(packet(i, true, 0)), ReturnCode::kOpViolation);
  post(into);
  EXPECT_EQ(Bytes(into.begin() + kM, into.end()), Bytes(3 * kM, 0xee));
  for (const Completion& c : at_b.all) EXPECT_NE(c.code, ReturnCode::kOk);
}

TEST_P(MixedNumbersTest, numbered_packets_with_more_than_they_say__do_not_add_up) {
  Bytes into(4 * kM, 0xee);
  post(into);
  inject(packet(0, false, kM));
  inject(packet(1, true, 3 * kM));
  inject(packet(2, true, 3 * kM));
  RawRequest end;
  end.opcode = SesOpcode::kMsgError;
  end.som = false;
  end.length = 4 * kM;
  end.offset = 3 * kM;
  inject(end);
  expect_failed(into);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

// Refused again and again: no attempt leaves what a later one with its id would meet.
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

// Of several with this context.
TEST_F(OutcomeTest, cancel__looks_on_behind_one_that_has_left) {
  open();
  send(pattern(100), 5);
  fabric.cut_all();
  send(pattern(9 * kM), 5);
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 5));
  EXPECT_FALSE(sa().cancel(fabric.now, ea, 5));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
}

}  // namespace
}  // namespace uet::ses::testing
