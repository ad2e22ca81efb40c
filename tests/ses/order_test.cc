// Ordered sends that come over all paths. [SES 17, decision 141]
#include "ses/sender_table.h"
#include "ses/sequence.h"
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig spraying() {
  SesConfig c;
  c.spray_ordered = true;
  c.overflow_bytes = 64 * kM;  // of messages before their turn: 8 KiB
  c.message_idle = Duration::from_seconds(5);
  return c;
}

struct OrderTest : PairTest {
  explicit OrderTest(const SesConfig& config = spraying()) : PairTest(config) {}

  void open_ordered() {
    EndpointConfig c;
    c.sends_ordered = true;
    open(c);
  }
  std::size_t held() { return sb().gauges().messages_held; }
  /// Contexts of the receives that completed, by the seed of what they hold.
  static Bytes message(std::uint32_t seed, std::size_t length = 100) {
    return pattern(length, seed);
  }
  std::vector<pds::Mode> modes_sent() const {
    std::vector<pds::Mode> modes;
    for (const Flight& f : fabric.sent_log) modes.push_back(f.channel->mode);
    return modes;
  }
  /// From a sender of its own that numbers its messages.
  RawRequest numbered(std::uint32_t number, std::uint16_t behind, std::uint32_t stream = 9) {
    RawRequest r;
    r.opcode = SesOpcode::kSequencedSend;
    r.buffer_offset = SequenceField{stream, number, behind}.pack();
    r.message_id = next_id++;
    r.payload = message(number & 0xff);
    r.length = static_cast<std::uint32_t>(r.payload.size());
    return r;
  }
  RawRequest gap(std::uint32_t number, std::uint16_t behind) {
    RawRequest r = numbered(number, behind);
    r.opcode = SesOpcode::kSequencedGap;
    r.payload.clear();
    r.length = 0;
    return r;
  }
  /// Numbers in the order in which receives take them.
  std::vector<std::uint32_t> taken() {
    std::vector<std::uint32_t> numbers;
    for (;;) {
      Bytes into(100);
      post(into, 7000);
      if (at_b.find(7000) == nullptr) break;
      at_b.all.clear();
      for (std::uint32_t n = 0; n < 256; ++n)
        if (into == message(n)) numbers.push_back(n);
    }
    EXPECT_TRUE(sb().cancel(fabric.now, eb, 7000));
    at_b.all.clear();
    return numbers;
  }
  std::uint16_t next_id = 1;
};

TEST(SequenceField, keeps_its_parts_and_goes_round) {
  const SequenceField f{0xabcdef, 5, 16383};
  const SequenceField g = SequenceField::unpack(f.pack());
  EXPECT_EQ(g.stream, 0xabcdefu);
  EXPECT_EQ(g.number, 5u);
  EXPECT_EQ(g.behind, 16383u);
  EXPECT_EQ(number_distance(g.number, g.base()), 16383);
  EXPECT_EQ(number_distance(0, kNumberMask), 1);
  EXPECT_EQ(number_distance(kNumberMask, 0), -1);
  EXPECT_EQ(number_after(kNumberMask), 0u);
}

/// What decoders show is what endpoints read.
TEST(SequenceField, is_where_the_declared_header_has_it) {
  const SequenceField f{0xabcdef, 5, 16383};
  std::array<std::uint8_t, wire::SesSequenced::kSize> bytes{};
  wire::emit(
      wire::SesStandardFirst{.opcode = SesOpcode::kSequencedTsend, .buffer_offset = f.pack()},
      bytes.data());
  const auto h = wire::decode<wire::SesSequenced>(bytes.data());
  EXPECT_EQ(h.opcode, SesOpcode::kSequencedTsend);
  EXPECT_EQ(h.stream, f.stream);
  EXPECT_EQ(h.number, f.number);
  EXPECT_EQ(h.behind, f.behind);
}

