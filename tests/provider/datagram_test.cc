// FI_EP_DGRAM: messages of one packet, sent once, taken by a receive that is posted or by none.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

Info make_datagram_hints() {
  Info hints = make_hints();
  hints->ep_attr->type = FI_EP_DGRAM;
  return hints;
}

class DatagramInfoTest : public ::testing::Test {
 protected:
  DatagramInfoTest() { setenv("FI_UET_ADDR", address_of(1).c_str(), 1); }
  Info hints = make_datagram_hints();
};

// Covers: FI-58
TEST_F(DatagramInfoTest, no_hints__one_entry_for_each_type_and_the_reliable_one_first) {
  const Info info = get_info(nullptr);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->ep_attr->type, FI_EP_RDM);
  ASSERT_NE(info->next, nullptr);
  EXPECT_EQ(info->next->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(info->next->next, nullptr);
  EXPECT_STREQ(info->next->domain_attr->name, info->domain_attr->name);
}

// Covers: FI-58
TEST_F(DatagramInfoTest, entry__promises_one_packet_and_nothing_about_it) {
  const Info info = get_info(hints.get());
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->next, nullptr);
  EXPECT_EQ(info->caps & (FI_TAGGED | FI_RMA | FI_ATOMIC | FI_FENCE), 0u);
  EXPECT_EQ(info->caps & (FI_MSG | FI_SEND | FI_RECV), FI_MSG | FI_SEND | FI_RECV);
  EXPECT_EQ(info->tx_attr->msg_order, 0u);
  EXPECT_EQ(info->domain_attr->mr_mode, 0);
  EXPECT_EQ(info->ep_attr->max_msg_size, 1024u) << "fits every way";
  EXPECT_LE(info->tx_attr->inject_size, info->ep_attr->max_msg_size);
  const Info again = get_info(info.get());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->ep_attr->type, FI_EP_DGRAM);
  EXPECT_EQ(again->ep_attr->max_msg_size, info->ep_attr->max_msg_size);
}

// Covers: FI-58
TEST_F(DatagramInfoTest, message_size__is_the_one_that_the_user_set) {
  const Variable payload("FI_UET_MAX_PAYLOAD", "2048");
  EXPECT_EQ(get_info(hints.get())->ep_attr->max_msg_size, 2048u);
  hints->ep_attr->max_msg_size = 2049;
  EXPECT_EQ(get_info(hints.get()), nullptr);
}

// Covers: FI-58
TEST_F(DatagramInfoTest, what_datagrams_cannot_promise__is_refused) {
  const std::vector<std::pair<const char*, std::function<void(fi_info&)>>> wishes = {
      {"tags", [](fi_info& i) { i.caps = FI_TAGGED; }},
      {"memory", [](fi_info& i) { i.caps = FI_MSG | FI_RMA; }},
      {"fences", [](fi_info& i) { i.caps = FI_MSG | FI_FENCE; }},
      {"order", [](fi_info& i) { i.tx_attr->msg_order = FI_ORDER_SAS; }},
      {"delivery", [](fi_info& i) { i.tx_attr->op_flags = FI_DELIVERY_COMPLETE; }},
      {"size", [](fi_info& i) { i.ep_attr->max_msg_size = 1025; }},
  };
  for (const auto& [what, wish] : wishes) {
    const Info wanted = make_datagram_hints();
    wish(*wanted);
    int error = 0;
    EXPECT_EQ(get_info(wanted.get(), &error), nullptr) << what;
    EXPECT_EQ(error, -FI_ENODATA) << what;
  }
}

class DatagramTest : public PairTest {
 protected:
  void open_pair() { open(make_datagram_hints().get()); }
  void receive(void* buffer, std::size_t n, fi_addr_t from = FI_ADDR_UNSPEC) {
    ASSERT_EQ(fi_recv(b.ep, buffer, n, nullptr, from, buffer), 0);
  }
  void send(const void* bytes, std::size_t n) {
    ASSERT_EQ(fi_send(a.ep, bytes, n, nullptr, to_b, nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
  }
};

// Covers: FI-59
TEST_F(DatagramTest, messages_up_to_the_size_of_the_entry__arrive_intact) {
  open_pair();
  const std::size_t most = a.info->ep_attr->max_msg_size;
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, most / 2, most}) {
    const auto sent = pattern(n, 3);
    std::vector<std::uint8_t> got(most + 1);
    receive(got.data(), got.size());
    send(sent.data(), n);
    const Got at_b = wait_for(b);
    EXPECT_FALSE(at_b.failed);
    EXPECT_EQ(at_b.entry.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(at_b.entry.op_context, got.data());
    ASSERT_EQ(at_b.entry.len, n);
    EXPECT_EQ(at_b.source, to_a);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin()));
  }
  const std::vector<std::uint8_t> large(most + 1);
  EXPECT_EQ(fi_send(a.ep, large.data(), large.size(), nullptr, to_b, nullptr), -FI_EMSGSIZE);
}

