// Read data on its way back, without the part that serves the READs. [SES 6.3]
#include "ses/rx_returns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/ses/fabric.h"
#include "tests/ses/return_carrier.h"

namespace uet::ses::testing {
namespace {

/// What is around them: endpoints, memory, a carrier, and a source of rendezvous.
struct RxReturnsTest : ::testing::Test, RegionReads {
  static constexpr std::uint32_t kMtu = 1024;
  explicit RxReturnsTest(const SesConfig& config = {})
      : core(config, kMtu, net::FabricAddress::from_v4(0x0a000002), rng, trace) {
    core.carrier = &carrier;
    core.region_reads = this;
    endpoint = *core.endpoints.open(now, {}, sink);
    const iovec iov{memory.data(), memory.size()};
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = true;
    region = core.memory.find(*core.memory.add(m, rng), endpoint->id, 0);
  }
  void on_region_read(Instant, PoolRef, std::uint64_t length) override { region_read += length; }

  static net::FabricAddress reader(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a000100 + n);
  }
  /// A READ of one packet by reader `n`, whose PDC has the same number.
  RequestContext read_by(std::uint32_t n, pds::Mode mode = pds::Mode::kRud) {
    requests.push_back({.handle = {pds::PdcRef{n}, base::Psn(next_psn++), false},
                        .mode = mode,
                        .source = reader(n)});
    RequestContext c{now, requests.back(), {}, {}};
    c.request.opcode = SesOpcode::kRead;
    c.request.form = wire::NextHdr::kRequestStd;
    c.request.som = c.request.eom = true;
    c.request.request_length = c.request.carried_length = c.request.covered = 512;
    c.endpoint = endpoint;
    return c;
  }
  /// As the target does it for one packet.
  pds::Answer return_to(std::uint32_t n, pds::Mode mode = pds::Mode::kRud, PoolRef operation = {}) {
    RequestContext c = read_by(n, mode);
    ReadProgress* progress = returns.begin_read(c);
    if (progress == nullptr) return answer_refuse();
    progress->key = 7;
    progress->operation = operation;
    const pds::Answer answer = returns.return_data(c, *region, 64, *progress);
    returns.end_requests(now, *progress);
    shares.let_go(c);
    return answer;
  }
  void acknowledge(pds::MessageToken token) { returns.on_response(now, token, 0, {}); }
  /// The payload of a packet of it.
  std::vector<std::uint8_t> payload_of(pds::MessageToken token) {
    net::Packet packet = pool.allocate();
    returns.emit(token, 0, packet);
    const std::uint8_t* bytes = packet.data();
    return {bytes + wire::SesResponseData::kSize, bytes + packet.size()};
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  HeapPool pool{4};
  ReturnCarrier carrier;
  Recorder sink;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(4096, 1);
  std::deque<pds::RxRequest> requests;
  std::uint32_t next_psn = 1;
  std::uint64_t region_read = 0;
  Core core;
  Endpoint* endpoint = nullptr;
  MemoryRegion* region = nullptr;
  LoopClock clock;
  RxMessageTable messages{16, core.hash_key};
  SenderTable senders{16, 4, Duration::from_seconds(60), core.hash_key};
  MessageShares shares{messages, senders, clock};
  ReadReturns returns{core, senders, shares};
};

TEST_F(RxReturnsTest, return_data__is_complete_when_it_is_acknowledged) {
  EXPECT_EQ(return_to(1).kind, pds::Answer::Kind::kRespond);
  EXPECT_TRUE(sink.all.empty());
  ASSERT_EQ(carrier.taken.size(), 1u);
  acknowledge(carrier.taken[0].token);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].kind, OpKind::kRemoteRead);
  EXPECT_EQ(sink.all[0].length, 512u);
  EXPECT_EQ(sink.all[0].mr_key, 7u);
  EXPECT_EQ(sink.all[0].source.fabric_address, reader(1));
  EXPECT_EQ(returns.open() + returns.reads(), 0u);
}

