// Writes and reads with the small header. [SES 5]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig with_small_headers() {
  SesConfig c;
  c.small_headers = true;
  return c;
}

struct SmallHeaderTest : PairTest {
  explicit SmallHeaderTest(const SesConfig& config = with_small_headers()) : PairTest(config) {
    EndpointConfig c = standard_endpoint();
    open(c);
  }

  Bytes memory = pattern(8 * kM, 1);

  std::uint64_t expose_optimized(std::uint64_t index) {
    const iovec iov = piece(memory);
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = m.remote_write = true;
    m.virtual_addressing = false;
    m.key = index;
    m.optimized = true;
    return *sb().register_memory(m);
  }
  /// Forms of A's requests since the last call.
  std::vector<wire::NextHdr> forms() {
    std::vector<wire::NextHdr> all;
    for (const Flight& f : fabric.sent_log)
      if (!f.channel->is_return) all.push_back(static_cast<wire::NextHdr>(f.next_hdr));
    fabric.sent_log.clear();
    return all;
  }
};

using Forms = std::vector<wire::NextHdr>;
constexpr auto kSmall = wire::NextHdr::kRequestSmall, kStandard = wire::NextHdr::kRequestStd;

// Covers: SES-27
TEST_F(SmallHeaderTest, reads__data_is_matched_by_the_psn_that_asked) {
  const std::uint64_t key = expose_optimized(0x123);
  constexpr std::size_t kReads = 20;
  std::vector<Bytes> into(kReads, Bytes(200));
  for (std::size_t i = 0; i < kReads; ++i) rma(true, into[i], key, 100 * i, 1 + i);
  fabric.cut_all();
  for (const Flight& f : fabric.flights) EXPECT_EQ(f.view(kM).resource_index, 0x123);
  fabric.run_randomly();  // the data comes in any order, and before or behind the ACK
  for (std::size_t i = 0; i < kReads; ++i)
    EXPECT_TRUE(std::equal(into[i].begin(), into[i].end(), memory.begin() + 100 * i)) << i;
  EXPECT_EQ(at_a.all.size(), kReads);
  for (const Completion& c : at_a.all) EXPECT_EQ(c.code, ReturnCode::kOk);
  std::size_t returned = 0;
  for (const Flight& f : fabric.sent_log)
    returned += f.next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kResponseDataSmall) ? 1 : 0;
  EXPECT_EQ(returned, kReads);
  EXPECT_EQ(a.locks, 0);
}

// Covers: SES-27
TEST_F(SmallHeaderTest, reads__short_data_rides_on_the_ack) {
  const std::uint64_t key = expose_optimized(7);
  Bytes into(8);
  rma(true, into, key, 3);
  fabric.run();
  EXPECT_EQ(forms(), Forms{kSmall});
  EXPECT_TRUE(std::equal(into.begin(), into.end(), memory.begin() + 3));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
}

// Covers: SES-24
TEST_F(SmallHeaderTest, writes__only_where_everything_fits) {
  const std::uint64_t key = expose_optimized(7), other = expose(memory);
  Bytes one = pattern(kM, 2), more = pattern(kM + 1, 3);
  rma(false, one, key, 5);
  fabric.run();
  EXPECT_EQ(forms(), Forms{kSmall});
  EXPECT_TRUE(std::equal(one.begin(), one.end(), memory.begin() + 5));
  rma(false, one, other, 0);
  fabric.run();
  EXPECT_EQ(forms(), Forms{kStandard});
  rma(false, more, key, 0);
  fabric.run();
  EXPECT_EQ(forms(), (Forms{kStandard, kStandard}));
  const iovec iov = piece(one);
  RmaRequest notifying;
  notifying.peer = b_of_a;
  notifying.iov = {&iov, 1};
  notifying.key = key;
  notifying.data = 9;
  ASSERT_TRUE(sa().rma(fabric.now, ea, notifying));
  fabric.run();
  EXPECT_EQ(forms(), Forms{kStandard});
  Address simple = sb().address_of(eb);
  simple.fep_cap = 0;
  b_of_a = *sa().add_peer(simple);
  rma(false, one, key, 0);
  fabric.run();
  EXPECT_EQ(forms(), Forms{kStandard});
  EXPECT_EQ(at_a.all.size(), 5u);
  for (const Completion& c : at_a.all) EXPECT_EQ(c.code, ReturnCode::kOk);
}

TEST_F(SmallHeaderTest, errors__end_the_operation) {
  Bytes one(10);
  rma(false, one, (std::uint64_t{1} << 62) | 9, 0);
  rma(true, one, (std::uint64_t{1} << 62) | 9, 0);
  fabric.run();
  EXPECT_EQ(forms(), (Forms{kSmall, kSmall}));
  ASSERT_EQ(at_a.all.size(), 2u);
  for (const Completion& c : at_a.all) EXPECT_EQ(c.code, ReturnCode::kBadMkey);
}

// A packet of read data that names a PSN which asked for nothing.
TEST_F(SmallHeaderTest, data__that_was_not_asked_for_is_refused) {
  const std::uint64_t key = expose_optimized(7);
  Bytes into(100);
  rma(true, into, key, 0);
  fabric.cut_all();
  const Flight& request = fabric.flights.at(0);
  wire::SesResponseDataSmall h;
  h.opcode = ResponseOpcode::kResponseWData;
  h.return_code = wire::ReturnCode::kOk;
  h.payload_length = 100;
  h.job_id = 7;
  h.original_request_psn = base::Psn(request.psn + 1);
  Bytes packet(wire::SesResponseDataSmall::kSize + 100);
  wire::emit(h, packet.data());
  pds::RxRequest r;
  r.handle = {request.channel->ref_at_from, base::Psn(1), true};
  r.mode = pds::Mode::kRud;
  r.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kResponseDataSmall);
  r.source = b.address;
  r.bytes = packet;
  EXPECT_EQ(view(sa().on_request(fabric.now, r)).code, ReturnCode::kOpViolation);
  fabric.run();
  EXPECT_TRUE(std::equal(into.begin(), into.end(), memory.begin()));
}

}  // namespace
}  // namespace uet::ses::testing