// Covers: FI-59
TEST_F(DatagramTest, forms_of_sending__data_vectors_and_injection) {
  open_pair();
  std::array<char, 16> got{};
  receive(got.data(), got.size());
  ASSERT_EQ(fi_senddata(a.ep, "data", 4, nullptr, 0x1122334455667788, to_b, nullptr), 0);
  Got at_b = wait_for(b);
  EXPECT_EQ(at_b.entry.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(at_b.entry.data, 0x1122334455667788u);
  EXPECT_EQ(wait_for(a).entry.flags, FI_SEND | FI_MSG);

  receive(got.data(), got.size());
  char bytes[] = "abcdef";
  const iovec pieces[] = {{bytes, 2}, {bytes + 4, 2}};
  ASSERT_EQ(fi_sendv(a.ep, pieces, nullptr, 2, to_b, nullptr), 0);
  EXPECT_EQ(wait_for(b).entry.len, 4u);
  EXPECT_EQ(std::memcmp(got.data(), "abef", 4), 0);
  EXPECT_FALSE(wait_for(a).failed);

  receive(got.data(), got.size());
  ASSERT_EQ(fi_injectdata(a.ep, bytes, 6, 7, to_b), 0);
  std::memset(bytes, 'x', 6);
  at_b = wait_for(b);
  EXPECT_EQ(at_b.entry.data, 7u);
  EXPECT_EQ(std::memcmp(got.data(), "abcdef", 6), 0);
  expect_silence(a);
}

/// UUD keeps nothing for a receive that comes later, and the sender cannot know.
// Covers: FI-60
TEST_F(DatagramTest, message_without_a_receive__is_gone) {
  open_pair();
  send("lost", 4);
  expect_silence(b);
  char got[8] = {};
  receive(got, sizeof got);
  expect_silence(b);
  send("kept", 4);
  EXPECT_EQ(wait_for(b).entry.len, 4u);
  EXPECT_STREQ(got, "kept");
}

// Covers: FI-60
TEST_F(DatagramTest, too_long_for_the_receive__is_truncated_there_only) {
  open_pair();
  char got[4];
  receive(got, sizeof got);
  send("too long", 8);
  const Got at_b = wait_for(b);
  EXPECT_TRUE(at_b.failed);
  EXPECT_EQ(at_b.error.err, FI_ETRUNC);
  EXPECT_EQ(at_b.error.olen, 4u);
}

// Covers: FI-59
TEST_F(DatagramTest, buffer_for_many_messages__is_filled_and_returned_once) {
  open_pair();
  std::array<std::uint8_t, 256> buffer{};
  const iovec iov{buffer.data(), buffer.size()};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = FI_ADDR_UNSPEC,
                 .context = buffer.data(),
                 .data = 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &m, FI_MULTI_RECV), 0);
  std::size_t released = 0;
  const auto* end = buffer.data();
  for (std::uint8_t i = 0; i < 3; ++i) {
    const std::vector<std::uint8_t> sent(70, i);
    send(sent.data(), sent.size());
    const Got got = wait_for(b);
    const auto* at = static_cast<const std::uint8_t*>(got.entry.buf);
    ASSERT_GE(at, end);
    end = at + got.entry.len;
    ASSERT_LE(end, buffer.data() + buffer.size());
    EXPECT_EQ(std::memcmp(at, sent.data(), sent.size()), 0);
    released += (got.entry.flags & FI_MULTI_RECV) != 0;
  }
  EXPECT_EQ(released, 1u) << "less than the least size is left";
  send("none", 4);
  expect_silence(b);
}

