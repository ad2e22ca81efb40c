#include <algorithm>
#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using DataTest = PairTest;

ssize_t post_tagged_receive(Side& s, void* buffer, std::size_t n, fi_addr_t from, std::uint64_t tag,
                            std::uint64_t ignore = 0, void* context = nullptr) {
  return fi_trecv(s.ep, buffer, n, nullptr, from, tag, ignore, context);
}

ssize_t peek(Side& s, std::uint64_t tag, std::uint64_t flags, void* context, void* buffer = nullptr,
             std::size_t n = 0) {
  const iovec iov{buffer, n};
  const fi_msg_tagged m{.msg_iov = &iov,
                        .desc = nullptr,
                        .iov_count = n != 0 ? 1u : 0u,
                        .addr = FI_ADDR_UNSPEC,
                        .tag = tag,
                        .ignore = 0,
                        .context = context,
                        .data = 0};
  return fi_trecvmsg(s.ep, &m, flags);
}

// Covers: FI-25
TEST_F(DataTest, removed_address__takes_no_more_and_lets_what_flies_arrive) {
  open();
  const auto sent = pattern(1 << 20, 25);
  std::vector<std::uint8_t> got(sent.size());
  ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr), 0);
  ASSERT_EQ(fi_av_remove(a.av, &to_b, 1, 0), 0);
  // Refused by the call, or by a completion where another thread has the loop just then.
  int refused = 0;
  for (const ssize_t said : {fi_send(a.ep, sent.data(), 1, nullptr, to_b, nullptr),
                             fi_inject(a.ep, sent.data(), 1, to_b)}) {
    EXPECT_TRUE(said == 0 || said == -FI_EINVAL) << said;
    refused += said != 0;
  }
  ASSERT_EQ(fi_recv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  for (int completions = 3 - refused; completions > 0; --completions) {
    const Got ended = wait_for(a);
    if (!ended.failed) continue;
    EXPECT_EQ(ended.error.err, FI_EINVAL);
    ++refused;
  }
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(got, sent);
}

// Covers: FI-47
TEST_F(DataTest, send_after_send__keeps_the_order_of_posting_in_bad_weather) {
  const Variable weather("FI_UET_IMPAIR", "loss=0.02,reorder=0.1,seed=47");
  const Info hints = make_hints();
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
  open(hints.get());
  constexpr std::uint32_t kMessages = 500;
  std::vector<std::uint32_t> out(kMessages), in(kMessages);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(post_tagged_receive(b, &in[i], sizeof in[i], FI_ADDR_UNSPEC, 47), 0);
    out[i] = i;
  }
  std::uint32_t posted = 0, finished = 0;
  EXPECT_TRUE(turn_until([&] {
    while (posted < kMessages &&
           fi_tsend(a.ep, &out[posted], sizeof out[posted], nullptr, to_b, 47, nullptr) == 0)
      ++posted;
    while (poll(a)) ++finished;
    while (poll(b)) ++finished;
    return finished == 2 * kMessages;
  }));
  EXPECT_EQ(in, out);
}

/// Sizes around the payload MTU, expected and unexpected, tagged and not. 64 MiB is left to the end-to-end tests.
TEST_F(DataTest, messages_of_all_sizes__arrive_intact) {
  open();
  std::uint8_t tag = 0;
  for (const std::size_t n : {0, 1, 1023, 1024, 1025, 8191, 8192, 8193, 1 << 20}) {
    for (const bool tagged : {false, true}) {
      for (const bool expected : {true, false}) {
        ++tag;
        const auto sent = pattern(n, tag);
        std::vector<std::uint8_t> got(n + 1);
        const auto receive = [&] {
          ASSERT_EQ(tagged ? post_tagged_receive(b, got.data(), n, FI_ADDR_UNSPEC, tag)
                           : fi_recv(b.ep, got.data(), n, nullptr, FI_ADDR_UNSPEC, nullptr),
                    0);
        };
        if (expected) receive();
        ASSERT_EQ(tagged ? fi_tsend(a.ep, sent.data(), n, nullptr, to_b, tag, nullptr)
                         : fi_send(a.ep, sent.data(), n, nullptr, to_b, nullptr),
                  0);
        if (!expected) {
          wait_for(a);
          receive();
        }
        const Got done = wait_for(b);
        ASSERT_FALSE(done.failed);
        EXPECT_EQ(done.entry.len, n);
        EXPECT_EQ(done.entry.flags & (FI_TAGGED | FI_MSG), tagged ? FI_TAGGED : FI_MSG);
        EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin()));
        if (expected) wait_for(a);
      }
    }
  }
}

