// Tables with fewer places than there are peers. [PDS 5.2]
#include <algorithm>
#include <deque>

#include "tests/pds/harness.h"

namespace uet::pds::test {
namespace {

WorldOptions with(const std::function<void(WorldOptions&)>& change) {
  WorldOptions o;
  change(o);
  return o;
}

/// Submits messages of one host, and those that were refused again as soon as it is invited to.
class Sender {
 public:
  Sender(World& w, int host) : w_(w), host_(host) {
    ses().on_resume_hook = [this] { go_on(); };
  }
  MessageToken send(int to, std::uint32_t segments = 1) {
    const TxMessage m = w_.message(to, segments);
    ses().messages[m.token] = m;
    waiting_.push_back(m);
    go_on();
    return m.token;
  }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  ScriptedSes& ses() { return w_.host(host_).ses; }
  void go_on() {
    for (std::size_t left = waiting_.size(); left > 0; --left) {
      const TxMessage m = waiting_.front();
      waiting_.pop_front();
      if (w_.host(host_).pds->submit(w_.now(), m) == SubmitResult::kAgain) waiting_.push_back(m);
    }
  }

  World& w_;
  int host_;
  std::deque<TxMessage> waiting_;
};

WorldOptions tiny(int hosts, Duration rto_max = ms(20)) {
  return with([&](auto& o) {
    o.hosts = hosts;
    o.pds.max_pdc = 4;
    o.pds.max_nack_retx_cnt = 31;
    o.pds.rto_max = rto_max;
  });
}

// All hosts open PDCs to all at once: none may fill its table with PDCs that wait to be accepted.
TEST(FullTable, endpoints_that_all_send_to_all_accept_each_other) {
  constexpr int kHosts = 6;
  World w(tiny(kHosts));
  std::deque<Sender> senders;
  for (int h = 0; h < kHosts; ++h) senders.emplace_back(w, h);
  for (int h = 0; h < kHosts; ++h)
    for (int to = 0; to < kHosts; ++to)
      if (to != h) senders[static_cast<std::size_t>(h)].send(to, 3);
  w.run_for(Duration::from_seconds(2));
  for (int h = 0; h < kHosts; ++h) {
    EXPECT_EQ(senders[static_cast<std::size_t>(h)].waiting(), 0u) << h;
    EXPECT_EQ(w.host(h).ses.delivered.size(), 3u * (kHosts - 1)) << h;
    EXPECT_TRUE(w.host(h).ses.failures.empty()) << h;
  }
}

TEST(FullTable, a_busy_pdc_drains_when_others_wait) {
  World w(tiny(5));
  Sender sender(w, 0);
  // Three places are left for those who open, and all three always have work.
  w.host(0).ses.on_response_hook = [&](MessageToken token) {
    if (token < 1000) {
      const int to = 1 + static_cast<int>(token % 3);
      TxMessage m = w.message(to);
      w.host(0).ses.messages[m.token] = m;
      if (w.host(0).pds->submit(w.now(), m) == SubmitResult::kAgain) --w.next_token;
    }
  };
  for (int i = 0; i < 30; ++i) sender.send(1 + i % 3, 2);
  w.run_for(us(100));
  const MessageToken late = sender.send(4);
  w.run_for(ms(30));
  EXPECT_EQ(w.host(0).ses.responses_of(late), 1u);
}

// Its peer is gone, and all that is left of its PDC is a Close Command that no peer answers.
TEST(FullTable, an_idle_pdc_whose_peer_is_gone_gives_its_place_up_soon) {
  World w(software_world([](auto& o) {
    o.hosts = 8;
    o.pds.max_pdc = 8;
    o.pds.pdc_idle_time = Duration{};
  }));
  Sender sender(w, 0);
  for (int to = 1; to <= 6; ++to)  // two places are for those who open
    for (int i = 0; i < 2; ++i) {
      sender.send(to);
      w.run_for(ms(2));
    }
  w.stop_process(1);
  const MessageToken waiting = sender.send(7);
  EXPECT_EQ(sender.waiting(), 1u);
  w.run_for(ms(400));
  EXPECT_EQ(sender.waiting(), 0u);
  w.run_for(ms(1));
  EXPECT_EQ(w.host(0).ses.responses_of(waiting), 1u);
  EXPECT_TRUE(w.host(0).ses.failures.empty());
}

// Told to come back later, the initiator is the silent one.
TEST(FullTable, a_pause_is_no_silence_of_the_peer) {
  World w(with([](auto& o) {
    o.pds.peer_timeout = ms(50);
    o.pds.nack_retx_time = ms(80);
    o.pds.max_rto_retx_cnt = 15;
  }));
  int refusals = 0;
  w.host(1).ses.answer = [&](auto&, auto&) {
    return ++refusals <= 4 ? ScriptedSes::refuse() : ScriptedSes::respond();
  };
  w.send(0, 1);
  w.run_for(ms(600));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(refusals, 5);
}

// A peer cannot be silent towards a PDC that has sent it nothing: another PDC of the same CCC is being refused, and there is no
// credit for this one.
TEST(FullTable, a_pdc_that_has_sent_nothing_waits_for_no_answer) {
  WorldOptions o = tiny(5, ms(5));
  o.cc.algorithm = cc::Algorithm::kRccc;
  o.pds.peer_timeout = ms(50);
  o.pds.pdc_spread_bytes = 1000;
  o.pds.max_pdc_per_key = 2;
  World w(o);
  std::vector<RxHandle> waiting;
  w.host(4).ses.answer = [&](const RxRequest& r, auto&) {
    waiting.push_back(r.handle);
    return ScriptedSes::later();
  };
  for (int i = 1; i < 4; ++i) w.send(i, 4);
  w.run_for(ms(1));
  w.log.clear();
  w.send(0, 4, 400);
  w.pump();
  w.send(0, 4);
  w.run_for(ms(300));
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_half_open, 2u);
  for (const Seen& s : w.requests(0)) ASSERT_EQ(s.spdcid, w.requests(0).front().spdcid);
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  w.host(4).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(); };
  for (const RxHandle& h : waiting) w.host(4).pds->respond(w.now(), h, {}, false);
  w.run_for(ms(300));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  EXPECT_EQ(w.host(0).ses.responses.size(), 401u);
}

