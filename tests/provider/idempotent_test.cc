// Writes and reads that may be executed twice (RUDI), by a flag of the provider's own.
#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

constexpr std::uint64_t kIdempotent = std::uint64_t{1} << 60;  // FI_UET_IDEMPOTENT of fi_uet(7)

class IdempotentTest : public PairTest {
 protected:
  ~IdempotentTest() override {
    for (fid_mr* region : {safe, plain}) {
      if (region == nullptr) continue;
      EXPECT_EQ(fi_close(&region->fid), 0);
    }
  }
  void open_with_memory(std::uint64_t orders = 0) {
    const Info hints = make_hints();
    hints->caps = FI_MSG | FI_RMA;
    hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
    hints->tx_attr->msg_order = orders;
    open(hints.get());
    ASSERT_FALSE(HasFatalFailure());
    constexpr std::uint64_t kAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;
    ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), memory.size(), kAccess, 0, 0, kIdempotent, &safe,
                        nullptr),
              0);
    ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), memory.size(), kAccess, 0, 0, 0, &plain, nullptr),
              0);
  }
  ssize_t post(bool read, std::span<std::uint8_t> bytes, fid_mr* region, std::uint64_t flags,
               std::uint64_t at = 0) {
    const iovec iov{bytes.data(), bytes.size()};
    const fi_rma_iov remote{at, bytes.size(), fi_mr_key(region)};
    const fi_msg_rma m{.msg_iov = &iov,
                       .desc = nullptr,
                       .iov_count = 1,
                       .addr = to_b,
                       .rma_iov = &remote,
                       .rma_iov_count = 1,
                       .context = bytes.data(),
                       .data = 0};
    return read ? fi_readmsg(a.ep, &m, flags) : fi_writemsg(a.ep, &m, flags);
  }
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(16384);
  fid_mr *safe = nullptr, *plain = nullptr;
};

// Covers: FI-64
TEST_F(IdempotentTest, write_and_read_of_one_packet__arrive_with_every_flag) {
  open_with_memory();
  constexpr std::uint64_t kFlags[] = {0, FI_DELIVERY_COMPLETE, FI_TRANSMIT_COMPLETE, FI_FENCE};
  for (const std::uint64_t flag : kFlags) {
    auto sent = pattern(1024, static_cast<std::uint8_t>(flag >> 20 | 1));
    ASSERT_EQ(post(false, sent, safe, kIdempotent | FI_COMPLETION | flag), 0);
    const Got written = wait_for(a);
    EXPECT_FALSE(written.failed);
    EXPECT_EQ(written.entry.flags, FI_RMA | FI_WRITE);
    EXPECT_EQ(std::memcmp(memory.data(), sent.data(), sent.size()), 0);
    std::vector<std::uint8_t> got(sent.size());
    ASSERT_EQ(post(true, got, safe, kIdempotent | FI_COMPLETION | flag), 0);
    EXPECT_FALSE(wait_for(a).failed);
    EXPECT_EQ(got, sent);
  }
  auto small = pattern(8, 9);
  ASSERT_EQ(post(false, small, safe, kIdempotent | FI_INJECT | FI_COMPLETION), 0);
  std::vector<std::uint8_t> copy = small;
  std::memset(small.data(), 0, small.size());
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(std::memcmp(memory.data(), copy.data(), copy.size()), 0);
}

// What may be executed again cannot be counted, whatever says so: the flag, or bit 63 of a key that the program chose.
// Covers: SES-72
TEST_F(IdempotentTest, region__takes_no_counter) {
  open_with_memory();
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(b.domain, &attr, &counter, nullptr), 0);
  EXPECT_EQ(fi_mr_bind(safe, &counter->fid, FI_REMOTE_WRITE), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(safe, &counter->fid, FI_REMOTE_READ), -FI_EINVAL);
  EXPECT_EQ(fi_mr_bind(plain, &counter->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_close(&plain->fid), 0);
  plain = nullptr;
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(PairTest, region_whose_key_says_that_it_stands_repetition__takes_no_counter) {
  const Info hints = make_hints();
  hints->caps = FI_MSG | FI_RMA;
  hints->domain_attr->mr_mode = 0;
  open(hints.get());
  ASSERT_FALSE(HasFatalFailure());
  std::vector<std::uint8_t> memory(64);
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(b.domain, &attr, &counter, nullptr), 0);
  for (const std::uint64_t bit : {std::uint64_t{0}, std::uint64_t{1} << 63}) {
    fid_mr* region = nullptr;
    ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 5 | bit, 0,
                        &region, nullptr),
              0);
    EXPECT_EQ(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE), bit == 0 ? 0 : -FI_EINVAL);
    EXPECT_EQ(fi_close(&region->fid), 0);
  }
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

/// Many at once over a network that loses and repeats: each completes, and the last writer of a place wins.
// Covers: FI-64
TEST_F(IdempotentTest, bad_weather__costs_only_repetition) {
  const Variable weather("FI_UET_IMPAIR", "loss=0.05,reorder=0.1,duplicate=0.1,seed=7");
  open_with_memory();
  auto sent = pattern(64 * 100, 5);
  const std::span all(sent);
  int done = 0, posted = 0;
  EXPECT_TRUE(turn_until([&] {
    const auto at = static_cast<std::size_t>(posted) * 64;
    if (posted < 100) {
      posted += post(false, all.subspan(at, 64), safe, kIdempotent, at) == 0;
    }
    if (const auto got = poll(a)) {
      EXPECT_FALSE(got->failed);
      ++done;
    }
    return done == 100;
  }));
  EXPECT_EQ(std::memcmp(memory.data(), sent.data(), sent.size()), 0);
}

// Covers: FI-65
TEST_F(IdempotentTest, what_it_cannot_keep__is_refused) {
  open_with_memory();
  std::vector<std::uint8_t> bytes(8193);
  EXPECT_EQ(error_of(a, post(false, bytes, safe, kIdempotent)), -FI_EMSGSIZE)
      << "more than one packet";
  const std::span one(bytes.data(), 1);
  EXPECT_EQ(error_of(a, post(false, one, safe, kIdempotent | FI_REMOTE_CQ_DATA)), -FI_EINVAL);
  EXPECT_EQ(error_of(a, post(false, one, plain, kIdempotent)), -FI_EINVAL)
      << "its region does not allow it";
  EXPECT_EQ(post(false, one, safe, 0), 0) << "other writes reach the region too";
  EXPECT_FALSE(wait_for(a).failed);
  iovec iov{bytes.data(), 1};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = to_b,
                 .context = nullptr,
                 .data = 0};
  EXPECT_EQ(fi_sendmsg(a.ep, &m, kIdempotent), -FI_EOPNOTSUPP);
}

// Covers: FI-65
TEST_F(IdempotentTest, endpoint_that_promises_order__refuses) {
  open_with_memory(FI_ORDER_WAW);
  std::uint8_t byte = 1;
  EXPECT_EQ(error_of(a, post(false, {&byte, 1}, safe, kIdempotent)), -FI_EINVAL);
}

// Covers: FI-65
TEST_F(IdempotentTest, region_with_a_user_key__cannot_say_that_it_allows_it) {
  const Info hints = make_hints();
  hints->domain_attr->mr_mode = 0;
  open(hints.get());
  EXPECT_EQ(
      fi_mr_reg(b.domain, memory.data(), 64, FI_REMOTE_WRITE, 0, 7, kIdempotent, &safe, nullptr),
      -FI_EINVAL);
}

}  // namespace
}  // namespace uet::provider::testing