// Covers: FI-38
TEST_F(DataTest, inject__the_buffer_may_change_at_once) {
  open();
  const std::size_t limit = a.info->tx_attr->inject_size;
  const auto original = pattern(limit, 1);
  auto buffer = original;
  std::vector<std::uint8_t> got(limit);
  ASSERT_EQ(fi_recv(b.ep, got.data(), limit, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, buffer.data(), limit, to_b), 0);
  std::fill(buffer.begin(), buffer.end(), 0xee);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(got, original);
  expect_silence(a);
  buffer.resize(limit + 1);
  EXPECT_EQ(fi_inject(a.ep, buffer.data(), limit + 1, to_b), -FI_EINVAL);
}

TEST_F(DataTest, too_long_a_message__is_truncated_at_the_receiver_only) {
  open();
  const auto sent = pattern(3000, 5);
  std::vector<std::uint8_t> got(1000);
  int context = 0;
  ASSERT_EQ(fi_recv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, &context), 0);
  ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr), 0);
  const Got error = wait_for(b);
  ASSERT_TRUE(error.failed);
  EXPECT_EQ(error.error.err, FI_ETRUNC);
  EXPECT_EQ(error.error.olen, 2000u);
  EXPECT_EQ(error.error.op_context, &context);
  EXPECT_EQ(std::memcmp(got.data(), sent.data(), 1000), 0);
  EXPECT_FALSE(wait_for(a).failed);
}

// Covers: FI-31
TEST_F(DataTest, error_entry__stays_until_it_is_read_and_respects_the_structure) {
  open();
  int context = 0;
  ASSERT_EQ(peek(b, 1, FI_PEEK, &context), 0);
  fi_cq_tagged_entry entry;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fi_cq_read(b.cq, &entry, 1), -FI_EAVAIL);
  struct {
    fi_cq_err_entry error;
    std::uint64_t canary;
  } guarded{{}, 0x1122334455667788};
  ASSERT_EQ(fi_cq_readerr(b.cq, &guarded.error, 0), 1);
  EXPECT_EQ(guarded.error.op_context, &context);
  EXPECT_EQ(guarded.error.err, FI_ENOMSG);
  EXPECT_NE(guarded.error.prov_errno, 0);
  EXPECT_EQ(guarded.canary, 0x1122334455667788u);
  EXPECT_EQ(fi_cq_read(b.cq, &entry, 1), -FI_EAGAIN);
}

