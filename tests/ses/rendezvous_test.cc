// Sends of which the target reads what does not come with them. [SES 9]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig with_rendezvous(std::uint64_t from, std::uint32_t eager) {
  SesConfig c;
  c.rendezvous = true;
  c.rendezvous_from = from;
  c.rendezvous_eager = eager;
  return c;
}

std::optional<wire::ExtRendezvous> extension_of(const Flight& f) {
  const RequestView v = f.view(kM);
  if (v.kind != OpcodeClass::kRendezvous) return std::nullopt;
  return rendezvous_of(v);
}

struct RendezvousTest : PairTest {
  explicit RendezvousTest(const SesConfig& config = with_rendezvous(1, 2 * kM))
      : PairTest(config) {}

  std::size_t count_sent(SesOpcode opcode, const Node& from) const {
    std::size_t n = 0;
    for (const Flight& f : fabric.sent_log)
      n += f.channel->from == &from && !f.channel->is_return && f.view(kM).opcode == opcode ? 1 : 0;
    return n;
  }
  std::uint64_t bytes_read() const {
    std::uint64_t n = 0;
    for (const Flight& f : fabric.sent_log)
      if (!f.channel->is_return && f.view(kM).opcode == SesOpcode::kRead) n += f.view(kM).covered;
    return n;
  }
};

// Covers: SES-60
TEST_F(RendezvousTest, matched__eager_part_comes_and_the_rest_is_read) {
  open();
  const Bytes message = pattern(100 * kM, 1);
  Bytes into(100 * kM);
  tpost(into, 5);
  tsend(message, 5, 1, 77);
  fabric.run();
  EXPECT_EQ(into, message);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all[0].length, message.size());
  EXPECT_EQ(at_b.all[0].data, 77u);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_a.all[0].length, message.size());
  // Two packets of the message, each with the extension; the other 98 are read.
  EXPECT_EQ(count_sent(SesOpcode::kRendezvousTsend, a), 2u);
  for (const Flight& f : fabric.sent_log)
    if (!f.channel->is_return && f.view(kM).opcode == SesOpcode::kRendezvousTsend) {
      EXPECT_EQ(extension_of(f)->eager_length, 2 * kM);
      EXPECT_EQ(f.view(kM).request_length, message.size());
    }
  EXPECT_EQ(bytes_read(), 98 * kM);
  EXPECT_EQ(count_sent(SesOpcode::kRead, b), 98u);
  expect_nothing_left();
}

// The answer says how much of the message was taken.
TEST_F(RendezvousTest, matched__answer_is_kept_and_tells_the_length) {
  open();
  Bytes into(10 * kM);
  post(into);
  send(pattern(10 * kM, 1));
  fabric.run();
  const auto answer =
      std::find_if(fabric.reply_log.begin(), fabric.reply_log.end(), [](const Reply& r) {
        return !r.channel->is_return && r.view().opcode == ResponseOpcode::kResponse;
      });
  ASSERT_NE(answer, fabric.reply_log.end());
  EXPECT_TRUE(answer->guaranteed);
  EXPECT_EQ(answer->view().list, ResponseList::kExpected);
  EXPECT_EQ(answer->view().modified_length, 10 * kM);
  expect_nothing_left();
}

struct HeaderOnlyRendezvousTest : RendezvousTest {
  HeaderOnlyRendezvousTest() : RendezvousTest(with_rendezvous(1, 0)) {}
};

// Covers: SES-61
TEST_F(HeaderOnlyRendezvousTest, one_packet_without_payload_starts_it) {
  open();
  const Bytes message = pattern(5 * kM + 3, 1);
  Bytes into(message.size());
  post(into);
  send(message);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 1u);
  const RequestView v = fabric.flights[0].view(kM);
  EXPECT_TRUE(v.som && v.eom && v.payload.empty());
  EXPECT_EQ(v.opcode, SesOpcode::kRendezvousSend);
  EXPECT_EQ(v.request_length, message.size());
  fabric.run();
  EXPECT_EQ(into, message);
  EXPECT_EQ(bytes_read(), message.size());
  EXPECT_EQ(at_a.all.size() + at_b.all.size(), 2u);
  expect_nothing_left();
}

