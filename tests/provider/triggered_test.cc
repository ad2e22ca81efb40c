/// Operations that wait for a counter: calls with FI_TRIGGER and deferred work, as fi_trigger(3) describes them.
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

constexpr std::uint64_t kKinds = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
constexpr std::array kOpTypes = {FI_OP_RECV,   FI_OP_SEND,         FI_OP_TRECV,
                                 FI_OP_TSEND,  FI_OP_READ,         FI_OP_WRITE,
                                 FI_OP_ATOMIC, FI_OP_FETCH_ATOMIC, FI_OP_COMPARE_ATOMIC};

class TriggeredTest : public PairTest {
 protected:
  void TearDown() override {
    for (Side* side : {&a, &b}) {
      if (side->ep != nullptr) {
        EXPECT_EQ(fi_close(&side->ep->fid), 0);
      }
      side->ep = nullptr;
    }
    if (mr_ != nullptr) {
      EXPECT_EQ(fi_close(&mr_->fid), 0);
    }
    for (fid_cntr* cntr : counters_) EXPECT_EQ(fi_close(&cntr->fid), 0);
  }

  /// Side b has memory that a reaches by key 1.
  void open_triggerable(std::uint64_t caps = kKinds | FI_TRIGGER,
                        std::uint64_t order = FI_ORDER_SAS) {
    const Info hints = make_hints();
    hints->caps = caps;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
    hints->domain_attr->mr_mode = 0;
    open(hints.get());
    ASSERT_FALSE(HasFatalFailure());
    start_ = open_counter(a);
    if ((caps & FI_RMA) == 0) return;
    ASSERT_EQ(fi_mr_reg(b.domain, remote_.data(), sizeof remote_, FI_REMOTE_READ | FI_REMOTE_WRITE,
                        0, 1, 0, &mr_, nullptr),
              0);
  }
  fid_cntr* open_counter(Side& side) {
    fi_cntr_attr attr{};
    fid_cntr* cntr = nullptr;
    EXPECT_EQ(fi_cntr_open(side.domain, &attr, &cntr, nullptr), 0);
    counters_.push_back(cntr);
    return cntr;
  }
  void close_counter(fid_cntr* cntr) {
    EXPECT_EQ(fi_close(&cntr->fid), 0);
    std::erase(counters_, cntr);
  }

  static fi_triggered_context when(fid_cntr* cntr, std::size_t threshold) {
    fi_triggered_context context{};
    context.event_type = FI_TRIGGER_THRESHOLD;
    context.trigger.threshold = {.cntr = cntr, .threshold = threshold};
    return context;
  }
  /// A tagged message without data, whose tag tells it from others.
  ssize_t send_tag(std::uint64_t tag, fi_triggered_context* context,
                   std::uint64_t flags = FI_TRIGGER) {
    fi_msg_tagged m{};
    m.addr = to_b;
    m.tag = tag;
    m.context = context;
    return fi_tsendmsg(a.ep, &m, flags);
  }
  void post_receives(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(fi_trecv(b.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 0, ~std::uint64_t{0}, nullptr),
                0);
  }
  std::vector<std::uint64_t> tags_at_b(int count) {
    std::vector<std::uint64_t> tags;
    for (int i = 0; i < count; ++i) tags.push_back(wait_for(b).entry.tag);
    return tags;
  }

