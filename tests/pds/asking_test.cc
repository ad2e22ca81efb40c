// When a source asks for ACKs: messages that may not wait ask, others leave it to those behind them. [PDS 8, decision 167]
#include "pds/asking.h"

#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

constexpr Duration kTailSilence = Duration::from_us(400);
constexpr Duration kPatience = Duration::from_us(100);
constexpr int kPrompt = 32;

WorldOptions patient(std::function<void(WorldOptions&)> change = [](auto&) {}) {
  return with([&](auto& o) {
    o.pds.tail_loss_time = kTailSilence;
    o.pds.tail_loss_asks = true;
    o.pds.rto_init_time = ms(20);
    change(o);
  });
}

/// Messages whose ACK may wait, over one PDC.
struct Patient : Open {
  explicit Patient(const WorldOptions& o = patient(), Mode m = Mode::kRud) : Open(o, m) {}
  MessageToken send(bool may_wait = true, std::uint32_t segments = 1) {
    TxMessage m = w.message(1, segments, 100, mode);
    m.ack_may_wait = may_wait;
    return w.send(0, m);
  }
  /// The process of the source does nothing for so long, and goes on.
  void stop_for(Duration time) {
    w.pump();
    w.stop_process(0);
    w.run_for(time);
    w.continue_process(0);
    w.run_until_quiet();
  }
  std::vector<bool> asked() const {
    std::vector<bool> out;
    for (const Seen& s : w.requests(0)) out.push_back(s.ar);
    return out;
  }
  std::size_t probes() const { return w.controls(0, ControlType::kProbe).size(); }
  std::size_t answered() { return w.host(0).ses.responses.size() - 1; }
};
using Asked = std::vector<bool>;

TEST(AskingPolicy, message_that_is_waited_for_asks_when_none_follows) {
  Asking a;
  const Instant t = Instant::from_ns(1'000'000);
  EXPECT_TRUE(a.at_end(t, false, true, kPatience));
  a.on_sent(t, Psn(1), true, true);
  EXPECT_FALSE(a.at_end(t, false, false, kPatience));
  a.on_sent(t, Psn(2), false, true);
  EXPECT_TRUE(a.is_unasked(Psn(2)));
  EXPECT_FALSE(a.is_unasked(Psn(1)));
  EXPECT_FALSE(a.at_end(t + us(9), false, false, kPatience));
  EXPECT_TRUE(a.at_end(t + us(10), false, false, kPatience));
}

TEST(AskingPolicy, packet_inside_a_message_leaves_nothing_unasked) {
  Asking a;
  a.on_sent(Instant::from_ns(1'000'000), Psn(1), false, false);
  EXPECT_FALSE(a.has_unasked());
}

TEST(AskingPolicy, without_patience_every_message_is_waited_for) {
  Asking a;
  EXPECT_TRUE(a.at_end(Instant::from_ns(1'000'000), true, true, Duration{}));
}

TEST(AskingPolicy, patience_counts_from_the_first_that_did_not_ask) {
  Asking a;
  const Instant t = Instant::from_ns(1'000'000);
  EXPECT_FALSE(a.at_end(t, true, true, kPatience));
  a.on_sent(t, Psn(1), false, true);
  EXPECT_FALSE(a.at_end(t + us(60), true, true, kPatience));
  a.on_sent(t + us(60), Psn(2), false, true);
  EXPECT_TRUE(a.at_end(t + us(100), true, true, kPatience));
  a.on_sent(t + us(100), Psn(3), true, true);
  EXPECT_FALSE(a.has_unasked());
  EXPECT_FALSE(a.at_end(t + us(101), true, true, kPatience));
}

TEST(Asking, acknowledgement_that_may_wait_comes_with_that_of_a_later_message) {
  Patient x;
  for (int i = 0; i < 5; ++i) {
    x.send();
    x.w.run_for(us(30));
  }
  EXPECT_EQ(x.asked(), (Asked{false, false, false, false, true}));
  EXPECT_EQ(x.answered(), 5u);
  EXPECT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.probes(), 0u);
}

TEST(Asking, target_is_not_asked_for_each_of_many) {
  Patient x;
  for (int i = 0; i < 400; ++i) {
    x.send();
    x.w.run_for(us(1));
  }
  x.w.run_until_quiet();
  EXPECT_EQ(x.answered(), 400u);
  EXPECT_LE(x.w.acks(1).size(), 400u / 16 + 6) << "the destination acknowledges every 16th unasked";
  EXPECT_LE(x.probes(), 1u);
}

