/// Commands and rules: what they do, and what is said about wrong ones.

#include "apps/fabric/report.h"
#include "apps/fabric/show.h"
#include "lib/wire/codec.h"
#include "lib/wire/headers.h"
#include "tests/fabric/fixture.h"

namespace uet::fabric {
namespace {

using base::Duration;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::string kStar = "[fabric]\nhost_rate = \"1Gb/s\"\ndelay = \"10us\"\n";

Bytes request(std::uint32_t psn, std::uint16_t spdcid, std::uint16_t dpdcid) {
  Bytes bytes(wire::PdsRequest::kSize);
  wire::emit(wire::PdsRequest{.psn = base::Psn(psn), .spdcid = spdcid, .dpdcid = dpdcid},
             bytes.data());
  return bytes;
}

Bytes ack(std::uint32_t psn, std::uint16_t spdcid, std::uint16_t dpdcid) {
  Bytes bytes(wire::PdsAck::kSize);
  wire::emit(wire::PdsAck{.cack_psn = base::Psn(psn), .spdcid = spdcid, .dpdcid = dpdcid},
             bytes.data());
  return bytes;
}

class RuleTest : public FabricTest {
 protected:
  void begin() {
    start(kStar, 3);
    introduce();
  }
  std::size_t arrives(const FrameSpec& spec) {
    sent(spec.to).clear();
    inject(spec);
    run_for(Duration::from_ms(1));
    return sent(spec.to).size();
  }
};

TEST_F(RuleTest, psn_of_a_pdc_is_dropped_once) {
  begin();
  command("match psn=4711 pdc=7 do=drop");
  EXPECT_EQ(arrives({.front = request(4710, 7, 9)}), 1u);
  EXPECT_EQ(arrives({.front = request(4711, 8, 9)}), 1u);
  EXPECT_EQ(arrives({.front = request(4711, 7, 9)}), 0u);
  EXPECT_EQ(arrives({.front = request(4711, 7, 9)}), 1u) << "the retransmission passes";
  EXPECT_EQ(rules_report(*fabric_)[0]["applied"], 1);
}

TEST_F(RuleTest, either_end_of_the_pdc_will_do) {
  begin();
  command("match pdc=9 count=0 do=drop");
  EXPECT_EQ(arrives({.front = request(1, 7, 9)}), 0u);
  EXPECT_EQ(arrives({.front = ack(1, 9, 7)}), 0u);
  EXPECT_EQ(arrives({.front = ack(1, 8, 7)}), 1u);
}

TEST_F(RuleTest, type_legs_skip_and_count) {
  begin();
  command("match type=ack from=host0 to=host1 skip=1 count=2 do=drop");
  EXPECT_EQ(arrives({.front = request(1, 7, 9)}), 1u);
  EXPECT_EQ(arrives({.front = ack(1, 7, 9)}), 1u);
  EXPECT_EQ(arrives({.front = ack(1, 7, 9)}), 0u);
  EXPECT_EQ(arrives({.to = 2, .front = ack(1, 7, 9)}), 1u);
  EXPECT_EQ(arrives({.front = ack(1, 7, 9)}), 0u);
  EXPECT_EQ(arrives({.front = ack(1, 7, 9)}), 1u);
}

TEST_F(RuleTest, trim_mark_corrupt_duplicate_delay) {
  begin();
  const FrameSpec spec{.front = request(5, 7, 9)};
  command("match psn=5 do=trim");
  ASSERT_EQ(arrives(spec), 1u);
  EXPECT_EQ(received(sent(1)[0], spec)->tos.dscp(), 26);
  EXPECT_EQ(received(sent(1)[0], spec)->length, sim::WireModel::kTrimmedBytes);
  command("match psn=5 do=mark");
  ASSERT_EQ(arrives(spec), 1u);
  EXPECT_TRUE(received(sent(1)[0], spec)->tos.is_congestion_experienced());
  command("match psn=5 do=corrupt");
  ASSERT_EQ(arrives(spec), 1u);
  EXPECT_NE(sent(1)[0], frame_of(spec));
  EXPECT_TRUE(received(sent(1)[0], spec));
  command("match psn=5 do=dup");
  EXPECT_EQ(arrives(spec), 2u);
  command("match psn=5 do=delay:5ms");
  EXPECT_EQ(arrives(spec), 0u);
  run_for(Duration::from_ms(5));
  EXPECT_THAT(sent(1), SizeIs(1));
}

TEST_F(RuleTest, rules_are_bounded_and_spent_ones_make_room) {
  begin();
  for (std::size_t i = 0; i < MatchRules::kMax; ++i) command("match psn=1 pdc=2 do=drop");
  EXPECT_THAT(refusal("match psn=1 do=drop"), HasSubstr("64 rules already"));
  EXPECT_EQ(arrives({.front = request(1, 2, 3)}), 0u);
  command("match psn=9 do=drop");
  command("unmatch all");
  EXPECT_TRUE(fabric_->rules().is_empty());
}

TEST_F(RuleTest, packets_without_the_field_never_agree) {
  begin();
  command("match psn=0 count=0 do=drop");
  EXPECT_EQ(arrives({.uet_bytes = 3}), 1u);
  EXPECT_EQ(arrives({.udp_port = 9}), 1u);
}

TEST_F(RuleTest, wrong_rules_are_explained) {
  begin();
  EXPECT_THAT(refusal("match psn=5"), HasSubstr("do=drop"));
  EXPECT_THAT(refusal("match psn=x do=drop"), HasSubstr("\"x\" is not a PSN"));
  EXPECT_THAT(refusal("match from=absent do=drop"), HasSubstr("name of a leg"));
  EXPECT_THAT(refusal("match type=foo do=drop"), HasSubstr("PDS type"));
  EXPECT_THAT(refusal("match do=explode"), HasSubstr("drop, trim"));
  EXPECT_THAT(refusal("match do=delay:5"), HasSubstr("delay:5ms"));
  EXPECT_THAT(refusal("match colour=red do=drop"), HasSubstr("unknown key \"colour\""));
  EXPECT_THAT(refusal("unmatch 17"), HasSubstr("number of a rule"));
}

TEST_F(FabricTest, wrong_commands_are_explained) {
  start(kStar, 2);
  EXPECT_THAT(refusal(""), HasSubstr("help"));
  EXPECT_THAT(refusal("destroy"), HasSubstr("unknown command \"destroy\""));
  EXPECT_THAT(refusal("kill"), HasSubstr("which link"));
  EXPECT_THAT(refusal("kill spine9"), HasSubstr("no link \"spine9\""));
  EXPECT_THAT(refusal("rate host0"), HasSubstr("a value is missing"));
  EXPECT_THAT(refusal("rate host0 0"), HasSubstr("fraction above 0"));
  EXPECT_THAT(refusal("rate host0 -1"), HasSubstr("fraction above 0"));
  EXPECT_THAT(refusal("delay host0 5"), HasSubstr("no time"));
  EXPECT_THAT(refusal("loss host0 2"), HasSubstr("no probability"));
  EXPECT_THAT(refusal("loss host0 0.1 0.2"), HasSubstr("\"0.2\" is a word too many"));
  for (const char* line : {"rate host0 10", "rate host0 1.5", "rate host0 150%"})
    EXPECT_THAT(refusal(line), HasSubstr("up to 1, as 0.1 or 10%"));
  EXPECT_THAT(refusal("rate host0 10% foo"), HasSubstr("\"foo\" is a word too many"));
  EXPECT_THAT(refusal("burst host0 0.1 0.2 0.3 0.4"), HasSubstr("\"0.4\" is a word too many"));
  EXPECT_THAT(refusal("paths spine0"), HasSubstr("write paths alone"));
  EXPECT_THAT(refusal("stats links"), HasSubstr("write stats alone"));
  EXPECT_THAT(refusal("trimming maybe"), HasSubstr("on or off"));
}

TEST_F(FabricTest, kill_heal_and_perfect_take_several_links) {
  start("[fabric]\nleaves = 2\nspines = 4\n", 2);
  const auto state = [this] {
    std::string states;
    for (const Json& path : paths_report(*fabric_))
      states += path["state"].get<std::string>().front();
    return states;
  };
  const std::string before = state();
  command("kill spine0 spine2");
  const std::string killed = state();
  EXPECT_THAT(refusal("heal spine0 spine9"), HasSubstr("no link \"spine9\""));
  EXPECT_EQ(state(), killed) << "all or nothing";
  command("heal spine2 spine0");
  EXPECT_EQ(before, "uuuu");
  EXPECT_EQ(killed, "dudu");
  EXPECT_EQ(state(), "uuuu");
  command("perfect host0 host1");
}

TEST_F(FabricTest, route_names_the_spine_that_a_packet_takes) {
  start("[fabric]\nleaves = 2\nspines = 4\n", 2);
  introduce();
  for (const bool is_v6 : {false, true}) {
    for (std::uint16_t entropy = 100; entropy < 120; ++entropy) {
      const Json before = paths_report(*fabric_);
      inject({.entropy = entropy, .is_v6 = is_v6});
      run_for(base::Duration::from_ms(2));
      const Json after = paths_report(*fabric_);
      std::string taken;
      for (std::size_t i = 0; i < 4; ++i)
        if (before[i]["data_packets"] != after[i]["data_packets"])
          taken += after[i]["name"].get<std::string>();
      const Json reply =
          commands_->run("route host0 " + address_of(0, is_v6).to_string() + ' ' +
                         address_of(1, is_v6).to_string() + ' ' + std::to_string(entropy));
      ASSERT_TRUE(reply["ok"].get<bool>()) << reply;
      EXPECT_EQ(reply["route"][0]["path"], taken) << entropy;
    }
  }
  EXPECT_THAT(commands_->run("route host1 10.0.0.2 10.0.0.1 1 2 3")["route"], SizeIs(3));
}

TEST_F(FabricTest, wrong_routes_are_explained) {
  start("[fabric]\nleaves = 2\nspines = 4\n", 2);
  EXPECT_THAT(refusal("route host0"), HasSubstr("write route LEG SOURCE"));
  EXPECT_THAT(refusal("route host9 10.0.0.1 10.0.0.2 5"), HasSubstr("no leg \"host9\""));
  EXPECT_THAT(refusal("route host0 10.0.0.1 ::1 5"), HasSubstr("of one family"));
  EXPECT_THAT(refusal("route host0 10.0.0.1 10.0.0.2 65536"), HasSubstr("no entropy value"));
}

TEST_F(FabricTest, route_without_spines_is_refused) {
  start(kStar, 2);
  EXPECT_THAT(refusal("route host0 10.0.0.1 10.0.0.2 5"), HasSubstr("no spines"));
}

TEST_F(FabricTest, replies_are_tables_or_lines) {
  start(kStar, 2);
  EXPECT_THAT(to_text(commands_->run("paths")), Not(HasSubstr("{")));
  const Json clock = {{"ok", true},
                      {"clock", {{"lag_us", 7}, {"fell_behind", false}, {"late", {{"p99", 3}}}}}};
  EXPECT_EQ(to_text(clock), "lag_us       7\nfell_behind  false\nlate         p99 3\n");
}

TEST_F(FabricTest, trimming_and_marking_switch_at_run_time) {
  start(kStar, 2);
  command("rate host0 0.5");
  command("trimming off");
  command("marking off");
  const sim::Link& down = fabric_->net().downlink(0);
  EXPECT_FALSE(down.queue().config().trimming);
  EXPECT_FALSE(down.queue().config().marking);
  EXPECT_NEAR(down.speed_factor(), 0.5, 1e-9) << "the speed stays";
  command("trimming on");
  EXPECT_TRUE(down.queue().config().trimming);
  EXPECT_FALSE(fabric_->net().uplink(0).queue().config().trimming) << "a host does not trim";
}

TEST_F(FabricTest, stats_name_everything) {
  start("[fabric]\nleaves = 2\nspines = 2\n", 2);
  introduce();
  const Json stats = commands_->run("stats");
  for (const char* part : {"legs", "flows", "paths", "links", "macs", "rules", "packets"})
    EXPECT_TRUE(stats.contains(part)) << part;
  EXPECT_THAT(stats["paths"], SizeIs(2));
  EXPECT_THAT(stats["links"], SizeIs(4 + 8));
  EXPECT_EQ(stats["flows"][0]["frames"], 1);
}

}  // namespace
}  // namespace uet::fabric