TEST_F(OrderTest, overtaken_message_is_matched_first) {
  open_ordered();
  Bytes first(100), second(100);
  post(first, 100);
  post(second, 101);
  send(message(1), 1);
  send(message(2), 2);
  fabric.cut_all();
  EXPECT_EQ(modes_sent(), std::vector(2, pds::Mode::kRud));
  fabric.deliver(1);
  EXPECT_TRUE(at_b.all.empty());
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
  fabric.deliver(0);
  EXPECT_EQ(first, message(1));
  EXPECT_EQ(second, message(2));
  EXPECT_EQ(held(), 0u);
  fabric.run();
  EXPECT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
}

TEST_F(OrderTest, held_message_is_hidden_from_receives_and_peeks) {
  open_ordered();
  tsend(message(1), 1, 1);
  tsend(message(2), 2, 2);
  fabric.cut_all();
  fabric.deliver(1);
  PeekRequest peek;
  peek.tag = 2;
  ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kNoMessage);
  Bytes into(100);
  tpost(into, 2, 0, 102);
  EXPECT_EQ(at_b.find(102), nullptr);
  fabric.deliver(0);
  EXPECT_NE(at_b.find(102), nullptr);
  EXPECT_EQ(into, message(2));
  ASSERT_TRUE(sb().peek(fabric.now, eb, {.tag = 1}));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
}

TEST_F(OrderTest, packets_behind_the_turn_go_straight_to_the_buffer) {
  open_ordered();
  Bytes first(100), second(3 * kM);
  post(first, 100);
  post(second, 101);
  send(message(1), 1);
  send(message(2, 3 * kM), 2);
  fabric.cut_all();
  fabric.deliver(2);  // the middle of the second message
  EXPECT_EQ(held(), 1u);
  fabric.deliver(0);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  EXPECT_EQ(at_b.all.size(), 1u);
  fabric.run();
  EXPECT_EQ(second, message(2, 3 * kM));
  EXPECT_EQ(at_a.all.size(), 2u);
}

TEST_F(OrderTest, multi_receive_takes_held_messages_and_says_when_it_is_used_up) {
  open_ordered();
  sb().set_min_multi_recv(eb, 100);
  Bytes buffer(320);
  const iovec iov = piece(buffer);
  ReceiveRequest r;
  r.iov = {&iov, 1};
  r.multi_recv = true;
  ASSERT_TRUE(sb().receive(fabric.now, eb, r));
  for (std::uint32_t n = 1; n <= 3; ++n) send(message(n), n);
  fabric.cut_all();
  fabric.deliver(2);
  fabric.deliver(1);
  fabric.deliver(0);
  ASSERT_EQ(at_b.all.size(), 3u);
  for (std::uint32_t n = 1; n <= 3; ++n) {
    const Completion& c = at_b.all[n - 1];
    const auto* at = static_cast<const std::uint8_t*>(c.buffer);
    EXPECT_EQ(Bytes(at, at + c.length), message(n));
    EXPECT_EQ(c.multi_recv_released, n == 3);
  }
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

TEST_F(OrderTest, delivery_complete_of_a_held_message_waits_for_its_receive) {
  open_ordered();
  send(message(1), 1);
  kept.push_back(std::make_unique<Bytes>(message(2)));
  const iovec iov = piece(*kept.back());
  SendRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.delivery_complete = true;
  r.context = 2;
  ASSERT_TRUE(sa().send(fabric.now, ea, r));
  fabric.cut_all();
  fabric.deliver(1);
  fabric.reply(0);
  EXPECT_EQ(at_a.find(2), nullptr);
  fabric.run();
  EXPECT_NE(at_a.find(1), nullptr);
  EXPECT_EQ(at_a.find(2), nullptr);
  Bytes into(100);
  post(into);
  post(into);
  fabric.run();
  EXPECT_NE(at_a.find(2), nullptr);
  EXPECT_EQ(a.locks, 0);
}

TEST_F(OrderTest, no_room_to_hold__comes_again_in_order) {
  open_ordered();
  std::vector<Bytes> into(12, Bytes(2 * kM));
  for (std::size_t i = 0; i < into.size(); ++i) post(into[i], 100 + i);
  for (std::uint32_t n = 0; n < into.size(); ++n) send(message(n + 1, 2 * kM), n);
  fabric.cut_all();
  while (fabric.flights.size() > 2) fabric.deliver(fabric.flights.size() - 1);
  EXPECT_GT(held(), 0u);
  EXPECT_LT(held(), into.size() - 1);
  fabric.run_for(Duration::from_ms(100));
  for (std::uint32_t n = 0; n < into.size(); ++n) EXPECT_EQ(into[n], message(n + 1, 2 * kM));
  EXPECT_EQ(at_a.all.size(), into.size());
  EXPECT_EQ(held(), 0u);
}

/// What waits for a message does not take the room that the message needs.
TEST_F(OrderTest, held_messages_leave_the_store_to_the_one_they_wait_for) {
  open_ordered();
  constexpr std::size_t kPackets = 49;
  send(message(1, kPackets * kM), 1);
  for (std::uint32_t n = 2; n <= 4; ++n) send(message(n, kM), n);
  fabric.cut_all();
  while (fabric.flights.size() > kPackets) fabric.deliver(kPackets);
  EXPECT_EQ(held(), 3u);
  while (fabric.deliver(0)) {
  }
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 4u);
}