// Covers: SES-62
TEST_F(RendezvousTest, unmatched__is_kept_and_read_after_the_match) {
  open();
  const Bytes message = pattern(50 * kM, 1);
  tsend(message, 5, 1, 9);
  fabric.run();
  EXPECT_EQ(bytes_read(), 0u);
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
  EXPECT_LE(sb().gauges().unexpected_bytes, 3 * kM);
  const ResponseView answer = fabric.reply_log[1].view();
  EXPECT_EQ(answer.list, ResponseList::kOverflow);
  EXPECT_EQ(answer.modified_length, 2 * kM);
  // A peek sees all of it.
  PeekRequest peek;
  peek.tag = 5;
  peek.context = 50;
  ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
  EXPECT_EQ(at_b.all.back().length, message.size());
  Bytes into(message.size());
  tpost(into, 5);
  fabric.run();
  EXPECT_EQ(into, message);
  EXPECT_EQ(at_b.all.back().data, 9u);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(bytes_read(), 48 * kM);
  expect_nothing_left();
}

// Covers: SES-63
TEST_F(RendezvousTest, short_buffer__reads_stop_at_its_end) {
  open();
  const Bytes message = pattern(20 * kM, 1);
  for (const bool is_early : {true, false}) {
    for (const std::size_t room : {9 * kM + 5, kM + 1, 2 * kM}) {
      SCOPED_TRACE(room);
      Bytes into(room);
      fabric.sent_log.clear();
      at_a.all.clear();
      at_b.all.clear();
      if (is_early) post(into);
      send(message);
      fabric.run();
      if (!is_early) post(into);
      fabric.run();
      ASSERT_EQ(at_b.all.size(), 1u);
      EXPECT_EQ(at_b.all[0].code, ReturnCode::kTruncated);
      EXPECT_EQ(at_b.all[0].length, room);
      EXPECT_EQ(at_b.all[0].overflow_length, message.size() - room);
      EXPECT_TRUE(std::equal(into.begin(), into.end(), message.begin()));
      EXPECT_EQ(bytes_read(), room > 2 * kM ? room - 2 * kM : 0);
      ASSERT_EQ(at_a.all.size(), 1u);
      EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
      expect_nothing_left();
    }
  }
}

// A receive may come while the eager part is on its way.
TEST_F(RendezvousTest, receive_between_packets_of_the_eager_part) {
  open();
  const Bytes message = pattern(7 * kM, 1);
  for (const std::size_t room : {7 * kM, kM / 2}) {
    Bytes into(room);
    at_a.all.clear();
    send(message);
    fabric.cut_all();
    ASSERT_EQ(fabric.flights.size(), 2u);
    fabric.deliver(1);
    post(into);
    fabric.run();
    EXPECT_TRUE(std::equal(into.begin(), into.end(), message.begin()));
    ASSERT_EQ(at_a.all.size(), 1u);
    expect_nothing_left();
  }
}

TEST_F(RendezvousTest, scattered_buffers_at_both_ends) {
  open();
  Bytes message = pattern(30 * kM, 1), into(30 * kM);
  const iovec from[] = {{message.data(), 3 * kM + 7}, {message.data() + 3 * kM + 7, 27 * kM - 7}};
  const iovec to[] = {
      {into.data(), 11}, {into.data() + 11, 9 * kM}, {into.data() + 9 * kM + 11, 21 * kM - 11}};
  ReceiveRequest r;
  r.iov = to;
  ASSERT_TRUE(sb().receive(fabric.now, eb, r));
  SendRequest s;
  s.peer = b_of_a;
  s.iov = from;
  ASSERT_TRUE(sa().send(fabric.now, ea, s));
  fabric.run();
  EXPECT_EQ(into, message);
  expect_nothing_left();
}

