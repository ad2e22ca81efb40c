/// Calls with FI_TRIGGER, as fi_trigger(3) describes them.
#include "tests/provider/triggered_fixture.h"

namespace uet::provider::testing {
namespace {

// Covers: FI-81
TEST_F(TriggeredTest, getinfo__offers_it_to_programs_that_ask) {
  const Info hints = make_hints();
  const Info all = get_info(hints.get());
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(all->caps & FI_TRIGGER, 0u);
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_DGRAM}) {
    hints->caps = FI_MSG | FI_TRIGGER;
    hints->ep_attr->type = type;
    const Info info = get_info(hints.get());
    ASSERT_NE(info, nullptr);
    EXPECT_NE(info->caps & FI_TRIGGER, 0u);
    EXPECT_NE(info->tx_attr->caps & FI_TRIGGER, 0u);
    EXPECT_NE(info->rx_attr->caps & FI_TRIGGER, 0u);
  }
}

// Covers: FI-81
TEST_F(TriggeredTest, every_kind_of_call__waits_for_the_threshold) {
  open_triggerable();
  std::uint64_t reached = 0;
  for (const fi_op_type type : kOpTypes) {
    SCOPED_TRACE(type);
    prepare(type);
    auto context = when(start_, reached + 2);
    {
      Operation op;  // the structures are the caller's again after the call
      describe(op, &context, 0);
      narrow(type, op);
      ASSERT_EQ(call(type, op, FI_TRIGGER), 0);
    }
    ASSERT_EQ(fi_cntr_add(start_, 1), 0);
    expect_silence(a, 5);
    EXPECT_TRUE(is_untouched());
    ASSERT_EQ(fi_cntr_add(start_, 1), 0);
    reached += 2;
    const Got got = wait_for(a);
    EXPECT_FALSE(got.failed);
    EXPECT_EQ(got.entry.op_context, &context);
    EXPECT_EQ(got.entry.flags, entry_flags(type));
    expect_done(type);
  }
}

// Covers: FI-81
TEST_F(TriggeredTest, threshold_that_is_reached__waits_for_nothing) {
  open_triggerable();
  post_receives(1);
  ASSERT_EQ(fi_cntr_set(start_, 5), 0);
  auto context = when(start_, 5);
  ASSERT_EQ(send_tag(1, &context), 0);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(wait_for(a).entry.op_context, &context);
}

/// Also where the counter passes several thresholds at once.
// Covers: FI-81
TEST_F(TriggeredTest, thresholds__decide_the_order_and_then_the_calls) {
  open_triggerable();
  post_receives(6);
  std::array contexts = {when(start_, 3), when(start_, 1), when(start_, 2),
                         when(start_, 1), when(start_, 9), when(start_, 2)};
  for (std::size_t i = 0; i < contexts.size(); ++i) ASSERT_EQ(send_tag(i, &contexts[i]), 0);
  ASSERT_EQ(fi_cntr_add(start_, 4), 0);
  EXPECT_EQ(tags_at_b(5), (std::vector<std::uint64_t>{1, 3, 2, 5, 0}));
  expect_silence(b, 20);
  ASSERT_EQ(fi_cntr_set(start_, 9), 0);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{4}));
}

/// What fi_cntr_wait would tell: errors do not bring the data that the operation is for.
TEST_F(TriggeredTest, errors__do_not_start_calls) {
  open_triggerable();
  post_receives(1);
  auto context = when(start_, 2);
  ASSERT_EQ(send_tag(1, &context), 0);
  ASSERT_EQ(fi_cntr_adderr(start_, 5), 0);
  expect_silence(b, 20);
  ASSERT_EQ(fi_cntr_add(start_, 2), 0);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{1}));
}

