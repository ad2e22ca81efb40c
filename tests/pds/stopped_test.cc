// Processes that are stopped for any time: a message that may have been delivered is never called undelivered. [PDS 16.5]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

/// Host 0 sends, host 1 delivers, the ACK is lost, and host 0 is stopped for `seconds`.
class Stopped {
 public:
  Stopped(int seconds, Mode mode, bool is_open) : w_(software_world()) {
    if (is_open) {
      w_.send(0, 1, 1, 100, mode);
      w_.run_for(us(100));
      w_.send(0, 1, 1, 100, mode);
      w_.run_for(us(100));
      EXPECT_EQ(w_.host(0).ses.responses.size(), 2u);
    }
    w_.add_rule([this](const Seen& s, Fate& f) { f.drop = is_cut_ && s.from == 1; });
    token_ = w_.send(0, 1, 1, 100, mode);
    w_.run_for(us(100));
    EXPECT_EQ(deliveries(), 1u);
    w_.stop_process(0);
    w_.run_for(ms(1));
    is_cut_ = false;
    w_.run_for(Duration::from_seconds(seconds));
    w_.continue_process(0);
    w_.run_for(Duration::from_seconds(3));
  }
  std::size_t deliveries() {
    const auto all = w_.host(1).ses.tokens_delivered();
    return static_cast<std::size_t>(std::count(all.begin(), all.end(), token_));
  }
  World& world() { return w_; }
  MessageToken token() const { return token_; }

 private:
  World w_;
  bool is_cut_ = true;
  MessageToken token_ = 0;
};

// The target forgets a PDC after the peer timeout. A sender that wakes up later must not take that for proof.
TEST(StoppedSender, never_believes_that_a_delivered_message_was_not) {
  for (const Mode mode : {Mode::kRud, Mode::kRod})
    for (const bool is_open : {false, true})
      for (const int seconds : {1, 3, 30, 59, 61, 63, 65, 120, 300}) {
        SCOPED_TRACE(testing::Message() << seconds << " s, open before: " << is_open);
        Stopped x(seconds, mode, is_open);
        const auto& ses = x.world().host(0).ses;
        EXPECT_EQ(x.deliveries(), 1u);
        ASSERT_EQ(ses.responses_of(x.token()) + ses.failures.size(), 1u);
        for (const Failure& f : ses.failures) EXPECT_FALSE(was_not_delivered(f.error));
        if (seconds < 59) {
          EXPECT_TRUE(ses.failures.empty());
        }
      }
}

// What is first sent when the PDC is gone was certainly not delivered, and may go on another one.
TEST(StoppedSender, is_told_what_certainly_did_not_arrive) {
  Open x(software_world([](auto& o) { o.pds.forced_start_psn = 1000; }));
  x.w.stop_process(0);
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 1 && !s.is_nack(); });
  x.w.run_for(Duration::from_seconds(200));
  ASSERT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  x.w.host(0).is_stopped = false;
  for (int i = 0; i < 3; ++i) x.w.send(0, 1, 2);
  x.w.run_for(ms(100));
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 3u);
  for (const Failure& f : x.w.host(0).ses.failures) EXPECT_EQ(f.error, PdsError::kPeerLost);
}

// One that had been out before: in doubt. Those behind it were sent after the first refused transmission, or not at all.
TEST(StoppedSender, tells_each_message_its_own_fate) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_request() || s.from == 1; });
  x.w.send(0, 1);
  x.w.run_for(ms(5));
  ASSERT_GE(x.w.requests(0).size(), 2u);
  x.w.send(0, 1);
  x.w.pump();
  x.w.inject(0, x.w.host(1).address, x.nack(NackCode::kInvDpdcid, x.next + 1));
  const auto& failures = x.w.host(0).ses.failures;
  ASSERT_EQ(failures.size(), 2u);
  EXPECT_EQ(failures[0].error, PdsError::kInDoubt);
  EXPECT_EQ(failures[1].error, PdsError::kPeerLost);
}

