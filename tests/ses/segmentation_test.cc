// Cutting messages up and putting them together. [SES 4]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct SegmentationTest : PairTest {};

/// Packet `index` of a message of `data` to B that is cut into pieces of `piece` bytes.
RawRequest part(const Bytes& data, std::size_t index, std::size_t piece = kM) {
  RawRequest r;
  r.length = static_cast<std::uint32_t>(data.size());
  r.offset = static_cast<std::uint32_t>(index * piece);
  const std::size_t n = std::min<std::size_t>(piece, data.size() - r.offset);
  r.som = index == 0;
  r.eom = r.offset + n == data.size();
  r.payload.assign(data.begin() + r.offset,
                   data.begin() + r.offset + static_cast<std::ptrdiff_t>(n));
  return r;
}

// Covers: SES-11
TEST_F(SegmentationTest, send__empty_message_is_one_packet) {
  open();
  Bytes into;
  post(into);
  send({});
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 1u);
  const RequestView v = fabric.sent_log[0].view(kM);
  EXPECT_TRUE(v.som && v.eom);
  EXPECT_EQ(v.request_length, 0u);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].length, 0u);
}

// Covers: SES-12
TEST_F(SegmentationTest, send__one_byte_more_than_a_packet) {
  open();
  Bytes into(kM + 1);
  post(into);
  post(into);
  send(pattern(kM));
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 1u);
  send(pattern(kM + 1));
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 3u);
  const RequestView first = fabric.sent_log[1].view(kM);
  EXPECT_TRUE(first.som && !first.eom);
  const RequestView second = fabric.sent_log[2].view(kM);
  EXPECT_TRUE(!second.som && second.eom);
  EXPECT_EQ(second.covered, 1u);
  EXPECT_EQ(second.message_offset, kM);
  EXPECT_EQ(second.message_id, first.message_id);
  EXPECT_NE(second.message_id, 0);
}

// Covers: SES-13
TEST_F(SegmentationTest, receive__any_order_of_packets) {
  open();
  base::Rng rng(4711);
  RecordProperty("seed", 4711);
  std::vector<std::size_t> order(10);
  std::iota(order.begin(), order.end(), 0u);
  for (int round = 0; round < 1000; ++round) {
    const Bytes data = pattern(10 * kM, static_cast<std::uint32_t>(round));
    Bytes into(10 * kM);
    post(into);
    at_b.all.clear();
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[rng.below(static_cast<std::uint32_t>(i + 1))]);
    for (const std::size_t i : order) inject(part(data, i));
    ASSERT_EQ(into, data) << "seed 4711, round " << round;
    ASSERT_EQ(at_b.all.size(), 1u);
  }
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

// Covers: SES-14, SES-15
TEST_F(SegmentationTest, receive__last_packet_first_and_header_data_from_som) {
  open();
  const Bytes data = pattern(3 * kM);
  Bytes into(3 * kM);
  post(into);
  for (const std::size_t i : {2u, 1u}) {
    RawRequest r = part(data, i);
    r.hd = true;
    EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kNoResponse);
  }
  EXPECT_TRUE(at_b.all.empty());
  RawRequest som = part(data, 0);
  som.hd = true;
  som.header_data = 0xabcdef;
  EXPECT_EQ(view(inject(som)).opcode, ResponseOpcode::kDefaultResponse);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_TRUE(at_b.all[0].has_data);
  EXPECT_EQ(at_b.all[0].data, 0xabcdefu);
  EXPECT_EQ(into, data);
}

// Covers: SES-16
TEST_F(SegmentationTest, write__every_packet_carries_the_offset) {
  open();
  Bytes memory(8 * kM);
  const auto key = expose(memory);
  Bytes data = pattern(3 * kM + 1);
  rma(false, data, key, 777);
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 4u);
  for (const Flight& f : fabric.sent_log) EXPECT_EQ(f.view(kM).buffer_offset, 777u);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + 777));
}