TEST_F(RendezvousTest, multi_receive__takes_several_and_says_where_they_lie) {
  open();
  Bytes into(24 * kM);
  const iovec iov = piece(into);
  ReceiveRequest r;
  r.iov = {&iov, 1};
  r.multi_recv = true;
  r.context = 100;
  ASSERT_TRUE(sb().receive(fabric.now, eb, r));
  const Bytes one = pattern(10 * kM, 1), two = pattern(10 * kM, 2), three = pattern(10 * kM, 3);
  send(one, 1);
  send(two, 2);
  send(three, 3);
  fabric.run();
  std::size_t released = 0;
  for (const Completion& c : at_b.all) {
    released += c.multi_recv_released ? 1 : 0;
    if (c.length == 0) continue;
    const auto at = static_cast<std::size_t>(static_cast<std::uint8_t*>(c.buffer) - into.data());
    const Bytes& expected = at == 0 ? one : two;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           into.begin() + static_cast<std::ptrdiff_t>(at)));
  }
  EXPECT_EQ(released, 1u);
  EXPECT_EQ(at_a.all.size(), 2u);
  Bytes last(10 * kM);
  post(last);
  fabric.run();
  EXPECT_EQ(last, three);
  EXPECT_EQ(at_a.all.size(), 3u);
  expect_nothing_left();
}

TEST_F(RendezvousTest, claim__takes_it_or_throws_it_away) {
  open();
  const Bytes message = pattern(12 * kM, 1);
  for (const bool discard : {false, true}) {
    at_a.all.clear();
    tsend(message, 5);
    fabric.run();
    PeekRequest peek;
    peek.tag = 5;
    peek.action = PeekAction::kClaim;
    peek.context = 60;
    ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
    Bytes into(12 * kM);
    const iovec iov = piece(into);
    ReceiveRequest r;
    r.tagged = true;
    r.iov = {&iov, 1};
    r.context = 60;
    ASSERT_TRUE(sb().claim_receive(fabric.now, eb, r, discard));
    fabric.run();
    EXPECT_EQ(into == message, !discard);
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    expect_nothing_left();
  }
}

// The source is the user's again as soon as its send is complete, and its target alone may read it before.
TEST_F(HeaderOnlyRendezvousTest, source__is_for_its_target_alone_and_goes_with_the_send) {
  open();
  send(pattern(3 * kM, 1));
  fabric.run();
  const auto ext = *extension_of(fabric.sent_log[0]);
  EXPECT_EQ(sa().gauges().memory_regions, 1u);
  RawRequest read;
  read.opcode = SesOpcode::kRead;
  read.key = ext.read_memory_key;
  read.length = 16;
  pds::RxRequest r;
  const Bytes bytes = encode(read);
  r.handle = {pds::PdcRef{777}, base::Psn(1), false};
  r.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kRequestStd);
  r.source = net::FabricAddress::from_v4(0x0a000063);
  r.is_proven = true;
  r.bytes = bytes;
  EXPECT_EQ(view(sa().on_request(fabric.now, r)).code, ReturnCode::kPermViolation);
  read.opcode = SesOpcode::kWrite;
  read.payload.resize(16);
  const Bytes write = encode(read);
  r.bytes = write;
  r.source = b.address;
  EXPECT_EQ(view(sa().on_request(fabric.now, r)).code, ReturnCode::kPermViolation);
  Bytes into(3 * kM);
  post(into);
  fabric.run();
  EXPECT_EQ(at_a.all.size(), 1u);
  read.opcode = SesOpcode::kRead;
  read.payload.clear();
  const Bytes late = encode(read);
  r.bytes = late;
  EXPECT_EQ(view(sa().on_request(fabric.now, r)).code, ReturnCode::kBadMkey);
  // Reads of a message are no reads of the user's memory.
  EXPECT_EQ(at_a.count(OpKind::kRemoteRead), 0u);
  expect_nothing_left();
}

// An endpoint that serves no RMA has its messages fetched all the same.
TEST_F(RendezvousTest, endpoints_without_rma) {
  EndpointConfig c = standard_endpoint();
  c.has_rma = false;
  open(c);
  const Bytes message = pattern(5 * kM, 1);
  Bytes into(5 * kM), memory(64);
  const std::uint64_t key = expose(memory);
  post(into);
  send(message);
  fabric.run();
  EXPECT_EQ(into, message);
  Bytes local(16);
  rma(true, local, key, 0, 55);
  fabric.run();
  EXPECT_EQ(at_a.find(55)->code, ReturnCode::kBadIndex);
}

