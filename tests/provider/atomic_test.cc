/// FI_ATOMIC beside its operators: forms of the calls, flags, counters, limits, errors.
#include <algorithm>

#include "tests/provider/atomic_fixture.h"

namespace uet::provider::testing {
namespace {

class AtomicTest : public AtomicPair {
 protected:
  /// As atomics of the provider's thread write it, at any time.
  std::uint64_t word(std::size_t at = 0) const {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(memory + at), __ATOMIC_ACQUIRE);
  }
  void set_word(std::uint64_t v, std::size_t at = 0) { std::memcpy(memory + at, &v, 8); }
  ssize_t add(std::uint64_t value, std::uint64_t at = 0, std::uint64_t key = kKey) {
    kept = value;
    return fi_atomic(a.ep, &kept, 1, nullptr, to_b, at, key, FI_UINT64, FI_SUM, nullptr);
  }
  int error_of(ssize_t posted) {
    EXPECT_EQ(posted, 0);
    const Got got = wait_for(a);
    EXPECT_TRUE(got.failed);
    return got.error.err;
  }
  std::uint64_t kept = 0;

  /// One atomic that returns the old value of the first element, and one that compares with it.
  void fetch_and_compare(fi_op comparing) {
    std::uint64_t one = 1, old = 0;
    ASSERT_EQ(fi_fetch_atomic(a.ep, &one, 1, nullptr, &old, nullptr, to_b, 0, kKey, FI_UINT64,
                              FI_SUM, nullptr),
              0);
    EXPECT_FALSE(wait_for(a).failed);
    ASSERT_EQ(fi_compare_atomic(a.ep, &one, 1, nullptr, &one, nullptr, &old, nullptr, to_b, 0, kKey,
                                FI_UINT64, comparing, nullptr),
              0);
    EXPECT_FALSE(wait_for(a).failed);
  }
};

TEST_F(AtomicTest, vectors__are_gathered_and_scattered) {
  open_with_memory();
  std::uint32_t first[3] = {1, 2, 3}, second[5] = {4, 5, 6, 7, 8};
  const fi_ioc iov[] = {{first, 3}, {second, 5}};
  ASSERT_EQ(fi_atomicv(a.ep, iov, nullptr, 2, to_b, 4, kKey, FI_UINT32, FI_SUM, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  std::uint32_t got[9];
  std::memcpy(got, memory, sizeof got);
  for (std::uint32_t i = 0; i < 9; ++i) EXPECT_EQ(got[i], i);
  std::uint32_t value = 10, compare = 5, old = 0;
  const fi_ioc operand{&value, 1}, with{&compare, 1};
  fi_ioc into{&old, 1};
  ASSERT_EQ(fi_fetch_atomicv(a.ep, &operand, nullptr, 1, &into, nullptr, 1, to_b, 8, kKey,
                             FI_UINT32, FI_SUM, nullptr),
            0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(old, 2u);
  ASSERT_EQ(fi_compare_atomicv(a.ep, &operand, nullptr, 1, &with, nullptr, 1, &into, nullptr, 1,
                               to_b, 20, kKey, FI_UINT32, FI_CSWAP, nullptr),
            0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(old, 5u);
  std::memcpy(got, memory, sizeof got);
  EXPECT_EQ(got[2], 12u);
  EXPECT_EQ(got[5], 10u);
}

TEST_F(AtomicTest, messages__take_flags_and_announce_data) {
  open_with_memory();
  set_word(1);
  std::uint64_t value = 2;
  const fi_ioc operand{&value, 1};
  const fi_rma_ioc remote{0, 1, kKey};
  fi_msg_atomic m = sum_message(operand, remote);
  m.data = 0xfeed;
  m.context = &value;
  ASSERT_EQ(fi_atomicmsg(a.ep, &m, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_INJECT), 0);
  value = 1000;  // injected: ours again
  EXPECT_EQ(wait_for(a).entry.op_context, &value);
  const Got got = wait_for(b);
  EXPECT_EQ(got.entry.flags, FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(got.entry.data, 0xfeedu);
  EXPECT_EQ(word(), 3u);
  std::uint64_t old = 0;
  fi_ioc into{&old, 1};
  EXPECT_EQ(fi_fetch_atomicmsg(a.ep, &m, &into, nullptr, 1, FI_REMOTE_CQ_DATA), -FI_EINVAL);
  value = 4;
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &m, &into, nullptr, 1, FI_FENCE), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(old, 3u);
  m.op = FI_MSWAP;
  value = 0xff;
  const std::uint64_t mask = 0xf0;
  const fi_ioc with{const_cast<std::uint64_t*>(&mask), 1};
  ASSERT_EQ(fi_compare_atomicmsg(a.ep, &m, &with, nullptr, 1, &into, nullptr, 1, 0), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(old, 7u);
  EXPECT_EQ(word(), 0xf7u);
  EXPECT_EQ(fi_atomicmsg(a.ep, &m, FI_COMMIT_COMPLETE), -FI_EOPNOTSUPP);
}

TEST_F(AtomicTest, inject__makes_no_entry) {
  open_with_memory();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    std::uint64_t value = i;
    ASSERT_EQ(fi_inject_atomic(a.ep, &value, 1, to_b, 8, kKey, FI_UINT64, FI_SUM), 0);
    value = 0;
  }
  EXPECT_TRUE(turn_until([&] { return word(8) == 55; }));
  expect_silence(a);
}

TEST_F(AtomicTest, counters__tell_what_wrote_and_what_read) {
  fid_cntr* counters[4] = {};
  const std::uint64_t flags[4] = {FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ};
  open_with_memory();
  for (int i = 0; i < 4; ++i) {
    Side& side = i < 2 ? a : b;
    ASSERT_EQ(fi_cntr_open(side.domain, nullptr, &counters[i], nullptr), 0);
    ASSERT_EQ(fi_ep_bind(side.ep, &counters[i]->fid, flags[i]), 0);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(add(1), 0);
    EXPECT_FALSE(wait_for(a).failed);
  }
  fetch_and_compare(FI_CSWAP);
  const std::uint64_t want[4] = {3, 2, 3, 2};
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(turn_until([&] { return fi_cntr_read(counters[i]) == want[i]; })) << i;
  EXPECT_EQ(fi_close(&mr->fid), 0);
  mr = nullptr;
  for (Side* side : {&a, &b}) {
    EXPECT_EQ(fi_close(&side->ep->fid), 0);
    side->ep = nullptr;
  }
  for (fid_cntr* counter : counters) EXPECT_EQ(fi_close(&counter->fid), 0);
}

/// Sandia OpenSHMEM sleeps on such a counter until a lock is handed over by a masked swap.
TEST_F(AtomicTest, counter_of_a_region__tells_of_fetching_atomics_too) {
  fid_cntr* counter = nullptr;
  open_with_memory();
  ASSERT_EQ(fi_cntr_open(b.domain, nullptr, &counter, nullptr), 0);
  ASSERT_EQ(fi_mr_bind(mr, &counter->fid, FI_REMOTE_WRITE), 0);
  ASSERT_EQ(add(1), 0);
  EXPECT_FALSE(wait_for(a).failed);
  fetch_and_compare(FI_MSWAP);
  EXPECT_TRUE(turn_until([&] { return fi_cntr_read(counter) == 3; })) << fi_cntr_read(counter);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  mr = nullptr;
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(AtomicTest, limits__are_what_was_said) {
  open_with_memory();
  std::size_t most = 0;
  ASSERT_EQ(fi_atomicvalid(a.ep, FI_UINT64, FI_SUM, &most), 0);
  std::vector<std::uint64_t> values(most + 1, 1);
  EXPECT_EQ(
      fi_atomic(a.ep, values.data(), most + 1, nullptr, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr),
      -FI_EMSGSIZE);
  ASSERT_EQ(
      fi_atomic(a.ep, values.data(), most, nullptr, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  for (std::size_t i = 0; i < most; ++i) ASSERT_EQ(word(8 * i), 1u);
  EXPECT_EQ(word(8 * most), 0u);
  std::uint64_t old[2] = {};
  EXPECT_EQ(fi_fetch_atomic(a.ep, values.data(), 2, nullptr, old, nullptr, to_b, 0, kKey, FI_UINT64,
                            FI_SUM, nullptr),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_atomic(a.ep, values.data(), 0, nullptr, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_atomic(a.ep, nullptr, 1, nullptr, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr),
            -FI_EINVAL);
  const fi_ioc overflowing{values.data(), ~std::size_t{0} / 4};
  EXPECT_EQ(fi_atomicv(a.ep, &overflowing, nullptr, 1, to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr),
            -FI_EINVAL);
}

TEST_F(AtomicTest, errors__say_why) {
  open_with_memory();
  char rest[8] = {};
  fid_mr* only_write = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain, rest, 8, FI_REMOTE_WRITE, 0, 43, 0, &only_write, nullptr), 0);
  EXPECT_EQ(error_of(add(1, 4)), EINVAL);  // unaligned
  EXPECT_EQ(error_of(add(1, sizeof memory)), FI_EFAULT);
  EXPECT_EQ(error_of(add(1, 0, 99)), FI_EKEYREJECTED);
  EXPECT_EQ(error_of(add(1, 0, 43)), FI_EACCES);
  EXPECT_EQ(fi_close(&only_write->fid), 0);
  EXPECT_EQ(word(), 0u);
  ASSERT_EQ(add(1), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(word(), 1u);
}

TEST_F(AtomicTest, tagged__works_on_a_receive) {
  open_with_memory();
  alignas(8) std::uint64_t buffer[2] = {0, 40};
  ASSERT_EQ(fi_trecv(b.ep, buffer, sizeof buffer, nullptr, to_a, 0x77, 0, nullptr), 0);
  std::uint64_t value = 2, old = 0;
  const fi_ioc operand{&value, 1};
  fi_ioc into{&old, 1};
  const fi_rma_ioc remote{8, 1, 0x77};
  fi_msg_atomic m = sum_message(operand, remote);
  ASSERT_EQ(fi_fetch_atomicmsg(a.ep, &m, &into, nullptr, 1, FI_TAGGED), 0);
  EXPECT_FALSE(wait_for(a).failed);
  const Got got = wait_for(b);
  EXPECT_EQ(got.entry.flags, FI_RECV | FI_TAGGED);
  EXPECT_EQ(got.entry.tag, 0x77u);
  EXPECT_EQ(old, 40u);
  EXPECT_EQ(buffer[1], 42u);
}

TEST_F(AtomicTest, endpoint__without_the_capability_refuses) {
  open_with_memory([](fi_info& hints) { hints.caps = FI_MSG | FI_RMA; });
  EXPECT_EQ(add(1), -FI_EOPNOTSUPP);
}

// Covers: FI-50
TEST_F(AtomicTest, own_address__is_reached) {
  open_with_memory();
  const fi_addr_t self = b.insert(b);
  std::uint64_t one = 1, old = 9;
  ASSERT_EQ(fi_fetch_atomic(b.ep, &one, 1, nullptr, &old, nullptr, self, 0, kKey, FI_UINT64, FI_SUM,
                            nullptr),
            0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(old, 0u);
  EXPECT_EQ(word(), 1u);
}

// Every order asked for: what was posted first is executed first.
TEST_F(AtomicTest, order__is_kept) {
  open_with_memory([](fi_info& hints) {
    hints.tx_attr->msg_order = FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAW;
    hints.rx_attr->msg_order = hints.tx_attr->msg_order;
  });
  std::uint64_t old = 0;
  int posted = 0;
  for (std::uint64_t i = 1; i <= 300; ++i)
    EXPECT_TRUE(turn_until([&] {
      const bool done =
          fi_inject_atomic(a.ep, &i, 1, to_b, 0, kKey, FI_UINT64, FI_ATOMIC_WRITE) == 0;
      posted += done ? 1 : 0;
      return done;
    }));
  EXPECT_TRUE(turn_until([&] {
    return fi_fetch_atomic(a.ep, nullptr, 1, nullptr, &old, nullptr, to_b, 0, kKey, FI_UINT64,
                           FI_ATOMIC_READ, nullptr) == 0;
  }));
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(old, 300u);
}

}  // namespace
}  // namespace uet::provider::testing
