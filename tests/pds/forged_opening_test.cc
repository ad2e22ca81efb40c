// Openings forged in the name of a peer whose PDCID the sender of them has guessed. [PDS 6.4, 19]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

/// Host 0 has sent four packets of a message, all were lost unless `cut` says otherwise, and an attacker that saw none of them has guessed the PDCID.
struct Victim {
  explicit Victim(Mode mode = Mode::kRud, bool cut = true)
      : w(software_world([](auto&) {})), is_cut(cut) {
    w.add_rule([this](const Seen& s, Fate& f) {
      f.drop = (s.from == 0 && is_cut) || (s.from == 1 && is_deaf);
    });
    w.send(0, 1, 4, 500, mode);
    w.run_for(us(1));
    id = w.requests(0).at(0).spdcid;
    start = w.requests(0).at(0).psn;
  }
  void forge(Psn psn) {
    wire::PdsRequestSyn h;
    h.type = PdsType::kRudReq;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = psn;
    h.spdcid = id;
    w.inject(1, w.host(0).address, h, w.segment_bytes(900, 0, 30));
    w.pump();
  }
  void expect_delivered_once() {
    is_cut = false;
    w.run_for(ms(200));
    EXPECT_TRUE(w.host(0).ses.failures.empty());
    EXPECT_EQ(w.host(0).ses.responses.size(), 4u);
    std::map<std::uint32_t, int> seen;
    for (const Delivery& d : w.host(1).ses.delivered)
      if (d.token == 1) ++seen[d.segment];
    EXPECT_EQ(seen.size(), 4u);
    for (const auto& [segment, times] : seen) EXPECT_EQ(times, 1) << segment;
    EXPECT_EQ(w.host(0).count(EventId::kPdcOpened), 1u);
  }
  World w;
  bool is_cut, is_deaf = false;  // what host 0 sends, what is sent to it is lost
  std::uint16_t id = 0;
  Psn start;
};

TEST(ForgedOpening, a_forged_opening_in_front_of_the_honest_one_is_another_one) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Victim x(mode);
    x.forge(x.start + 0x1234'5678);
    x.forge(x.start - 0x0765'4321);
    EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 2u);
    // The sender's packets are out more than once before the first arrives: a refusal would leave them in doubt.
    x.w.run_for(ms(70));
    x.expect_delivered_once();
    // What was forged has no place that lasts, and the honest PDC ends as any other.
    x.w.run_for(Duration::from_seconds(70));
    EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
    EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
  }
}

TEST(ForgedOpening, a_forged_opening_does_not_end_one_that_its_peer_has_yet_to_prove) {
  Victim x(Mode::kRud, false);
  // The honest packets arrive and their ACKs are lost; then the sender is asleep for longer than a second.
  x.is_deaf = true;
  x.w.run_for(ms(100));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 4u);
  x.w.stop_process(0);
  x.w.run_for(Duration::from_seconds(2));
  x.forge(x.start + 5'000'000);
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 2u);
  x.is_deaf = false;
  x.w.continue_process(0);
  x.expect_delivered_once();
}

// Beside a PDC that is proven none opens, as the specification has it.
TEST(ForgedOpening, a_forged_opening_of_a_proven_identifier_is_refused) {
  Victim x;
  x.is_cut = false;
  x.w.run_for(ms(50));
  x.w.send(0, 1);
  x.w.run_for(ms(50));
  const auto open = x.w.host(1).pds->gauges().pdcs_open;
  x.w.log.clear();
  x.forge(x.start + 5'000'000);
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kInvalidSyn);
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, open);
  // Copies of the honest SYN still find it.
  x.forge(x.start);
  EXPECT_EQ(x.w.nacks(1).size(), 1u);
  x.w.run_for(ms(50));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// The initiator is cut off for so long that its Close Requests go unanswered. It comes back, and its PDC is still there.
TEST(ForgedOpening, a_forged_opening_does_not_end_a_proven_one_whose_peer_is_cut_off) {
  Victim x;
  x.is_cut = false;
  x.w.run_for(ms(50));
  x.w.send(0, 1);
  x.w.run_for(ms(50));
  x.is_cut = true;
  x.w.run_for(Duration::from_seconds(5));
  x.w.log.clear();
  x.forge(x.start + 5'000'000);
  EXPECT_TRUE(x.w.nacks(1).empty());
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 2u);
  EXPECT_TRUE(x.w.host(1).ses.gone.empty());
  x.w.send(0, 1);
  x.is_cut = false;
  x.w.run_for(Duration::from_seconds(1));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 6u);
}

// However many openings are forged under one identifier, the honest one has its place and is found.
TEST(ForgedOpening, many_forged_openings_of_one_identifier_take_no_more_than_their_share) {
  Victim x;
  for (std::uint32_t i = 1; i <= 2000; ++i) {
    x.forge(x.start + i * 1'000'003);
    if (i % 100 == 0) x.w.run_for(ms(1));
  }
  EXPECT_LE(x.w.host(1).pds->gauges().pdcs_open, 480u);
  x.is_cut = false;
  x.w.run_for(Duration::from_seconds(2));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 4u);
}

}  // namespace
}  // namespace uet::pds::test