TEST_F(OrderTest, cancelled_message_leaves_no_gap) {
  open_ordered();
  Bytes one(100), two(100);
  post(one, 100);
  post(two, 101);
  send(message(1), 1);
  send(message(2, 2 * kM), 2);
  send(message(3), 3);
  ASSERT_TRUE(sa().cancel(fabric.now, ea, 2));
  EXPECT_EQ(at_a.find(2)->code, ReturnCode::kCancelled);
  fabric.run();
  EXPECT_EQ(one, message(1));
  EXPECT_EQ(two, message(3));
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(OrderTest, message_that_is_refused_for_good_leaves_no_gap) {
  SesConfig c = spraying();
  c.reject_long = true;
  Node& other = fabric.add_node(c);
  Recorder sink;
  EndpointConfig e = standard_endpoint();
  e.sends_ordered = true;
  open(e);
  const EndpointId target = *other.ses.open_endpoint(fabric.now, e, sink);
  b_of_a = *sa().add_peer(other.ses.address_of(target));
  Bytes small(10), large(100);
  for (Bytes* into : {&small, &large}) {
    const iovec iov = piece(*into);
    ReceiveRequest r;
    r.iov = {&iov, 1};
    ASSERT_TRUE(other.ses.receive(fabric.now, target, r));
  }
  send(message(1), 1);  // too long for the receive that it meets
  send(message(2, 10), 2);
  fabric.cut_all();
  fabric.deliver(1);
  EXPECT_EQ(other.ses.gauges().messages_held, 1u);
  fabric.run();
  EXPECT_EQ(at_a.find(1)->code, ReturnCode::kTooLong);
  EXPECT_EQ(at_a.find(2)->code, ReturnCode::kOk);
  EXPECT_EQ(small, message(2, 10));
}

TEST_F(OrderTest, lost_pdc__what_cannot_be_repeated_leaves_no_gap) {
  open_ordered();
  send(message(1, 2 * kM), 1);
  send(message(2), 2);
  fabric.cut_all();
  fabric.deliver(2);
  fabric.reply(0);
  const pds::MessageToken token = fabric.flights.front().token;
  fabric.flights.clear();
  fabric.fail_message(a, token, pds::PdsError::kInDoubt);
  EXPECT_EQ(at_a.find(1)->code, ReturnCode::kUndeliverable);
  fabric.run();
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(taken(), std::vector<std::uint32_t>{2});
}

TEST_F(OrderTest, foreign_target_gets_rod) {
  open_ordered();
  Address address = sb().address_of(eb);
  EXPECT_EQ(address.fep_cap, kRestoresOrder);
  address.fep_cap = 0;
  b_of_a = *sa().add_peer(address);
  send(message(1), 1);
  fabric.cut_all();
  EXPECT_EQ(modes_sent(), std::vector{pds::Mode::kRod});
  EXPECT_EQ(fabric.sent_log[0].view(kM).opcode, SesOpcode::kSend);
  EXPECT_FALSE(fabric.sent_log[0].view(kM).is_sequenced);
}

/// A target that only claims to restore order refuses all, and gets it by ROD in order.
TEST_F(OrderTest, target_that_refuses_gets_rod_behind_what_is_out) {
  Node& other = fabric.add_node({});
  Recorder sink;
  EndpointConfig e = standard_endpoint();
  e.sends_ordered = true;
  open(e);
  const EndpointId target = *other.ses.open_endpoint(fabric.now, e, sink);
  Address address = other.ses.address_of(target);
  EXPECT_EQ(address.fep_cap, 0u);
  address.fep_cap = kRestoresOrder;
  b_of_a = *sa().add_peer(address);
  std::vector<Bytes> into(6, Bytes(2 * kM));
  for (Bytes& bytes : into) {
    const iovec iov = piece(bytes);
    ReceiveRequest r;
    r.iov = {&iov, 1};
    ASSERT_TRUE(other.ses.receive(fabric.now, target, r));
  }
  for (std::uint32_t n = 0; n < 4; ++n) send(message(n, 2 * kM), n);
  fabric.cut_all();
  EXPECT_EQ(modes_sent(), std::vector(8, pds::Mode::kRud));
  for (int packet = 0; packet < 2; ++packet) {
    fabric.deliver(4);
    fabric.reply(0);
  }
  for (std::uint32_t n = 4; n < 6; ++n) send(message(n, 2 * kM), n);
  fabric.run_randomly();
  fabric.run_for(Duration::from_ms(10));
  for (std::uint32_t n = 0; n < 6; ++n) EXPECT_EQ(into[n], message(n, 2 * kM)) << n;
  EXPECT_EQ(fabric.sent_log.size(), 8u + 12u);
  EXPECT_EQ(modes_sent().back(), pds::Mode::kRod);
  EXPECT_EQ(at_a.all.size(), 6u);
}

TEST_F(OrderTest, numbers_are_understood_by_rud_alone) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(1, 0), pds::Mode::kRod), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(numbered(1, 0), pds::Mode::kRudi), ReturnCode::kOpViolation);
  RawRequest long_gap = gap(1, 0);
  long_gap.payload = message(1);
  long_gap.length = 100;
  EXPECT_EQ(code_of(long_gap), ReturnCode::kOpViolation);
}

