// When operations go and in which order, without anything that ends them. [SES 2.5, 17]
#include "ses/send_queues.h"

#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

using Order = std::vector<std::uint32_t>;

struct SendQueuesTest : TxPartsTest {
  using TxPartsTest::TxPartsTest;

  /// Its attempt is over, and it was refused.
  void refuse(TxOp& op, bool at_once = false) {
    --lane_of(op).carried;
    queues.recover(now, op, at_once);
  }
  /// It is over.
  void end(TxOp& op) {
    Flow& flow = *op.flow;
    Lane& lane = lane_of(op);
    --lane.carried;
    queues.leave(op);
    operations.release(op);
    queues.go_on(now, flow, lane);
    if (flow.operations.empty())
      queues.release_if_idle(flow);
    else
      queues.pump(now, flow);
  }
  /// Time passes until something is due, and that is done.
  base::Duration wait() {
    const base::Instant before = now;
    now = queues.next_deadline();
    EXPECT_EQ(queues.pop_expired(now), nullptr);
    return now - before;
  }
};

struct OrderedQueuesTest : SendQueuesTest {
  explicit OrderedQueuesTest(const SesConfig& config = {})
      : SendQueuesTest(config, with_ordered_sends()) {}
};
struct SprayedQueuesTest : OrderedQueuesTest {
  SprayedQueuesTest() : OrderedQueuesTest(with_sprayed_order()) {}
};

TEST_F(SendQueuesTest, enqueue__goes_at_once_and_waits_where_there_is_no_room) {
  carrier.room = 1;
  const TxOp& a = send(64);
  const TxOp& b = send(64);
  EXPECT_EQ(a.state, OpState::kCarried);
  EXPECT_EQ(b.state, OpState::kPending);
  carrier.room = 2;
  queues.on_resume(now);
  EXPECT_EQ(went(), (Order{a.pool_index, b.pool_index}));
}

TEST_F(SendQueuesTest, enqueue__from_within_an_upcall_waits_for_its_end) {
  ++core.upcall_depth;
  send(64);
  EXPECT_TRUE(carrier.taken.empty());
  EXPECT_EQ(queues.next_deadline(), Instant());  // at once
  --core.upcall_depth;
  queues.pump_deferred(now);
  EXPECT_EQ(carrier.taken.size(), 1u);
  EXPECT_TRUE(queues.next_deadline().is_never());
}

TEST_F(SendQueuesTest, on_resume__what_has_waited_longest_goes_first) {
  carrier.room = 0;
  const TxOp& a = send(64);
  peer = add_peer(3, 0);
  const TxOp& b = send(64);
  carrier.room = 1;
  queues.on_resume(now);
  carrier.room = 2;
  queues.on_resume(now);
  EXPECT_EQ(went(), (Order{a.pool_index, b.pool_index}));
}

TEST_F(SendQueuesTest, on_resume__flows_take_turns_where_room_comes_one_by_one) {
  carrier.room = 0;
  const TxOp& a = send(64);
  const TxOp& a2 = send(64);
  peer = add_peer(3, 0);
  const TxOp& b = send(64);
  const TxOp& b2 = send(64);
  while (carrier.room < 4) {
    ++carrier.room;
    queues.on_resume(now);
  }
  EXPECT_EQ(went(), (Order{a.pool_index, b.pool_index, a2.pool_index, b2.pool_index}));
}

TEST_F(SendQueuesTest, pump__a_fence_holds_itself_and_what_is_behind_it) {
  TxOp& a = send(64);
  const TxOp& fenced = send(64, 0, true);
  const TxOp& behind = send(64);
  EXPECT_EQ(carrier.taken.size(), 1u);
  const Order all{a.pool_index, fenced.pool_index, behind.pool_index};
  end(a);
  EXPECT_EQ(went(), all);
}

TEST_F(SendQueuesTest, take_out__a_fence_that_is_cancelled_holds_nothing) {
  send(64);
  TxOp& fenced = send(64, 0, true);
  send(64);
  Flow& flow = *fenced.flow;
  queues.take_out(fenced);
  queues.leave(fenced);
  operations.release(fenced);
  queues.pump(now, flow);
  EXPECT_EQ(carrier.taken.size(), 2u);
}

