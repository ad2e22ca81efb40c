/// Messages that arrive before their receive, in the ways in which MPI libraries send and probe for them.
#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class UnexpectedTest : public PairTest {
 protected:
  void TearDown() override {
    a.close();
    b.close();
  }
  /// Memory that outlives the endpoints, which may still use it when a test ends early.
  std::vector<std::uint8_t>& keep(std::vector<std::uint8_t> bytes) {
    return *kept_.emplace_back(std::make_unique<std::vector<std::uint8_t>>(std::move(bytes)));
  }

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

 private:
  std::vector<std::unique_ptr<std::vector<std::uint8_t>>> kept_;
};

// A send that asks for delivery and waits for its receive holds up nothing behind it: 5,000 packets pass by.
TEST_F(UnexpectedTest, delivery_complete__that_meets_no_receive_holds_up_no_other) {
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
TEST_F(UnexpectedTest, message_larger_than_the_store__is_probed_and_shuts_out_no_other) {
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

// A message of any size can be probed, and so can those behind it; none of them is sent before its receive is there. The
// receives may come in any order.
TEST_F(UnexpectedTest, messages_larger_than_the_store__are_probed_and_received_in_any_order) {
  const Variable store("FI_UET_OVERFLOW_BYTES", "256K"), rendezvous("FI_UET_RENDEZVOUS", "1");
  const Info ordered = make_hints();
  ordered->tx_attr->msg_order = ordered->rx_attr->msg_order = FI_ORDER_SAS;
  open(ordered.get());
  ASSERT_FALSE(HasFatalFailure());
  const auto &first = keep(pattern(3 << 20, 3)), &second = keep(pattern(64, 4)),
             &third = keep(pattern(5 << 20, 5));
  int contexts[3] = {};
  const std::vector<std::uint8_t>* messages[] = {&first, &second, &third};
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_EQ(
        fi_tsend(a.ep, messages[i]->data(), messages[i]->size(), nullptr, to_b, i, &contexts[i]),
        0);
  for (const std::size_t i : {2u, 1u, 0u}) EXPECT_EQ(probe(i), messages[i]->size());
  for (const std::size_t i : {2u, 1u, 0u}) {
    auto& got = keep(std::vector<std::uint8_t>(messages[i]->size()));
    ASSERT_EQ(fi_trecv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, i, 0, nullptr), 0);
    const Got received = wait_for(b);
    EXPECT_FALSE(received.failed);
    EXPECT_EQ(received.entry.len, got.size());
    EXPECT_EQ(got, *messages[i]);
  }
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(wait_for(a).failed);
  expect_silence(a);
  expect_silence(b);
}

// A receiver that never posts stops neither another pair nor its sender's messages to others; and what it keeps is small.
TEST_F(UnexpectedTest, receiver_that_never_posts__stops_no_other_pair) {
  const Variable store("FI_UET_OVERFLOW_BYTES", "256K"), rendezvous("FI_UET_RENDEZVOUS", "1");
  open();
  Side c;
  c.open(address_of(4), *make_hints());
  ASSERT_FALSE(HasFatalFailure());
  c.open_endpoint();
  ASSERT_FALSE(HasFatalFailure());
  const auto receives = [](Side& at, std::initializer_list<Side*> others) {
    for (Side* other : others) fi_cq_read(other->cq, nullptr, 0);
    fi_cq_tagged_entry entry;
    return fi_cq_read(at.cq, &entry, 1) == 1;
  };
  const auto &large = keep(pattern(2 << 20, 3)), &to_c = keep(pattern(3 << 20, 4));
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(fi_tsend(a.ep, large.data(), large.size(), nullptr, to_b, 1, nullptr), 0);
  EXPECT_EQ(probe(1), large.size());
  auto& got = keep(std::vector<std::uint8_t>(to_c.size()));
  ASSERT_EQ(fi_trecv(c.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, to_c.data(), to_c.size(), nullptr, a.insert(c), 2, nullptr), 0);
  ASSERT_TRUE(turn_until([&] { return receives(c, {&a, &b}); }));
  EXPECT_EQ(got, to_c);
  // Nor a pair of which it is one.
  std::fill(got.begin(), got.end(), std::uint8_t{0});
  ASSERT_EQ(fi_trecv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, 3, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(c.ep, to_c.data(), to_c.size(), nullptr, c.insert(b), 3, nullptr), 0);
  ASSERT_TRUE(turn_until([&] { return receives(b, {&a, &c}); }));
  EXPECT_EQ(got, to_c);
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
