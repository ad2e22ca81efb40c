// Read data on its way back: what waits for room, what becomes of it when its PDC goes. [SES 6.3]
#include <set>

#include "tests/ses/pair_test.h"
#include "tests/ses/return_carrier.h"

namespace uet::ses::testing {
namespace {

struct ReturnsTest : ::testing::Test {
  explicit ReturnsTest(const SesConfig& config = {})
      : ses(config, kM, net::FabricAddress::from_v4(0x0a000002), rng, trace) {
    ses.attach(carrier);
    EndpointConfig e;
    e.job_id = 7;
    e.resource_index = 5;
    EXPECT_TRUE(ses.open_endpoint(now, e, sink));
    const iovec iov = piece(memory);
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = true;
    m.virtual_addressing = false;
    key = *ses.register_memory(m);
  }

  static net::FabricAddress reader(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a000100 + n);
  }
  /// A READ of one packet by reader `n`, whose PDC has the same number.
  pds::Answer read(std::uint32_t n, bool return_direction = false) {
    RawRequest r;
    r.opcode = SesOpcode::kRead;
    r.key = key;
    r.length = 512;
    r.message_id = next_id++;
    return inject(n, r, return_direction);
  }
  /// How many of `tries` requests on this PDC of reader 1 are not refused.
  std::size_t accepted_on(std::uint32_t pdc, RawRequest r, int tries) {
    std::size_t accepted = 0;
    for (int i = 0; i < tries; ++i) {
      r.message_id = next_id++;
      if (inject_on(pdc, 1, r).kind == pds::Answer::Kind::kRespond) ++accepted;
    }
    return accepted;
  }
  pds::Answer inject(std::uint32_t n, const RawRequest& r, bool return_direction = false) {
    return inject_on(n, n, r, return_direction);
  }
  /// The same on any PDC of that reader.
  pds::Answer inject_on(std::uint32_t pdc, std::uint32_t n, const RawRequest& r,
                        bool return_direction = false) {
    const Bytes bytes = encode(r);
    pds::RxRequest request;
    request.handle = {pds::PdcRef{pdc}, base::Psn(next_psn++), return_direction};
    request.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kRequestStd);
    request.source = reader(n);
    request.is_proven = true;
    request.bytes = bytes;
    return ses.on_request(now, request);
  }
  static ReturnCode code_of(const pds::Answer& answer) {
    ResponseView v;
    EXPECT_EQ(answer.kind, pds::Answer::Kind::kRespond);
    EXPECT_TRUE(parse_response(answer.response.next_hdr,
                               {answer.response.header.data(), answer.response.header_bytes}, v));
    return v.code;
  }
  /// The initiator has acknowledged what was taken first.
  void acknowledge() {
    const auto token = carrier.taken.front().token;
    carrier.taken.erase(carrier.taken.begin());
    ses.on_response(now, token, 0, 0, {});
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  ReturnCarrier carrier;
  Recorder sink;
  Bytes memory = pattern(64 * kM);
  Ses ses;
  std::uint64_t key = 0;
  std::uint16_t next_id = 1;
  std::uint32_t next_psn = 1;
};

// A target that asks for something in the return direction is refused, and leaves nothing behind.
TEST_F(ReturnsTest, request_in_the_return_direction__is_a_violation) {
  EXPECT_EQ(code_of(read(1, true)), ReturnCode::kOpViolation);
  RawRequest send;
  send.length = 1;
  send.payload = {1};
  EXPECT_EQ(code_of(inject(1, send, true)), ReturnCode::kOpViolation);
  EXPECT_TRUE(ses.next_deadline().is_never());
  EXPECT_EQ(carrier.asked, 0u);
  EXPECT_EQ(ses.gauges().reads_returning + ses.gauges().returns_open, 0u);
  EXPECT_EQ(code_of(read(2)), ReturnCode::kOk);
}

TEST_F(ReturnsTest, no_room__waits_for_the_carrier_without_wake_ups) {
  carrier.room = 0;
  for (std::uint32_t n = 1; n <= 3; ++n) EXPECT_EQ(code_of(read(n)), ReturnCode::kOk);
  EXPECT_TRUE(ses.next_deadline().is_never());
  EXPECT_EQ(ses.gauges().returns_waiting, 3u);
  carrier.room = 2;
  ses.on_resume(now);
  EXPECT_EQ(ses.gauges().returns_waiting, 1u);
  carrier.room = 3;
  ses.on_resume(now);
  EXPECT_EQ(carrier.taken.size(), 3u);
}

TEST_F(ReturnsTest, one_that_can_never_leave__does_not_stop_those_behind_it) {
  carrier.room = 0;
  for (std::uint32_t n = 1; n <= 3; ++n) read(n);
  carrier.gone.insert(1);
  carrier.room = 100;
  ses.on_resume(now);
  EXPECT_EQ(carrier.taken.size(), 2u);
  EXPECT_EQ(ses.gauges().returns_waiting, 0u);
  EXPECT_EQ(ses.gauges().reads_returning, 2u);
  acknowledge();
  acknowledge();
  EXPECT_EQ(sink.count(OpKind::kRemoteRead), 2u);
  EXPECT_EQ(ses.gauges().returns_open + ses.gauges().reads_returning, 0u);
}

// A PDC may be closed gracefully while data waits: the initiator need not know of it.
TEST_F(ReturnsTest, graceful_close__frees_what_waits_and_what_is_received) {
  carrier.room = 0;
  read(1);
  read(2);
  RawRequest part;
  part.opcode = SesOpcode::kWrite;
  part.key = 1;
  part.length = 2 * kM;
  part.eom = false;
  part.payload = Bytes(kM);
  inject(1, part);
  EXPECT_EQ(ses.gauges().messages_receiving, 1u);
  ses.on_pdc_closed(now, pds::PdcRef{1}, reader(1));
  EXPECT_EQ(ses.gauges().returns_waiting, 1u);
  EXPECT_EQ(ses.gauges().reads_returning, 1u);
  EXPECT_EQ(ses.gauges().messages_receiving, 0u);
  EXPECT_EQ(sink.count(OpKind::kRemoteRead), 0u);
}

// A reader that acknowledges nothing keeps what the carrier has of it until it is given up; others go on.
struct SilentReaderTest : ReturnsTest {
  static SesConfig config() {
    SesConfig c;
    c.max_read_returns = 256;
    c.max_returns_carried = 64;
    return c;
  }
  SilentReaderTest() : ReturnsTest(config()) {}
};

TEST_F(SilentReaderTest, others__get_their_share_at_once) {
  carrier.room = 64;
  std::size_t accepted = 0;
  for (int i = 0; i < 1000; ++i)
    if (read(1).kind == pds::Answer::Kind::kRespond) ++accepted;
  EXPECT_EQ(accepted, 110u);  // three sevenths of the descriptors
  EXPECT_EQ(carrier.taken.size(), 32u);
  for (std::uint32_t n = 2; n < 10; ++n) {
    EXPECT_EQ(read(n).kind, pds::Answer::Kind::kRespond) << n;
    EXPECT_EQ(carrier.taken.back().pdc, n);
  }
  // What others acknowledge goes to those who wait, and the silent one gets no more than its share.
  EXPECT_EQ(ses.gauges().returns_waiting, 78u);
  std::vector<ReturnCarrier::Taken> silent(carrier.taken.begin(), carrier.taken.begin() + 32);
  carrier.taken.erase(carrier.taken.begin(), carrier.taken.begin() + 32);
  while (!carrier.taken.empty()) {
    if (carrier.taken.front().pdc == 1) break;
    acknowledge();
  }
  EXPECT_EQ(sink.count(OpKind::kRemoteRead), 8u);
  ses.on_pdc_gone(now, pds::PdcRef{1}, reader(1), pds::PdsError::kPeerSilent);
  for (const auto& t : silent) ses.on_message_error(now, t.token, pds::PdsError::kPeerSilent);
  for (const auto& t : carrier.taken)
    ses.on_message_error(now, t.token, pds::PdsError::kPeerSilent);
  EXPECT_EQ(ses.gauges().returns_open + ses.gauges().reads_returning, 0u);
}

// A source has several PDCs, and one that takes all it can get leaves the others some.
TEST_F(SilentReaderTest, other_pdcs_of_the_same_reader__get_some) {
  carrier.room = 0;
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.key = key;
  r.length = 512;
  EXPECT_EQ(accepted_on(1, r, 1000), 110u);
  EXPECT_EQ(ses.gauges().refused_shares, 890u);
  EXPECT_EQ(accepted_on(2, r, 1000), 16u);
  EXPECT_EQ(accepted_on(3, r, 1000), 2u);
  EXPECT_EQ(accepted_on(1, r, 10), 0u);
  // What a PDC gives back is there for it and for others.
  ses.on_pdc_gone(now, pds::PdcRef{1}, reader(1), pds::PdsError::kPeerSilent);
  EXPECT_EQ(ses.gauges().returns_open, 18u);
  EXPECT_GT(accepted_on(1, r, 1000), 90u);
}

TEST_F(SilentReaderTest, those_who_wait__take_turns) {
  carrier.room = 0;
  for (int i = 0; i < 10; ++i) read(1);
  for (std::uint32_t n = 2; n <= 4; ++n) read(n);
  carrier.room = 6;
  ses.on_resume(now);
  std::vector<std::uint32_t> order;
  for (const auto& t : carrier.taken) order.push_back(t.pdc);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.begin() + 4),
            (std::set<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(order[4], 1u);
}

struct FewReturnsTest : ReturnsTest {
  static SesConfig config() {
    SesConfig c;
    c.max_read_returns = 4;
    return c;
  }
  FewReturnsTest() : ReturnsTest(config()) {}
};

// The PDC of such a packet is dropped, and the packet comes again on another: nothing would ever end what it had begun.
TEST_F(FewReturnsTest, refused_at_its_first_packet__a_read_of_several_leaves_nothing) {
  for (int i = 0; i < 100 && read(1).kind == pds::Answer::Kind::kRespond; ++i) continue;
  const std::size_t reads = ses.gauges().reads_returning;
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.key = key;
  r.length = 2 * kM;
  r.covered = kM;
  r.eom = false;
  EXPECT_EQ(inject(1, r).kind, pds::Answer::Kind::kRefuse);
  EXPECT_EQ(ses.gauges().messages_receiving, 0u);
  EXPECT_EQ(ses.gauges().reads_returning, reads);
  while (!carrier.taken.empty()) acknowledge();
  EXPECT_EQ(inject_on(2, 1, r).kind, pds::Answer::Kind::kRespond);
  EXPECT_EQ(ses.gauges().messages_receiving, 1u);
}

// Requests that fail leave discarded messages; they keep no messages of others out, nor for good those of the same peer.
struct DiscardedTest : ReturnsTest {
  static SesConfig config() {
    SesConfig c;
    c.max_messages = 64;
    return c;
  }
  DiscardedTest() : ReturnsTest(config()) {}
  pds::Answer first_packet(std::uint32_t n, std::uint64_t with_key) {
    RawRequest r;
    r.opcode = SesOpcode::kRead;
    r.key = with_key;
    r.length = 3 * kM;
    r.eom = false;
    r.message_id = next_id++;
    return inject(n, r);
  }
};

TEST_F(DiscardedTest, bad_requests__leave_room_for_the_messages_of_others) {
  std::size_t refused = 0;
  for (int i = 0; i < 1000; ++i)
    if (first_packet(1, 0x999).kind == pds::Answer::Kind::kRefuse) ++refused;
  EXPECT_EQ(ses.gauges().messages_receiving, 28u);
  EXPECT_EQ(refused, 972u);
  for (std::uint32_t n = 2; n < 12; ++n) {
    EXPECT_EQ(code_of(first_packet(n, key)), ReturnCode::kOk) << n;
  }
  // Discarded messages that no packet meets give way to messages of their own peer.
  for (int i = 0; i < 3; ++i) {
    now = now + Duration::from_seconds(1);
    ses.on_deadline(now);
  }
  EXPECT_EQ(code_of(first_packet(1, key)), ReturnCode::kOk);
}

TEST_F(DiscardedTest, messages_of_one_pdc__leave_room_for_those_of_others_of_the_same_source) {
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.key = key;
  r.length = 3 * kM;
  r.eom = false;
  EXPECT_EQ(accepted_on(1, r, 100), 28u);
  EXPECT_EQ(accepted_on(2, r, 100), 4u);
  EXPECT_EQ(accepted_on(3, r, 100), 1u);
  ses.on_pdc_closed(now, pds::PdcRef{1}, reader(1));
  EXPECT_GE(accepted_on(4, r, 100), 20u);
}

// A source whose messages are on their way in has its place in the table, however many it has ended before.
struct FewSendersTest : ReturnsTest {
  static SesConfig config() {
    SesConfig c;
    c.max_senders = 2;
    return c;
  }
  FewSendersTest() : ReturnsTest(config()) {}
  /// The first or the last of two packets of a WRITE that nothing permits: what is left of it is discarded.
  pds::Answer half(std::uint32_t n, std::uint16_t id, bool first) {
    RawRequest r;
    r.opcode = SesOpcode::kWrite;
    r.key = 0x999;
    r.length = 2 * kM;
    r.som = first;
    r.eom = !first;
    r.offset = first ? 0 : kM;
    r.message_id = id;
    r.payload = Bytes(kM);
    return inject(n, r);
  }
};

TEST_F(FewSendersTest, messages_on_their_way_in__keep_the_place_of_their_source) {
  for (std::uint16_t id = 1; id <= 2; ++id) {  // with and without an older message that has ended
    half(1, 100 + id, true);
    half(1, 100 + id, false);
    ASSERT_EQ(ses.gauges().messages_receiving, 0u);
    half(1, id, true);
    for (std::uint32_t n = 2; n < 6; ++n) read(n);
    EXPECT_EQ(ses.gauges().messages_receiving, 1u);
    ses.on_pdc_gone(now, pds::PdcRef{1}, reader(1), pds::PdsError::kPeerSilent);
    EXPECT_EQ(ses.gauges().messages_receiving, 0u) << id;
    for (std::uint32_t n = 2; n < 6; ++n)
      ses.on_pdc_gone(now, pds::PdcRef{n}, reader(n), pds::PdsError::kPeerSilent);
  }
}

}  // namespace
}  // namespace uet::ses::testing
