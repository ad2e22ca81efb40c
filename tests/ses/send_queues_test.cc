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
  /// A send for whose completion no user waits.
  TxOp& send_patiently(bool delivery_complete = false, std::size_t length = 64) {
    const iovec iov{memory.data(), length};
    SendRequest r;
    r.peer = peer;
    r.iov = {&iov, 1};
    r.inject = r.completion_may_wait = true;
    r.delivery_complete = delivery_complete;
    EXPECT_TRUE(posting.send(now, *endpoint, r));
    return operations.by_age().back();
  }
  /// Whether the ACK of the latest one may wait.
  bool may_wait() const { return carrier.taken.back().ack_may_wait; }
  void make_room_one_by_one(std::size_t messages) {
    for (carrier.room = 1; carrier.room <= messages; ++carrier.room) queues.on_resume(now);
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

SesConfig with_rendezvous() {
  SesConfig c;
  c.rendezvous = true;
  return c;
}
struct FetchedQueuesTest : SendQueuesTest {
  FetchedQueuesTest() : SendQueuesTest(with_rendezvous()) {}
};
SesConfig with_early_rendezvous() {
  SesConfig c = with_rendezvous();
  c.rendezvous_from = 2048;
  return c;
}
struct OrderedFetchedQueuesTest : OrderedQueuesTest {
  OrderedFetchedQueuesTest() : OrderedQueuesTest(with_early_rendezvous()) {}
};
SesConfig with_deferrable_sends() {
  SesConfig c;
  c.sends_deferrable = true;
  return c;
}
struct DeferrableQueuesTest : SendQueuesTest {
  DeferrableQueuesTest() : SendQueuesTest(with_deferrable_sends()) {}
};

SesConfig with_few_asked() {
  SesConfig c;
  c.asked_packets = 2;
  return c;
}
struct AskingQueuesTest : SendQueuesTest {
  AskingQueuesTest() : SendQueuesTest(with_few_asked()) {}
};

TEST_F(AskingQueuesTest, pump__reads_wait_for_what_was_asked_for_and_nothing_else_does) {
  TxOp& a = read(2 * kMtu);
  const TxOp& b = read(kMtu);
  const TxOp& c = read(64);
  EXPECT_EQ(b.state, OpState::kCarried);  // no more than that had been asked for
  EXPECT_EQ(c.state, OpState::kPending);
  EXPECT_EQ(send(64).state, OpState::kCarried);
  EXPECT_EQ(write(64).state, OpState::kCarried);
  EXPECT_TRUE(queues.next_deadline().is_never());
  queues.end_asking(a, kMtu);
  EXPECT_EQ(queues.next_deadline(), Instant());  // at once
  queues.pump_ready(now);
  EXPECT_EQ(c.state, OpState::kCarried);
}

TEST_F(AskingQueuesTest, end_asking__counts_no_more_than_was_asked_for) {
  TxOp& a = read(3 * kMtu);
  TxOp& b = read(3 * kMtu);
  queues.end_asking(a, 5 * kMtu);
  queues.end_asking(a, 5 * kMtu);
  queues.pump_ready(now);
  EXPECT_EQ(b.state, OpState::kCarried);
  EXPECT_EQ(read(64).state, OpState::kPending);
  queues.end_asking(b, b.asked);  // it is over, whatever came
  queues.pump_ready(now);
  EXPECT_EQ(carrier.taken.size(), 3u);
}

TEST_F(AskingQueuesTest, pump__small_reads_are_many) {
  for (std::uint32_t n = 0; n < 2 * kMtu / 8 + 1; ++n) EXPECT_EQ(read(8).state, OpState::kCarried);
  EXPECT_EQ(read(8).state, OpState::kPending);
}

TEST_F(AskingQueuesTest, pump__another_peer_is_asked_on_its_own) {
  read(3 * kMtu);
  EXPECT_EQ(read(64).state, OpState::kPending);
  peer = add_peer(3, 0);
  EXPECT_EQ(read(64).state, OpState::kCarried);
}

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
  queues.pump_ready(now);
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
  make_room_one_by_one(4);
  EXPECT_EQ(went(), (Order{a.pool_index, b.pool_index, a2.pool_index, b2.pool_index}));
}

TEST_F(SendQueuesTest, on_resume__writes_and_reads_take_turns_where_room_comes_one_by_one) {
  carrier.room = 0;
  const TxOp& w = write(64);
  const TxOp& w2 = write(64);
  const TxOp& r = read(64);
  const TxOp& r2 = read(64);
  make_room_one_by_one(4);
  EXPECT_EQ(went(), (Order{w.pool_index, r.pool_index, w2.pool_index, r2.pool_index}));
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
  queues.take_out(fenced);
  queues.leave(fenced);
  operations.release(fenced);
  EXPECT_EQ(carrier.taken.size(), 1u);
  EXPECT_EQ(queues.next_deadline(), Instant());
  queues.pump_ready(now);
  EXPECT_EQ(carrier.taken.size(), 2u);
}

TEST_F(SendQueuesTest, submit__says_which_acknowledgements_may_wait) {
  send_patiently();
  EXPECT_TRUE(may_wait());
  send(64);
  EXPECT_FALSE(may_wait());
  send_patiently(true);
  EXPECT_FALSE(may_wait());
}

TEST_F(FetchedQueuesTest, submit__what_the_target_may_fetch_is_waited_for) {
  TxOp& op = send_patiently(false, 2048);
  EXPECT_TRUE(may_wait());
  op.peer->lacks_room = true;
  EXPECT_TRUE(send_patiently(false, 2048).is_rendezvous);
  EXPECT_FALSE(may_wait());
}