TEST_F(OrderTest, unknown_stream_begins_at_its_base) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(102, 2)), ReturnCode::kOk);
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(code_of(numbered(99, 0)), ReturnCode::kOpViolation);   // settled
  EXPECT_EQ(code_of(numbered(102, 2)), ReturnCode::kOpViolation);  // twice
  EXPECT_EQ(code_of(numbered(100, 0)), ReturnCode::kOk);
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(code_of(numbered(101, 1)), ReturnCode::kOk);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{100, 101, 102}));
}

TEST_F(OrderTest, later_base_passes_what_will_not_come) {
  open_ordered();
  for (const std::uint32_t n : {3, 5, 2})
    EXPECT_EQ(code_of(numbered(n, static_cast<std::uint16_t>(n))), ReturnCode::kOk);
  EXPECT_EQ(code_of(numbered(8, 1)), ReturnCode::kOk);  // all before 7 is settled
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{2, 3, 5}));
  EXPECT_EQ(code_of(numbered(6, 6)), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(gap(6, 6)), ReturnCode::kOk);
  EXPECT_EQ(code_of(numbered(7, 0)), ReturnCode::kOk);
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{7, 8}));
}

// Else one forged packet would make the target leave out what its source has still to send.
TEST_F(OrderTest, later_base_is_believed_of_proven_sources_alone) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(0, 0)), ReturnCode::kOk);
  raw_is_proven = false;
  EXPECT_EQ(code_of(gap(4000, 0)), ReturnCode::kNoMatch);
  EXPECT_EQ(code_of(numbered(1, 1)), ReturnCode::kOk);
  EXPECT_EQ(code_of(numbered(8, 1)), ReturnCode::kNoMatch);
  raw_is_proven = true;
  EXPECT_EQ(code_of(numbered(8, 1)), ReturnCode::kOk);
  EXPECT_EQ(code_of(numbered(7, 0)), ReturnCode::kOk);
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{0, 1, 7, 8}));
}