TEST(Asking, last_message_is_asked_about_after_silence_and_the_next_ones_ask_themselves) {
  Patient x;
  x.send();
  x.w.run_for(kTailSilence - us(1));
  EXPECT_EQ(x.answered(), 0u);
  x.w.run_for(us(20));
  EXPECT_EQ(x.answered(), 1u);
  EXPECT_EQ(x.probes(), 1u);
  for (int i = 0; i < kPrompt; ++i) {
    x.send();
    x.w.run_for(us(20));
    EXPECT_EQ(x.answered(), static_cast<std::size_t>(i) + 2);
  }
  EXPECT_EQ(x.probes(), 1u);
  x.w.log.clear();
  x.send();
  x.w.run_for(us(20));
  EXPECT_EQ(x.asked(), Asked{false}) << "tried again";
  x.w.run_until_quiet();
  EXPECT_EQ(x.probes(), 1u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
}

TEST(Asking, peer_that_knows_no_probe_is_asked_at_once) {
  Patient x(patient([](auto& o) { o.pds.tail_loss_time = Duration{}; }));
  x.send();
  x.w.run_until_quiet();
  EXPECT_EQ(x.asked(), Asked{true});
  Patient y(patient([](auto& o) { o.pds.tail_loss_asks = false; }));
  y.send();
  y.w.run_until_quiet();
  EXPECT_EQ(y.asked(), Asked{true});
}

TEST(Asking, target_that_is_not_known_yet_is_asked) {
  World w(patient());
  for (int i = 0; i < 3; ++i) {
    TxMessage m = w.message(1, 1, 100);
    m.ack_may_wait = true;
    w.send(0, m);
    w.pump();
  }
  for (const Seen& s : w.requests(0)) {
    EXPECT_TRUE(s.syn);
    EXPECT_TRUE(s.ar);
  }
}

TEST(Asking, target_that_refuses_and_dies_is_silent) {
  Patient x(patient([](auto& o) {
    o.pds.peer_timeout = ms(200);
    o.pds.nack_retx_time = Duration::from_seconds(1);
    o.pds.max_nack_retx_cnt = 31;
  }));
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(); };
  x.send();
  x.w.run_for(us(50));
  silence(x.w, 1);
  x.w.run_for(Duration::from_seconds(2));
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kPeerSilent);
}

TEST(Asking, message_that_is_waited_for_asks_for_those_around_it) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Patient x(patient(), mode);
    x.send(true);
    x.send(false);
    x.send(true);
    x.w.run_for(us(20));
    EXPECT_EQ(x.asked(), (Asked{false, false, true}));
    EXPECT_EQ(x.answered(), 3u);
    x.w.log.clear();
    x.send(true);
    x.w.run_for(us(20));
    x.send(false);
    x.w.run_for(us(20));
    EXPECT_EQ(x.asked(), (Asked{false, true}));
    EXPECT_EQ(x.answered(), 5u);
  }
}

// Nothing that may wait comes last where something else does not let the next one go.
TEST(Asking, full_congestion_window_asks_as_ever) {
  std::vector<Asked> asked;
  for (const bool may_wait : {false, true}) {
    Patient x(patient([](auto& o) {
      o.cc.mtu_bytes = 2048;
      o.cc.config_base_rtt = us(1);
      o.cc.link_rate = base::BitRate::from_gbps(1);
    }));
    for (int i = 0; i < 200; ++i) x.send(may_wait || i % 2 == 0, 4);
    x.send(false, 4);
    x.w.run_until_quiet();
    EXPECT_EQ(x.answered(), 804u);
    asked.push_back(x.asked());
  }
  EXPECT_EQ(asked[0], asked[1]);
}

TEST(Asking, lost_message_is_found_by_the_question_of_another) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Patient x(patient([](auto& o) { o.pds.reorder_window = us(20); }), mode);
    x.w.drop_nth(0, 2, first_copy);
    for (int i = 0; i < 6; ++i) {
      x.send();
      x.w.run_for(us(30));
    }
    x.w.run_for(us(150));
    EXPECT_EQ(x.answered(), 6u);
    EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  }
}

TEST(Asking, lost_last_message_is_found_by_the_probe) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Patient x(patient([](auto& o) { o.pds.reorder_window = us(20); }), mode);
    x.w.drop_nth(0, 1, first_copy);
    x.send();
    x.w.run_for(kTailSilence + us(100));
    EXPECT_EQ(x.answered(), 1u);
    EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  }
}

TEST(Asking, lost_probe_is_followed_by_others_and_by_the_timeout) {
  Patient x(patient([](auto& o) { o.pds.max_tail_loss_retx = 1; }));
  x.w.drop_nth(0, 1, first_copy);
  x.w.drop_nth(0, 1, [](const Seen& s) { return s.is_control(ControlType::kProbe); });
  x.send();
  x.w.run_until_quiet();
  EXPECT_EQ(x.answered(), 1u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 1u);
}