// Covers: SES-17
TEST_F(SegmentationTest, changed_key__fails_the_message_once) {
  open();
  const Bytes data = pattern(3 * kM);
  Bytes into(3 * kM);
  tpost(into, 5);
  RawRequest r = part(data, 0);
  r.opcode = SesOpcode::kTaggedSend;
  r.key = 5;
  inject(r);
  r = part(data, 1);
  r.opcode = SesOpcode::kTaggedSend;
  r.key = 6;
  const auto answer = inject(r);
  EXPECT_EQ(view(answer).code, ReturnCode::kPermViolation);
  EXPECT_TRUE(answer.guaranteed);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kPermViolation);
  r = part(data, 2);
  r.opcode = SesOpcode::kTaggedSend;
  r.key = 5;
  const auto last = inject(r);
  EXPECT_EQ(view(last).code, ReturnCode::kPermViolation);
  EXPECT_FALSE(last.guaranteed);
  EXPECT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(SegmentationTest, changed_length__is_a_violation) {
  open();
  const Bytes data = pattern(3 * kM);
  Bytes into(3 * kM);
  post(into);
  inject(part(data, 0));
  RawRequest r = part(data, 1);
  r.length = 4 * kM;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
}

// Covers: SES-18
TEST_F(SegmentationTest, packet_beyond_its_message__writes_nothing) {
  open();
  Bytes into(4 * kM, 0xee);
  post(into);
  RawRequest r = part(pattern(2 * kM), 1);
  r.offset = 2 * kM;
  r.eom = true;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  EXPECT_EQ(into, Bytes(4 * kM, 0xee));
  EXPECT_TRUE(at_b.all.empty());
}

TEST_F(SegmentationTest, more_bytes_than_the_message_has__is_a_violation) {
  open();
  const Bytes data = pattern(2 * kM - 1);
  Bytes into(2 * kM);
  post(into);
  inject(part(data, 0));
  EXPECT_EQ(code_of(part(data, 0)), ReturnCode::kOpViolation);
}

// A peer whose way carries more, or less, cuts its messages otherwise. [decisions 125, 169]
TEST_F(SegmentationTest, any_legal_piece__is_placed_in_any_order) {
  open();
  for (const std::size_t piece : {1024u, 1280u, 2048u, 4096u, 8192u}) {
    const Bytes data = pattern(3 * piece + 5, static_cast<std::uint32_t>(piece));
    for (const std::array<std::size_t, 4> order :
         {std::array<std::size_t, 4>{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}) {
      for (const bool expected : {true, false}) {
        Bytes into(data.size());
        at_b.all.clear();
        if (expected) post(into);
        for (const std::size_t i : order)
          EXPECT_EQ(inject(part(data, i, piece)).kind, pds::Answer::Kind::kRespond);
        if (!expected) post(into);
        ASSERT_EQ(at_b.all.size(), 1u) << piece;
        EXPECT_EQ(at_b.all[0].code, ReturnCode::kOk);
        EXPECT_EQ(into, data) << piece;
      }
    }
  }
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
}

TEST_F(SegmentationTest, pieces_of_two_sizes__are_a_violation) {
  open();
  const Bytes data = pattern(4 * 4096);
  Bytes into(data.size());
  post(into);
  inject(part(data, 0, 4096));
  EXPECT_EQ(code_of(part(data, 2, 2048)), ReturnCode::kOpViolation);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOpViolation);
}

TEST_F(SegmentationTest, last_packet_at_a_place_that_its_message_has_not__is_a_violation) {
  open();
  const Bytes data = pattern(2 * 4096);
  Bytes into(data.size());
  post(into);
  inject(part(data, 0, 4096));
  EXPECT_EQ(code_of(part(data, 7, 1024)), ReturnCode::kOpViolation);
}

TEST_F(SegmentationTest, piece_of_no_legal_size__is_a_violation) {
  open();
  const Bytes data = pattern(4 * 1536);
  EXPECT_EQ(code_of(part(data, 1, 1536)), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(part(data, 1, 512)), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(part(data, 1, 1281)), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(part(pattern(2 * 16384), 1, 16384)), ReturnCode::kOpViolation);
}