TEST_F(OrderTest, word_that_a_number_does_not_come_may_come_early) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(3, 3)), ReturnCode::kOk);
  EXPECT_EQ(code_of(gap(1, 1)), ReturnCode::kOk);
  EXPECT_EQ(code_of(gap(1, 1)), ReturnCode::kOk);
  EXPECT_EQ(code_of(gap(3, 3)), ReturnCode::kOk);  // it has come
  EXPECT_EQ(code_of(gap(0, 0)), ReturnCode::kOk);
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(code_of(gap(2, 2)), ReturnCode::kOk);
  EXPECT_EQ(taken(), std::vector<std::uint32_t>{3});
  EXPECT_EQ(held(), 0u);
}

TEST_F(OrderTest, too_far_ahead_is_refused) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(kSequenceWindow, kSequenceWindow)), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(numbered(kSequenceWindow - 1, kSequenceWindow - 1)), ReturnCode::kOk);
}

TEST_F(OrderTest, message_that_breaks_off_before_its_turn_is_passed) {
  open_ordered();
  RawRequest half = numbered(1, 1);
  half.length = 2 * kM;
  half.payload = pattern(kM);
  half.eom = false;
  EXPECT_EQ(view(inject(half)).opcode, ResponseOpcode::kNoResponse);
  EXPECT_EQ(held(), 1u);
  RawRequest end = half;
  end.opcode = SesOpcode::kMsgError;
  end.som = false;
  end.eom = true;
  end.offset = kM;
  end.payload.clear();
  EXPECT_EQ(code_of(end), ReturnCode::kInitiatorErr);
  EXPECT_EQ(code_of(numbered(0, 0)), ReturnCode::kOk);
  EXPECT_EQ(code_of(numbered(2, 0)), ReturnCode::kOk);
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
}

TEST_F(OrderTest, gap_that_is_never_filled_is_passed) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(1, 1)), ReturnCode::kOk);
  fabric.run_for(Duration::from_seconds(4));
  EXPECT_EQ(held(), 1u);
  EXPECT_EQ(code_of(numbered(4, 4)), ReturnCode::kOk);  // the stream is alive
  fabric.run_for(Duration::from_seconds(4));
  EXPECT_EQ(held(), 2u);
  fabric.run_for(Duration::from_seconds(3));
  EXPECT_LT(held(), 2u);
  EXPECT_EQ(code_of(numbered(0, 0)), ReturnCode::kOpViolation);
  fabric.run_for(Duration::from_seconds(10));
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(held(), 0u);
}

TEST_F(OrderTest, streams_of_one_source_are_bounded) {
  open_ordered();
  for (std::uint32_t stream = 1; stream <= 16; ++stream)
    EXPECT_EQ(code_of(numbered(5, 0, stream)), ReturnCode::kOk);
  // One that may have something on its way is not forgotten, so its source uses ROD.
  EXPECT_EQ(code_of(numbered(5, 0, 17)), ReturnCode::kUnsupportedOp);
  EXPECT_EQ(code_of(numbered(7, 1, 1)), ReturnCode::kOk);
  EXPECT_EQ(held(), 1u);
  fabric.run_for(Duration::from_seconds(6));
  EXPECT_EQ(code_of(numbered(5, 0, 17)), ReturnCode::kOk);
}