// What found no room is not under way: nothing has to wait until the lane is empty.
TEST_F(OrderedFetchedQueuesTest, submit__a_rendezvous_without_room_does_not_drain_its_lane) {
  carrier.room = 1;
  TxOp& first = send(64);
  EXPECT_TRUE(send(2048).is_rendezvous);
  EXPECT_FALSE(lane_of(first).must_empty);
  EXPECT_TRUE(lane_of(first).carries_plain);
  carrier.room = 2;
  queues.on_resume(now);
  EXPECT_EQ(carrier.taken.size(), 2u);
  EXPECT_TRUE(lane_of(first).must_empty);
}

TEST_F(DeferrableQueuesTest, submit__what_the_target_may_put_off_is_waited_for) {
  EXPECT_TRUE(send_patiently(false, 2048).is_deferrable);
  EXPECT_FALSE(may_wait());
  EXPECT_FALSE(send_patiently(false, 64).is_deferrable);
  EXPECT_TRUE(may_wait());
}

TEST_F(SendQueuesTest, submit__what_brings_data_back_is_waited_for) {
  const iovec iov{memory.data(), 64};
  RmaRequest r;
  r.peer = peer;
  r.read = r.completion_may_wait = true;
  r.iov = {&iov, 1};
  r.key = 1;
  ASSERT_TRUE(posting.rma(now, *endpoint, r));
  EXPECT_FALSE(may_wait());
}

TEST_F(SendQueuesTest, submit__before_a_fence_none_waits) {
  carrier.room = 0;
  send_patiently();
  send(64, 0, true);
  carrier.room = 1;
  queues.on_resume(now);
  ASSERT_EQ(carrier.taken.size(), 1u);
  EXPECT_FALSE(may_wait());
}

TEST_F(SendQueuesTest, submit__an_attempt_after_a_refusal_is_waited_for) {
  TxOp& op = send_patiently();
  refuse(op, true);
  EXPECT_EQ(carrier.taken.size(), 2u);
  EXPECT_TRUE(may_wait());
  op.retries = 1;
  refuse(op, true);
  EXPECT_FALSE(may_wait());
}

// Descriptors come back with the acknowledgements.
TEST_F(SendQueuesTest, submit__where_descriptors_run_short_none_waits) {
  const std::size_t half = operations.max() / 2;
  while (operations.in_use() + 2 < half) send(0);
  send_patiently();
  EXPECT_TRUE(may_wait());
  send_patiently();
  EXPECT_FALSE(may_wait());
}

TEST_F(SendQueuesTest, pump__a_fence_hurries_what_it_waits_for) {
  const TxOp& a = send_patiently();
  TxOp& b = send_patiently();
  EXPECT_TRUE(carrier.hurried.empty());
  send(64, 0, true);
  EXPECT_EQ(carrier.hurried, (std::vector{a.token(), b.token()}));
  end(b);
  EXPECT_EQ(carrier.hurried.size(), 2u) << "once";
}

TEST_F(SendQueuesTest, pump__what_is_behind_a_fence_and_free_to_go_is_waited_for) {
  send_patiently();
  TxOp& fenced = send(64, 0, true);
  send_patiently();
  EXPECT_EQ(carrier.taken.size(), 1u);
  Flow& flow = *fenced.flow;
  queues.take_out(fenced);
  queues.leave(fenced);
  operations.release(fenced);
  queues.pump(now, flow);
  EXPECT_TRUE(may_wait());
}

TEST_F(OrderedQueuesTest, pump__a_lane_that_drains_hurries_what_is_under_way) {
  TxOp& a = send_patiently();
  ++a.peer->generation[static_cast<std::size_t>(a.space())];
  send_patiently();
  EXPECT_EQ(carrier.taken.size(), 1u);
  EXPECT_EQ(carrier.hurried, std::vector{a.token()});
}

TEST_F(SendQueuesTest, hurry__only_of_what_was_allowed_to_wait) {
  const TxOp& waited_for = send(64);
  queues.hurry(now, *waited_for.flow);
  EXPECT_TRUE(carrier.hurried.empty());
  const TxOp& a = send_patiently();
  queues.hurry(now, *a.flow);
  EXPECT_EQ(carrier.hurried, std::vector{a.token()});
  queues.hurry(now, *a.flow);
  EXPECT_EQ(carrier.hurried.size(), 1u) << "nothing has left since";
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
  queues.pump_ready(now);
  EXPECT_EQ(waiting.state, OpState::kCarried);
}

// The way is refused while the stream is full, and delivery has room for one: the flow gets a turn, since others may join now, and has to
// wait for room.
TEST_F(SprayedQueuesTest, block__a_flow_that_has_a_turn_waits_for_room_instead) {
  TxOp& oldest = send(64);
  for (std::int32_t n = 1; n < kSequenceWindow; ++n) {
    TxOp& op = send(64);
    queues.leave_stream(op, false);
    end(op);
  }
  const TxOp& next = send(64);
  ASSERT_EQ(next.state, OpState::kPending);
  carrier.room = carrier.taken.size() + 1;
  queues.note_way_refused(oldest);
  refuse(oldest, true);
  EXPECT_EQ(oldest.state, OpState::kCarried);
  EXPECT_EQ(next.state, OpState::kPending);
  EXPECT_TRUE(queues.next_deadline().is_never());  // no turn
  ++carrier.room;
  queues.on_resume(now);
  EXPECT_EQ(next.state, OpState::kCarried);
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
