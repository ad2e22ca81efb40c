// A region that covers the whole address space, as MPI registers it for dynamic windows.
#include <rdma/fi_atomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

/// Pages of which the second can be read alone, the third is not there, and the fourth can be neither read nor written.
class WholeAddressSpaceTest : public PairTest {
 protected:
  WholeAddressSpaceTest() {
    const Info hints = make_hints();
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->domain_attr->mr_mode = 0;
    open(hints.get());
    EXPECT_EQ(fi_mr_reg(b.domain, nullptr, SIZE_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0,
                        &mr, nullptr),
              0);
    const std::size_t n = 4 * page;
    pages = static_cast<std::uint8_t*>(
        mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + page, page, PROT_READ);
    munmap(pages + 2 * page, page);
    mprotect(pages + 3 * page, page, PROT_NONE);
  }
  ~WholeAddressSpaceTest() override {
    EXPECT_EQ(fi_close(&mr->fid), 0);
    munmap(pages, 2 * page);
    munmap(pages + 3 * page, page);
  }
  Got write(const std::vector<std::uint8_t>& bytes, std::uint8_t* at) {
    EXPECT_EQ(fi_write(a.ep, bytes.data(), bytes.size(), nullptr, to_b, address(at), kKey, nullptr),
              0);
    return wait_for(a);
  }
  Got read(std::vector<std::uint8_t>& bytes, std::uint8_t* at) {
    EXPECT_EQ(fi_read(a.ep, bytes.data(), bytes.size(), nullptr, to_b, address(at), kKey, nullptr),
              0);
    return wait_for(a);
  }
  static std::uint64_t address(std::uint8_t* at) { return reinterpret_cast<std::uint64_t>(at); }

  static constexpr std::uint64_t kKey = (std::uint64_t{1} << 63) | 5;  // as MPICH chooses them
  const Variable allowed{"FI_UET_ALLOW_ALL_MR", "1"};
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::uint8_t* pages = nullptr;
  fid_mr* mr = nullptr;
};

TEST_F(WholeAddressSpaceTest, memory_of_the_process__is_written_and_read) {
  auto sent = pattern(page - 8, 3);
  EXPECT_FALSE(write(sent, pages).failed);
  EXPECT_EQ(std::memcmp(pages, sent.data(), sent.size()), 0);
  std::vector<std::uint8_t> got(sent.size());
  EXPECT_FALSE(read(got, pages).failed);
  EXPECT_EQ(got, sent);

  auto large = pattern(5 << 20, 4);
  std::vector<std::uint8_t> target(large.size());
  EXPECT_FALSE(write(large, target.data()).failed);
  EXPECT_EQ(target, large);

  auto* const number = reinterpret_cast<std::uint64_t*>(pages + page - 8);
  *number = 40;
  const std::uint64_t two = 2;
  ASSERT_EQ(fi_atomic(a.ep, &two, 1, nullptr, to_b, address(pages + page - 8), kKey, FI_UINT64,
                      FI_SUM, nullptr),
            0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(*number, 42u);
}

TEST_F(WholeAddressSpaceTest, pages_that_are_not_there__are_bad_addresses) {
  auto bytes = pattern(64, 7);
  EXPECT_EQ(write(bytes, pages + 2 * page).error.err, FI_EFAULT);
  EXPECT_EQ(write(bytes, pages + 2 * page - 1).error.err, FI_EFAULT) << "its last bytes";
  EXPECT_EQ(read(bytes, nullptr).error.err, FI_EFAULT);
  EXPECT_EQ(read(bytes, reinterpret_cast<std::uint8_t*>(-65)).error.err, FI_EFAULT);
}

TEST_F(WholeAddressSpaceTest,
       page_that_cannot_be_written__stays_as_it_is_and_the_peer_hears_of_it) {
  auto bytes = pattern(64, 7);
  EXPECT_EQ(write(bytes, pages + page).error.err, FI_EIO);
  std::vector<std::uint8_t> got(bytes.size(), 1);
  EXPECT_FALSE(read(got, pages + page).failed);
  EXPECT_EQ(got, std::vector<std::uint8_t>(bytes.size(), 0));

  const std::uint64_t two = 2;
  ASSERT_EQ(fi_atomic(a.ep, &two, 1, nullptr, to_b, address(pages + page), kKey, FI_UINT64, FI_SUM,
                      nullptr),
            0);
  EXPECT_EQ(wait_for(a).error.err, FI_EIO);
}

TEST_F(WholeAddressSpaceTest, page_in_the_middle_of_a_long_write__fails_it) {
  constexpr std::size_t kLong = 1 << 20;
  auto* const memory = static_cast<std::uint8_t*>(
      mmap(nullptr, kLong, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(memory + kLong / 2, page, PROT_READ);
  auto bytes = pattern(kLong, 2);
  EXPECT_EQ(write(bytes, memory).error.err, FI_EIO);
  EXPECT_FALSE(write(bytes, bytes.data()).failed) << "what comes behind it is taken";
  munmap(memory, kLong);
}

TEST_F(WholeAddressSpaceTest, page_that_cannot_be_read__fails_the_read) {
  for (const std::size_t n : {std::size_t{8}, page}) {  // by an ACK, and as read data
    std::vector<std::uint8_t> got(n, 1);
    EXPECT_EQ(read(got, pages + 3 * page).error.err, FI_EIO) << n;
  }
  const std::uint64_t two = 2;
  std::uint64_t old = 0;
  ASSERT_EQ(fi_fetch_atomic(a.ep, &two, 1, nullptr, &old, nullptr, to_b, address(pages + 3 * page),
                            kKey, FI_UINT64, FI_SUM, nullptr),
            0);
  EXPECT_EQ(wait_for(a).error.err, FI_EIO);
}

}  // namespace
}  // namespace uet::provider::testing
