/// What an endpoint was opened for decides what it takes and what it reports.
#include <rdma/fi_atomic.h>

#include <thread>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class CapabilitiesTest : public PairTest {
 protected:
  /// Side b has `caps`; side a has everything.
  void open_target(std::uint64_t caps, std::uint64_t cq_flags = FI_TRANSMIT | FI_RECV) {
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = 0;
    a.open(address_of(2), *hints);
    hints->caps = caps;
    b.open(address_of(3), *hints);
    ASSERT_FALSE(HasFatalFailure());
    a.open_endpoint();
    b.open_endpoint(cq_flags);
    ASSERT_FALSE(HasFatalFailure());
    to_b = a.insert(b);
  }
  void expect_failed_send(int error) {
    const Got got = wait_for(a);
    EXPECT_TRUE(got.failed);
    EXPECT_EQ(got.error.err, error);
  }
};

TEST_F(CapabilitiesTest, tagged_message__to_an_endpoint_without_tags_fails) {
  open_target(FI_MSG);
  ASSERT_EQ(fi_tsend(a.ep, "tagged", 7, nullptr, to_b, 1, nullptr), 0);
  expect_failed_send(FI_ENODEV);
  ASSERT_EQ(fi_send(a.ep, "plain", 6, nullptr, to_b, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
}

TEST_F(CapabilitiesTest, message__to_an_endpoint_for_remote_memory_fails) {
  open_target(FI_RMA);
  ASSERT_EQ(fi_send(a.ep, "plain", 6, nullptr, to_b, nullptr), 0);
  expect_failed_send(FI_ENODEV);
}

TEST_F(CapabilitiesTest, write__to_an_endpoint_for_messages_fails) {
  open_target(FI_MSG);
  ASSERT_EQ(fi_write(a.ep, "bytes", 6, nullptr, to_b, 0, 1, nullptr), 0);
  expect_failed_send(FI_ENODEV);
}

TEST_F(CapabilitiesTest, remote_data__needs_a_queue_to_be_told_in) {
  open_target(FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, FI_TRANSMIT);
  char memory[8] = {};
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain, memory, 8, FI_REMOTE_WRITE, 0, 1, 0, &mr, nullptr), 0);
  ASSERT_EQ(fi_writedata(a.ep, "bytes", 6, nullptr, 0x77, to_b, 0, 1, nullptr), 0);
  expect_failed_send(EPROTO);
  ASSERT_EQ(fi_write(a.ep, "bytes", 6, nullptr, to_b, 0, 1, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

/// The other direction of a read: what it brings is no request.
TEST_F(CapabilitiesTest, read__works_from_an_endpoint_whose_memory_is_not_reached) {
  const Info hints = make_hints();
  hints->domain_attr->mr_mode = 0;
  hints->caps = FI_RMA | FI_REMOTE_READ;
  b.open(address_of(3), *hints);
  hints->caps = FI_RMA | FI_READ;
  a.open(address_of(2), *hints);
  ASSERT_FALSE(HasFatalFailure());
  a.open_endpoint();
  b.open_endpoint();
  to_b = a.insert(b);
  auto memory = pattern(20'000, 3);
  std::vector<std::uint8_t> got(memory.size());
  fid_mr* mr = nullptr;
  ASSERT_EQ(
      fi_mr_reg(b.domain, memory.data(), memory.size(), FI_REMOTE_READ, 0, 1, 0, &mr, nullptr), 0);
  ASSERT_EQ(fi_read(a.ep, got.data(), got.size(), nullptr, to_b, 0, 1, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, memory);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

/// As NCCL's plug-in makes sure that what a peer wrote has reached a device: it reads it back.
TEST_F(CapabilitiesTest, read__of_its_own_memory_needs_the_rights_of_the_region_alone) {
  open_target(FI_MSG | FI_RMA | FI_READ);
  const fi_addr_t to_itself = b.insert(b);
  auto memory = pattern(100, 3);
  std::vector<std::uint8_t> got(memory.size());
  fid_mr *readable = nullptr, *hidden = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), memory.size(), FI_REMOTE_READ, 0, 1, 0, &readable,
                      nullptr),
            0);
  ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), memory.size(), FI_RECV, 0, 2, 0, &hidden, nullptr),
            0);
  ASSERT_EQ(fi_read(b.ep, got.data(), got.size(), nullptr, to_itself, 0, 1, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(got, memory);
  ASSERT_EQ(fi_read(b.ep, got.data(), got.size(), nullptr, to_itself, 0, 2, nullptr), 0);
  EXPECT_TRUE(wait_for(b).failed);
  EXPECT_EQ(fi_close(&readable->fid), 0);
  EXPECT_EQ(fi_close(&hidden->fid), 0);
}

/// Two domains on one address, each with a region of key 7 and a counter for it.
// Covers: FI-27
TEST_F(CapabilitiesTest, user_keys__are_of_the_domain) {
  const Info hints = make_hints();
  hints->domain_attr->mr_mode = 0;
  a.open(address_of(2), *hints);
  Side other;
  other.open(address_of(3), *hints);
  b.open(address_of(3), *hints);
  ASSERT_FALSE(HasFatalFailure());
  a.open_endpoint();
  b.open_endpoint();
  other.open_endpoint();
  to_b = a.insert(b);
  const fi_addr_t to_other = a.insert(other);
  struct Target {
    char memory[8] = {};
    fid_mr* mr = nullptr;
    fid_cntr* written = nullptr;
    void open(fid_domain* domain, std::uint64_t key) {
      fi_cntr_attr attr{};
      ASSERT_EQ(fi_mr_reg(domain, memory, 8, FI_REMOTE_WRITE, 0, key, 0, &mr, nullptr), 0);
      ASSERT_EQ(fi_cntr_open(domain, &attr, &written, nullptr), 0);
      ASSERT_EQ(fi_mr_bind(mr, &written->fid, FI_REMOTE_WRITE), 0);
    }
    void close() {
      EXPECT_EQ(fi_close(&mr->fid), 0);
      EXPECT_EQ(fi_close(&written->fid), 0);
    }
  } at_b, at_other, only_other;
  at_b.open(b.domain, 7);
  at_other.open(other.domain, 7);
  only_other.open(other.domain, 8);
  ASSERT_FALSE(HasFatalFailure());

  ASSERT_EQ(fi_write(a.ep, "b", 2, nullptr, to_b, 0, 7, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  ASSERT_EQ(fi_write(a.ep, "other", 6, nullptr, to_other, 0, 7, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_STREQ(at_b.memory, "b");
  EXPECT_STREQ(at_other.memory, "other");
  EXPECT_EQ(fi_cntr_read(at_b.written), 1u);
  EXPECT_EQ(fi_cntr_read(at_other.written), 1u);

  ASSERT_EQ(fi_write(a.ep, "leak", 5, nullptr, to_b, 0, 8, nullptr), 0);
  const Got got = wait_for(a);
  EXPECT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, FI_EKEYREJECTED);
  EXPECT_STREQ(only_other.memory, "");
  for (Target* target : {&at_b, &at_other, &only_other}) target->close();
}

TEST_F(CapabilitiesTest, remote_data__is_news_at_the_target_only) {
  open();
  ASSERT_EQ(fi_trecv(b.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tsenddata(a.ep, nullptr, 0, nullptr, 0x1234, to_b, 1, nullptr), 0);
  const Got at_target = wait_for(b), at_sender = wait_for(a);
  EXPECT_EQ(at_target.entry.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(at_target.entry.data, 0x1234u);
  EXPECT_EQ(at_sender.entry.flags, FI_SEND | FI_TAGGED);
  EXPECT_EQ(at_sender.entry.data, 0u);
}

TEST_F(CapabilitiesTest, key_size__that_user_keys_do_not_have_is_not_promised) {
  const auto answer = [](int mr_mode, std::size_t key_size, std::uint64_t caps) {
    const Info hints = make_hints();
    hints->caps = caps;
    hints->domain_attr->mr_mode = mr_mode;
    hints->domain_attr->mr_key_size = key_size;
    const Info info = get_info(hints.get());
    return info == nullptr ? 0 : info->domain_attr->mr_key_size;
  };
  EXPECT_EQ(answer(0, 6, FI_RMA), 6u);
  EXPECT_EQ(answer(0, 7, FI_RMA), 0u);
  EXPECT_EQ(answer(FI_MR_SCALABLE, 8, FI_RMA), 0u);
  EXPECT_EQ(answer(FI_MR_PROV_KEY, 8, FI_RMA), 8u);
  EXPECT_NE(answer(0, 8, FI_MSG), 0u) << "no memory is registered for peers";
}

TEST_F(CapabilitiesTest, flags_that_cannot_be_honoured__are_refused) {
  open();
  char byte = 0;
  iovec iov{&byte, 1};
  const fi_msg_tagged receive{.msg_iov = &iov,
                              .desc = nullptr,
                              .iov_count = 1,
                              .addr = FI_ADDR_UNSPEC,
                              .tag = 0,
                              .ignore = 0,
                              .context = nullptr,
                              .data = 0};
  EXPECT_EQ(fi_trecvmsg(a.ep, &receive, FI_DISCARD), -FI_EINVAL);
  const fi_msg send{.msg_iov = &iov,
                    .desc = nullptr,
                    .iov_count = 1,
                    .addr = to_b,
                    .context = nullptr,
                    .data = 0};
  EXPECT_EQ(fi_sendmsg(a.ep, &send, FI_MULTICAST), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_sendmsg(a.ep, &send, FI_TRIGGER), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_trecvmsg(a.ep, &receive, FI_TRIGGER), -FI_EOPNOTSUPP);
}

/// Both describe the same bytes; where they differ one of them is a mistake.
TEST_F(CapabilitiesTest, remote_range__is_as_long_as_the_local_one) {
  open_target(FI_RMA | FI_ATOMIC);
  std::uint32_t memory[4] = {}, local[2] = {1, 2}, old[2] = {};
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b.domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
                      &mr, nullptr),
            0);
  iovec iov{local, sizeof local};
  fi_rma_iov range{0, sizeof local - 1, 1};
  fi_msg_rma rma{};
  rma.msg_iov = &iov;
  rma.iov_count = 1;
  rma.addr = to_b;
  rma.rma_iov = &range;
  rma.rma_iov_count = 1;
  EXPECT_EQ(fi_writemsg(a.ep, &rma, 0), -FI_EINVAL);
  EXPECT_EQ(fi_readmsg(a.ep, &rma, 0), -FI_EINVAL);
  range.len = sizeof local;
  EXPECT_EQ(fi_writemsg(a.ep, &rma, 0), 0);
  EXPECT_FALSE(wait_for(a).failed);

  fi_ioc operand{local, 2}, result{old, 1};
  fi_rma_ioc elements{0, 1, 1};
  fi_msg_atomic atomic{};
  atomic.msg_iov = &operand;
  atomic.iov_count = 1;
  atomic.addr = to_b;
  atomic.rma_iov = &elements;
  atomic.rma_iov_count = 1;
  atomic.datatype = FI_UINT32;
  atomic.op = FI_SUM;
  EXPECT_EQ(fi_atomicmsg(a.ep, &atomic, 0), -FI_EINVAL);
  elements.count = 2;
  EXPECT_EQ(fi_atomicmsg(a.ep, &atomic, 0), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(memory[1], 4u);

  atomic.op = FI_ATOMIC_READ;
  atomic.iov_count = 0;
  EXPECT_EQ(fi_fetch_atomicmsg(a.ep, &atomic, &result, nullptr, 1, 0), -FI_EINVAL);
  elements.count = 1;
  EXPECT_EQ(fi_fetch_atomicmsg(a.ep, &atomic, &result, nullptr, 1, 0), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(old[0], 2u);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

/// A length without memory comes from programs that lost the base of a relative address: they hear of it, and live on.
TEST_F(CapabilitiesTest, null_buffer__is_refused_unless_it_is_empty) {
  open();
  EXPECT_EQ(fi_send(a.ep, nullptr, 100, nullptr, to_b, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_tsend(a.ep, nullptr, 100, nullptr, to_b, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_inject(a.ep, nullptr, 8, to_b), -FI_EINVAL);
  EXPECT_EQ(fi_recv(a.ep, nullptr, 100, nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_write(a.ep, nullptr, 100, nullptr, to_b, 0, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_read(a.ep, nullptr, 100, nullptr, to_b, 0, 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_recv(b.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(fi_send(a.ep, nullptr, 0, nullptr, to_b, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
}

/// What fi_inject took is the provider's: no context names it, also not a null one.
TEST_F(CapabilitiesTest, cancel__of_nothing_leaves_injected_messages_alone) {
  const Variable manual("FI_UET_PROGRESS", "manual");
  open();
  std::uint8_t in[3] = {}, out[3] = {7, 8, 9};
  int context[2];
  for (std::uint8_t& byte : in) {
    ASSERT_EQ(fi_recv(b.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  // The third waits behind the second, and that for the first, which is not answered yet.
  ASSERT_EQ(fi_send(a.ep, &out[0], 1, nullptr, to_b, &context[0]), 0);
  iovec iov{&out[1], 1};
  const fi_msg fenced{.msg_iov = &iov,
                      .desc = nullptr,
                      .iov_count = 1,
                      .addr = to_b,
                      .context = &context[1],
                      .data = 0};
  ASSERT_EQ(fi_sendmsg(a.ep, &fenced, FI_FENCE), 0);
  ASSERT_EQ(fi_inject(a.ep, &out[2], 1, to_b), 0);
  EXPECT_EQ(fi_cancel(&a.ep->fid, nullptr), -FI_ENOENT);
  int finished = 0;
  EXPECT_TRUE(turn_until([&] {
    for (Side* side : {&a, &b}) finished += poll(*side).has_value();
    return finished == 5;
  }));
  EXPECT_EQ(in[0] + in[1] + in[2], 7 + 8 + 9);
}

TEST_F(CapabilitiesTest, direct_access_to_devices__may_be_preferred_but_not_required) {
  open();
  const auto set = [&](int wanted) {
    return fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &wanted, sizeof wanted);
  };
  for (const int wanted : {FI_HMEM_P2P_ENABLED, FI_HMEM_P2P_PREFERRED, FI_HMEM_P2P_DISABLED})
    EXPECT_EQ(set(wanted), 0) << wanted;
  for (const int wanted : {int{FI_HMEM_P2P_REQUIRED}, -1, 4})
    EXPECT_EQ(set(wanted), -FI_EOPNOTSUPP) << wanted;
}

TEST_F(CapabilitiesTest, av_open__says_which_type_it_chose) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  fi_av_attr attr{};
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(a.domain, &attr, &av, nullptr), 0);
  EXPECT_EQ(attr.type, FI_AV_TABLE);
  EXPECT_EQ(fi_close(&av->fid), 0);
}

/// An error of an event queue comes into the application's structure: its buffer stays its own.
TEST_F(CapabilitiesTest, event_error__leaves_the_buffer_of_the_application) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  fi_eq_attr attr{};
  fid_eq* eq = nullptr;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_eq_open(a.fabric, &attr, &eq, nullptr), 0);
  fi_av_attr av_attr{.flags = FI_EVENT};
  ASSERT_EQ(fi_av_open(a.domain, &av_attr, &av, nullptr), 0);
  ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  const std::uint8_t malformed[32] = {0xff};
  EXPECT_EQ(fi_av_insert(av, malformed, 1, nullptr, 0, nullptr), 0);
  char buffer[16];
  fi_eq_err_entry error{};
  error.err_data = buffer;
  error.err_data_size = sizeof buffer;
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), static_cast<ssize_t>(sizeof error));
  EXPECT_EQ(error.err_data, buffer);
  EXPECT_EQ(error.err_data_size, 0u);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(CapabilitiesTest, poll_set__may_be_changed_while_it_is_polled) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(a.domain, &attr, &set), 0);
  std::thread changes([&] {
    for (int i = 0; i < 2000; ++i) {
      EXPECT_EQ(fi_poll_add(set, &a.cq->fid, 0), 0);
      EXPECT_EQ(fi_poll_del(set, &a.cq->fid, 0), 0);
    }
  });
  void* context = nullptr;
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(fi_poll(set, &context, 1), 0);
  changes.join();
  EXPECT_EQ(fi_close(&set->fid), 0);
}

/// Chapel opens a set, finds that there are no wait sets, forgets it, and wants to close the domain in the end.
TEST_F(CapabilitiesTest, poll_set__that_is_empty_outlives_its_domain) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  fi_poll_attr attr{};
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(a.domain, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &a.cq->fid, 0), 0);
  EXPECT_EQ(fi_close(&a.cq->fid), -FI_EBUSY);
  ASSERT_EQ(fi_poll_del(set, &a.cq->fid, 0), 0);
  a.close();  // expects that each object closes
  void* context = nullptr;
  EXPECT_EQ(fi_poll(set, &context, 1), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

}  // namespace
}  // namespace uet::provider::testing
