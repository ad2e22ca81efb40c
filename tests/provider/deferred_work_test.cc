/// The deferred work of a domain, as fi_trigger(3) describes it.
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/provider/triggered_fixture.h"

namespace uet::provider::testing {
namespace {

class DeferredWorkTest : public TriggeredTest {
 protected:
  /// Messages without data whose tags count from 0, when the first counter is 1.
  void queue_sends(std::size_t count, fid_cntr* told) {
    for (std::size_t i = 0; i < count; ++i) {
      fi_op_tagged send{.ep = a.ep, .msg = {}, .flags = 0};
      send.msg.addr = to_b;
      send.msg.tag = i;
      fi_deferred_work& work = sends_.emplace_back();
      work.threshold = 1;
      work.triggering_cntr = start_;
      work.completion_cntr = told;
      work.op_type = FI_OP_TSEND;
      work.op.tagged = &send;
      ASSERT_EQ(fi_control(&a.domain->fid, FI_QUEUE_WORK, &work), 0);
    }
  }

 private:
  std::deque<fi_deferred_work> sends_;
};

/// One structure for all, as no longer than the call it is looked at.
// Covers: FI-84
TEST_F(DeferredWorkTest, every_kind_of_work__tells_its_counter_and_no_queue) {
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
TEST_F(DeferredWorkTest, completion__is_told_by_the_endpoint_where_it_is_asked_for) {
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
TEST_F(DeferredWorkTest, injected_work__is_told_when_it_is_over) {
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
TEST_F(DeferredWorkTest, chain__goes_on_by_itself) {
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
TEST_F(DeferredWorkTest, counter_work__sets_and_adds) {
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
TEST_F(DeferredWorkTest, cancel_and_flush__take_work_back_without_a_word) {
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
TEST_F(DeferredWorkTest, receive_that_was_started__is_cancelled_by_its_context) {
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
TEST_F(DeferredWorkTest, work_that_makes_no_sense__is_refused) {
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
TEST_F(DeferredWorkTest, more_than_has_room__goes_out_in_order) {
  constexpr std::size_t kMessages = 50;
  const Variable small("FI_UET_TX_SIZE", "4");
  open_triggerable();
  post_receives(kMessages);
  fid_cntr* const told = open_counter(a);
  std::vector<std::uint64_t> expected(kMessages);
  std::iota(expected.begin(), expected.end(), std::uint64_t{0});
  queue_sends(kMessages, told);
  ASSERT_EQ(fi_cntr_add(start_, 1), 0);
  EXPECT_EQ(tags_at_b(kMessages), expected);
  EXPECT_TRUE(wait_for_value(told, kMessages));
}

/// The progress thread, which is all that has the loop, starts the next ones as soon as there is room. The shortest of a few times: a
/// busy machine makes some longer.
// Covers: FI-84
TEST_F(DeferredWorkTest, more_than_has_room__goes_out_at_once_though_the_program_is_silent) {
  using Clock = std::chrono::steady_clock;
  constexpr int kMessages = 1000;
  constexpr std::chrono::seconds kSoon{1};
  const Variable small("FI_UET_TX_SIZE", "4");
  open_triggerable();
  fid_cntr* const told = open_counter(a);
  auto shortest = Clock::duration::max();
  for (int attempt = 0; attempt < 10 && shortest >= kSoon; ++attempt) {
    ASSERT_EQ(fi_cntr_set(start_, 0), 0);
    ASSERT_EQ(fi_cntr_set(told, 0), 0);
    post_receives(kMessages);
    queue_sends(kMessages, told);
    const auto begin = Clock::now();
    ASSERT_EQ(fi_cntr_add(start_, 1), 0);
    int arrived = 0;
    while (arrived < kMessages && Clock::now() - begin < 20 * kSoon) arrived += poll(b).has_value();
    ASSERT_EQ(arrived, kMessages);
    shortest = std::min(shortest, Clock::now() - begin);
    EXPECT_TRUE(wait_for_value(told, kMessages));
  }
  EXPECT_LT(shortest, kSoon);
}

/// One thread counts, others queue and take back: each work is carried out or taken back, once.
// Covers: FI-84
TEST_F(DeferredWorkTest, threads__queue_count_and_take_back) {
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
