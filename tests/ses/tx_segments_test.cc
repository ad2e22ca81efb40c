// How messages are cut into packets, without queues and packet delivery. [SES 4.2, 5]
#include "ses/tx_segments.h"

#include <numeric>

#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

SesConfig all_headers() {
  SesConfig c;
  c.medium_headers = true;
  c.small_headers = true;
  c.rendezvous = true;
  return c;
}

struct SegmentsTest : TxPartsTest {
  SegmentsTest() : TxPartsTest(all_headers()) {
    std::iota(memory.begin(), memory.end(), std::uint8_t{0});
  }
  pds::TxMessage plan(TxOp& op, bool is_numbered = false) {
    pds::TxMessage message;
    plan_segments(core, now, op, is_numbered, message);
    return message;
  }
  /// As the target reads it. The payload lies in `bytes`.
  RequestView cut(const TxOp& op, std::uint32_t segment) {
    net::Packet packet = pool.allocate();
    const pds::SegmentInfo info = cut_segment(op, segment, packet);
    bytes.assign(packet.data(), packet.data() + packet.size());
    RequestView view;
    EXPECT_TRUE(parse_request(info.next_hdr, bytes, kMtu, view));
    return view;
  }

  std::vector<std::uint8_t> bytes;
};

TEST_F(SegmentsTest, plan__a_long_message_fills_its_packets) {
  TxOp& op = send(2049);
  const pds::TxMessage m = plan(op);
  EXPECT_EQ(m.segments, 3u);
  EXPECT_EQ(m.segment_payload, kMtu);
  EXPECT_EQ(m.payload_bytes, 2049u);
  EXPECT_EQ(m.ses_header_bytes, wire::SesStandardFirst::kSize);
  EXPECT_FALSE(op.medium);
}

TEST_F(SegmentsTest, plan__a_short_message_over_an_Ethernet_has_packets_of_one_size) {
  core.payload_mtu = kEthernetPayload;
  TxOp& whole = send(4096);
  core.peers.find(peer)->address.fep_cap = say_payload(kEthernetPayload);
  pds::TxMessage m = plan(whole);
  EXPECT_EQ(m.segments, 4u);
  EXPECT_EQ(m.segment_payload, 1024u);
  EXPECT_EQ(whole.piece, 1024u);
  m = plan(send(4097));
  EXPECT_EQ(m.segments, 4u);
  EXPECT_EQ(m.segment_payload, kEthernetPayload);
  EXPECT_EQ(plan(read(4096)).segments, 1u) << "asks for more at once";
}

// Its packets are requests of their own: one more is one more.
TEST_F(SegmentsTest, plan__an_atomic_over_an_Ethernet_fills_its_packets) {
  core.payload_mtu = kEthernetPayload;
  core.peers.find(peer)->address.fep_cap = say_payload(kEthernetPayload);
  const iovec iov{memory.data(), 1024};
  AtomicRequest r;
  r.peer = peer;
  r.op = AmoOpcode::kSum;
  r.type = AmoDatatype::kUint64;
  r.count = 128;
  r.operand = {&iov, 1};
  r.key = 1;
  ASSERT_TRUE(posting.atomic(now, *endpoint, r));
  EXPECT_EQ(plan(operations.by_age().back()).segments, 1u);
}

TEST_F(SegmentsTest, plan__a_number_takes_the_standard_header) {
  TxOp& op = send(64);
  EXPECT_EQ(plan(op).ses_header_bytes, wire::SesMedium::kSize);
  EXPECT_EQ(plan(op, true).ses_header_bytes, wire::SesStandardFirst::kSize);
}

TEST_F(SegmentsTest, plan__a_read_asks_and_carries_nothing) {
  const pds::TxMessage m = plan(read(4096));
  EXPECT_EQ(m.segments, 4u);
  EXPECT_EQ(m.payload_bytes, 0u);
}

TEST_F(SegmentsTest, plan__small_headers_for_optimized_keys_alone) {
  EXPECT_EQ(plan(write(64, kKeyOptimized | 5)).ses_header_bytes, wire::SesSmall::kSize);
  EXPECT_EQ(plan(write(64, 5)).ses_header_bytes, wire::SesMedium::kSize);
}

// A verdict that follows NO_RESPONSE names its message, which only the standard header does.
TEST_F(SegmentsTest, plan__delivery_complete_takes_the_standard_header) {
  for (const std::uint64_t key : {std::uint64_t{5}, kKeyOptimized | 5}) {
    TxOp& op = write(64, key);
    op.delivery_complete = true;
    EXPECT_EQ(plan(op).ses_header_bytes, wire::SesStandardFirst::kSize);
  }
}

TEST_F(SegmentsTest, plan__a_rendezvous_carries_its_eager_part) {
  TxOp& op = send(4096);
  ASSERT_TRUE(sources.begin(op, 1025));
  const pds::TxMessage m = plan(op);
  EXPECT_EQ(m.segments, 2u);
  EXPECT_EQ(m.payload_bytes, 1025u);
  EXPECT_EQ(m.ses_header_bytes, wire::SesStandardFirst::kSize + wire::ExtRendezvous::kSize);
}

TEST_F(SegmentsTest, cut__each_segment_says_what_it_covers) {
  TxOp& op = send(2049);
  plan(op);
  RequestView first = cut(op, 0);
  EXPECT_TRUE(first.som && !first.eom);
  EXPECT_EQ(first.request_length, 2049u);
  ASSERT_TRUE(fit_payload(first));
  RequestView last = cut(op, 2);
  EXPECT_TRUE(last.eom && !last.som);
  EXPECT_EQ(last.message_offset, 2048u);
  EXPECT_EQ(last.covered, 1u);
  ASSERT_TRUE(fit_payload(last));
  EXPECT_EQ(last.payload[0], memory[2048]);
}

TEST_F(SegmentsTest, cut__the_same_bytes_each_time) {
  TxOp& op = send(2049);
  plan(op);
  cut(op, 1);
  const std::vector<std::uint8_t> before = bytes;
  cut(op, 1);
  EXPECT_EQ(bytes, before);
}

TEST_F(SegmentsTest, cut__memory_that_is_gone_is_not_read) {
  TxOp& op = send(2049);
  plan(op);
  op.memory_gone = true;
  RequestView view = cut(op, 1);
  EXPECT_TRUE(view.ie);
  ASSERT_TRUE(fit_payload(view));
  EXPECT_EQ(std::count(view.payload.begin(), view.payload.end(), 0), kMtu);
}

TEST_F(SegmentsTest, cut__the_closing_packet_behind_what_was_sent) {
  TxOp& op = send(4096);
  plan(op);
  op.error_segment = 3;
  op.segments = 3;
  const RequestView view = cut(op, 2);
  EXPECT_EQ(view.opcode, SesOpcode::kMsgError);
  EXPECT_EQ(view.message_offset, 2048u);
  EXPECT_TRUE(view.eom);
  EXPECT_EQ(view.covered, 0u);
}

TEST_F(SegmentsTest, cut__a_question_names_the_message_and_has_no_payload) {
  TxOp& op = send(4096);
  op.awaits_delivery = true;
  EXPECT_EQ(plan(op).segments, 1u);
  const RequestView view = cut(op, 0);
  EXPECT_EQ(view.opcode, kAwaitDeliveryOpcode);
  EXPECT_EQ(view.message_id, op.message_id);
  EXPECT_EQ(view.request_length, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
