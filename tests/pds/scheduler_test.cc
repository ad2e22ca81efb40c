// The lists that polling takes from, and the timers of a PDC. [PDS 3.2, 13.7, CC 3.7]
#include "pds/scheduler.h"

#include <gtest/gtest.h>

#include "pds/backpressure.h"
#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

TEST(Scheduler, wake__lists_a_pdc_once_and_only_with_work) {
  Parts t;
  t.establish(true);
  t.scheduler.wake(t.pdc);
  EXPECT_TRUE(t.scheduler.is_idle());
  t.pdc.tx.rtx_count = 1;
  t.scheduler.wake(t.pdc);
  t.scheduler.wake(t.pdc);
  Congestion& congestion = *t.pdc.tx.cc.if_any();
  EXPECT_EQ(congestion.ready.size(), 1u);
  EXPECT_EQ(t.scheduler.ready().size(), 1u);
}

TEST(Scheduler, wake__without_a_ccc_does_nothing) {
  Parts t;
  t.pdc.tx.rtx_count = 1;
  t.scheduler.wake(t.pdc);
  EXPECT_TRUE(t.scheduler.is_idle());
}

TEST(Scheduler, want_control__collects_bits_of_one_listing) {
  Parts t;
  t.establish(true);
  t.scheduler.want_control(t.pdc, kSendClear);
  t.scheduler.want_control(t.pdc, kSendProbe);
  EXPECT_EQ(t.pdc.pending_control, kSendClear | kSendProbe);
  EXPECT_EQ(t.scheduler.control().size(), 1u);
  t.scheduler.forget(t.pdc);
  EXPECT_TRUE(t.scheduler.is_idle());
}

TEST(Scheduler, one_node_stands_at_the_earliest_timer_of_a_pdc) {
  Parts t;
  t.establish(true);
  t.scheduler.set_timer(t.pdc, PdcTimer::kLiveness, kNow + Duration::from_ms(5));
  t.scheduler.set_timer(t.pdc, PdcTimer::kClear, kNow + Duration::from_ms(2));
  t.scheduler.set_timer(t.pdc, PdcTimer::kStall, kNow + Duration::from_ms(9));
  EXPECT_EQ(t.pdc.timer.when(), kNow + Duration::from_ms(2));
  Scheduler::stop_timer(t.pdc, PdcTimer::kClear);
  t.scheduler.rearm(t.pdc);
  EXPECT_EQ(t.pdc.timer.when(), kNow + Duration::from_ms(5));
}

TEST(Backpressure, ses_is_told_once_and_only_after_it_was_refused) {
  SilentSes ses;
  Backpressure room(ses);
  room.on_room();
  room.settle(kNow);
  EXPECT_EQ(ses.resumes, 0);
  EXPECT_EQ(room.again(), SubmitResult::kAgain);
  room.settle(kNow);
  EXPECT_EQ(ses.resumes, 0);
  room.on_room();
  EXPECT_TRUE(room.has_new_room());
  room.settle(kNow);
  room.on_room();
  room.settle(kNow);
  EXPECT_EQ(ses.resumes, 1);
}

}  // namespace
}  // namespace uet::pds::test
