/// Scenarios: what they mean, and what is said about wrong ones.

#include "apps/fabric/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/fabric/values.h"

namespace uet::fabric {
namespace {

using testing::HasSubstr;

const std::string kLeg = "[[leg]]\nmemif = \"/tmp/a%n\"\ncount = 2\n";

std::string refusal(const std::string& text) {
  const auto scenario = Scenario::parse(text, "x.toml");
  EXPECT_FALSE(scenario.has_value()) << text;
  return scenario ? "" : scenario.error();
}

TEST(scenario, everything_has_a_default_but_legs) {
  const auto s = Scenario::parse(kLeg, "x.toml");
  ASSERT_TRUE(s) << s.error();
  EXPECT_EQ(s->leaves, 1u);
  ASSERT_EQ(s->legs.size(), 2u);
  EXPECT_EQ(s->legs[1].name, "host1");
  EXPECT_EQ(s->legs[1].port, "dpdk:net_memif1,role=server,socket-abstract=no,socket=/tmp/a1");
  EXPECT_THAT(refusal("[fabric]\n"), HasSubstr("no [[leg]]"));
}

TEST(scenario, values_reach_their_place) {
  const auto s = Scenario::parse(R"(
[fabric]
leaves = 2
spines = 4
host_rate = "1Gb/s"
rate = "250Mb/s"
delay = "50us"
queue = "64KiB"
trimming = false
[uet]
udp_port = 5000
dscp_trimmed = 30
[run]
control = "/tmp/c"
duration = "2.5s"
[[leg]]
memif = "/tmp/leg%n"
count = 3
[[leg]]
name = "out"
port = "dpdk:net_af_packet0,iface=eth1"
leaf = 1
rate = "100Mb/s"
[[link]]
name = "spine1"
rate = 0.1
loss = "1%"
[[at]]
time = "5s"
do = ["kill spine2", "rate spine0 50%"]
[[at]]
time = "1s"
do = "stats"
)",
                                 "x.toml");
  ASSERT_TRUE(s) << s.error();
  EXPECT_EQ(s->rate.bps(), 250'000'000u);
  EXPECT_EQ(s->delay, base::Duration::from_us(50));
  EXPECT_EQ(s->queue, 65536u);
  EXPECT_FALSE(s->trimming);
  EXPECT_EQ(s->rules.udp_port, 5000);
  EXPECT_EQ(s->dscp.trimmed, 30);
  EXPECT_EQ(s->duration, base::Duration::from_ms(2500));
  ASSERT_EQ(s->legs.size(), 4u);
  EXPECT_EQ(s->legs[2].leaf, 0u) << "the third leg begins again at the first leaf";
  EXPECT_EQ(s->legs[3].name, "out");
  EXPECT_EQ(s->legs[3].leaf, 1u);
  ASSERT_EQ(s->commands.size(), 5u);
  EXPECT_EQ(s->commands[0].text, "rate spine1 0.1");
  EXPECT_EQ(s->commands[1].text, "loss spine1 1%");
  EXPECT_EQ(s->commands[2].text, "stats");
  EXPECT_EQ(s->commands[4].text, "rate spine0 50%");
}

TEST(scenario, mistakes_are_named_with_their_line) {
  EXPECT_THAT(refusal("[fabric]\nleafs = 2\n" + kLeg),
              HasSubstr("x.toml:2: unknown key \"leafs\""));
  EXPECT_THAT(refusal("[fabric]\n\nrate = \"fast\"\n" + kLeg),
              HasSubstr("x.toml:3: rate: \"fast\" is not a rate"));
  EXPECT_THAT(refusal("[fabric]\ndelay = 5\n" + kLeg),
              HasSubstr("x.toml:2: delay: \"5\" is not a time with its unit"));
  EXPECT_THAT(refusal("[fabric]\nleaves = 0\n" + kLeg), HasSubstr("whole number from 1"));
  EXPECT_THAT(refusal("[fabric]\nleaves = 2\n" + kLeg), HasSubstr("spines"));
  EXPECT_THAT(refusal("[fabrik]\n" + kLeg), HasSubstr("x.toml:1: unknown heading \"fabrik\""));
  EXPECT_THAT(refusal("[[fabric]]\n" + kLeg), HasSubstr("write [fabric]"));
  EXPECT_THAT(refusal("[leg]\nmemif = \"/tmp/a\"\n"), HasSubstr("write [[leg]]"));
  EXPECT_THAT(refusal("seed = 5\n" + kLeg), HasSubstr("x.toml:1: keys stand below a heading"));
  EXPECT_THAT(refusal("[[leg]]\nname = \"a\"\n"), HasSubstr("x.toml:1: a leg has either memif"));
  EXPECT_THAT(refusal("[[leg]]\nmemif = \"/tmp/a\"\ncount = 2\n"), HasSubstr("need %n"));
  EXPECT_THAT(refusal("[[leg]]\nname = \"h\"\nmemif = \"/tmp/a%n\"\ncount = 2\n"),
              HasSubstr("x.toml:1: several legs need %n in name = \"h\""));
  EXPECT_THAT(refusal("[[leg]]\nname = \"a>b\"\nmemif = \"/tmp/a\"\n"),
              HasSubstr("letters, digits"));
  EXPECT_THAT(
      refusal("[[leg]]\nname = \"a\"\nmemif = \"/x\"\n[[leg]]\nname = \"a\"\nmemif = \"/y\"\n"),
      HasSubstr("x.toml:4: name: \"a\" is taken"));
  EXPECT_THAT(refusal("[[leg]]\nmemif = \"/tmp/x\"\n[[leg]]\nmemif = \"/tmp//x\"\n"),
              HasSubstr("x.toml:3: the socket \"/tmp//x\" is that of leg host0 already"));
  EXPECT_THAT(refusal("[[leg]]\nport = \"foo\"\n"),
              HasSubstr("x.toml:1: port: \"foo\" is no device; write dpdk:"));
  EXPECT_THAT(refusal("[[leg]]\nport = \"dpdk:\"\n"), HasSubstr("is no device"));
  EXPECT_THAT(refusal("[[leg]]\nmemif = \"/" + std::string(107, 'x') + "\"\n"),
              HasSubstr("too long for a socket; 107 bytes"));
  EXPECT_THAT(refusal("[run]\ncontrol = \"/" + std::string(107, 'x') + "\"\n" + kLeg),
              HasSubstr("[run] control: \"/xxx"));
  EXPECT_THAT(refusal("[run]\ncapture = \"/tmp/x,foo=3\"\n" + kLeg),
              HasSubstr("[run] capture: 'foo=3' is no setting of a capture"));
  EXPECT_THAT(refusal("[[leg]]\nmemif = \"/x\"\nleaf = 3\n"), HasSubstr("there are 1 leaves"));
  EXPECT_THAT(refusal(kLeg + "[[link]]\nrate = 0.1\n"), HasSubstr("a link needs a name"));
  EXPECT_THAT(refusal(kLeg + "[[link]]\nname = \"spine0\"\nspeed = 1\n"),
              HasSubstr("x.toml:6: unknown key \"speed\""));
  EXPECT_THAT(refusal(kLeg + "[[link]]\nname = \"spine0\"\nkill = \"ture\"\n"),
              HasSubstr("x.toml:6: kill: \"ture\" is not true or false"));
  EXPECT_THAT(refusal(kLeg + "[[at]]\ntime = \"soon\"\ndo = \"quit\"\n"),
              HasSubstr("x.toml:5: time"));
  EXPECT_THAT(refusal("[fabric\n"), HasSubstr("x.toml:1:"));
  EXPECT_THAT(refusal("[fabric]\n[fabric.deep]\nx = 1\n" + kLeg), HasSubstr("x.toml:2"));
}

TEST(scenario, list_of_keys_is_complete) {
  for (const ScenarioKey& key : scenario_keys()) {
    EXPECT_FALSE(key.help.empty()) << key.key;
    EXPECT_FALSE(key.type.empty()) << key.key;
  }
}

TEST(scenario, defaults_are_listed_as_a_scenario_would_say_them) {
  std::size_t said = 0;
  for (const ScenarioKey& key : scenario_keys()) {
    if (key.fallback.empty() || key.section == "[[leg]]") continue;
    const std::string line =
        std::string(key.section) + '\n' + std::string(key.key) + " = \"" + key.fallback + "\"\n";
    EXPECT_TRUE(Scenario::parse(line + kLeg, "x.toml").has_value()) << line;
    ++said;
  }
  EXPECT_GT(said, 20u);
  const auto keys = scenario_keys();
  const auto fallback = [&keys](std::string_view name) {
    const auto key = std::ranges::find(keys, name, &ScenarioKey::key);
    return key == keys.end() ? "no such key" : key->fallback;
  };
  EXPECT_EQ(fallback("host_rate"), "1Gb/s");
  EXPECT_EQ(fallback("delay"), "50us");
  EXPECT_EQ(fallback("duration"), "0s");
  EXPECT_EQ(fallback("trimming"), "true");
  EXPECT_EQ(fallback("capture"), "");
}

TEST(values, are_read_as_people_write_them) {
  EXPECT_EQ(parse_rate("1.5Gb/s")->bps(), 1'500'000'000u);
  EXPECT_EQ(parse_rate("10 Mbps")->bps(), 10'000'000u);
  EXPECT_FALSE(parse_rate("0Gb/s"));
  EXPECT_FALSE(parse_rate("-1Gb/s"));
  EXPECT_FALSE(parse_rate("1e3Gb/s"));
  EXPECT_FALSE(parse_rate("nanGb/s"));
  EXPECT_EQ(*parse_size("2KiB"), 2048u);
  EXPECT_EQ(parse_size("64k"), parse_size("64K"));
  EXPECT_EQ(parse_size("64k").value_or(0), 65536u);
  EXPECT_EQ(*parse_probability("5%"), 0.05);
  EXPECT_FALSE(parse_probability("101%"));
  EXPECT_EQ(*parse_number("0x10"), 16u);
  EXPECT_FALSE(parse_number("12a"));
  EXPECT_FALSE(parse_number(""));
}

}  // namespace
}  // namespace uet::fabric
