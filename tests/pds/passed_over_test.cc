// A peer that lives and never says a word of one packet: the time that its timeouts took ends that. [PDS 13.1]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

constexpr int kPatience = 3;  // seconds

WorldOptions patient() {
  return software_world([](WorldOptions& o) {
    o.pds.peer_timeout = Duration::from_seconds(kPatience);
    o.pds.pdc_idle_time = Duration{};
    o.pds.forced_start_psn = 1000;
  });
}

/// The target is heard all the time: it asks something on this PDC, four times a second.
void run_beside_a_live_peer(Open& x, int seconds) {
  wire::PdsControl probe;
  probe.ctl_type = ControlType::kProbe;
  probe.spdcid = x.id1;
  probe.dpdcid = x.id0;
  for (int i = 0; i < seconds * 4; ++i) {
    x.w.inject(0, x.w.host(1).address, probe);
    x.w.run_for(ms(250));
  }
}

std::vector<PdsError> errors(World& w, int host) {
  std::vector<PdsError> out;
  for (const Failure& f : w.host(host).ses.failures) out.push_back(f.error);
  return out;
}

const std::vector<PdsError> kNone;
const std::vector<PdsError> kOne{PdsError::kRtoExhausted};

// A host on the path has sent two packets in the name of host 0. Host 1 acknowledges both whenever the true one comes, which
// says more than host 0 has sent, and so it is no answer. [PDS 19 R6]
TEST(PassedOver, a_target_that_took_the_psn_for_another_packet) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Open x(patient(), mode);
    for (const Psn psn : {x.next, x.next + 1}) {
      auto forged = x.request(psn);
      forged.type = mode == Mode::kRod ? PdsType::kRodReq : PdsType::kRudReq;
      x.arrive(forged);
    }
    x.w.run_for(ms(1));
    x.w.send(0, 1, 1, 100, mode);
    run_beside_a_live_peer(x, kPatience - 1);
    EXPECT_EQ(errors(x.w, 0), kNone);
    EXPECT_GE(x.w.host(0).drops(DropReason::kAckNeverSent), 10u);
    run_beside_a_live_peer(x, 2);
    EXPECT_EQ(errors(x.w, 0), kOne);
    EXPECT_FALSE(was_not_delivered(PdsError::kRtoExhausted));
    x.w.host(0).ses.responses.clear();
    const auto t = x.w.send(0, 1, 1, 100, mode);  // on a new PDC
    x.w.run_for(ms(1));
    EXPECT_EQ(x.w.host(0).ses.responses_of(t), 1u);
  }
}

// A link that loses long packets, as one with too small an MTU does, and lets short ones through.
TEST(PassedOver, a_size_that_never_arrives) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Open x(patient(), mode);
    x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.body > 900; });
    x.w.send(0, 1, 1, 1000, mode);
    const auto small = x.w.send(0, 1, 1, 10, mode);
    run_beside_a_live_peer(x, kPatience + 1);
    ASSERT_FALSE(errors(x.w, 0).empty());
    EXPECT_EQ(errors(x.w, 0)[0], PdsError::kRtoExhausted);
    EXPECT_EQ(x.w.host(0).ses.responses_of(small), mode == Mode::kRud ? 1u : 0u);
  }
}

// A packet that the target refuses for now has been answered.
TEST(PassedOver, refusals_are_words) {
  Open x(patient());
  bool has_room = false;
  x.w.host(1).ses.answer = [&](const RxRequest&, const Delivery& d) {
    return has_room || d.size < 50 ? ScriptedSes::respond() : ScriptedSes::refuse();
  };
  const auto t = x.w.send(0, 1, 1, 100);
  run_beside_a_live_peer(x, kPatience * 3);
  has_room = true;
  run_beside_a_live_peer(x, 1);
  EXPECT_EQ(errors(x.w, 0), kNone);
  EXPECT_EQ(x.w.host(0).ses.responses_of(t), 1u);
}

// The packet came after many repetitions, and its response takes long: the target has spoken of it.
TEST(PassedOver, a_packet_whose_response_takes_long) {
  Open x(patient());
  int lost = 0;
  x.w.add_rule(
      [&](const Seen& s, Fate& f) { f.drop = s.is_request() && s.from == 0 && ++lost <= 25; });
  RxHandle open;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    open = r.handle;
    return ScriptedSes::later();
  };
  const auto t = x.w.send(0, 1, 1, 100);
  run_beside_a_live_peer(x, kPatience * 3);
  ASSERT_GT(lost, 25);
  EXPECT_EQ(errors(x.w, 0), kNone);
  x.w.host(1).pds->respond(x.w.now(), open, ScriptedSes::respond().response, false);
  run_beside_a_live_peer(x, 1);
  EXPECT_EQ(x.w.host(0).ses.responses_of(t), 1u);
}

// All that counts is what was waited for: a process that was stopped has had one timeout.
TEST(PassedOver, a_process_that_was_stopped_has_not_waited) {
  Open x(patient());
  bool is_cut = true;
  x.w.add_rule([&](const Seen& s, Fate& f) { f.drop = is_cut && s.from == 0; });
  const auto t = x.w.send(0, 1, 1, 100);
  x.w.run_for(ms(100));
  x.w.stop_process(0);
  run_beside_a_live_peer(x, kPatience * 2);
  is_cut = false;
  x.w.continue_process(0);
  x.w.run_for(Duration::from_seconds(1));
  EXPECT_EQ(errors(x.w, 0), kNone);
  EXPECT_EQ(x.w.host(0).ses.responses_of(t), 1u);
}

// RUDI has no PDC that could fail: the message does, others to this peer go on.
TEST(PassedOver, a_rudi_packet_that_is_never_answered) {
  World w(patient());
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.type == PdsType::kRudiReq && s.body > 900; });
  w.send(0, 1, 1, 1000, Mode::kRudi);
  const auto heard = [&](int seconds) {
    for (int i = 0; i < seconds * 100; ++i) {
      w.send(0, 1, 1, 10, Mode::kRudi);
      w.run_for(ms(10));
    }
  };
  heard(kPatience - 1);
  EXPECT_EQ(errors(w, 0), kNone);
  heard(2);
  EXPECT_EQ(errors(w, 0), kOne);
  EXPECT_EQ(w.host(0).ses.responses.size(), 100u * (kPatience + 1));
}

}  // namespace
}  // namespace uet::pds::test