TEST_F(RendezvousTest, injected_and_delivery_complete) {
  open();
  Bytes message = pattern(3 * kM, 1), into(3 * kM);
  const iovec iov = piece(message);
  SendRequest s;
  s.peer = b_of_a;
  s.iov = {&iov, 1};
  s.inject = true;
  s.delivery_complete = true;
  ASSERT_TRUE(sa().send(fabric.now, ea, s));
  const Bytes was = message;
  std::fill(message.begin(), message.end(), std::uint8_t{0});
  fabric.run();
  EXPECT_TRUE(at_a.all.empty());
  post(into);
  fabric.run();
  EXPECT_EQ(into, was);
  EXPECT_EQ(at_a.all.size(), 1u);
  expect_nothing_left();
}

// --- What goes wrong

TEST_F(HeaderOnlyRendezvousTest, close_of_the_target__is_told) {
  open();
  send(pattern(3 * kM, 1), 1);
  fabric.run();
  Bytes into(9 * kM);
  sb().close_endpoint(fabric.now, eb);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  EXPECT_TRUE(at_b.all.empty());
  expect_nothing_left();
}

TEST_F(HeaderOnlyRendezvousTest, close_of_the_target__while_it_reads) {
  open();
  Bytes into(9 * kM);
  post(into);
  send(pattern(9 * kM, 1), 1);
  while (bytes_read() == 0) {
    fabric.cut_one_each();
    fabric.deliver(0);
    fabric.reply(0);
    fabric.advance(Duration::from_us(1));
  }
  sb().close_endpoint(fabric.now, eb);
  std::fill(into.begin(), into.end(), std::uint8_t{0xee});
  fabric.run();
  EXPECT_EQ(into, Bytes(9 * kM, 0xee));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_NE(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_TRUE(at_b.all.empty());
  expect_nothing_left();
}

TEST_F(HeaderOnlyRendezvousTest, close_of_the_source__fails_the_receive) {
  open();
  send(pattern(3 * kM, 1), 1);
  fabric.run();
  sa().close_endpoint(fabric.now, ea);
  EXPECT_EQ(sa().gauges().memory_regions, 0u);
  Bytes into(3 * kM);
  post(into);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_NE(at_b.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all[0].length, 0u);
  EXPECT_TRUE(at_a.all.empty());
  expect_nothing_left();
}

TEST_F(RendezvousTest, cancel__before_all_of_the_eager_part_left) {
  open();
  Bytes into(9 * kM);
  post(into);
  send(pattern(9 * kM, 1), 1);
  fabric.cut_one_each();
  ASSERT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kCancelled);
  expect_nothing_left();
}

// The receive is bound, and the target has heard of the whole message: neither can be taken back.
TEST_F(HeaderOnlyRendezvousTest, cancel__is_refused_once_it_is_there) {
  open();
  send(pattern(9 * kM, 1), 1);
  fabric.run();
  EXPECT_FALSE(sa().cancel(fabric.now, ea, 1));
  Bytes into(9 * kM);
  post(into, 100);
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 100));
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 0));  // nor is the READ an operation of the user's
  fabric.run();
  EXPECT_EQ(at_b.all.size(), 1u);
  expect_nothing_left();
}

TEST_F(HeaderOnlyRendezvousTest, lost_pdc_of_the_read__is_read_again) {
  open();
  const Bytes message = pattern(9 * kM, 1);
  Bytes into(9 * kM);
  post(into);
  send(message, 1);
  while (bytes_read() < 4 * kM) {
    fabric.cut_one_each();
    fabric.deliver(0);
    fabric.reply(0);
    fabric.advance(Duration::from_us(1));
  }
  const auto last =
      std::find_if(fabric.sent_log.rbegin(), fabric.sent_log.rend(), [](const Flight& f) {
        return !f.channel->is_return && f.view(kM).opcode == SesOpcode::kRead;
      });
  fabric.fail_message(b, last->token, pds::PdsError::kPeerLost);
  --b.locks;  // it went with the PDC
  fabric.lose_pdc(*last->channel, pds::PdsError::kPeerLost);
  fabric.run_for(Duration::from_ms(20));
  EXPECT_EQ(into, message);
  EXPECT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_a.all.size(), 1u);
  expect_nothing_left();
}