  /// One operation of each type from a to b, described by structures as deferred work has them.
  struct Operation {
    fi_op_msg msg{};
    fi_op_tagged tagged{};
    fi_op_rma rma{};
    fi_op_atomic atomic{};
    fi_op_fetch_atomic fetch{};
    fi_op_compare_atomic compare{};
    iovec iov{};
    fi_rma_iov range{};
    fi_ioc operand{}, compared{}, result{};
    fi_rma_ioc elements{};
  };
  void describe(Operation& op, void* context, std::uint64_t flags) {
    op.iov = {local_.data(), sizeof local_};
    op.range = {.addr = 0, .len = sizeof local_, .key = 1};
    op.operand = {local_.data(), local_.size()};
    op.compared = {compared_.data(), compared_.size()};
    op.result = {result_.data(), result_.size()};
    op.elements = {.addr = 0, .count = local_.size(), .key = 1};
    op.msg = {.ep = a.ep,
              .msg = {.msg_iov = &op.iov,
                      .desc = nullptr,
                      .iov_count = 1,
                      .addr = to_b,
                      .context = context,
                      .data = 0},
              .flags = flags};
    op.tagged = {.ep = a.ep,
                 .msg = {.msg_iov = &op.iov,
                         .desc = nullptr,
                         .iov_count = 1,
                         .addr = to_b,
                         .tag = 7,
                         .ignore = 0,
                         .context = context,
                         .data = 0},
                 .flags = flags};
    op.rma = {.ep = a.ep,
              .msg = {.msg_iov = &op.iov,
                      .desc = nullptr,
                      .iov_count = 1,
                      .addr = to_b,
                      .rma_iov = &op.range,
                      .rma_iov_count = 1,
                      .context = context,
                      .data = 0},
              .flags = flags};
    const fi_msg_atomic sum{.msg_iov = &op.operand,
                            .desc = nullptr,
                            .iov_count = 1,
                            .addr = to_b,
                            .rma_iov = &op.elements,
                            .rma_iov_count = 1,
                            .datatype = FI_UINT64,
                            .op = FI_SUM,
                            .context = context,
                            .data = 0};
    op.atomic = {.ep = a.ep, .msg = sum, .flags = flags};
    op.fetch = {.ep = a.ep,
                .msg = sum,
                .fetch = {.msg_iov = &op.result, .desc = nullptr, .iov_count = 1},
                .flags = flags};
    op.compare = {.ep = a.ep,
                  .msg = sum,
                  .fetch = {.msg_iov = &op.result, .desc = nullptr, .iov_count = 1},
                  .compare = {.msg_iov = &op.compared, .desc = nullptr, .iov_count = 1},
                  .flags = flags};
    op.compare.msg.op = FI_CSWAP;
  }
  /// As a call.
  ssize_t call(fi_op_type type, Operation& op, std::uint64_t flags) {
    switch (type) {
      case FI_OP_RECV:
        return fi_recvmsg(a.ep, &op.msg.msg, flags);
      case FI_OP_SEND:
        return fi_sendmsg(a.ep, &op.msg.msg, flags);
      case FI_OP_TRECV:
        return fi_trecvmsg(a.ep, &op.tagged.msg, flags);
      case FI_OP_TSEND:
        return fi_tsendmsg(a.ep, &op.tagged.msg, flags);
      case FI_OP_READ:
        return fi_readmsg(a.ep, &op.rma.msg, flags);
      case FI_OP_WRITE:
        return fi_writemsg(a.ep, &op.rma.msg, flags);
      case FI_OP_ATOMIC:
        return fi_atomicmsg(a.ep, &op.atomic.msg, flags);
      case FI_OP_FETCH_ATOMIC:
        return fi_fetch_atomicmsg(a.ep, &op.fetch.msg, &op.result, nullptr, 1, flags);
      case FI_OP_COMPARE_ATOMIC:
        return fi_compare_atomicmsg(a.ep, &op.compare.msg, &op.compared, nullptr, 1, &op.result,
                                    nullptr, 1, flags);
      default:
        return -FI_EINVAL;
    }
  }
  /// As deferred work.
  int queue(fi_op_type type, Operation& op, fi_deferred_work& work) {
    work.op_type = type;
    switch (type) {
      case FI_OP_RECV:
      case FI_OP_SEND:
        work.op.msg = &op.msg;
        break;
      case FI_OP_TRECV:
      case FI_OP_TSEND:
        work.op.tagged = &op.tagged;
        break;
      case FI_OP_READ:
      case FI_OP_WRITE:
        work.op.rma = &op.rma;
        break;
      case FI_OP_ATOMIC:
        work.op.atomic = &op.atomic;
        break;
      case FI_OP_FETCH_ATOMIC:
        work.op.fetch_atomic = &op.fetch;
        break;
      default:
        work.op.compare_atomic = &op.compare;
    }
    return fi_control(&a.domain->fid, FI_QUEUE_WORK, &work);
  }
  static std::uint64_t entry_flags(fi_op_type type) {
    switch (type) {
      case FI_OP_RECV:
        return FI_RECV | FI_MSG;
      case FI_OP_SEND:
        return FI_SEND | FI_MSG;
      case FI_OP_TRECV:
        return FI_RECV | FI_TAGGED;
      case FI_OP_TSEND:
        return FI_SEND | FI_TAGGED;
      case FI_OP_READ:
        return FI_RMA | FI_READ;
      case FI_OP_WRITE:
        return FI_RMA | FI_WRITE;
      case FI_OP_ATOMIC:
        return FI_ATOMIC | FI_WRITE;
      default:
        return FI_ATOMIC | FI_READ;
    }
  }
  /// Memory before an operation, and what b does for it.
  void prepare(fi_op_type type) {
    local_ = {1, 2, 3, 4};
    compared_ = remote_ = {10, 20, 30, 40};
    result_ = {};
    if (type == FI_OP_SEND) {
      ASSERT_EQ(fi_recv(b.ep, remote_.data(), sizeof remote_, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    } else if (type == FI_OP_TSEND) {
      ASSERT_EQ(
          fi_trecv(b.ep, remote_.data(), sizeof remote_, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr),
          0);
    } else if (type == FI_OP_RECV) {
      ASSERT_EQ(fi_send(b.ep, remote_.data(), sizeof remote_, nullptr, to_a, nullptr), 0);
    } else if (type == FI_OP_TRECV) {
      ASSERT_EQ(fi_tsend(b.ep, remote_.data(), sizeof remote_, nullptr, to_a, 7, nullptr), 0);
    }
  }
  /// Nothing of it has happened before its counter was reached, except that a message waits.
  bool is_untouched() const {
    return local_ == Memory{1, 2, 3, 4} && remote_ == Memory{10, 20, 30, 40} && result_ == Memory{};
  }
  void expect_done(fi_op_type type) {
    switch (type) {
      case FI_OP_RECV:
      case FI_OP_TRECV:
        EXPECT_FALSE(wait_for(b).failed);  // its send
        [[fallthrough]];
      case FI_OP_READ:
        EXPECT_EQ(local_, (Memory{10, 20, 30, 40}));
        return;
      case FI_OP_SEND:
      case FI_OP_TSEND:
        EXPECT_FALSE(wait_for(b).failed);
        [[fallthrough]];
      case FI_OP_WRITE:
        EXPECT_EQ(remote_, (Memory{1, 2, 3, 4}));
        return;
      case FI_OP_COMPARE_ATOMIC:
        EXPECT_EQ(result_[0], 10u);
        EXPECT_EQ(remote_[0], 1u);
        return;
      case FI_OP_FETCH_ATOMIC:
        EXPECT_EQ(result_[0], 10u);
        [[fallthrough]];
      default:
        EXPECT_EQ(remote_[0], 11u);
    }
  }
  /// Atomics that return something take one element.
  static void narrow(fi_op_type type, Operation& op) {
    if (type != FI_OP_FETCH_ATOMIC && type != FI_OP_COMPARE_ATOMIC) return;
    op.operand.count = op.compared.count = op.result.count = op.elements.count = 1;
  }
  bool wait_for_value(fid_cntr* cntr, std::uint64_t value) {
    return turn_until([&] { return fi_cntr_read(cntr) >= value; });
  }

  using Memory = std::array<std::uint64_t, 4>;
  Memory local_{}, remote_{}, result_{}, compared_{};
  fid_mr* mr_ = nullptr;
  fid_cntr* start_ = nullptr;
  std::vector<fid_cntr*> counters_;
};

// --- FI_TRIGGER

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

// --- Deferred work

/// One structure for all, as no longer than the call it is looked at.
// Covers: FI-84
TEST_F(TriggeredTest, every_kind_of_work__tells_its_counter_and_no_queue) {
  open_triggerable();
  fid_cntr* const told = open_counter(a);
  fid_cntr* const own = open_counter(a);
  ASSERT_EQ(fi_ep_bind(a.ep, &own->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE), 0);
  fi_deferred_work work{};
  work.triggering_cntr = start_;
  work.completion_cntr = told;
  std::uint64_t done = 0;
  for (const fi_op_type type : kOpTypes) {
    SCOPED_TRACE(type);
    prepare(type);
    work.threshold = done + 1;
    {
      Operation op;
      describe(op, &work.context, 0);
      narrow(type, op);
      ASSERT_EQ(queue(type, op, work), 0);
    }
    expect_silence(a, 5);
    EXPECT_TRUE(is_untouched());
    EXPECT_EQ(fi_cntr_read(told), done);
    ASSERT_EQ(fi_cntr_add(start_, 1), 0);
    ASSERT_TRUE(wait_for_value(told, ++done));
    expect_done(type);
    EXPECT_FALSE(poll(a).has_value());
  }
  EXPECT_EQ(fi_cntr_read(own), 0u);
  EXPECT_EQ(fi_cntr_readerr(told), 0u);
}

// Covers: FI-84
TEST_F(TriggeredTest, completion__is_told_by_the_endpoint_where_it_is_asked_for) {
  open_triggerable();
  fid_cntr* const told = open_counter(a);
  fid_cntr* const own = open_counter(a);
  ASSERT_EQ(fi_ep_bind(a.ep, &own->fid, FI_SEND | FI_RECV | FI_READ | FI_WRITE), 0);
  std::uint64_t done = 0;
  for (const fi_op_type type : kOpTypes) {
    SCOPED_TRACE(type);
    prepare(type);
    fi_deferred_work work{};
    work.triggering_cntr = start_;  // reached already
    work.completion_cntr = told;
    Operation op;
    describe(op, &op, FI_COMPLETION);
    narrow(type, op);
    ASSERT_EQ(queue(type, op, work), 0);
    const Got got = wait_for(a);
    EXPECT_FALSE(got.failed);
    EXPECT_EQ(got.entry.op_context, &op);
    EXPECT_EQ(got.entry.flags, entry_flags(type));
    expect_done(type);
    EXPECT_EQ(fi_cntr_read(told), ++done);
    EXPECT_EQ(fi_cntr_read(own), done);
  }
  // A counter that is both counts once.
  prepare(FI_OP_WRITE);
  fi_deferred_work work{};
  work.triggering_cntr = start_;
  work.completion_cntr = own;
  Operation op;
  describe(op, &op, FI_COMPLETION);
  ASSERT_EQ(queue(FI_OP_WRITE, op, work), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(fi_cntr_read(own), done + 1);
}

/// Injected data is read when its operation starts.
TEST_F(TriggeredTest, injected_work__is_told_when_it_is_over) {
  open_triggerable();
  fid_cntr* const told = open_counter(a);
  prepare(FI_OP_SEND);
  local_ = {};
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = start_;
  work.completion_cntr = told;
  Operation op;
  describe(op, nullptr, FI_INJECT);
  ASSERT_EQ(queue(FI_OP_SEND, op, work), 0);
  local_ = {1, 2, 3, 4};
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  local_ = {};
  ASSERT_TRUE(wait_for_value(told, 1));
  expect_done(FI_OP_SEND);
  EXPECT_FALSE(poll(a).has_value());
}

/// Each is started by the counter that the one before tells, and by errors as well.
// Covers: FI-84
TEST_F(TriggeredTest, chain__goes_on_by_itself) {
  open_triggerable();
  post_receives(3);
  std::array<fid_cntr*, 4> told{};
  std::array<fi_deferred_work, 4> works{};
  std::array<fi_op_tagged, 4> ops{};
  for (std::size_t i = 0; i < works.size(); ++i) {
    told[i] = open_counter(a);
    // The second goes to an address that there is not.
    const fi_addr_t to = i == 1 ? to_b + 100 : to_b;
    ops[i] = {.ep = a.ep, .msg = {}, .flags = 0};
    ops[i].msg.addr = to;
    ops[i].msg.tag = i;
    ops[i].msg.context = &works[i].context;
    works[i].threshold = 1;
    works[i].triggering_cntr = i == 0 ? start_ : told[i - 1];
    works[i].completion_cntr = told[i];
    works[i].op_type = FI_OP_TSEND;
    works[i].op.tagged = &ops[i];
    ASSERT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &works[i]), 0);
  }
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(tags_at_b(3), (std::vector<std::uint64_t>{0, 2, 3}));
  ASSERT_TRUE(wait_for_value(told[3], 1));
  EXPECT_EQ(fi_cntr_readerr(told[1]), 1u);
  EXPECT_EQ(fi_cntr_read(told[1]), 0u);
  const Got got = wait_for(a);
  EXPECT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, FI_EINVAL);
  EXPECT_EQ(got.error.op_context, &works[1].context);
  EXPECT_FALSE(poll(a).has_value());
}

