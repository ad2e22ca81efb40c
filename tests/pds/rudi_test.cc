// RUDI, UUD, and modes side by side. [PDS 17.2, 17.3, 21.10]
#include <set>

#include "pds/rudi_table.h"
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-177, PDS-178
TEST(Rudi, completes_under_loss_and_repeats_with_the_same_id) {
  World w;
  base::Rng rng(3);
  w.add_rule([&](const Seen&, Fate& f) { f.drop = rng.chance(0.1); });
  const auto t = w.send(0, 1, 200, 1000, Mode::kRudi);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(t), 200u);
  EXPECT_GE(w.host(1).ses.delivered.size(), 200u);
  std::map<std::uint32_t, int> copies;
  for (const Seen& s : w.sent(0, [](const Seen& p) { return p.type == PdsType::kRudiReq; }))
    EXPECT_EQ(s.retx, copies[s.psn.value()]++ > 0);
}

// [PDS 17.2] An answer that is late by minutes is to end no other packet. One that has its answer gives its record back at once.
TEST(Rudi, ids__come_back_when_all_others_had_their_turn) {
  base::Rng rng(5);
  RudiTable table(1, 8, rng);
  RudiPacket* const kept = table.add_packet();
  const std::uint32_t first = kept->pkt_id;
  std::uint64_t taken = 0;
  std::uint32_t differ = 0;
  for (; taken < 10'000'000; ++taken) {
    RudiPacket* const packet = table.add_packet();
    const std::uint32_t id = packet->pkt_id;
    ASSERT_NE(id, first);
    differ |= id ^ first;
    table.remove_packet(*packet);
    ASSERT_EQ(table.find_packet(id), nullptr);
  }
  EXPECT_EQ(differ, 0xffff'ffffu);
  EXPECT_EQ(table.find_packet(first), kept);
  table.remove_packet(*kept);
}

TEST(Rudi, ids__of_a_full_table_differ) {
  base::Rng rng(6);
  RudiTable table(1, 100, rng);
  std::set<RudiPacket*> packets;
  for (int i = 0; i < 1000; ++i) {
    while (RudiPacket* packet = table.add_packet()) packets.insert(packet);
    EXPECT_EQ(packets.size(), 100u);
    for (RudiPacket* packet : packets) EXPECT_EQ(table.find_packet(packet->pkt_id), packet);
    for (const std::uint32_t n : {rng.below(100), rng.below(99)}) {
      const auto at = std::next(packets.begin(), n);
      table.remove_packet(**at);
      packets.erase(at);
    }
  }
  for (RudiPacket* packet : packets) table.remove_packet(*packet);
}

// Covers: PDS-179, PDS-181
TEST(Rudi, unknown_answers_are_dropped_and_trims_sent_again) {
  World w;
  int n = 0;
  w.add_rule([&](const Seen& s, Fate& f) { f.trim = s.type == PdsType::kRudiReq && n++ == 0; });
  const auto t = w.send(0, 1, 1, 1000, Mode::kRudi);
  w.run_for(us(50));
  EXPECT_EQ(w.host(0).ses.responses_of(t), 1u);
  ASSERT_EQ(w.nacks(1).size(), 1u);
  EXPECT_TRUE(w.nacks(1)[0].nt);
  wire::PdsRudi h;
  h.type = PdsType::kRudiResp;
  h.next_hdr = NextHdr::kResponse;
  h.pkt_id = 12345;
  w.inject(0, w.host(1).address, h);
  EXPECT_EQ(w.host(0).drops(DropReason::kUnknownPktId), 1u);
}

// Covers: PDS-180
TEST(Rudi, window_is_bounded) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) {
    f.extra_delay = us(50);
    (void)s;
  });
  std::size_t most = 0;
  w.after_step = [&] { most = std::max(most, w.host(0).pds->gauges().rudi_outstanding); };
  const auto t = w.send(0, 1, 4096, 100, Mode::kRudi);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(t), 4096u);
  EXPECT_LE(most, 128u);
}

