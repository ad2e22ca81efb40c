// WRITE and READ at the target, without the part that checks requests and fails messages. [SES 6.2, 6.3, 15]
#include "ses/rx_rma.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/ses/fabric.h"
#include "tests/ses/return_carrier.h"

namespace uet::ses::testing {
namespace {

struct RmaTargetTest : ::testing::Test {
  static constexpr std::uint32_t kMtu = 1024;

  RmaTargetTest() : core({}, kMtu, net::FabricAddress::from_v4(0x0a000002), rng, trace) {
    core.carrier = &carrier;
    endpoint = *core.endpoints.open(now, {}, sink);
    const iovec iov{memory.data(), memory.size()};
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = m.remote_write = true;
    m.virtual_addressing = false;
    key = *core.memory.add(m, rng);
  }
  /// The packet at `offset` of a message of `length` bytes.
  RequestContext packet(SesOpcode opcode, std::uint32_t length, std::uint32_t offset = 0) {
    requests.push_back(
        {.handle = {pds::PdcRef{5}, base::Psn(1), false}, .source = source, .is_proven = true});
    RequestContext c{now, requests.back(), {}, {source, pds::PdcRef{5}, 7}};
    RequestView& r = c.request;
    r.form = wire::NextHdr::kRequestStd;
    r.opcode = opcode;
    r.message_id = 7;
    r.request_length = r.carried_length = length;
    r.message_offset = offset;
    r.covered = std::min(kMtu, length - offset);
    r.som = offset == 0;
    r.eom = offset + r.covered == length;
    r.mkey_match = key;
    if (opcode == SesOpcode::kWrite) r.payload = {twos.data(), r.covered};
    c.endpoint = endpoint;
    return c;
  }
  std::size_t count(std::uint8_t value) const {
    return static_cast<std::size_t>(std::count(memory.begin(), memory.end(), value));
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  ReturnCarrier carrier;
  Recorder sink;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(4096, 1);
  const std::vector<std::uint8_t> twos = std::vector<std::uint8_t>(kMtu, 2);
  const net::FabricAddress source = net::FabricAddress::from_v4(0x0a000001);
  std::deque<pds::RxRequest> requests;
  Core core;
  Endpoint* endpoint = nullptr;
  std::uint64_t key = 0;
  LoopClock clock;
  RxMessageTable messages{16, core.hash_key};
  SenderTable senders{16, 4, Duration::from_seconds(60), core.hash_key};
  MessageShares shares{messages, senders, clock};
  ReadReturns returns{core, senders, shares};
  RmaTarget rma{core, messages, shares, returns};
};

TEST_F(RmaTargetTest, begin_write__one_packet_is_written_and_reported) {
  RequestContext c = packet(SesOpcode::kWrite, 512);
  c.request.buffer_offset = 100;
  EXPECT_EQ(rma.begin_write(c).kind, pds::Answer::Kind::kRespond);
  EXPECT_EQ(c.failure, ReturnCode::kOk);
  EXPECT_EQ(count(2), 512u);
  EXPECT_EQ(memory[99], 1);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].kind, OpKind::kRemoteWrite);
  EXPECT_EQ(sink.all[0].length, 512u);
}

TEST_F(RmaTargetTest, proceed_write__the_last_packet_reports_all) {
  RequestContext first = packet(SesOpcode::kWrite, 1536);
  rma.begin_write(first);
  shares.let_go(first);
  EXPECT_TRUE(sink.all.empty());
  RequestContext last = packet(SesOpcode::kWrite, 1536, 1024);
  RxMessage* m = messages.find(last.key);
  ASSERT_NE(m, nullptr);
  messages.count(*m, last.request);
  rma.proceed_write(last, *m);
  EXPECT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(count(2), 1536u);
  EXPECT_EQ(messages.size(), 0u);
}

TEST_F(RmaTargetTest, begin_write__no_byte_of_what_leaves_the_region) {
  RequestContext c = packet(SesOpcode::kWrite, 512);
  c.request.buffer_offset = 4096 - 511;
  rma.begin_write(c);
  EXPECT_NE(c.failure, ReturnCode::kOk);
  EXPECT_EQ(c.failed, nullptr);
  EXPECT_EQ(count(2), 0u);
}

TEST_F(RmaTargetTest, begin_write__an_unknown_key) {
  RequestContext c = packet(SesOpcode::kWrite, 512);
  ++c.request.mkey_match;
  rma.begin_write(c);
  EXPECT_EQ(c.failure, ReturnCode::kBadMkey);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(RmaTargetTest, proceed_write__a_region_that_went_away_fails_the_message) {
  RequestContext first = packet(SesOpcode::kWrite, 1536);
  rma.begin_write(first);
  shares.let_go(first);
  core.memory.remove(key, 0);
  RequestContext last = packet(SesOpcode::kWrite, 1536, 1024);
  RxMessage* m = messages.find(last.key);
  rma.proceed_write(last, *m);
  EXPECT_EQ(last.failure, ReturnCode::kCancelled);
  EXPECT_EQ(last.failed, m);
  EXPECT_EQ(count(2), 1024u);
  shares.release(*m);
}

TEST_F(RmaTargetTest, begin_read__a_little_rides_on_the_ack) {
  RequestContext c = packet(SesOpcode::kRead, 16);
  const pds::Answer answer = rma.begin_read(c);
  EXPECT_EQ(answer.response.data.size(), 16u);
  EXPECT_TRUE(answer.guaranteed);
  EXPECT_TRUE(carrier.taken.empty());
}

TEST_F(RmaTargetTest, begin_read__more_goes_back_as_a_message) {
  RequestContext c = packet(SesOpcode::kRead, 512);
  EXPECT_TRUE(rma.begin_read(c).response.data.empty());
  shares.let_go(c);
  EXPECT_EQ(carrier.taken.size(), 1u);
  returns.on_response(now, carrier.taken[0].token, 0, {});
}

}  // namespace
}  // namespace uet::ses::testing