// Under one address a forged PDC may stand beside the honest one, and its messages may have the same identifiers.
TEST_F(SegmentationTest, same_message_id_on_two_pdcs__is_two_messages) {
  open();
  Bytes first(2 * kM), second(2 * kM);
  post(first, 1);
  post(second, 2);
  RawRequest r;
  r.length = 2 * kM;
  r.payload = Bytes(kM, 1);
  r.eom = false;
  const auto inject_on = [&](std::uint32_t pdc) {
    raw_pdc = pds::PdcRef{pdc};
    return view(inject(r)).opcode;
  };
  EXPECT_EQ(inject_on(9999), ResponseOpcode::kNoResponse);
  EXPECT_EQ(inject_on(9998), ResponseOpcode::kNoResponse);
  r.som = false;
  r.eom = true;
  r.offset = kM;
  EXPECT_EQ(inject_on(9999), ResponseOpcode::kDefaultResponse);
  ASSERT_EQ(at_b.all.size(), 1u);
  // What ends with one PDC leaves the message of the other alone.
  sb().on_pdc_closed(fabric.now, pds::PdcRef{9999}, net::FabricAddress::from_v4(0x0a000063));
  EXPECT_EQ(inject_on(9998), ResponseOpcode::kDefaultResponse);
  ASSERT_EQ(at_b.all.size(), 2u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all[1].code, ReturnCode::kOk);
}

// Bytes alone say nothing: one segment that comes twice must not stand for another.
TEST_F(SegmentationTest, segment_twice_under_two_psns__fails_the_message) {
  open();
  Bytes into(3 * kM, 0xee);
  post(into);
  RawRequest r;
  r.length = 3 * kM;
  r.payload = Bytes(kM, 1);
  r.eom = false;
  EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kNoResponse);
  RawRequest next = r;
  next.som = false;
  next.offset = kM;
  EXPECT_EQ(view(inject(next)).opcode, ResponseOpcode::kNoResponse);
  EXPECT_EQ(code_of(next), ReturnCode::kOpViolation);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOpViolation);
  EXPECT_EQ(into[2 * kM], 0xee);
}

// The same with the last segment, whatever came of the others: no block is taken beyond what was reserved.
TEST_F(SegmentationTest, last_segment_twice__fails_the_message_and_takes_no_memory) {
  open();
  RawRequest r;
  r.length = 1000 * kM + 1;
  r.offset = 1000 * kM;
  r.som = false;
  r.payload = {1};
  EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kNoResponse);
  const auto reserved = sb().gauges().unexpected_bytes;
  EXPECT_GE(reserved, r.length);
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
}

TEST_F(SegmentationTest, read_data_twice__fails_the_read) {
  open();
  Bytes memory = pattern(3 * kM), into(3 * kM);
  rma(true, into, expose(memory), 0);
  fabric.cut_all();
  while (fabric.deliver(0)) {
  }
  fabric.cut_one_each();
  ASSERT_FALSE(fabric.flights.empty());
  const Flight data = fabric.flights.front();
  fabric.deliver(0);
  fabric.flights.push_back(data);  // under the next PSN
  ++fabric.flights.back().psn;
  fabric.deliver(fabric.flights.size() - 1);
  ASSERT_EQ(fabric.replies.back().view().code, ReturnCode::kOpViolation);
}

