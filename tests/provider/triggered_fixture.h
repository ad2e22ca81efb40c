/// Endpoints, memory and counters of tests in which operations wait for a counter.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {

inline constexpr std::uint64_t kKinds = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
inline constexpr std::array kOpTypes = {FI_OP_RECV,   FI_OP_SEND,         FI_OP_TRECV,
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

}  // namespace uet::provider::testing
