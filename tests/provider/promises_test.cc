/// Sentences of libfabric's manual pages that no program of the field was found to depend on, but any may.
#include <array>
#include <cstring>
#include <vector>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

struct PromisesTest : PairTest {
  void send_to_b(const std::vector<std::uint8_t>& bytes, std::uint64_t tag) {
    ASSERT_EQ(fi_tsend(a.ep, bytes.data(), bytes.size(), nullptr, to_b, tag, nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
  }
  // fi_endpoint: the send is refused until there is a receive.
  void expect_rma_behind_send(std::uint64_t order, bool read) {
    const Variable no_room("FI_UET_OVERFLOW_MSGS", "0");
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
    open(hints.get());
    ASSERT_FALSE(HasFatalFailure());
    std::vector<std::uint8_t> memory(8, 1), into(8), local(8, 2);
    fid_mr* mr = nullptr;
    ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), 8, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0, 0, &mr,
                        nullptr),
              0);
    const std::uint64_t key = fi_mr_key(mr);
    ASSERT_EQ(fi_tsend(a.ep, local.data(), 8, nullptr, to_b, 1, nullptr), 0);
    ASSERT_EQ(read ? fi_read(a.ep, local.data(), 8, nullptr, to_b, 0, key, nullptr)
                   : fi_write(a.ep, local.data(), 8, nullptr, to_b, 0, key, nullptr),
              0);
    expect_silence(a);
    EXPECT_EQ(memory, std::vector<std::uint8_t>(8, 1));
    EXPECT_EQ(local, std::vector<std::uint8_t>(8, 2));
    ASSERT_EQ(fi_trecv(b.ep, into.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    EXPECT_EQ(wait_for(a).entry.flags & (FI_SEND | FI_RMA), std::uint64_t{FI_SEND});
    EXPECT_EQ(wait_for(a).entry.flags & (FI_SEND | FI_RMA), std::uint64_t{FI_RMA});
    EXPECT_FALSE(wait_for(b).failed);
    EXPECT_EQ(fi_close(&mr->fid), 0);
  }
};

// fi_av: "An address is inserted at the lowest index that corresponds to an unused table location".
TEST_F(PromisesTest, fi_av_insert__takes_the_lowest_index_that_is_free) {
  open();
  fi_av_attr attr{.type = FI_AV_TABLE};
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(a.domain, &attr, &av, nullptr), 0);
  std::vector<std::uint8_t> both = a.name;
  both.insert(both.end(), b.name.begin(), b.name.end());
  fi_addr_t at[2] = {};
  ASSERT_EQ(fi_av_insert(av, both.data(), 2, at, 0, nullptr), 2);
  ASSERT_EQ(fi_av_remove(av, at, 2, 0), 0);
  ASSERT_EQ(fi_av_insert(av, both.data(), 2, nullptr, 0, nullptr), 2);
  for (const auto& [index, name] : {std::pair(0u, a.name), std::pair(1u, b.name)}) {
    std::vector<std::uint8_t> found(name.size());
    std::size_t length = found.size();
    ASSERT_EQ(fi_av_lookup(av, index, found.data(), &length), 0);
    EXPECT_EQ(found, name) << index;
  }
  EXPECT_EQ(fi_close(&av->fid), 0);
}

// fi_mr: -FI_ENOKEY says that the key is in use; the region that has it stays as it is.
TEST_F(PromisesTest, fi_mr_reg__that_is_refused_leaves_the_counter_of_the_region_with_this_key) {
  const Info hints = make_hints();
  hints->domain_attr->mr_mode = 0;
  open(hints.get());
  std::vector<std::uint8_t> memory(64);
  fid_mr *mr = nullptr, *refused = nullptr;
  const auto reg = [&](fid_mr** out) {
    return fi_mr_reg(b.domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, 7, 0, out,
                     nullptr);
  };
  ASSERT_EQ(reg(&mr), 0);
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(b.domain, &attr, &cntr, nullptr), 0);
  ASSERT_EQ(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(reg(&refused), -FI_ENOKEY);
  const std::uint8_t byte = 9;
  ASSERT_EQ(fi_inject_write(a.ep, &byte, 1, to_b, 0, 7), 0);
  EXPECT_TRUE(turn_until([&] { return fi_cntr_read(cntr) == 1; }));
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

TEST_F(PromisesTest, msg_order__write_after_a_send_that_has_no_room) {
  expect_rma_behind_send(FI_ORDER_WAS, false);
}

TEST_F(PromisesTest, msg_order__read_after_a_send_that_has_no_room) {
  expect_rma_behind_send(FI_ORDER_RAS, true);
}

// fi_cq: "A count value of 0 may be used to drive progress", also of a queue that is not empty.
TEST_F(PromisesTest, fi_cq_read__of_nothing_makes_progress_beside_entries) {
  const Variable manual("FI_UET_PROGRESS", "manual");
  open();
  std::vector<std::uint8_t> first(8), memory(8);
  ASSERT_EQ(fi_trecv(b.ep, first.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), 8, FI_REMOTE_WRITE, 0, 0, 0, &mr, nullptr), 0);
  const auto bytes = pattern(8, 3);
  ASSERT_EQ(fi_tsend(a.ep, bytes.data(), 8, nullptr, to_b, 1, nullptr), 0);
  const auto turn_both = [&](const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < end) {
      (void)fi_cq_read(a.cq, nullptr, 0);
      (void)fi_cq_read(b.cq, nullptr, 0);
    }
    return done();
  };
  ASSERT_TRUE(turn_both([&] { return first == bytes; }));  // b has an entry now, which stays
  ASSERT_EQ(fi_write(a.ep, bytes.data(), 8, nullptr, to_b,
                     reinterpret_cast<std::uint64_t>(memory.data()), fi_mr_key(mr), nullptr),
            0);
  EXPECT_TRUE(turn_both([&] { return memory == bytes; }));
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