/// A counter that is set back after it was reached started what waited for that.
// Covers: FI-84
TEST_F(TriggeredTest, counter_work__sets_and_adds) {
  open_triggerable();
  post_receives(1);
  fid_cntr* const target = open_counter(a);
  std::array<fi_deferred_work, 3> works{};
  fi_op_cntr add{.cntr = target, .value = 5}, set{.cntr = start_, .value = 0};
  fi_op_tagged send{.ep = a.ep, .msg = {}, .flags = 0};
  send.msg.addr = to_b;
  for (fi_deferred_work& work : works) {
    work.threshold = 2;
    work.triggering_cntr = start_;
  }
  works[0].op_type = FI_OP_CNTR_SET;
  works[0].op.cntr = &set;
  works[1].op_type = FI_OP_CNTR_ADD;
  works[1].op.cntr = &add;
  works[2].op_type = FI_OP_TSEND;
  works[2].op.tagged = &send;
  for (fi_deferred_work& work : works)
    ASSERT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &work), 0);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(fi_cntr_read(target), 0u);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(fi_cntr_read(start_), 0u);
  EXPECT_EQ(fi_cntr_read(target), 5u);
  EXPECT_FALSE(wait_for(b).failed);
  // Errors count here.
  works[1].threshold = 3;
  ASSERT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &works[1]), 0);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  ASSERT_EQ(fi_cntr_adderr(start_, 1), 0);
  EXPECT_EQ(fi_cntr_read(target), 5u);
  ASSERT_EQ(fi_cntr_adderr(start_, 1), 0);
  EXPECT_EQ(fi_cntr_read(target), 10u);
}