// [SES 8.2] The closing packet of a deferrable message may overtake all others.
TEST_F(SegmentationTest, deferrable__closing_packet_first) {
  for (const bool has_receive : {false, true}) {
    open({});
    Bytes into(3 * kM);
    RawRequest close;
    close.opcode = SesOpcode::kDeferrableSend;
    close.length = 3 * kM;
    close.offset = kM;
    close.som = false;
    close.message_id = has_receive ? 5 : 6;
    if (has_receive) post(into);
    EXPECT_EQ(view(inject(close)).opcode, ResponseOpcode::kNoResponse);
    RawRequest first = close;
    first.som = true;
    first.eom = false;
    first.payload = Bytes(kM, 1);
    EXPECT_EQ(code_of(first), ReturnCode::kInitiatorErr);
    EXPECT_EQ(sb().gauges().messages_receiving + sb().gauges().unexpected_messages, 0u);
    EXPECT_EQ(at_b.all.size(), has_receive ? 1u : 0u);
    sa().close_endpoint(fabric.now, ea);
    sb().close_endpoint(fabric.now, eb);
    fabric.run_for(Duration::from_seconds(2));
  }
}

TEST_F(SegmentationTest, messages__do_not_interleave_on_a_pdc) {
  open();
  Bytes one(5 * kM), two(5 * kM);
  post(one);
  post(two);
  send(pattern(5 * kM, 1), 1);
  send(pattern(5 * kM, 2), 2);
  fabric.cut_all();
  for (std::size_t i = 1; i < fabric.sent_log.size(); ++i)
    EXPECT_TRUE(fabric.sent_log[i].segment == 0 ||
                fabric.sent_log[i].token == fabric.sent_log[i - 1].token);
  fabric.run();
  EXPECT_EQ(at_b.all.size(), 2u);
}

struct FewMessagesTest : PairTest {
  static SesConfig config() {
    SesConfig c;
    c.max_messages = 1;
    return c;
  }
  FewMessagesTest() : PairTest(config()) {}
};

// Covers: SES-21
TEST_F(FewMessagesTest, no_message_entry__is_refused_and_succeeds_later) {
  open();
  const Bytes data = pattern(2 * kM);
  Bytes one(2 * kM), two(2 * kM);
  post(one);
  post(two);
  RawRequest other = part(data, 0);
  other.message_id = 78;
  inject(part(data, 0));
  const auto refused = inject(other);
  ASSERT_EQ(refused.kind, pds::Answer::Kind::kRefuse);
  EXPECT_EQ(sb().gauges().receives_posted, 2u);
  inject(part(data, 1));
  EXPECT_EQ(inject(other).kind, pds::Answer::Kind::kRespond);
  other = part(data, 1);
  other.message_id = 78;
  EXPECT_EQ(code_of(other), ReturnCode::kOk);
  EXPECT_EQ(two, data);
}

