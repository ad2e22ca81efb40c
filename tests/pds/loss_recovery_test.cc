// Loss detection alone: records, a window and a scheduler, no Pds. [PDS 13, 17.1]
#include "pds/loss_evidence.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

PdsConfig config_with(const std::function<void(PdsConfig&)>& change) {
  PdsConfig config;
  config.rto_init_time = Duration::from_us(100);
  config.max_rto_retx_cnt = 3;
  change(config);
  return config;
}

/// Round trips short enough not to lengthen the timeout.
cc::CcConfig short_link() {
  cc::CcConfig config;
  config.config_base_rtt = Duration::from_us(10);
  return config;
}

struct Loss : Parts {
  explicit Loss(
      Mode mode = Mode::kRud, const std::function<void(PdsConfig&)>& change = [](auto&) {})
      : Parts(config_with(change), short_link()),
        room(ses),
        messages(16, room),
        loss(env, window, scheduler),
        evidence(env, window, loss, scheduler) {
    establish(true, mode);
    message = &messages.add(
        TxMessage{.token = 1, .segments = 64, .payload_bytes = 64'000, .segment_payload = 1000});
  }
  ~Loss() { window.release(pdc.tx); }
  /// Sends the next PSN at `at`; the first retransmission timeout runs.
  Psn send(Instant at = kNow) {
    const Psn psn = pdc.tx.next;
    TxRecord& record = *window.records().add(pdc.tx.ring, psn);
    record.message = message;
    record.move(TxEvent::kSent);
    ++pdc.tx.next;
    ++pdc.tx.unacked;
    ++message->unanswered;
    Congestion& congestion = pdc.tx.cc.of(*message);
    congestion.ccc->on_new_data(at, 1060);
    const auto params = congestion.ccc->next_send(at, nullptr, 1060, 1);
    congestion.ccc->on_send(at, record.cc, pdc.tx.share, 1060, params, false);
    loss.arm_retransmit(at, pdc, record);
    return psn;
  }
  /// The retransmission timer of the PDC expires, as Timers has it.
  bool expire(Instant when) {
    Scheduler::stop_timer(pdc, PdcTimer::kRetransmit);
    return loss.on_retransmit_timer(when, pdc);
  }
  void note(Psn psn, TxEvent event) { SendWindow::move(pdc.tx, at(psn), event); }
  TxRecord& at(Psn psn) { return window.records().at(pdc.tx.ring, psn); }
  std::vector<std::uint32_t> to_resend() {
    std::vector<std::uint32_t> psns;
    for (Psn psn = pdc.tx.left_edge; psn != pdc.tx.next; ++psn)
      if (at(psn).state() == TxState::kQueued) psns.push_back(psn.value());
    return psns;
  }
  using Psns = std::vector<std::uint32_t>;

  Backpressure room;
  MessageTable messages;
  LossRecovery loss;
  LossEvidence evidence;
  Message* message = nullptr;
};

// Covers: PDS-54
TEST(LossRecovery, only_what_is_overdue_is_sent_again) {
  Loss t;
  t.send(kNow);
  t.send(kNow + Duration::from_us(50));
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{1000});
  EXPECT_TRUE(t.pdc.ready_hook.is_linked());
  EXPECT_EQ(t.pdc.deadline(PdcTimer::kRetransmit), kNow + Duration::from_us(150));
  EXPECT_EQ(t.trace.count(EventId::kTimeout), 1u);
}

TEST(LossRecovery, before_the_timeout_nothing_is_lost) {
  Loss t;
  t.send();
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(99)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{});
}

TEST(LossRecovery, on_retransmit_timer__is_false_when_the_limit_is_reached) {
  Loss t;
  const Psn psn = t.send();
  t.at(psn).rto_cnt = 2;
  t.at(psn).deadline = kNow;
  EXPECT_TRUE(t.expire(kNow));
  EXPECT_EQ(t.at(psn).rto_cnt, 3);
  t.loss.arm_retransmit(kNow, t.pdc, t.at(psn));
  t.at(psn).deadline = kNow;
  EXPECT_FALSE(t.expire(kNow));
}

TEST(LossRecovery, what_has_arrived_is_asked_about_and_not_sent_again) {
  Loss t;
  const Psn psn = t.send();
  t.note(psn, TxEvent::kArrived);
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{});
  EXPECT_EQ(t.at(psn).state(), TxState::kAskDue);
  EXPECT_EQ(t.pdc.pending_control, kSendAckRequests);
}