// Covers: FI-84
TEST_F(TriggeredTest, cancel_and_flush__take_work_back_without_a_word) {
  open_triggerable();
  fid_cntr* const other = open_counter(a);
  fid_cntr* const target = open_counter(a);
  fi_op_cntr add{.cntr = target, .value = 1};
  std::array<fi_deferred_work, 4> works{};
  const auto queue_all = [&] {
    for (std::size_t i = 0; i < works.size(); ++i) {
      works[i].threshold = 1;
      works[i].triggering_cntr = i < 2 ? start_ : other;
      works[i].op_type = FI_OP_CNTR_ADD;
      works[i].op.cntr = &add;
      ASSERT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &works[i]), 0);
    }
  };
  const auto added_by = [&](fid_cntr* cntr) {
    const std::uint64_t before = fi_cntr_read(target);
    EXPECT_EQ(fi_cntr_set(cntr, 1), 0);
    EXPECT_EQ(fi_cntr_set(cntr, 0), 0);
    return fi_cntr_read(target) - before;
  };
  queue_all();
  EXPECT_EQ(fi_control(&a.domain->fid, FI_CANCEL_WORK, &works[0]), 0);
  EXPECT_EQ(fi_control(&a.domain->fid, FI_CANCEL_WORK, &works[0]), -FI_ENOENT);
  EXPECT_EQ(added_by(start_), 1u);
  EXPECT_EQ(added_by(other), 2u);
  queue_all();
  EXPECT_EQ(fi_control(&other->fid, FI_FLUSH_WORK, nullptr), 0);
  EXPECT_EQ(added_by(start_), 2u);
  EXPECT_EQ(added_by(other), 0u);
  queue_all();
  auto context = when(start_, 1);
  ASSERT_EQ(send_tag(1, &context), 0);
  post_receives(1);
  EXPECT_EQ(fi_control(&a.domain->fid, FI_FLUSH_WORK, nullptr), 0);
  EXPECT_EQ(added_by(other), 0u);
  EXPECT_EQ(added_by(start_), 0u);
  EXPECT_EQ(tags_at_b(1), (std::vector<std::uint64_t>{1})) << "a call is no deferred work";
  EXPECT_EQ(fi_control(&a.domain->fid, FI_CANCEL_WORK, &works[3]), -FI_ENOENT);
}

