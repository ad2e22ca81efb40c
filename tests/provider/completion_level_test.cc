/// Completion levels of sends and writes, and the one that an application which names none is given.
#include <rdma/fi_rma.h>

#include <algorithm>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

constexpr std::uint64_t kInjectLevel = FI_COMPLETION | FI_INJECT_COMPLETE;

class CompletionLevelTest : public PairTest {
 protected:
  ssize_t send(std::uint64_t flags) {
    const iovec iov{out_.data(), out_.size()};
    const fi_msg m{.msg_iov = &iov,
                   .desc = nullptr,
                   .iov_count = 1,
                   .addr = to_b,
                   .context = &context_,
                   .data = 0};
    return fi_sendmsg(a.ep, &m, flags);
  }
  /// The entry of what was posted, though the peer did not hear of it.
  void expect_entry_of_the_call(std::uint64_t flags) {
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_read(a.cq, &entry, 1), 1);
    EXPECT_EQ(entry.op_context, &context_);
    EXPECT_EQ(entry.flags, flags);
    std::ranges::fill(out_, std::uint8_t{0xee});
  }
  void expect_arrival() {
    EXPECT_FALSE(wait_for(b).failed);
    EXPECT_EQ(in_, original_);
  }
  /// What was sent, and room for it.
  void take(std::size_t bytes) {
    original_ = out_ = pattern(bytes, 17);
    in_.assign(bytes, 0);
  }
  void receive() {
    ASSERT_EQ(fi_recv(b.ep, in_.data(), in_.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }

  /// Nothing of the peer happens unless it is polled.
  const Variable manual_{"FI_UET_PROGRESS", "manual"};
  std::vector<std::uint8_t> original_, out_, in_;
  int context_ = 0;
};

TEST_F(CompletionLevelTest, inject_complete__up_to_the_inject_size_the_buffer_is_free_at_once) {
  open();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, a.info->tx_attr->inject_size}) {
    take(bytes);
    ASSERT_EQ(send(kInjectLevel), 0);
    expect_entry_of_the_call(FI_SEND | FI_MSG);
    receive();
    expect_arrival();
    expect_silence(a, 10);
  }
}

TEST_F(CompletionLevelTest, inject_complete__a_longer_message_keeps_its_buffer_until_it_is_there) {
  open();
  take(a.info->tx_attr->inject_size + 1);
  receive();
  ASSERT_EQ(send(kInjectLevel), 0);
  const Got sent = wait_for(a);
  EXPECT_FALSE(sent.failed);
  EXPECT_EQ(sent.entry.op_context, &context_);
  std::ranges::fill(out_, std::uint8_t{0xee});
  expect_arrival();
}

TEST_F(CompletionLevelTest, inject_complete__beside_a_stronger_level_the_stronger_counts) {
  open();
  take(100);
  ASSERT_EQ(send(kInjectLevel | FI_DELIVERY_COMPLETE), 0);
  expect_silence(a, 50);
  receive();
  expect_arrival();
  EXPECT_EQ(wait_for(a).entry.op_context, &context_);
}

TEST_F(CompletionLevelTest, inject_complete__of_a_write) {
  open();
  take(4096);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain, in_.data(), in_.size(), FI_REMOTE_WRITE, 0, 5, 0, &mr, nullptr), 0);
  const iovec iov{out_.data(), out_.size()};
  const fi_rma_iov to{.addr = reinterpret_cast<std::uint64_t>(in_.data()),
                      .len = out_.size(),
                      .key = fi_mr_key(mr)};
  const fi_msg_rma m{.msg_iov = &iov,
                     .desc = nullptr,
                     .iov_count = 1,
                     .addr = to_b,
                     .rma_iov = &to,
                     .rma_iov_count = 1,
                     .context = &context_,
                     .data = 0};
  ASSERT_EQ(fi_writemsg(a.ep, &m, kInjectLevel), 0);
  expect_entry_of_the_call(FI_RMA | FI_WRITE);
  EXPECT_TRUE(turn_until([&] {
    poll(a);
    poll(b);
    return in_ == original_;
  }));
  fi_close(&mr->fid);
}

TEST_F(CompletionLevelTest, transmit_complete__waits_for_the_peer) {
  open();
  take(100);
  receive();
  ASSERT_EQ(fi_send(a.ep, out_.data(), out_.size(), nullptr, to_b, &context_), 0);
  fi_cq_tagged_entry entry{};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
  expect_arrival();
  EXPECT_EQ(wait_for(a).entry.op_context, &context_);
}

TEST_F(CompletionLevelTest, inject_complete__what_fails_later_is_told_without_a_context) {
  const Variable timeout("FI_UET_PEER_TIMEOUT", "100ms");
  const Variable weather("FI_UET_IMPAIR", "loss=1,seed=1");
  open();
  take(64);
  ASSERT_EQ(send(kInjectLevel), 0);
  expect_entry_of_the_call(FI_SEND | FI_MSG);
  const Got later = wait_for(a);
  EXPECT_TRUE(later.failed);
  EXPECT_EQ(later.error.op_context, nullptr);
}

TEST_F(CompletionLevelTest, default_level__is_that_of_the_setting_where_hints_name_none) {
  const Info hints = make_hints();
  EXPECT_EQ(get_info(hints.get())->tx_attr->op_flags, 0u);
  const Variable level("FI_UET_COMPLETION", "inject");
  EXPECT_EQ(get_info(hints.get())->tx_attr->op_flags, FI_INJECT_COMPLETE);
  hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
  EXPECT_EQ(get_info(hints.get())->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
  hints->tx_attr->op_flags = FI_COMPLETION;
  EXPECT_EQ(get_info(hints.get())->tx_attr->op_flags, FI_COMPLETION | FI_INJECT_COMPLETE);
}

TEST_F(CompletionLevelTest, default_level__inject__a_send_is_over_when_its_call_returns) {
  const Variable level("FI_UET_COMPLETION", "inject");
  open();
  take(512);
  ASSERT_EQ(fi_send(a.ep, out_.data(), out_.size(), nullptr, to_b, &context_), 0);
  expect_entry_of_the_call(FI_SEND | FI_MSG);
  receive();
  expect_arrival();
}

}  // namespace
}  // namespace uet::provider::testing