// Covers: FI-41
TEST_F(DataTest, peek_claim_and_discard) {
  open();
  int context = 0;
  const auto sent = pattern(100, 9);
  const auto send = [&](std::uint64_t tag) {
    ASSERT_EQ(fi_tsenddata(a.ep, sent.data(), sent.size(), nullptr, 77, to_b, tag, nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
  };
  send(1);
  ASSERT_EQ(peek(b, 1, FI_PEEK, &context), 0);
  const Got seen = wait_for(b);
  ASSERT_FALSE(seen.failed);
  EXPECT_EQ(seen.entry.len, 100u);
  EXPECT_EQ(seen.entry.tag, 1u);
  EXPECT_EQ(seen.entry.data, 77u);

  ASSERT_EQ(peek(b, 1, FI_PEEK | FI_CLAIM, &context), 0);
  EXPECT_FALSE(wait_for(b).failed);
  std::vector<std::uint8_t> got(100);
  ASSERT_EQ(peek(b, 1, FI_CLAIM, &context, got.data(), got.size()), 0);
  EXPECT_EQ(wait_for(b).entry.len, 100u);
  EXPECT_EQ(got, sent);

  send(2);
  ASSERT_EQ(peek(b, 2, FI_PEEK | FI_DISCARD, &context), 0);
  EXPECT_FALSE(wait_for(b).failed);
  ASSERT_EQ(peek(b, 2, FI_PEEK, &context), 0);
  EXPECT_EQ(wait_for(b).error.err, FI_ENOMSG);

  send(3);
  ASSERT_EQ(peek(b, 3, FI_PEEK | FI_CLAIM, &context), 0);
  EXPECT_FALSE(wait_for(b).failed);
  ASSERT_EQ(peek(b, 3, FI_CLAIM | FI_DISCARD, &context), 0);
  wait_for(b);
  ASSERT_EQ(peek(b, 3, FI_PEEK, &context), 0);
  EXPECT_EQ(wait_for(b).error.err, FI_ENOMSG);
}

// Covers: FI-42
TEST_F(DataTest, cancel__of_a_posted_receive) {
  open();
  int context = 0;
  std::vector<std::uint8_t> got(10), other(10);
  ASSERT_EQ(post_tagged_receive(b, got.data(), 10, FI_ADDR_UNSPEC, 5, 0, &context), 0);
  ASSERT_EQ(fi_cancel(&b.ep->fid, &context), 0);
  const Got cancelled = wait_for(b);
  ASSERT_TRUE(cancelled.failed);
  EXPECT_EQ(cancelled.error.err, FI_ECANCELED);
  EXPECT_EQ(cancelled.error.op_context, &context);
  EXPECT_EQ(fi_cancel(&b.ep->fid, &context), -FI_ENOENT);
  const auto sent = pattern(10, 3);
  ASSERT_EQ(fi_tsend(a.ep, sent.data(), 10, nullptr, to_b, 5, nullptr), 0);
  wait_for(a);
  ASSERT_EQ(post_tagged_receive(b, other.data(), 10, FI_ADDR_UNSPEC, 5), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(other, sent);
  EXPECT_EQ(got, std::vector<std::uint8_t>(10));
}

// Covers: FI-43
TEST_F(DataTest, directed_receive__takes_only_its_peer) {
  open();
  const fi_addr_t self = b.insert(b);
  std::vector<std::uint8_t> got(10), second(10);
  ASSERT_EQ(post_tagged_receive(b, got.data(), 10, self, 5), 0);
  const auto from_a = pattern(10, 1), from_b = pattern(10, 2);
  ASSERT_EQ(fi_tinject(a.ep, from_a.data(), 10, to_b, 5), 0);
  expect_silence(b);
  ASSERT_EQ(fi_tinject(b.ep, from_b.data(), 10, self, 5), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(got, from_b);
  ASSERT_EQ(post_tagged_receive(b, second.data(), 10, to_a, 5), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(second, from_a);
}

// Covers: FI-44
TEST_F(DataTest, source__is_the_sender_or_not_available) {
  open();
  std::uint8_t got[8] = {};
  ASSERT_EQ(fi_recv(b.ep, got, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, got, 8, to_b), 0);
  EXPECT_EQ(wait_for(b).source, to_a);
  ASSERT_EQ(fi_av_remove(b.av, &to_a, 1, 0), 0);
  ASSERT_EQ(fi_recv(b.ep, got, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, got, 8, to_b), 0);
  EXPECT_EQ(wait_for(b).source, FI_ADDR_NOTAVAIL);
}

// Covers: FI-45
TEST_F(DataTest, delivery_complete__waits_for_the_receive) {
  open();
  const auto sent = pattern(100, 4);
  const iovec iov{const_cast<std::uint8_t*>(sent.data()), sent.size()};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = to_b,
                 .context = nullptr,
                 .data = 0};
  ASSERT_EQ(fi_sendmsg(a.ep, &m, FI_DELIVERY_COMPLETE), 0);
  expect_silence(a, 100);
  std::vector<std::uint8_t> got(100);
  ASSERT_EQ(fi_recv(b.ep, got.data(), 100, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, sent);
}

// Covers: FI-40
TEST_F(DataTest, multi_receive__packs_messages_and_returns_the_buffer_once) {
  open();
  const std::size_t min = 4096;
  ASSERT_EQ(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  std::vector<std::uint8_t> buffer(1 << 20);
  const iovec iov{buffer.data(), buffer.size()};
  int context = 0;
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = FI_ADDR_UNSPEC,
                 .context = &context,
                 .data = 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &m, FI_MULTI_RECV), 0);
  const std::uint8_t* end_of_last = buffer.data();
  bool released = false;
  for (std::uint32_t i = 0; !released && i < 1000; ++i) {
    const auto sent = pattern(1 + i * 7919 % 65536, static_cast<std::uint8_t>(i));
    ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr), 0);
    const Got got = wait_for(b);
    ASSERT_FALSE(got.failed);
    EXPECT_EQ(got.entry.op_context, &context);
    released = (got.entry.flags & FI_MULTI_RECV) != 0;
    if ((got.entry.flags & FI_RECV) == 0) break;  // came back because this message did not fit
    const auto* at = static_cast<const std::uint8_t*>(got.entry.buf);
    ASSERT_GE(at, end_of_last);
    ASSERT_LE(at + got.entry.len, buffer.data() + buffer.size());
    ASSERT_EQ(got.entry.len, sent.size());
    EXPECT_EQ(std::memcmp(at, sent.data(), sent.size()), 0);
    end_of_last = at + got.entry.len;
    wait_for(a);
  }
  EXPECT_TRUE(released);
}

// Covers: FI-33
TEST_F(DataTest, selective_completion__only_what_asks_for_an_entry) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  b.open(address_of(3), *hints);
  a.open_endpoint(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
  b.open_endpoint();
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(a.ep, &cntr->fid, FI_SEND), 0);
  to_b = a.insert(b);
  std::uint8_t bytes[8] = {};
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_recv(b.ep, bytes, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  ASSERT_EQ(fi_send(a.ep, bytes, 8, nullptr, to_b, nullptr), 0);
  EXPECT_TRUE(turn_until([&] { return fi_cntr_read(cntr) == 1; }));
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
  const iovec iov{bytes, 8};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = to_b,
                 .context = nullptr,
                 .data = 0};
  ASSERT_EQ(fi_sendmsg(a.ep, &m, FI_COMPLETION), 0);
  wait_for(a);
  EXPECT_EQ(fi_cntr_read(cntr), 2u);
  ASSERT_EQ(fi_close(&a.ep->fid), 0);
  a.ep = nullptr;
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

TEST_F(DataTest, send_to_oneself__is_delivered) {
  open();
  const fi_addr_t self = a.insert(a);
  const auto sent = pattern(5000, 8);
  std::vector<std::uint8_t> got(5000);
  ASSERT_EQ(post_tagged_receive(a, got.data(), 5000, FI_ADDR_UNSPEC, 3), 0);
  ASSERT_EQ(fi_tsend(a.ep, sent.data(), 5000, nullptr, self, 3, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, sent);
}

// Covers: FI-32
TEST_F(DataTest, small_queue__loses_nothing) {
  a.cq_attr.size = 4;
  open();
  std::vector<std::uint8_t> got(100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(fi_recv(b.ep, &got[static_cast<std::size_t>(i)], 1, nullptr, FI_ADDR_UNSPEC, nullptr),
              0);
  }
  int posted = 0, completed = 0;
  EXPECT_TRUE(turn_until([&] {
    const std::uint8_t byte = 1;
    bool refused = false;
    if (posted < 100) {
      const ssize_t ret = fi_send(a.ep, &byte, 1, nullptr, to_b, nullptr);
      refused = ret != 0;
      if (refused) {
        EXPECT_EQ(ret, -FI_EAGAIN);
      } else {
        ++posted;
      }
    }
    fi_cq_tagged_entry entry;
    // Rarely read: the queue is full most of the time.
    if (refused || posted % 8 == 0 || posted == 100) {
      if (fi_cq_read(a.cq, &entry, 1) == 1) ++completed;
    }
    return completed == 100;
  }));
}

}  // namespace
}  // namespace uet::provider::testing