// Covers: SES-22
TEST_F(SegmentationTest, stalled_message__times_out_and_late_packets_are_told) {
  open();
  const Bytes data = pattern(3 * kM);
  Bytes into(3 * kM);
  post(into);
  inject(part(data, 0));
  for (int s = 0; s < 59; ++s) fabric.advance(Duration::from_seconds(1));
  EXPECT_TRUE(at_b.all.empty());
  for (int s = 0; s < 3; ++s) fabric.advance(Duration::from_seconds(1));
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(at_b.all[0].length, kM);
  const auto late = inject(part(data, 1));
  EXPECT_EQ(view(late).code, ReturnCode::kDropped);
  EXPECT_TRUE(late.guaranteed);
  inject(part(data, 2));
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(SegmentationTest, stalled_message__time_without_turns_does_not_count) {
  open();
  Bytes into(3 * kM);
  post(into);
  inject(part(pattern(3 * kM), 0));
  fabric.advance(Duration::from_seconds(3600));
  fabric.advance(Duration::from_seconds(1));
  EXPECT_TRUE(at_b.all.empty());
}

struct AllIdsTest : PairTest {
  static SesConfig config() {
    SesConfig c;
    c.max_sends = 0xffff;
    return c;
  }
  AllIdsTest() : PairTest(config()) { fabric.queue_limit = 100'000; }
};

// Covers: SES-20
TEST_F(AllIdsTest, all_message_ids_in_use__the_next_operation_waits) {
  open();
  SendRequest r;
  r.peer = b_of_a;
  for (int i = 0; i < 0xffff; ++i) ASSERT_TRUE(sa().send(fabric.now, ea, r));
  EXPECT_EQ(sa().send(fabric.now, ea, r).error(), PostError::kAgain);
  fabric.cut_all();
  std::vector<bool> seen(0x10000);
  for (const Flight& f : fabric.sent_log) {
    const std::uint16_t id = f.view(kM).message_id;
    EXPECT_NE(id, 0);
    EXPECT_FALSE(seen[id]);
    seen[id] = true;
  }
  fabric.deliver(0);
  fabric.reply(0);
  EXPECT_TRUE(sa().send(fabric.now, ea, r));
}

TEST_F(SegmentationTest, carrier_without_room__operations_wait_in_order) {
  open();
  fabric.queue_limit = 2;
  std::vector<Bytes> into(10, Bytes(4));
  for (auto& i : into) post(i);
  for (std::uint8_t i = 0; i < 10; ++i) send(Bytes(4, i), i);
  fabric.run();
  for (std::uint8_t i = 0; i < 10; ++i) EXPECT_EQ(into[i], Bytes(4, i));
  EXPECT_EQ(at_a.all.size(), 10u);
}

// A flow that was to go on after an upcall goes on by itself first, and finds no room.
TEST_F(SegmentationTest, carrier_without_room__a_flow_whose_turn_was_to_come_waits_once) {
  open();
  std::vector<Bytes> into(3, Bytes(1));
  for (auto& i : into) post(i);
  send({1}, 1);
  Bytes two{2};
  const iovec part = piece(two);
  SendRequest fenced;
  fenced.peer = b_of_a;
  fenced.iov = {&part, 1};
  fenced.fence = true;
  fenced.context = 2;
  ASSERT_TRUE(sa().send(fabric.now, ea, fenced));
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);  // frees the fence, within an upcall
  fabric.full_towards = b.address;
  send({3}, 3);
  sa().on_deadline(fabric.now);
  fabric.full_towards.reset();
  sa().on_resume(fabric.now);
  fabric.run();
  EXPECT_EQ(into[1], Bytes{2});
  EXPECT_EQ(into[2], Bytes{3});
}

TEST_F(SegmentationTest, carrier_without_room_for_one_peer__others_go_on) {
  open();
  Node& c = fabric.add_node();
  Recorder at_c;
  const EndpointId ec = *c.ses.open_endpoint(fabric.now, standard_endpoint(), at_c);
  fabric.full_towards = b.address;
  Bytes into(1), into_c(1);
  post(into);
  const iovec to = piece(into_c);
  ReceiveRequest rr;
  rr.iov = {&to, 1};
  ASSERT_TRUE(c.ses.receive(fabric.now, ec, rr));
  send({1}, 1);
  fabric.run();
  const PeerId b_peer = b_of_a;
  b_of_a = *sa().add_peer(c.ses.address_of(ec));
  send({2}, 2);
  fabric.run();
  EXPECT_EQ(into_c[0], 2);
  EXPECT_EQ(at_a.find(1), nullptr);
  b_of_a = b_peer;
  fabric.full_towards.reset();
  sa().on_resume(fabric.now);
  fabric.run();
  EXPECT_EQ(into[0], 1);
}

TEST_F(SegmentationTest, iovec__pieces_are_joined_and_split) {
  open();
  Bytes x(700), y(0), z(900), from = pattern(1600);
  const std::array<iovec, 3> to{piece(x), piece(y), piece(z)};
  ReceiveRequest rr;
  rr.iov = to;
  ASSERT_TRUE(sb().receive(fabric.now, eb, rr));
  const std::array<iovec, 2> parts{iovec{from.data(), 1}, iovec{from.data() + 1, 1599}};
  SendRequest sr;
  sr.peer = b_of_a;
  sr.iov = parts;
  ASSERT_TRUE(sa().send(fabric.now, ea, sr));
  fabric.run();
  x.insert(x.end(), z.begin(), z.end());
  EXPECT_EQ(x, from);
}

}  // namespace
}  // namespace uet::ses::testing