// A job is suspended: the peer was stopped as well, and its silence says nothing.
TEST(StoppedPair, the_one_that_wakes_first_waits_for_the_other) {
  for (const Mode mode : {Mode::kRud, Mode::kRod})
    for (const int seconds : {30, 61, 300, 4000}) {
      SCOPED_TRACE(seconds);
      Open x(software_world(), mode);
      x.w.stop_process(1);
      const MessageToken token = x.w.send(0, 1, 1, 100, mode);
      x.w.run_for(us(100));
      x.w.stop_process(0);
      x.w.run_for(Duration::from_seconds(seconds));
      x.w.continue_process(0);
      x.w.run_for(Duration::from_seconds(2));
      x.w.continue_process(1);
      x.w.run_for(Duration::from_seconds(3));
      EXPECT_TRUE(x.w.host(0).ses.failures.empty());
      EXPECT_EQ(x.w.host(0).ses.responses_of(token), 1u);
    }
}

// But a peer that is gone is given up: awake, the process hears nothing for as long as it has patience.
TEST(StoppedPair, peer_that_never_wakes_is_given_up) {
  Open x(software_world());
  x.w.stop_process(1);
  x.w.send(0, 1, 1, 100);
  x.w.run_for(us(100));
  x.w.stop_process(0);
  x.w.run_for(Duration::from_seconds(300));
  x.w.continue_process(0);
  x.w.run_for(Duration::from_seconds(59));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  x.w.run_for(Duration::from_seconds(2));
  EXPECT_EQ(x.w.host(0).ses.failures.size(), 1u);
}

/// Host 1 has delivered what host 0 sent, and for `seconds` nothing comes through in either direction.
class Outage {
 public:
  Outage(int peer_timeout, bool is_open, int seconds)
      : w_(software_world(
            [&](WorldOptions& o) { o.pds.peer_timeout = Duration::from_seconds(peer_timeout); })) {
    for (int i = 0; is_open && i < 2; ++i) {
      w_.send(0, 1, 1, 100);
      w_.run_for(us(100));
    }
    bool acks_get_lost = true, is_cut = false;
    w_.add_rule([&](const Seen& s, Fate& f) { f.drop = is_cut || (acks_get_lost && s.from == 1); });
    const MessageToken token = w_.send(0, 1, 1, 100);
    w_.run_for(us(100));
    is_cut = true;
    w_.run_for(Duration::from_seconds(seconds));
    is_cut = acks_get_lost = false;
    w_.run_for(Duration::from_seconds(3));
    w_.clear_rules();
    const auto all = w_.host(1).ses.tokens_delivered();
    deliveries = static_cast<std::size_t>(std::count(all.begin(), all.end(), token));
    failures = w_.host(0).ses.failures.size();
  }
  std::size_t deliveries = 0, failures = 0;

 private:
  World w_;
};

// Whatever peer_timeout says: a target cannot remember for ever what opened a PDC.
TEST(Outage, what_opens_a_pdc_is_never_delivered_twice) {
  for (const int peer_timeout : {0, 60, 600})
    for (const int seconds : {30, 59, 63, 65, 90, 700}) {
      const Outage x(peer_timeout, false, seconds);
      EXPECT_EQ(x.deliveries, 1u) << peer_timeout << ", " << seconds;
      EXPECT_EQ(x.failures, seconds < 60 ? 0u : 1u) << peer_timeout << ", " << seconds;
    }
}

TEST(Outage, an_open_pdc_outlives_it_for_as_long_as_peer_timeout_says) {
  for (const int peer_timeout : {0, 600})
    for (const int seconds : {63, 90, 590}) {
      const Outage x(peer_timeout, true, seconds);
      EXPECT_EQ(x.deliveries, 1u) << peer_timeout << ", " << seconds;
      EXPECT_EQ(x.failures, 0u) << peer_timeout << ", " << seconds;
    }
}

}  // namespace
}  // namespace uet::pds::test