// Who asks for credit for all PDCs to a peer may be one that the peer, started again, does not know: nothing of its own is
// under way there, and the peer says nothing.
TEST(FullTable, a_pdc_that_its_peer_forgot_stops_asking_for_credit) {
  World w(with([](auto& o) {
    o.cc.algorithm = cc::Algorithm::kRccc;
    o.pds.peer_timeout = ms(50);
  }));
  w.host(0).ses.answer = [&](const RxRequest& r, auto&) {
    const TxMessage m = w.message(1, 1, 500);
    w.host(0).ses.messages[m.token] = m;
    EXPECT_EQ(w.host(0).pds->submit_return(w.now(), r.handle, m), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  w.send(1, 0);
  w.run_until_quiet();
  const std::uint16_t unknown = w.requests(0).at(0).spdcid;
  w.add_rule([unknown](const Seen& s, Fate& f) {
    f.drop = s.from == 0 && (s.spdcid == unknown || s.is_request());
  });
  w.send(0, 1, 400);
  w.run_for(ms(1));
  wire::PdsNack gone;  // the PDC of these packets goes, and their credit with it
  gone.nack_code = NackCode::kInvDpdcid;
  gone.nack_psn = w.requests(0).back().psn;
  gone.dpdcid = w.requests(0).back().spdcid;
  w.inject(0, w.host(1).address, gone);
  w.clear_rules();
  w.add_rule([unknown](const Seen& s, Fate& f) { f.drop = s.from == 0 && s.spdcid == unknown; });
  w.send(0, 1, 3);
  w.run_for(ms(200));
  EXPECT_EQ(w.host(0).ses.responses.size(), 1u + 3u);
}

// Host 0 has no place for the PDC that host 1 opens, whose refused packets spend all that may leave without credit. What host 1
// returns on the PDC of host 0 needs no place, and what waits for it holds places elsewhere: it must ask for credit of its own.
TEST(FullTable, read_data_does_not_wait_for_a_pdc_that_is_refused) {
  WorldOptions o = tiny(5);
  o.cc.algorithm = cc::Algorithm::kRccc;
  World w(o);
  w.host(0).ses.answer = [](auto&, auto&) { return ScriptedSes::later(); };
  for (int i = 2; i < 5; ++i) w.send(i, 0);
  RxHandle read;
  w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    read = r.handle;
    return ScriptedSes::respond();
  };
  for (int i = 0; i < 2; ++i) {  // the second one proves that host 0 hears host 1
    w.send(0, 1);
    w.run_for(ms(1));
  }
  w.send(1, 0, 400);
  w.run_for(ms(10));
  ASSERT_EQ(w.host(1).pds->gauges().pdcs_half_open, 1u);
  w.host(0).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(); };
  w.host(0).ses.delivered.clear();
  const TxMessage data = w.message(0, 20);
  w.host(1).ses.messages[data.token] = data;
  ASSERT_EQ(w.host(1).pds->submit_return(w.now(), read, data), SubmitResult::kQueued);
  w.run_for(ms(20));
  EXPECT_EQ(w.host(0).ses.delivered.size(), 20u);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_half_open, 1u);
}

// Covers: PDS-24
TEST(FullTable, who_was_refused_for_long_still_asks_often) {
  World w(tiny(5, ms(8)));
  w.host(4).ses.answer = [](auto&, auto&) { return ScriptedSes::later(); };
  Sender first(w, 0), second(w, 1), third(w, 2), fourth(w, 3);
  first.send(4);
  second.send(4);
  third.send(4);
  w.run_for(ms(1));
  fourth.send(4);
  w.run_for(ms(400));
  std::vector<Seen> asked;
  for (const Seen& s : w.requests(3)) asked.push_back(s);
  ASSERT_GT(asked.size(), 10u);
  for (std::size_t i = 1; i < asked.size(); ++i)
    EXPECT_LE((asked[i].at - asked[i - 1].at).ns(), ms(9).ns());
}

}  // namespace
}  // namespace uet::pds::test