TEST_F(HeaderOnlyRendezvousTest, dead_target__fails_the_send) {
  open();
  send(pattern(9 * kM, 1), 1);
  fabric.run();
  EXPECT_EQ(a.locks, 1);
  fabric.lose_pdc(*fabric.sent_log.back().channel, pds::PdsError::kPeerSilent);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kPeerSilent);
  EXPECT_EQ(sa().gauges().memory_regions, 0u);
}

// How the target is addressed says nothing of its source.
TEST_F(RendezvousTest, endpoints_of_two_addressing_modes) {
  for (const bool a_is_relative : {true, false}) {
    SCOPED_TRACE(a_is_relative);
    at_a.all.clear();
    EndpointConfig c = standard_endpoint();
    c.pid_on_fep = 1;
    c.resource_index = a_is_relative ? 5 : 6;
    c.relative = a_is_relative;
    c.initiator_id = 3;
    ea = *sa().open_endpoint(fabric.now, c, at_a);
    c.pid_on_fep = 2;
    c.relative = !a_is_relative;
    c.initiator_id = 4;
    eb = *sb().open_endpoint(fabric.now, c, at_b);
    b_of_a = *sa().add_peer(sb().address_of(eb));
    a_of_b = *sb().add_peer(sa().address_of(ea));
    for (const bool is_early : {true, false}) {
      const Bytes message = pattern(9 * kM, 1);
      Bytes into(9 * kM);
      if (is_early) post(into);
      send(message, 1);
      fabric.run();
      if (!is_early) post(into);
      fabric.run();
      EXPECT_EQ(into, message);
      ASSERT_FALSE(at_a.all.empty());
      EXPECT_EQ(at_a.all.back().code, ReturnCode::kOk);
    }
    sb().remove_peer(a_of_b);
    sa().close_endpoint(fabric.now, ea);
    sb().close_endpoint(fabric.now, eb);
  }
}

TEST_F(HeaderOnlyRendezvousTest, read__is_stamped_with_the_generation_that_the_source_names) {
  open();
  Address source = sa().address_of(ea);
  source.fabric_address = net::FabricAddress::from_v4(0x0a000063);
  ASSERT_TRUE(sb().add_peer(source));
  fabric.deaf = source.fabric_address;
  Bytes into(kM);
  post(into);
  RawRequest r;
  r.opcode = SesOpcode::kRendezvousSend;
  r.length = kM;
  r.rendezvous = wire::ExtRendezvous{};
  r.rendezvous->read_ri_generation = 9;
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  fabric.run();
  ASSERT_EQ(fabric.unheard.size(), 1u);
  net::Packet packet = fabric.pool.allocate();
  sb().emit_segment(fabric.unheard[0].message.token, 0, pds::PdcRef{5}, base::Psn(1), packet);
  const auto read = wire::decode<wire::SesStandardFirst>(packet.data());
  EXPECT_EQ(read.opcode, SesOpcode::kRead);
  EXPECT_EQ(read.ri_generation, 9);
}

/// A target of another make: it keeps the header, fetches later, and knows no questions.
struct ForeignTargetTest : HeaderOnlyRendezvousTest {
  static constexpr std::uint32_t kPackets = 4;