// Covers: PDS-56
TEST(LossRecovery, what_a_smaller_window_excludes_is_no_loss) {
  Loss t;
  const cc::Ccc& ccc = *t.pdc.tx.cc.if_any()->ccc;
  for (int i = 0; i < 3; ++i) t.send();
  const Psn suspected(1001), in_flight(1002);
  t.note(suspected, TxEvent::kOvertaken);
  t.pdc.tx.mp_range = 1;
  const auto window = ccc.window_bytes();
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.to_resend(), (Loss::Psns{1000, 1001, 1002}));
  EXPECT_EQ(t.trace.count(EventId::kTimeout), 1u);  // of the one that the window allows
  EXPECT_EQ(t.trace.count(EventId::kInferredLoss), 1u);
  EXPECT_EQ(ccc.window_bytes(), window - 1060);
  EXPECT_EQ(ccc.inflight_bytes(), 0);
  for (const Psn psn : {suspected, in_flight}) {
    EXPECT_EQ(t.at(psn).rto_cnt, 0);
    EXPECT_TRUE(t.at(psn).deadline.is_never());
  }
}

// Not to be sent again, nor to be asked about before the window allows it.
TEST(LossRecovery, what_a_smaller_window_excludes_and_has_arrived_stays) {
  Loss t;
  t.send();
  const Psn second = t.send();
  t.note(second, TxEvent::kArrived);
  t.pdc.tx.mp_range = 1;
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{1000});
  EXPECT_EQ(t.at(second).state(), TxState::kArrived);
  EXPECT_EQ(t.at(second).deadline, kNow + Duration::from_us(200));
}

// The sender half looks at no others when it asks: with a window of thousands the walk would cost more than the questions.
TEST(LossRecovery, what_is_to_be_asked_about_is_bounded) {
  Loss t;
  for (int i = 0; i < 6; ++i) t.send();
  EXPECT_EQ(t.pdc.tx.ask_from, t.pdc.tx.ask_end);
  for (const unsigned psn : {1002u, 1004u}) t.note(Psn(psn), TxEvent::kArrived);
  for (const unsigned psn : {1000u, 1001u, 1003u, 1005u}) t.note(Psn(psn), TxEvent::kAcknowledged);
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.pdc.tx.ask_from, Psn(1002));
  EXPECT_EQ(t.pdc.tx.ask_end, Psn(1005));
}

TEST(LossRecovery, on_rod_a_timeout_goes_back) {
  Loss t(Mode::kRod);
  for (int i = 0; i < 3; ++i) t.send();
  t.note(Psn(1001), TxEvent::kAcknowledged);
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.to_resend(), (Loss::Psns{1000, 1002}));
  EXPECT_EQ(t.trace.count(EventId::kTimeout), 1u);
}

TEST(LossRecovery, hold_back__pauses_until_its_time_and_counts) {
  Loss t;
  const Psn psn = t.send();
  t.loss.queue_resend(t.pdc, psn, t.at(psn), TxEvent::kRefused);
  t.loss.hold_back(t.pdc, psn, t.at(psn), kNow + Duration::from_ms(1), TxEvent::kPaused);
  EXPECT_EQ(t.pdc.tx.paused_count, 1u);
  EXPECT_EQ(t.pdc.tx.rtx_count, 0u);
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(999)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{});
  EXPECT_TRUE(t.expire(kNow + Duration::from_ms(1)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{1000});
  EXPECT_EQ(t.pdc.tx.paused_count, 0u);
  EXPECT_EQ(t.trace.count(EventId::kTimeout), 0u);
}

TEST(LossRecovery, on_tail_loss__asks_nothing_about_a_packet_that_was_refused_and_waits) {
  Loss t(Mode::kRud, [](PdsConfig& c) {
    c.tail_loss_time = Duration::from_us(50);
    c.tail_loss_asks = true;
    c.max_tail_loss_retx = 3;
  });
  const Psn psn = t.send();
  t.loss.queue_resend(t.pdc, psn, t.at(psn), TxEvent::kRefused);
  t.loss.hold_back(t.pdc, psn, t.at(psn), kNow + Duration::from_seconds(1), TxEvent::kPaused);
  t.loss.on_tail_loss(kNow + Duration::from_ms(10), t.pdc);
  EXPECT_EQ(t.pdc.pending_control & kSendProbe, 0);
  t.send(kNow + Duration::from_ms(10));
  t.loss.on_tail_loss(kNow + Duration::from_ms(20), t.pdc);
  EXPECT_NE(t.pdc.pending_control & kSendProbe, 0);
}

TEST(LossEvidence, what_later_packets_overtook_is_lost_after_the_reordering_window) {
  Loss t(Mode::kRud, [](PdsConfig& c) {
    c.reorder_window = Duration::from_us(20);
    c.rto_init_time = Duration::from_ms(10);
  });
  const Psn first = t.send(kNow);
  const Psn second = t.send(kNow + Duration::from_us(1));
  t.note(second, TxEvent::kAcknowledged);
  t.evidence.suspect_overtaken(kNow + Duration::from_us(200), t.pdc, t.pdc.tx.left_edge, second);
  ASSERT_EQ(t.at(first).state(), TxState::kSuspected);
  const Instant verdict = t.at(first).deadline;
  EXPECT_GE(verdict, kNow + Duration::from_us(220));
  EXPECT_TRUE(t.expire(verdict - Duration::from_ns(1)));
  EXPECT_EQ(t.to_resend(), Loss::Psns{});
  EXPECT_TRUE(t.expire(verdict));
  EXPECT_EQ(t.to_resend(), Loss::Psns{1000});
  EXPECT_TRUE(LossRecovery::is_losing(verdict, t.pdc));
}

