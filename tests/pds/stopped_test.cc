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

}  // namespace
}  // namespace uet::pds::test