  void send_to_it() {
    open();
    send(pattern(kPackets * kM, 1), 1);
    fabric.run();
    const Flight& question = fabric.sent_log.back();
    ASSERT_EQ(question.view(kM).opcode, kAwaitDeliveryOpcode);
    const auto answer =
        answer_error(question.view(kM), ReturnCode::kUnsupportedOp, 0, true).response;
    // As if it had been the first answer to this packet.
    sa().on_response(fabric.now, question.token, 0, answer.next_hdr,
                     {answer.header.data(), answer.header_bytes});
    for (const Flight& f : fabric.sent_log)
      if (const auto found = extension_of(f)) ext = *found;
    EXPECT_TRUE(at_a.all.empty());
    EXPECT_EQ(a.locks, 1);
  }
  /// The packet `n` of the message, as a READ of its own. What its target hears of it.
  ReturnCode read_packet(std::uint32_t n) {
    Bytes into(kM);
    const iovec iov = piece(into);
    RmaRequest r;
    r.peer = a_of_b;
    r.read = true;
    r.iov = {&iov, 1};
    r.key = ext.read_memory_key;
    r.remote_offset = ext.read_offset + std::uint64_t{n} * kM;
    r.context = 900 + n;
    EXPECT_TRUE(sb().rma(fabric.now, eb, r));
    fabric.run();
    return at_b.find(900 + n)->code;
  }
  wire::ExtRendezvous ext;
};

TEST_F(ForeignTargetTest, is_done_when_all_was_read) {
  send_to_it();
  fabric.run_for(Duration::from_seconds(300));  // its user posts the receive late
  for (std::uint32_t n = 0; n < kPackets; ++n) EXPECT_EQ(read_packet(n), ReturnCode::kOk);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(a.locks, 0);
}

// [SES 9] The target failed its receive, and has no way to say so.
TEST_F(ForeignTargetTest, stops_reading__fails_the_send) {
  send_to_it();
  EXPECT_EQ(read_packet(0), ReturnCode::kOk);
  fabric.run_for(Duration::from_seconds(50));
  EXPECT_EQ(read_packet(1), ReturnCode::kOk);
  fabric.run_for(Duration::from_seconds(50));
  EXPECT_TRUE(at_a.all.empty());
  fabric.run_for(Duration::from_seconds(20));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(sa().gauges().memory_regions, 0u);
  EXPECT_EQ(read_packet(2), ReturnCode::kBadMkey);
}

// A job is suspended: the target was stopped as well.
TEST_F(ForeignTargetTest, time_in_which_the_process_was_stopped__does_not_count) {
  send_to_it();
  EXPECT_EQ(read_packet(0), ReturnCode::kOk);
  fabric.now = fabric.now + Duration::from_seconds(600);
  fabric.run();
  EXPECT_TRUE(at_a.all.empty());
  for (std::uint32_t n = 1; n < kPackets; ++n) EXPECT_EQ(read_packet(n), ReturnCode::kOk);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
}

// A program that turns its loop every two seconds is late for everything, and its target is dead.
TEST_F(ForeignTargetTest, dead_target_of_a_program_that_calls_now_and_then__is_given_up) {
  send_to_it();
  EXPECT_EQ(read_packet(0), ReturnCode::kOk);
  Duration waited;
  for (; at_a.all.empty() && waited < Duration::from_seconds(600);
       waited = waited + Duration::from_seconds(2)) {
    fabric.now = fabric.now + Duration::from_seconds(2);
    fabric.run();
    sa().on_deadline(fabric.now);
  }
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_LT(waited, Duration::from_seconds(240));
}

TEST_F(ForeignTargetTest, cancel__takes_the_rest_back) {
  send_to_it();
  ASSERT_TRUE(sa().cancel(fabric.now, ea, 1));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(read_packet(0), ReturnCode::kBadMkey);
}

// Each goes alone until the peer has taken one; a peer that says nothing must not cost its timeout for each of them.
TEST_F(HeaderOnlyRendezvousTest, silent_peer__ends_all_of_an_ordered_lane_at_once) {
  EndpointConfig c;
  c.sends_ordered = true;
  open(c);
  for (std::uint64_t i = 1; i <= 4; ++i) send(pattern(4 * kM), i);
  fabric.cut_all();
  ASSERT_EQ(fabric.sent_log.size(), 1u);
  fabric.fail_message(a, fabric.sent_log[0].token, pds::PdsError::kPeerSilent);
  ASSERT_EQ(at_a.all.size(), 4u);
  for (const Completion& done : at_a.all) EXPECT_EQ(done.code, ReturnCode::kPeerSilent);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
