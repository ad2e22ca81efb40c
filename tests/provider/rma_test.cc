#include <array>
#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class RmaTest : public PairTest {
 protected:
  void open_with_memory(int mr_mode, std::size_t n) {
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = mr_mode;
    open(hints.get());
    memory.resize(n);
    ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), n, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 42, 0, &mr,
                        nullptr),
              0);
    base = (mr_mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(memory.data()) : 0;
  }
  ~RmaTest() override {
    if (mr != nullptr) {
      EXPECT_EQ(fi_close(&mr->fid), 0);
    }
  }
  std::vector<std::uint8_t> memory;
  fid_mr* mr = nullptr;
  std::uint64_t base = 0;
};

TEST_F(RmaTest, write_and_read_back__with_provider_and_with_user_keys) {
  for (const int mode : {kBasicModes, 0}) {
    open_with_memory(mode, 1 << 20);
    const auto sent = pattern(memory.size() - 100, 6);
    ASSERT_EQ(
        fi_write(a.ep, sent.data(), sent.size(), nullptr, to_b, base + 50, fi_mr_key(mr), nullptr),
        0);
    EXPECT_FALSE(wait_for(a).failed);
    std::vector<std::uint8_t> got(sent.size());
    ASSERT_EQ(
        fi_read(a.ep, got.data(), got.size(), nullptr, to_b, base + 50, fi_mr_key(mr), nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
    EXPECT_EQ(got, sent);
    EXPECT_EQ(fi_close(&mr->fid), 0);
    mr = nullptr;
    a.close();
    b.close();
  }
}

// Open MPI shares the domain of its messages with its one-sided operations.
TEST_F(RmaTest, domain_that_was_opened_for_messages__serves_an_endpoint_that_has_more) {
  const Info messages = make_hints();
  messages->caps = FI_TAGGED;
  a.open(address_of(2), *messages);
  b.open(address_of(3), *messages);
  ASSERT_FALSE(HasFatalFailure());
  for (Side* side : {&a, &b}) {
    const Info hints = make_hints();
    hints->caps = FI_RMA;
    hints->domain_attr->mr_mode = kBasicModes;
    hints->domain_attr->domain = side->domain;
    side->info = get_info(hints.get());
    ASSERT_NE(side->info, nullptr);
  }
  open_endpoints();
  ASSERT_FALSE(HasFatalFailure());
  memory.resize(4096);
  ASSERT_EQ(
      fi_mr_reg(b.domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 42, 0, &mr, nullptr),
      0);
  const auto sent = pattern(memory.size(), 3);
  ASSERT_EQ(fi_write(a.ep, sent.data(), sent.size(), nullptr, to_b,
                     reinterpret_cast<std::uint64_t>(memory.data()), fi_mr_key(mr), nullptr),
            0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(memory, sent);
}

TEST_F(RmaTest, raw_key__is_the_key) {
  open_with_memory(kBasicModes, 4096);
  std::array<std::uint8_t, 16> raw{};
  std::uint64_t base_address = 1, mapped = 0;
  std::size_t size = 4;
  EXPECT_EQ(fi_mr_raw_attr(mr, &base_address, raw.data(), &size, 0), -FI_ETOOSMALL);
  ASSERT_EQ(size, sizeof mapped);
  ASSERT_EQ(fi_mr_raw_attr(mr, &base_address, raw.data(), &size, 0), 0);
  ASSERT_EQ(fi_mr_map_raw(a.domain, base_address, raw.data(), size, &mapped, 0), 0);
  EXPECT_EQ(mapped, fi_mr_key(mr));
  EXPECT_EQ(fi_mr_map_raw(a.domain, base_address, raw.data(), 3, &mapped, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_unmap_key(a.domain, mapped), 0);
}

// Covers: FI-46
TEST_F(RmaTest, writedata__tells_the_target) {
  open_with_memory(kBasicModes, 4096);
  const auto sent = pattern(100, 2);
  ASSERT_EQ(fi_writedata(a.ep, sent.data(), 100, nullptr, 0x1122334455667788, to_b, base,
                         fi_mr_key(mr), nullptr),
            0);
  const Got got = wait_for(b);
  EXPECT_EQ(got.entry.flags & (FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
            FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(got.entry.data, 0x1122334455667788u);
  EXPECT_EQ(std::memcmp(memory.data(), sent.data(), 100), 0);
  EXPECT_FALSE(wait_for(a).failed);
}

TEST_F(RmaTest, wrong_key_and_wrong_range__fail_with_their_reason) {
  open_with_memory(kBasicModes, 4096);
  std::uint8_t bytes[16] = {};
  ASSERT_EQ(fi_write(a.ep, bytes, 16, nullptr, to_b, base, fi_mr_key(mr) ^ (1 << 24), nullptr), 0);
  EXPECT_EQ(wait_for(a).error.err, FI_EKEYREJECTED);
  ASSERT_EQ(fi_write(a.ep, bytes, 16, nullptr, to_b, base + 4090, fi_mr_key(mr), nullptr), 0);
  EXPECT_EQ(wait_for(a).error.err, FI_EFAULT);
  ASSERT_EQ(fi_write(a.ep, bytes, 16, nullptr, to_b, base, fi_mr_key(mr), nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
}

/// Where packets are lost and overtake each other.
// Covers: FI-48
TEST_F(RmaTest, fence__takes_effect_last) {
  const Variable weather("FI_UET_IMPAIR", "loss=0.02,reorder=0.3,seed=5");
  open_with_memory(kBasicModes, 4096);
  const std::uint8_t early = 1, last = 2;
  int posted = 0;
  EXPECT_TRUE(turn_until([&] {
    if (fi_inject_write(a.ep, &early, 1, to_b, base, fi_mr_key(mr)) == 0) ++posted;
    return posted == 1000;
  }));
  const iovec iov{const_cast<std::uint8_t*>(&last), 1};
  const fi_rma_iov remote{base, 1, fi_mr_key(mr)};
  const fi_msg_rma m{.msg_iov = &iov,
                     .desc = nullptr,
                     .iov_count = 1,
                     .addr = to_b,
                     .rma_iov = &remote,
                     .rma_iov_count = 1,
                     .context = nullptr,
                     .data = 0};
  ssize_t ret = -FI_EAGAIN;
  EXPECT_TRUE(turn_until([&] { return (ret = fi_writemsg(a.ep, &m, FI_FENCE)) != -FI_EAGAIN; }));
  ASSERT_EQ(ret, 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(memory[0], 2);
}

// Covers: FI-29
TEST_F(RmaTest, bind_and_enable_of_a_region__are_accepted) {
  open_with_memory(kBasicModes, 64);
  EXPECT_EQ(fi_mr_bind(mr, &b.ep->fid, 0), 0);
  EXPECT_EQ(fi_mr_enable(mr), 0);
  const std::uint8_t byte = 9;
  ASSERT_EQ(fi_write(a.ep, &byte, 1, nullptr, to_b, base, fi_mr_key(mr), nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(memory[0], 9);
}

TEST_F(RmaTest, counter_of_a_region__counts_remote_writes) {
  open_with_memory(kBasicModes, 64);
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(b.domain, &attr, &cntr, nullptr), 0);
  ASSERT_EQ(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
  const std::uint8_t byte = 9;
  ASSERT_EQ(fi_inject_write(a.ep, &byte, 1, to_b, base, fi_mr_key(mr)), 0);
  EXPECT_TRUE(turn_until([&] { return fi_cntr_read(cntr) == 1; }));
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

}  // namespace
}  // namespace uet::provider::testing