// The process computes for longer than the timeout, and its message was not asked for: nothing was lost.
TEST(Asking, timeout_begins_with_the_question) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Patient x(patient(), mode);
    x.send();
    x.send();
    x.stop_for(ms(100));
    EXPECT_EQ(x.answered(), 2u);
    EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
    EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
    EXPECT_EQ(x.probes(), 1u);
  }
}

TEST(Asking, peer_that_was_not_asked_is_not_silent) {
  Patient x(patient([](auto& o) { o.pds.peer_timeout = ms(50); }));
  x.send();
  x.stop_for(ms(200));
  EXPECT_EQ(x.answered(), 1u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

TEST(Asking, peer_that_does_not_answer_the_question_is_silent) {
  Patient x(patient([](auto& o) { o.pds.peer_timeout = ms(50); }));
  silence(x.w, 1);
  x.send();
  x.w.run_for(ms(120));
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kPeerSilent);
}

TEST(Asking, hurry_asks_for_what_has_left) {
  Patient x;
  const MessageToken token = x.send();
  x.w.run_for(us(20));
  EXPECT_EQ(x.answered(), 0u);
  x.w.host(0).pds->hurry(x.w.now(), token);
  x.w.run_for(us(20));
  EXPECT_EQ(x.answered(), 1u);
  EXPECT_EQ(x.probes(), 1u);
  x.w.host(0).pds->hurry(x.w.now(), token);  // is over
  x.w.run_for(us(20));
  EXPECT_EQ(x.probes(), 1u);
  x.send();
  x.w.run_for(us(20));
  EXPECT_EQ(x.answered(), 1u) << "nothing was wrong with waiting";
}

TEST(Asking, hurry_lets_what_is_queued_ask) {
  Patient x;
  const MessageToken token = x.send();
  x.w.pump();
  TxMessage behind = x.w.message(1, 1, 100);
  behind.ack_may_wait = true;
  behind.token = x.w.next_token++;
  x.w.host(0).ses.messages[behind.token] = behind;
  ASSERT_EQ(x.w.host(0).pds->submit(x.w.now(), behind), SubmitResult::kQueued);
  x.w.host(0).pds->hurry(x.w.now(), token);
  x.w.run_for(us(20));
  EXPECT_EQ(x.asked(), (Asked{false, true}));
  EXPECT_EQ(x.probes(), 0u);
  EXPECT_EQ(x.answered(), 2u);
}

TEST(Asking, closing_does_not_wait_for_silence) {
  Patient x;
  x.send();
  x.w.run_for(us(20));
  x.w.host(0).pds->close_all(x.w.now());
  x.w.run_for(us(50));
  EXPECT_EQ(x.answered(), 1u);
  EXPECT_EQ(x.w.host(0).ses.closed.size(), 1u);
}

// The ACK of a packet that is sent again tells of all that was sent before it.
TEST(Asking, packet_that_is_sent_again_asks_for_all) {
  Patient x(patient([](auto& o) { o.pds.nack_retx_time = us(10); }));
  int arrivals = 0;
  x.w.host(1).ses.answer = [&](auto&, auto&) {
    return ++arrivals == 2 ? ScriptedSes::refuse() : ScriptedSes::respond();
  };
  x.send();
  x.send();
  x.w.run_for(us(60));
  EXPECT_EQ(x.answered(), 2u);
  EXPECT_EQ(x.asked(), (Asked{false, false, true}));
  x.w.run_for(us(60));
  x.w.log.clear();
  x.send();
  x.w.pump();
  EXPECT_EQ(x.asked(), Asked{false}) << "its time has just begun";
}

TEST(Asking, credit_changes_nothing) {
  Patient x(patient([](auto& o) { o.cc.algorithm = cc::Algorithm::kRccc; }));
  x.w.run_for(ms(1));
  x.send();
  x.w.run_for(us(40));
  EXPECT_EQ(x.asked(), Asked{false});
  x.w.run_until_quiet();
  EXPECT_EQ(x.answered(), 1u);
}

TEST(Asking, messages_after_a_loss_ask_each) {
  Patient x(patient([](auto& o) { o.pds.reorder_window = us(20); }));
  x.w.drop_nth(0, 1, first_copy);
  x.send(false);
  x.send(false);
  x.w.run_for(ms(1));
  EXPECT_EQ(x.answered(), 2u);
  x.w.log.clear();
  x.send(true);
  x.w.run_for(us(20));
  EXPECT_EQ(x.asked(), Asked{true});
}

}  // namespace
}  // namespace uet::pds::test