// What an ACK costs does not grow with what has arrived behind the left edge.
TEST(LossEvidence, begins_with_the_first_packet_in_flight) {
  Loss t(Mode::kRud, [](PdsConfig& c) {
    c.reorder_window = Duration::from_us(20);
    c.rto_init_time = Duration::from_ms(10);
  });
  const auto us = [](int n) { return kNow + Duration::from_us(n); };
  const Psn a = t.send(us(0)), b = t.send(us(1)), c = t.send(us(2)), d = t.send(us(3));
  t.note(a, TxEvent::kArrived);
  t.note(c, TxEvent::kArrived);
  t.evidence.suspect_overtaken(us(100), t.pdc, t.pdc.tx.left_edge, a);
  EXPECT_EQ(t.pdc.tx.in_flight_from, a);  // nothing before `a`
  t.evidence.suspect_overtaken(us(101), t.pdc, t.pdc.tx.left_edge, c);
  EXPECT_EQ(t.at(b).state(), TxState::kSuspected);
  EXPECT_EQ(t.pdc.tx.in_flight_from, c);

  t.loss.queue_resend(t.pdc, b, t.at(b), TxEvent::kLost);
  t.note(b, TxEvent::kSent);
  t.pdc.tx.note_in_flight(b);
  t.at(b).deadline = us(20'000);
  t.note(d, TxEvent::kArrived);
  t.evidence.suspect_overtaken(us(102), t.pdc, t.pdc.tx.left_edge, d);
  EXPECT_EQ(t.at(b).state(), TxState::kSuspected);
  EXPECT_EQ(t.pdc.tx.in_flight_from, d);
}

TEST(LossRecovery, note_arrival__ends_what_was_thought_of_the_packet_and_lets_the_timeout_run) {
  Loss t;
  const Psn out = t.send(), queued = t.send(), paused = t.send();
  for (const Psn psn : {queued, paused}) t.loss.queue_resend(t.pdc, psn, t.at(psn), TxEvent::kLost);
  t.loss.hold_back(t.pdc, paused, t.at(paused), kNow + Duration::from_ms(1), TxEvent::kPaused);
  const Instant later = kNow + Duration::from_us(10);
  for (const Psn psn : {out, queued, paused})
    t.loss.note_arrival(later, t.pdc, t.at(psn), TxEvent::kArrived);
  EXPECT_EQ(t.at(out).deadline, kNow + Duration::from_us(100));  // its timeout was running
  EXPECT_EQ(t.at(queued).deadline, later + Duration::from_us(100));
  EXPECT_EQ(t.at(paused).deadline, later + Duration::from_us(100));
  EXPECT_EQ(t.pdc.tx.rtx_count + t.pdc.tx.paused_count, 0u);
}

// A control packet that was reported busy and then refused is a packet to be sent like any other.
TEST(LossRecovery, a_control_packet_that_was_refused_is_sent_again_after_its_timeout_too) {
  Loss t;
  const Psn psn = t.send();
  t.at(psn).message = nullptr;
  t.loss.note_arrival(kNow, t.pdc, t.at(psn), TxEvent::kBusy);
  t.loss.queue_resend(t.pdc, psn, t.at(psn), TxEvent::kRefused);
  t.note(psn, TxEvent::kSent);
  t.loss.arm_retransmit(kNow, t.pdc, t.at(psn));
  t.pdc.pending_control = 0;
  EXPECT_TRUE(t.expire(kNow + Duration::from_us(100)));
  EXPECT_EQ(t.pdc.pending_control, kResendControl);
  EXPECT_EQ(t.at(psn).state(), TxState::kQueued);
}

TEST(LossEvidence, infer_losses__counts_later_arrivals_of_the_same_path) {
  Loss t(Mode::kRud, [](PdsConfig& c) { c.sack_loss_thresh = 3; });
  const Psn lost = t.send(kNow);
  std::vector<Psn> later;
  for (int i = 1; i <= 4; ++i) later.push_back(t.send(kNow + Duration::from_us(i)));
  for (const Psn psn : later) t.at(psn).cc.entropy = t.at(lost).cc.entropy;
  t.note(later[0], TxEvent::kArrived);
  t.note(later[1], TxEvent::kArrived);
  t.at(later[3]).cc.entropy = static_cast<std::uint16_t>(t.at(lost).cc.entropy + 1);
  t.note(later[3], TxEvent::kArrived);
  t.evidence.infer_losses(kNow + Duration::from_us(50), t.pdc);
  EXPECT_EQ(t.to_resend(), Loss::Psns{});
  t.note(later[2], TxEvent::kArrived);
  t.evidence.infer_losses(kNow + Duration::from_us(50), t.pdc);
  EXPECT_EQ(t.to_resend(), Loss::Psns{1000});
}

}  // namespace
}  // namespace uet::pds::test
