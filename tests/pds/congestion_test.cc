// Which CCC a PDC gets, how the destination tells them apart, and what the next one learns of the one before. [CC 3.1, 3.8]
#include "pds/congestion.h"

#include <set>

#include "tests/pds/harness.h"
#include "tests/pds/open_pdc.h"
#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

struct Contexts : Parts {
  Congestion& attach(std::uint32_t peer) {
    Congestion* congestion = congestions.attach(kNow, address_of(peer), 0, false);
    EXPECT_NE(congestion, nullptr);
    return *congestion;
  }
};

// They share an account at the destination otherwise, and the grants of one go to the other.
TEST(Congestion, attach__live_contexts_towards_a_peer_have_different_ids) {
  Contexts t;
  Congestion& lives = t.attach(2);
  for (int i = 0; i < 600; ++i) {
    Congestion& next = t.attach(2);
    EXPECT_NE(next.ccc->id(), lives.ccc->id());
    t.congestions.detach(next);
  }
  t.congestions.detach(lives);
}

TEST(Congestion, attach__another_peer_may_have_the_same_id) {
  Contexts t;
  std::set<int> ids;
  Congestion& lives = t.attach(2);
  for (int i = 0; i < 600; ++i) {
    Congestion& other = t.attach(3);
    ids.insert(other.ccc->id());
    t.congestions.detach(other);
  }
  EXPECT_EQ(ids.size(), 256u);
  t.congestions.detach(lives);
}

// A message whose answer took long measures nothing. Its CCC leaves no base RTT behind that would keep the next one from measuring. [CC 4.9]
TEST(Congestion, detach__leaves_a_base_rtt_only_where_one_was_measured) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(1); }));
  w.delay =
      us(15);  // the network is full: an answer takes longer than one may at most without queues
  w.send(0, 1);
  w.run_for(ms(5));
  ASSERT_TRUE(w.host(0).pds->is_idle());
  ASSERT_TRUE(w.controls(0, ControlType::kProbe).empty());
  w.log.clear();
  w.delay = us(5);
  w.send(0, 1, 2000, 4000);
  w.run_for(ms(5));
  EXPECT_FALSE(w.controls(0, ControlType::kProbe).empty());
}

/// The PDC that carried the questions of a CCC ends, and another one goes on.
TEST(Congestion, questions_leave_on_a_pdc_that_is_still_open) {
  World w(with([](auto& o) {
    o.pds.pdc_spread_bytes = 1;
    o.pds.rto_init_time = us(200);
    o.pds.max_rto_retx_cnt = 1;
  }));
  w.delay = us(15);  // nothing is measured, as above
  w.send(0, 1);
  w.run_for(us(100));
  const std::uint16_t first = w.requests(0).back().spdcid;
  w.add_rule([=](const Seen& s, Fate& f) { f.drop = s.from == 0 && s.spdcid == first; });
  w.send(0, 1);
  for (int i = 0; i < 20; ++i) {
    w.send(0, 1);
    w.run_for(us(100));
  }
  const std::uint16_t second = w.requests(0).back().spdcid;
  ASSERT_NE(second, first);
  ASSERT_EQ(w.host(0).pds->gauges().pdcs_open, 1u) << "the first one has failed";
  w.log.clear();
  w.delay = us(5);
  w.send(0, 1, 2000, 4000);
  w.run_for(us(800));
  EXPECT_EQ(w.requests(0).back().spdcid, second);
  EXPECT_FALSE(w.controls(0, ControlType::kProbe).empty());
}

/// Host 1 reads from host 0, which also opens PDCs to host 1 that nothing answers. All share one window.
struct Unanswered : World {
  static constexpr int kSegments = 3;
  explicit Unanswered(std::int64_t gbps) : World(options(gbps)) {
    host(0).ses.answer = [this](const RxRequest& request, auto&) {
      const TxMessage data = message(1, kSegments);
      host(0).ses.messages[data.token] = data;
      EXPECT_EQ(host(0).pds->submit_return(now(), request.handle, data), SubmitResult::kQueued);
      return ScriptedSes::respond();
    };
    host(1).ses.answer = [this](const RxRequest& request, const Delivery& d) {
      got += request.handle.return_direction;
      if (d.segment == kSegments - 1) read_on = request.handle.pdc;
      return ScriptedSes::respond();
    };
    add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 0 && s.syn; });
    for (int i = 0; i < 2; ++i) read();
  }
  static WorldOptions options(std::int64_t gbps) {
    return software_world([&](auto& o) {
      o.pds.max_pdc_per_key = 4;
      o.pds.pdc_spread_bytes = 4000;
      o.cc.link_rate = base::BitRate::from_gbps(gbps);
      o.cc.config_base_rtt = us(100);
    });
  }
  void read() {
    TxMessage m = message(0, 1, 100);
    m.lock = true;
    World::send(1, m);
    run_for(ms(1));
    if (read_on) host(1).pds->unlock(now(), *read_on);
  }
  int got = 0;
  std::optional<PdcRef> read_on;
};

TEST(Congestion, pdcs_that_no_target_answers_leave_the_window_to_the_others) {
  Unanswered w(1);
  for (int i = 0; i < 4; ++i) w.send(0, 1, 10);
  w.run_for(ms(100));
  w.got = 0;
  for (int i = 0; i < 200; ++i) w.read();
  EXPECT_EQ(w.got, 200 * Unanswered::kSegments);
}

TEST(Congestion, a_pdc_that_no_target_answers_sends_one_packet_per_timeout) {
  Unanswered w(100);
  const MessageToken m = w.send(0, 1, 10);
  w.run_for(ms(21));  // the first burst, and its timeouts
  w.log.clear();
  w.run_for(Duration::from_seconds(1));
  const auto asked = w.requests(0);
  ASSERT_GT(asked.size(), 5u);
  for (std::size_t i = 1; i < asked.size(); ++i) {
    EXPECT_GE((asked[i].at - asked[i - 1].at).ns(), ms(20).ns());
    EXPECT_EQ(asked[i].psn, asked[0].psn);
  }
  w.clear_rules();  // and all of it when one does
  w.run_for(ms(110));
  EXPECT_EQ(w.host(0).ses.responses_of(m), 10u);
}

}  // namespace
}  // namespace uet::pds::test