/// A search for a place looks at the few that rest for longest, so those in use must not stay in front of them.
TEST(SenderTable, streams_in_use_do_not_hide_quiet_ones) {
  constexpr std::uint32_t kSenders = 32, kInUse = 8;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const base::HashKey key{base::Rng(1)};
  SenderTable senders(2 * kSenders, kSenders, Duration::from_seconds(1), key);
  const auto make = [&](std::uint32_t n, std::int64_t at) {
    return senders.find_or_make(1, net::FabricAddress::from_v4(0x0a00'0000 + n), at, true);
  };
  for (std::uint32_t n = 0; n < kSenders; ++n) {
    Sender* s = make(n, 0);
    ASSERT_NE(s, nullptr);
    senders.hold(*s);
    if (n >= kSenders / 2) continue;  // stays held
    ASSERT_NE(senders.open_stream(*s, 7, false, 0, 0), nullptr);
    senders.unhold(*s);
  }
  for (std::uint32_t n = 0; n < kInUse; ++n)
    senders.find_stream(*make(n, kSecond), 7, false)->active_at_ns = kSecond;
  EXPECT_NE(make(kSenders, 3 * kSecond / 2), nullptr);
}

struct OneStreamTest : OrderTest {
  static SesConfig one() {
    SesConfig c = spraying();
    c.max_streams = 1;
    return c;
  }
  OneStreamTest() : OrderTest(one()) {}
};

TEST_F(OneStreamTest, no_place_for_a_stream__goes_by_rod) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(5, 0)), ReturnCode::kOk);  // of another source
  send(message(1), 1);
  send(message(2), 2);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(modes_sent().front(), pds::Mode::kRud);
  EXPECT_EQ(modes_sent().back(), pds::Mode::kRod);
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{5, 1, 2}));
}

/// Tagged and untagged messages are two streams. When the target has no place for one it may still hold messages of the other, which
/// those by ROD would pass.
TEST_F(OneStreamTest, stream_that_is_refused__leaves_the_other_its_way) {
  open_ordered();
  send(message(1), 1);
  fabric.run_for(Duration::from_ms(10));
  Bytes into(kM);
  tpost(into, 5);
  tsend(message(2), 5, 2);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(modes_sent().back(), pds::Mode::kRod);
  send(message(3), 3);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(modes_sent().back(), pds::Mode::kRud);
  EXPECT_EQ(at_a.all.size(), 3u);
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{1, 3}));
}

struct OneStreamOfRendezvousTest : OrderTest {
  static SesConfig one() {
    SesConfig c = OneStreamTest::one();
    c.rendezvous = true;
    c.rendezvous_from = kM;
    return c;
  }
  OneStreamOfRendezvousTest() : OrderTest(one()) {}
};

/// The target answers UNSUPPORTED_OP to a number that it has no place for and to a rendezvous that it does not fetch alike.
TEST_F(OneStreamOfRendezvousTest, no_place_for_a_stream__is_no_refusal_of_the_rendezvous) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(5, 0)), ReturnCode::kOk);  // of another source
  Bytes into(100 * kM);
  post(into, 7);  // the one from elsewhere
  post(into, 8);
  send(message(1, 100 * kM), 1);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(into, message(1, 100 * kM));
  std::vector<bool> are_numbered;
  for (const Flight& f : fabric.sent_log) {
    if (f.channel->from != &a || f.channel->is_return) continue;
    const RequestView v = f.view(kM);
    EXPECT_NE(v.opcode, SesOpcode::kSend);
    if (v.kind == OpcodeClass::kRendezvous) are_numbered.push_back(v.is_sequenced);
  }
  EXPECT_EQ(are_numbered, (std::vector{true, false}));
}