/// A receive that was posted and finds no message is no longer in the domain's queue: it is one of its endpoint.
TEST_F(TriggeredTest, receive_that_was_started__is_cancelled_by_its_context) {
  open_triggerable();
  fid_cntr* const told = open_counter(a);
  Operation op;
  fi_deferred_work work{};
  describe(op, &work.context, 0);
  work.triggering_cntr = start_;
  work.completion_cntr = told;
  ASSERT_EQ(queue(FI_OP_TRECV, op, work), 0);
  EXPECT_EQ(fi_control(&a.domain->fid, FI_CANCEL_WORK, &work), -FI_ENOENT);
  EXPECT_EQ(fi_cancel(&a.ep->fid, &work.context), 0);
  const Got got = wait_for(a);
  EXPECT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, FI_ECANCELED);
  EXPECT_EQ(got.error.op_context, &work.context);
  EXPECT_EQ(fi_cntr_readerr(told), 1u);
}

// Covers: FI-82
TEST_F(TriggeredTest, work_that_makes_no_sense__is_refused) {
  open_triggerable();
  Operation op;
  describe(op, nullptr, 0);
  const auto refused = [&](fi_op_type type, auto&& change) {
    fi_deferred_work work{};
    work.threshold = 1;
    work.triggering_cntr = start_;
    describe(op, nullptr, 0);
    change(work);
    return queue(type, op, work);
  };
  fid_cntr* const foreign = open_counter(b);
  EXPECT_EQ(refused(FI_OP_SEND, [](auto& w) { w.triggering_cntr = nullptr; }), -FI_EINVAL);
  EXPECT_EQ(refused(FI_OP_SEND, [&](auto& w) { w.triggering_cntr = foreign; }), -FI_EINVAL);
  EXPECT_EQ(refused(FI_OP_SEND, [&](auto& w) { w.completion_cntr = foreign; }), -FI_EINVAL);
  EXPECT_EQ(refused(FI_OP_SEND, [&](auto&) { op.msg.ep = nullptr; }), -FI_EINVAL);
  EXPECT_EQ(refused(FI_OP_SEND, [&](auto&) { op.msg.ep = b.ep; }), -FI_EINVAL);
  EXPECT_EQ(refused(FI_OP_SEND, [&](auto&) { op.msg.flags = FI_TRIGGER; }), -FI_EOPNOTSUPP);
  EXPECT_EQ(refused(FI_OP_RECV, [&](auto&) { op.msg.flags = FI_MULTI_RECV; }), -FI_ENOSYS);
  EXPECT_EQ(refused(FI_OP_TRECV, [&](auto&) { op.tagged.flags = FI_PEEK; }), -FI_ENOSYS);
  EXPECT_EQ(refused(FI_OP_WRITE, [&](auto&) { op.range.len = 1; }), -FI_EINVAL);
  EXPECT_EQ(refused(FI_OP_ATOMIC, [&](auto&) { op.elements.count = 1; }), -FI_EINVAL);
  fi_deferred_work work{};
  work.triggering_cntr = start_;
  work.op_type = FI_OP_CNTR_ADD;
  EXPECT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &work), -FI_EINVAL) << "no operation";
  fi_op_cntr add{.cntr = start_, .value = 1};
  work.op.cntr = &add;
  work.completion_cntr = start_;
  EXPECT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &work), -FI_EINVAL);
  work.completion_cntr = nullptr;
  work.op_type = static_cast<fi_op_type>(FI_OP_CNTR_ADD + 1);
  EXPECT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
  EXPECT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_control(&a.domain->fid, FI_ENABLE, nullptr), -FI_ENOSYS);
}