TEST_F(RxReturnsTest, return_data__of_a_rendezvous_tells_its_source) {
  return_to(1, pds::Mode::kRud, PoolRef{1, 1});
  acknowledge(carrier.taken[0].token);
  EXPECT_EQ(region_read, 512u);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(RxReturnsTest, return_data__is_refused_beyond_its_share) {
  int accepted = 0;
  carrier.room = 0;
  while (return_to(1).kind == pds::Answer::Kind::kRespond) ++accepted;
  EXPECT_EQ(returns.open(), static_cast<std::size_t>(accepted));
  EXPECT_EQ(returns.reads(), returns.open());  // of what was refused nothing stays
  EXPECT_EQ(returns.refused(), 1u);
  EXPECT_EQ(return_to(2).kind, pds::Answer::Kind::kRespond);
}

TEST_F(RxReturnsTest, return_data__that_can_never_leave_is_an_error_and_no_read) {
  carrier.gone.insert(1);
  return_to(1);
  EXPECT_EQ(returns.open() + returns.reads(), 0u);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(RxReturnsTest, emit__ordered_data_is_that_of_the_time_of_the_request) {
  return_to(1, pds::Mode::kRod);
  return_to(1, pds::Mode::kRud);
  std::fill(memory.begin(), memory.end(), std::uint8_t{2});
  EXPECT_EQ(payload_of(carrier.taken[0].token), std::vector<std::uint8_t>(512, 1));
  EXPECT_EQ(payload_of(carrier.taken[1].token), std::vector<std::uint8_t>(512, 2));
}

TEST_F(RxReturnsTest, on_response__that_is_none_of_ours_changes_nothing) {
  return_to(1);
  acknowledge(carrier.taken[0].token + 1);
  EXPECT_EQ(returns.open(), 1u);
}

// A reader for whom much waits may end any number of other PDCs, and others in its name.
TEST_F(RxReturnsTest, on_pdc_gone__looks_at_nothing_where_nothing_waits) {
  carrier.room = 0;
  for (int i = 0; i < 20; ++i) return_to(1);
  Sender* owner = senders.find(0, reader(1));
  ASSERT_NE(owner, nullptr);
  ASSERT_EQ(returns.waiting(), 20u);
  for (int i = 0; i < 100; ++i) returns.on_pdc_gone(now, pds::PdcRef{2}, *owner);
  EXPECT_EQ(returns.passed(), 0u);
  senders.hold(*owner);
  returns.on_pdc_gone(now, pds::PdcRef{1}, *owner);
  senders.unhold(*owner);
  EXPECT_EQ(returns.open() + returns.reads(), 0u);
}

TEST_F(RxReturnsTest, on_error__ends_the_read_without_a_word_to_the_user) {
  return_to(1);
  returns.on_error(now, carrier.taken[0].token);
  EXPECT_EQ(returns.open() + returns.reads(), 0u);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(RxReturnsTest, fail__a_read_whose_last_data_is_under_way_is_not_counted) {
  RequestContext c = read_by(1);
  ReadProgress* progress = returns.begin_read(c);
  const PoolRef read = ref_of(*progress);
  returns.return_data(c, *region, 0, *progress);
  shares.let_go(c);
  returns.fail(now, read);
  EXPECT_EQ(returns.find_read(read), progress);
  acknowledge(carrier.taken[0].token);
  EXPECT_EQ(returns.find_read(read), nullptr);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(RxReturnsTest, on_pdc_gone__ends_what_waits_on_that_pdc) {
  carrier.room = 0;
  return_to(1);
  return_to(2);
  EXPECT_EQ(returns.waiting(), 2u);
  returns.on_pdc_gone(now, pds::PdcRef{1}, *senders.find(0, reader(1)));
  EXPECT_EQ(returns.waiting(), 1u);
  EXPECT_EQ(returns.reads(), 1u);
  carrier.room = 2;
  returns.serve(now);
  ASSERT_EQ(carrier.taken.size(), 1u);
  EXPECT_EQ(carrier.taken[0].pdc, 2u);
}

}  // namespace
}  // namespace uet::ses::testing