struct OneSenderTest : OrderTest {
  static SesConfig one() {
    SesConfig c = spraying();
    c.max_senders = 1;
    return c;
  }
  OneSenderTest() : OrderTest(one()) {}
};

/// What a message takes at all endpoints may need the place of what is known of its source at this one.
TEST_F(OneSenderTest, source_that_gave_its_place_up_goes_by_rod) {
  open_ordered();
  send(message(1), 1);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(taken(), std::vector<std::uint32_t>{1});
  RawRequest half;  // of another source, for which there is no place
  half.message_id = 500;
  half.length = 2 * kM;
  half.payload = pattern(kM);
  half.eom = false;
  for (int second = 0; second < 4; ++second) {
    fabric.advance(Duration::from_seconds(1));
    inject(half);  // the target's clock goes on
  }
  fabric.advance(Duration::from_seconds(1));
  Bytes into(2 * kM);
  post(into, 7);
  send(message(3, 2 * kM), 2);
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(at_a.all.size(), 2u);
  EXPECT_EQ(into, message(3, 2 * kM));
  EXPECT_EQ(modes_sent().back(), pds::Mode::kRod);
}

/// What the target holds already must not be overtaken by ROD.
TEST_F(OneStreamTest, refused_message_before_those_that_were_taken_keeps_its_number) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(5, 0)), ReturnCode::kOk);  // of another source
  EXPECT_EQ(taken(), std::vector<std::uint32_t>{5});
  RawRequest half;
  half.message_id = 500;
  half.length = 2 * kM;
  half.payload = pattern(kM);
  half.eom = false;
  inject(half);  // the target has something to wait for, so its clock goes on
  for (std::uint32_t n = 1; n <= 3; ++n) send(message(n), n);
  fabric.cut_all();
  fabric.deliver(0);  // no place for the stream
  for (int second = 0; second < 12; ++second) fabric.advance(Duration::from_seconds(1));
  fabric.deliver(0);
  fabric.deliver(0);
  EXPECT_EQ(held(), 2u);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(modes_sent(), std::vector(4, pds::Mode::kRud));
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(at_a.all.size(), 3u);
}

TEST_F(OrderTest, closing_an_endpoint_drops_what_it_holds) {
  open_ordered();
  EXPECT_EQ(code_of(numbered(1, 1)), ReturnCode::kOk);
  EXPECT_EQ(code_of(gap(2, 2)), ReturnCode::kOk);
  EXPECT_EQ(held(), 2u);
  sb().close_endpoint(fabric.now, eb);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
}

/// Order between messages and memory is that of packets.
TEST_F(OrderTest, endpoint_that_orders_rma_keeps_to_rod) {
  EndpointConfig c;
  c.sends_ordered = c.rma_ordered = true;
  open(c);
  send(message(1), 1);
  fabric.cut_all();
  EXPECT_EQ(modes_sent(), std::vector{pds::Mode::kRod});
}

/// A new process at an address goes on where the messages to the old one had no answer.
TEST_F(OrderTest, new_process_of_the_target_takes_up_the_numbers) {
  open_ordered();
  Bytes into(100);
  post(into);
  send(message(1), 1);
  fabric.run();
  sb().close_endpoint(fabric.now, eb);
  fabric.run_for(Duration::from_seconds(2));
  EndpointConfig c = standard_endpoint();
  c.sends_ordered = true;
  c.initiator_id = 4;
  eb = *sb().open_endpoint(fabric.now, c, at_b);  // knows nothing of streams
  for (std::uint32_t n = 2; n <= 4; ++n) send(message(n), n);
  fabric.cut_all();
  fabric.deliver(2);
  fabric.run();
  EXPECT_EQ(taken(), (std::vector<std::uint32_t>{2, 3, 4}));
}

}  // namespace
}  // namespace uet::ses::testing