/// The counter counts what arrived at an endpoint, and the program of that side is silent: what it received goes on by itself.
// Covers: FI-81
TEST_F(TriggeredTest, arrival__starts_what_waits_for_it_in_a_silent_program) {
  const Info hints = make_hints();
  hints->caps = kKinds | FI_TRIGGER;
  hints->domain_attr->mr_mode = 0;
  a.open(address_of(2), *hints);
  b.open(address_of(3), *hints);
  ASSERT_FALSE(HasFatalFailure());
  fid_cntr* const arrived = open_counter(b);
  a.open_endpoint();
  b.open_endpoint();
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(fi_ep_bind(b.ep, &arrived->fid, FI_RECV), 0);
  to_b = a.insert(b);
  to_a = b.insert(a);
  char message[6] = "there", back[6] = {};
  ASSERT_EQ(fi_recv(a.ep, back, sizeof back, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  char between[6] = {};
  ASSERT_EQ(fi_recv(b.ep, between, sizeof between, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  auto context = when(arrived, 1);
  iovec iov{between, sizeof between};
  fi_msg onward{};
  onward.msg_iov = &iov;
  onward.iov_count = 1;
  onward.addr = to_a;
  onward.context = &context;
  ASSERT_EQ(fi_sendmsg(b.ep, &onward, FI_TRIGGER), 0);
  ASSERT_EQ(fi_send(a.ep, message, sizeof message, nullptr, to_b, nullptr), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int finished = 0;
  while (finished < 2 && std::chrono::steady_clock::now() < end) finished += poll(a).has_value();
  EXPECT_EQ(finished, 2);
  EXPECT_STREQ(back, "there");
}

// Covers: FI-81
TEST_F(TriggeredTest, cancel__of_what_waits_ends_it) {
  open_triggerable();
  post_receives(1);
  auto first = when(start_, 1), second = when(start_, 1);
  ASSERT_EQ(send_tag(1, &first), 0);
  ASSERT_EQ(send_tag(2, &second), 0);
  EXPECT_EQ(fi_cancel(&a.ep->fid, &first), 0);
  EXPECT_EQ(fi_cancel(&a.ep->fid, &first), -FI_ENOENT);
  const Got got = wait_for(a);
  EXPECT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, FI_ECANCELED);
  EXPECT_EQ(got.error.op_context, &first);
  EXPECT_EQ(got.error.flags, FI_SEND | FI_TAGGED);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{2}));
}

// Covers: FI-81
TEST_F(TriggeredTest, what_goes_wrong_later__is_an_error_in_the_queue) {
  open_triggerable();
  fid_cntr* const sent = open_counter(a);
  ASSERT_EQ(fi_ep_bind(a.ep, &sent->fid, FI_SEND), 0);
  auto context = when(start_, 1);
  fi_addr_t gone = to_b;
  ASSERT_EQ(send_tag(1, &context), 0);
  ASSERT_EQ(fi_av_remove(a.av, &gone, 1, 0), 0);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  const Got got = wait_for(a);
  EXPECT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, FI_EINVAL);
  EXPECT_EQ(got.error.op_context, &context);
  EXPECT_EQ(fi_cntr_readerr(sent), 1u);
}

// Covers: FI-82
TEST_F(TriggeredTest, what_cannot_wait__is_refused) {
  open_triggerable();
  char byte = 0;
  iovec iov{&byte, 1};
  fi_msg_tagged m{};
  m.msg_iov = &iov;
  m.iov_count = 1;
  m.addr = to_b;
  EXPECT_EQ(fi_tsendmsg(a.ep, &m, FI_TRIGGER), -FI_EINVAL) << "no context";
  auto context = when(start_, 1);
  m.context = &context;
  EXPECT_EQ(fi_tsendmsg(a.ep, &m, FI_TRIGGER | FI_INJECT), -FI_EINVAL);
  EXPECT_EQ(fi_trecvmsg(a.ep, &m, FI_TRIGGER | FI_PEEK), -FI_EINVAL);
  EXPECT_EQ(fi_trecvmsg(a.ep, &m, FI_TRIGGER | FI_CLAIM), -FI_EINVAL);
  EXPECT_EQ(fi_tsendmsg(a.ep, &m, FI_TRIGGER | FI_MULTICAST), -FI_EOPNOTSUPP);
  context.event_type = FI_TRIGGER_XPU;
  EXPECT_EQ(fi_tsendmsg(a.ep, &m, FI_TRIGGER), -FI_ENOSYS);
  context = when(open_counter(b), 1);
  EXPECT_EQ(fi_tsendmsg(a.ep, &m, FI_TRIGGER), -FI_EINVAL) << "a counter of another domain";
  context = when(nullptr, 1);
  EXPECT_EQ(fi_tsendmsg(a.ep, &m, FI_TRIGGER), -FI_EINVAL);
}

// Covers: FI-82
TEST_F(TriggeredTest, endpoint_without_the_capability__refuses) {
  open_triggerable(kKinds);
  auto context = when(start_, 0);
  EXPECT_EQ(send_tag(1, &context), -FI_EOPNOTSUPP);
  Operation op;
  describe(op, nullptr, 0);
  fi_deferred_work work{};
  work.triggering_cntr = start_;
  EXPECT_EQ(queue(FI_OP_WRITE, op, work), -FI_EOPNOTSUPP);
}

// Covers: FI-83
TEST_F(TriggeredTest, close__of_an_endpoint_drops_what_waits_and_frees_the_counter) {
  open_triggerable();
  auto context = when(start_, 1);
  ASSERT_EQ(send_tag(1, &context), 0);
  fid_cntr* const told = open_counter(a);
  Operation op;
  describe(op, nullptr, 0);
  std::array<fi_deferred_work, 2> works{};
  for (fi_deferred_work& work : works) {
    work.threshold = 1;
    work.triggering_cntr = start_;
    work.completion_cntr = told;
    ASSERT_EQ(queue(FI_OP_RECV, op, work), 0);
  }
  EXPECT_EQ(fi_close(&start_->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&told->fid), -FI_EBUSY);
  ASSERT_EQ(fi_control(&a.domain->fid, FI_CANCEL_WORK, &works[1]), 0);
  // One of the receives is posted, and ends with its endpoint.
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(fi_close(&told->fid), -FI_EBUSY);
  auto later = when(start_, 2);
  ASSERT_EQ(send_tag(2, &later), 0);
  EXPECT_EQ(fi_close(&a.ep->fid), 0);
  a.ep = nullptr;
  close_counter(start_);
  close_counter(told);
}

/// A datagram is a message like others here.
TEST_F(TriggeredTest, datagram__waits_too) {
  const Info hints = make_hints();
  hints->ep_attr->type = FI_EP_DGRAM;
  hints->caps = FI_MSG | FI_TRIGGER;
  open(hints.get());
  ASSERT_FALSE(HasFatalFailure());
  start_ = open_counter(a);
  char out[4] = "uet", in[4] = {};
  ASSERT_EQ(fi_recv(b.ep, in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  auto context = when(start_, 1);
  iovec iov{out, sizeof out};
  fi_msg m{};
  m.msg_iov = &iov;
  m.iov_count = 1;
  m.addr = to_b;
  m.context = &context;
  ASSERT_EQ(fi_sendmsg(a.ep, &m, FI_TRIGGER), 0);
  expect_silence(b, 5);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_STREQ(in, "uet");
}

}  // namespace
}  // namespace uet::provider::testing