// fi_tagged: FI_MULTI_RECV is for endpoints with FI_TAGGED_MULTI_RECV.
TEST_F(PromisesTest,
       fi_trecv__is_no_buffer_for_several_messages_where_that_is_the_default_of_fi_recv) {
  const Info hints = make_hints();
  hints->caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV;
  hints->rx_attr->op_flags = FI_MULTI_RECV;
  open(hints.get());
  std::vector<std::uint8_t> one(64), two(64);
  ASSERT_EQ(fi_trecv(b.ep, one.data(), 64, nullptr, FI_ADDR_UNSPEC, 5, 0, &one), 0);
  ASSERT_EQ(fi_trecv(b.ep, two.data(), 64, nullptr, FI_ADDR_UNSPEC, 5, 0, &two), 0);
  for (std::vector<std::uint8_t>* into : {&one, &two}) {
    const auto bytes = pattern(10, into == &one ? 1 : 2);
    send_to_b(bytes, 5);
    EXPECT_EQ(wait_for(b).entry.op_context, into);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), into->begin()));
  }
}

// fi_msg, FI_MULTI_RECV: an entry "will always be generated when the buffer has been consumed, even if other receive completions
// have been suppressed".
TEST_F(PromisesTest, multi_receive__says_that_its_buffer_is_used_up_though_entries_are_suppressed) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  b.open(address_of(3), *hints);
  a.open_endpoint();
  b.open_endpoint(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
  to_b = a.insert(b);
  to_a = b.insert(a);
  const std::size_t least = 64;
  ASSERT_EQ(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least), 0);
  std::vector<std::uint8_t> buffer(200);
  const iovec iov{buffer.data(), buffer.size()};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = FI_ADDR_UNSPEC,
                 .context = &buffer,
                 .data = 0};
  ASSERT_EQ(fi_recvmsg(b.ep, &m, FI_MULTI_RECV), 0);
  const auto bytes = pattern(80, 1);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_send(a.ep, bytes.data(), bytes.size(), nullptr, to_b, nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
  }
  const Got got = wait_for(b);  // of the second one alone
  EXPECT_EQ(got.entry.op_context, &buffer);
  EXPECT_NE(got.entry.flags & FI_MULTI_RECV, 0u);
  expect_silence(b, 10);
}

// fi_cq: "the cond field is interpreted as a size_t threshold value".
TEST_F(PromisesTest, fi_cq_sread__takes_any_number_as_its_threshold) {
  a.cq_attr.wait_cond = b.cq_attr.wait_cond = FI_CQ_COND_THRESHOLD;
  a.cq_attr.wait_obj = b.cq_attr.wait_obj = FI_WAIT_UNSPEC;
  open();
  std::vector<fi_cq_tagged_entry> entries(8192);
  for (const std::uintptr_t threshold : {4ul, 4096ul, 5000ul, 1ul << 21, ~0ul})
    EXPECT_EQ(fi_cq_sread(b.cq, entries.data(), entries.size(),
                          reinterpret_cast<const void*>(threshold), 10),
              -FI_EAGAIN);
  for (const std::uintptr_t threshold : {0ul, 1ul}) {
    ASSERT_EQ(fi_inject(a.ep, entries.data(), 8, to_b), 0);
    std::array<std::uint8_t, 8> room{};
    ASSERT_EQ(fi_recv(b.ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    EXPECT_EQ(fi_cq_sread(b.cq, entries.data(), entries.size(),
                          reinterpret_cast<const void*>(threshold), 5000),
              1);
  }
}

}  // namespace
}  // namespace uet::provider::testing