TEST_F(SendQueuesTest, try_later__pauses_double) {
  TxOp& op = send(64);
  const std::int64_t min = core.config.retry_backoff_min.ns();
  for (std::uint32_t tries = 1; tries <= 4; ++tries) {
    --lane_of(op).carried;
    queues.try_later(now, op, tries);
    const std::int64_t pause = wait().ns();
    EXPECT_GE(pause, min << (tries - 1));
    EXPECT_LT(pause, min << tries);
    EXPECT_EQ(carrier.taken.size(), tries + 1u);
  }
}

// Covers: SES-50
TEST_F(OrderedQueuesTest, recover__what_failed_goes_again_in_its_old_order_and_before_what_is_new) {
  TxOp& a = send(64);
  TxOp& b = send(64);
  TxOp& c = send(64);
  const Order order{a.pool_index, b.pool_index, c.pool_index};
  refuse(b, true);
  TxOp& d = send(64);
  refuse(a, true);
  EXPECT_EQ(carrier.taken.size(), 3u);  // the answer to c is missing
  refuse(c, true);
  Order expected = order;
  expected.insert(expected.end(), order.begin(), order.end());
  expected.push_back(d.pool_index);
  EXPECT_EQ(went(), expected);
}

TEST_F(OrderedQueuesTest, recover__one_that_needs_a_pause_holds_up_the_lane) {
  TxOp& a = send(64);
  TxOp& b = send(64);
  refuse(a, false);
  refuse(b, true);
  EXPECT_EQ(carrier.taken.size(), 2u);
  wait();
  EXPECT_EQ(carrier.taken.size(), 4u);
}

TEST_F(OrderedQueuesTest, pump__a_new_generation_waits_for_what_has_the_old_one) {
  TxOp& a = send(64);
  ++a.peer->generation_of(Space::kUntagged);
  const TxOp& b = send(64);
  EXPECT_EQ(b.state, OpState::kPending);
  end(a);
  EXPECT_EQ(b.state, OpState::kCarried);
  EXPECT_EQ(b.ri_generation, 1);
}

TEST_F(SprayedQueuesTest, enqueue__goes_with_a_number_and_without_an_ordered_context) {
  const TxOp& op = send(64);
  EXPECT_TRUE(op.is_sequenced);
  EXPECT_EQ(carrier.taken[0].mode, pds::Mode::kRud);
}

TEST_F(SprayedQueuesTest, recover__goes_in_order_where_the_peer_takes_no_numbers) {
  TxOp& a = send(64);
  queues.note_way_refused(a);
  refuse(a, true);
  EXPECT_EQ(carrier.taken.back().mode, pds::Mode::kRod);
  EXPECT_FALSE(a.is_sequenced);
  send(64);
  EXPECT_EQ(carrier.taken.back().mode, pds::Mode::kRod);
}

TEST_F(SprayedQueuesTest, leave_stream__lets_those_go_that_found_no_number) {
  TxOp& oldest = send(64);
  for (std::int32_t n = 1; n < kSequenceWindow; ++n) {
    TxOp& op = send(64);
    queues.leave_stream(op, true);
    end(op);
  }
  const TxOp& waiting = send(64);
  EXPECT_EQ(waiting.state, OpState::kPending);
  queues.leave_stream(oldest, true);
  queues.pump_deferred(now);
  EXPECT_EQ(waiting.state, OpState::kCarried);
}

TEST_F(SendQueuesTest, pop_expired__what_was_put_off_for_too_long) {
  core.config.restart_limit = Duration::from_seconds(5);
  TxOp& op = send(64);
  --lane_of(op).carried;
  queues.put_off(now, op);
  EXPECT_EQ(queues.pop_expired(now + Duration::from_ms(4999)), nullptr);
  EXPECT_EQ(queues.pop_expired(now + Duration::from_ms(5000)), &op);
}

}  // namespace
}  // namespace uet::ses::testing