/// What finds no room waits for it, and keeps its order.
// Covers: FI-84
TEST_F(TriggeredTest, more_than_has_room__goes_out_in_order) {
  constexpr std::size_t kMessages = 50;
  const Variable small("FI_UET_TX_SIZE", "4");
  open_triggerable();
  post_receives(kMessages);
  fid_cntr* const told = open_counter(a);
  std::deque<fi_deferred_work> works;
  std::vector<std::uint64_t> expected;
  for (std::size_t i = 0; i < kMessages; ++i) {
    fi_op_tagged send{.ep = a.ep, .msg = {}, .flags = 0};
    send.msg.addr = to_b;
    send.msg.tag = i;
    fi_deferred_work& work = works.emplace_back();
    work.threshold = 1;
    work.triggering_cntr = start_;
    work.completion_cntr = told;
    work.op_type = FI_OP_TSEND;
    work.op.tagged = &send;
    ASSERT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &work), 0);
    expected.push_back(i);
  }
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(tags_at_b(kMessages), expected);
  EXPECT_TRUE(wait_for_value(told, kMessages));
}

/// One thread counts, others queue and take back: each work is carried out or taken back, once.
// Covers: FI-84
TEST_F(TriggeredTest, threads__queue_count_and_take_back) {
  open_triggerable();
  fid_cntr* const target = open_counter(a);
  constexpr std::uint64_t kEach = 300;
  std::atomic<std::uint64_t> taken_back{0};
  std::atomic<int> queueing{2};
  fi_op_cntr add{.cntr = target, .value = 1};
  std::vector<fi_deferred_work> firsts(kEach), seconds(kEach);
  const auto queue_some = [&](std::vector<fi_deferred_work>& works) {
    for (std::uint64_t i = 0; i < kEach; ++i) {
      works[i].threshold = 2 * i;
      works[i].triggering_cntr = start_;
      works[i].op_type = FI_OP_CNTR_ADD;
      works[i].op.cntr = &add;
      EXPECT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &works[i]), 0);
      if (i % 3 == 0 && fi_control(&a.domain->fid, FI_CANCEL_WORK, &works[i / 2]) == 0)
        ++taken_back;
    }
    --queueing;
  };
  std::thread first(queue_some, std::ref(firsts)), second(queue_some, std::ref(seconds));
  while (queueing != 0) EXPECT_EQ(fi_cntr_add(start_, 1), 0);
  first.join();
  second.join();
  EXPECT_EQ(fi_cntr_set(start_, 2 * kEach), 0);
  EXPECT_EQ(fi_cntr_read(target) + taken_back, 2 * kEach);
}

}  // namespace
}  // namespace uet::provider::testing