// Covers: FI-59
TEST_F(DatagramTest, directed_receive__takes_only_its_peer) {
  open_pair();
  const Info hints = make_datagram_hints();
  Side other;
  other.open(address_of(4), *hints);
  ASSERT_FALSE(HasFatalFailure());
  other.open_endpoint();
  const fi_addr_t from_other = b.insert(other);
  char got[8] = {};
  receive(got, sizeof got, from_other);
  send("from a", 6);
  expect_silence(b);
  const fi_addr_t there = other.insert(b);
  ASSERT_EQ(fi_inject(other.ep, "other", 5, there), 0);
  EXPECT_EQ(wait_for(b).source, from_other);
  EXPECT_STREQ(got, "other");
}

// Covers: FI-60
TEST_F(DatagramTest, calls_that_need_an_answer__are_refused) {
  open_pair();
  char byte = 0;
  iovec iov{&byte, 1};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = to_b,
                 .context = nullptr,
                 .data = 0};
  for (const std::uint64_t flag : {FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE, FI_FENCE})
    EXPECT_EQ(fi_sendmsg(a.ep, &m, flag), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_sendmsg(a.ep, &m, FI_TRANSMIT_COMPLETE), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(fi_tsend(a.ep, &byte, 1, nullptr, to_b, 1, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_write(a.ep, &byte, 1, nullptr, to_b, 0, 1, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_recvmsg(b.ep, &m, FI_PEEK), 0);
  EXPECT_EQ(wait_for(b).error.err, FI_ENOMSG);
}

// Covers: FI-60
TEST_F(DatagramTest, endpoints_of_different_types__do_not_hear_each_other) {
  const Info reliable = make_hints();
  a.open(address_of(2), *reliable);
  b.open(address_of(3), *make_datagram_hints());
  ASSERT_FALSE(HasFatalFailure());
  a.open_endpoint();
  b.open_endpoint();
  to_b = a.insert(b);
  to_a = b.insert(a);
  char at_a[8], at_b[8];
  ASSERT_EQ(fi_recv(a.ep, at_a, sizeof at_a, nullptr, FI_ADDR_UNSPEC, at_a), 0);
  receive(at_b, sizeof at_b);
  ASSERT_EQ(fi_send(a.ep, "message", 7, nullptr, to_b, nullptr), 0);
  const Got refused = wait_for(a);
  EXPECT_TRUE(refused.failed);
  EXPECT_EQ(refused.error.err, FI_ENODEV);
  ASSERT_EQ(fi_send(b.ep, "datagram", 8, nullptr, to_a, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  expect_silence(a);
}

// Covers: FI-60
TEST_F(DatagramTest, counters_and_cancelling__work_as_for_other_messages) {
  const Info hints = make_datagram_hints();
  a.open(address_of(2), *hints);
  b.open(address_of(3), *hints);
  ASSERT_FALSE(HasFatalFailure());
  fi_cntr_attr attr{};
  fid_cntr *sent = nullptr, *received = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &sent, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(b.domain, &attr, &received, nullptr), 0);
  a.open_endpoint();
  b.open_endpoint();
  ASSERT_EQ(fi_ep_bind(a.ep, &sent->fid, FI_SEND), 0);
  ASSERT_EQ(fi_ep_bind(b.ep, &received->fid, FI_RECV), 0);
  to_b = a.insert(b);
  char first[8], second[8];
  receive(first, sizeof first);
  receive(second, sizeof second);
  ASSERT_EQ(fi_cancel(&b.ep->fid, first), 0);
  const Got cancelled = wait_for(b);
  EXPECT_EQ(cancelled.error.err, FI_ECANCELED);
  EXPECT_EQ(cancelled.error.op_context, first);
  send("x", 1);
  EXPECT_EQ(wait_for(b).entry.op_context, second);
  EXPECT_EQ(fi_cntr_read(sent), 1u);
  EXPECT_EQ(fi_cntr_read(received), 1u);
  for (Side* side : {&a, &b}) {
    EXPECT_EQ(fi_close(&side->ep->fid), 0);
    side->ep = nullptr;
  }
  EXPECT_EQ(fi_close(&sent->fid), 0);
  EXPECT_EQ(fi_close(&received->fid), 0);
}

}  // namespace
}  // namespace uet::provider::testing