// Covers: PDS-182
TEST(Rudi, limit_fails_only_its_message) {
  World w;
  const auto bad = w.send(0, 1, 1, 10, Mode::kRudi);
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.type == PdsType::kRudiReq; });
  const auto good = w.send(0, 1);
  w.run_for(ms(100));
  ASSERT_EQ(w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(0).ses.failures[0].token, bad);
  EXPECT_EQ(w.host(0).ses.responses_of(good), 1u);
}

// A loss cuts the window, and what is sent again keeps to it as what is new does.
TEST(Rudi, what_is_sent_again_keeps_to_the_window) {
  World w(software_world());
  bool drops = false;
  w.add_rule([&](const Seen& s, Fate& f) { f.drop = drops && s.type == PdsType::kRudiReq; });
  const auto t = w.send(0, 1, 8000, 1000, Mode::kRudi);
  w.run_for(us(300));
  const std::size_t lost = w.host(0).pds->gauges().rudi_outstanding;
  ASSERT_GT(lost, 100u);
  drops = true;
  w.log.clear();
  w.run_for(software_profile().rto_init_time * 3 / 2);
  const auto copies =
      w.sent(0, [](const Seen& p) { return p.type == PdsType::kRudiReq && p.retx; });
  EXPECT_GT(copies.size(), 0u);
  EXPECT_LE(copies.size(), lost / 2);
  drops = false;
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(t), 8000u);
}

// Trimmed headers have strict priority: a source whose packets all are trimmed must not fill a link with them. See
// docs/decisions/0058.
TEST(Rudi, a_packet_that_is_trimmed_many_times_backs_off) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) { f.trim = s.type == PdsType::kRudiReq; });
  w.send(0, 1, 1, 1000, Mode::kRudi);
  w.run_for(ms(100));
  EXPECT_LT(w.sent(0, [](const Seen& p) { return p.type == PdsType::kRudiReq; }).size(), 60u);
}

TEST(Rudi, all_that_waits_for_a_silent_peer_fails_when_it_is_given_up) {
  World w(software_world());
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.type == PdsType::kRudiReq; });
  for (int i = 0; i < 300; ++i) w.send(0, 1, 2, 100, Mode::kRudi);
  w.run_for(software_profile().peer_timeout + Duration::from_seconds(1));
  EXPECT_EQ(w.host(0).ses.failures.size(), 300u);
  for (const Failure& f : w.host(0).ses.failures) EXPECT_EQ(f.error, PdsError::kPeerSilent);
  EXPECT_EQ(w.host(0).pds->gauges().rudi_outstanding, 0u);
  EXPECT_TRUE(w.host(0).pds->is_idle());
  w.clear_rules();
  const auto again = w.send(0, 1, 2, 100, Mode::kRudi);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(again), 2u);
}

// Covers: PDS-183
TEST(Uud, one_packet_no_answer) {
  World w;
  const auto t = w.send(0, 1, 1, 100, Mode::kUud);
  const auto two = w.send(0, 1, 2, 100, Mode::kUud);
  w.run_until_quiet();
  w.run_for(ms(1));
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(1).ses.delivered[0].token, t);
  ASSERT_EQ(w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(w.host(0).ses.failures[0].token, two);
  EXPECT_TRUE(w.sent(1, [](const Seen&) { return true; }).empty());
}

// Covers: PDS-184, PDS-176
TEST(Modes, all_at_once_both_ways) {
  World w;
  for (int h : {0, 1})
    for (Mode m : {Mode::kRud, Mode::kRod, Mode::kRudi, Mode::kUud}) w.send(h, 1 - h, 1, 100, m);
  w.run_until_quiet();
  w.run_for(ms(2));
  for (int h : {0, 1}) EXPECT_EQ(w.host(h).ses.delivered.size(), 4u);
}

TEST(Self, an_endpoint_talks_to_itself) {
  World w(with([](auto& o) { o.hosts = 1; }));
  w.send(0, 0, 5);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.delivered.size(), 5u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 5u);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 2u);
}

}  // namespace
}  // namespace uet::pds::test
