/// Messages that arrive before their receive, in the ways in which MPI libraries send and probe for them.
#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class UnexpectedTest : public PairTest {
 protected:
  ssize_t send_with_delivery_complete(std::span<const std::uint8_t> bytes, std::uint64_t tag,
                                      void* context) {
    const iovec iov{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    const fi_msg_tagged m{.msg_iov = &iov,
                          .desc = nullptr,
                          .iov_count = 1,
                          .addr = to_b,
                          .tag = tag,
                          .ignore = 0,
                          .context = context,
                          .data = 0};
    return fi_tsendmsg(a.ep, &m, FI_DELIVERY_COMPLETE);
  }
  /// The length of the message that a probe of `tag` sees, as programs probe: again and again.
  std::size_t probe(std::uint64_t tag) {
    std::size_t length = 0;
    EXPECT_TRUE(turn_until([&] {
      int context = 0;
      const fi_msg_tagged m{.msg_iov = nullptr,
                            .desc = nullptr,
                            .iov_count = 0,
                            .addr = FI_ADDR_UNSPEC,
                            .tag = tag,
                            .ignore = 0,
                            .context = &context,
                            .data = 0};
      EXPECT_EQ(fi_trecvmsg(b.ep, &m, FI_PEEK), 0);
      const auto got = wait_for(b);
      length = got.entry.len;
      return !got.failed;
    })) << "tag "
        << tag << " is not seen";
    return length;
  }
};

// A send that asks for delivery and waits for its receive holds up nothing behind it: 5,000 packets pass by.
TEST_F(UnexpectedTest, delivery_complete__that_meets_no_receive_holds_up_nobody) {
  const Variable small_packets("FI_UET_MAX_PAYLOAD", "1024");
  open();
  const auto first = pattern(100, 1), second = pattern(5 << 20, 2);
  std::vector<std::uint8_t> got_first(first.size()), got_second(second.size());
  int context_first = 0, context_second = 0;
  ASSERT_EQ(
      fi_trecv(b.ep, got_second.data(), got_second.size(), nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr),
      0);
  ASSERT_EQ(send_with_delivery_complete(first, 1, &context_first), 0);
  ASSERT_EQ(send_with_delivery_complete(second, 2, &context_second), 0);
  EXPECT_FALSE(wait_for(b).failed);
  const Got sent = wait_for(a);
  EXPECT_FALSE(sent.failed);
  EXPECT_EQ(sent.entry.op_context, &context_second);
  EXPECT_EQ(got_second, second);
  expect_silence(a);
  ASSERT_EQ(
      fi_trecv(b.ep, got_first.data(), got_first.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
      0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(wait_for(a).entry.op_context, &context_first);
  EXPECT_EQ(got_first, first);
}

// A message that no store has room for is seen by a probe, and so is a small one of another sender.
TEST_F(UnexpectedTest, message_larger_than_the_store__is_probed_and_shuts_out_nobody) {
  const Variable store("FI_UET_OVERFLOW_BYTES", "1M");
  open();
  Side c;
  c.open(address_of(4), *make_hints());
  ASSERT_FALSE(HasFatalFailure());
  c.open_endpoint();
  ASSERT_FALSE(HasFatalFailure());
  const auto large = pattern(3 << 20, 3), small = pattern(8, 4);
  ASSERT_EQ(fi_tsend(a.ep, large.data(), large.size(), nullptr, to_b, 1, nullptr), 0);
  EXPECT_EQ(probe(1), large.size());
  ASSERT_EQ(fi_tsend(c.ep, small.data(), small.size(), nullptr, c.insert(b), 2, nullptr), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < end) fi_cq_read(c.cq, nullptr, 0);
  EXPECT_EQ(probe(2), small.size());
  std::vector<std::uint8_t> got(large.size());
  ASSERT_EQ(fi_trecv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, large);
}

/// One buffer for many messages with tags: those that wait already and those that come, of its tags only.
// Covers: FI-62
TEST_F(UnexpectedTest, tagged_multi_receive__takes_the_messages_of_its_tags) {
  open();
  const auto send = [&](std::uint64_t tag, const std::vector<std::uint8_t>& bytes) {
    ASSERT_EQ(fi_tsend(a.ep, bytes.data(), bytes.size(), nullptr, to_b, tag, nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
  };
  const auto first = pattern(100, 1), other = pattern(100, 2), second = pattern(60, 3);
  send(0x51, first);
  send(0x61, other);
  std::vector<std::uint8_t> buffer(224), apart(100);
  const iovec iov{buffer.data(), buffer.size()};
  const fi_msg_tagged m{.msg_iov = &iov,
                        .desc = nullptr,
                        .iov_count = 1,
                        .addr = FI_ADDR_UNSPEC,
                        .tag = 0x50,
                        .ignore = 0xf,
                        .context = buffer.data(),
                        .data = 0};
  ASSERT_EQ(fi_trecvmsg(b.ep, &m, FI_MULTI_RECV), 0);
  Got got = wait_for(b);
  EXPECT_EQ(got.entry.flags, FI_RECV | FI_TAGGED);
  EXPECT_EQ(got.entry.tag, 0x51u);
  EXPECT_EQ(std::memcmp(got.entry.buf, first.data(), first.size()), 0);
  expect_silence(b);
  ASSERT_EQ(
      fi_trecv(b.ep, apart.data(), apart.size(), nullptr, FI_ADDR_UNSPEC, 0x61, 0, apart.data()),
      0);
  EXPECT_EQ(wait_for(b).entry.op_context, apart.data());
  EXPECT_EQ(apart, other);
  send(0x52, second);
  got = wait_for(b);
  EXPECT_EQ(got.entry.flags, FI_RECV | FI_TAGGED | FI_MULTI_RECV) << "less than 64 bytes are left";
  EXPECT_EQ(got.entry.op_context, buffer.data());
  EXPECT_EQ(got.entry.tag, 0x52u);
  EXPECT_EQ(std::memcmp(got.entry.buf, second.data(), second.size()), 0);
}

}  // namespace
}  // namespace uet::provider::testing
