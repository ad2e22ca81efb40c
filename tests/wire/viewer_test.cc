/// What uet-dump --html gathers: lines of event logs, whatever stands in them, and bounds that hold however long they are.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "apps/dump/viewer/log_line.h"
#include "apps/dump/viewer/story.h"
#include "apps/dump/viewer/thinner.h"

namespace uet::dump {
namespace {

TEST(LogLine, reads_numbers_and_texts) {
  const auto line = LogLine::parse(
      R"({"t":12,"event":"packet-dropped","pdc":7,"psn":4294967295,"reason":"bad-crc","bytes":-3})");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->number("t"), 12);
  EXPECT_EQ(line->find("event")->text, "packet-dropped");
  EXPECT_EQ(line->number("psn"), 4294967295);
  EXPECT_EQ(line->find("reason")->text, "bad-crc");
  EXPECT_TRUE(line->find("reason")->is_text);
  EXPECT_EQ(line->number("bytes"), -3);
  EXPECT_EQ(line->find("nothing"), nullptr);
  EXPECT_EQ(line->number("nothing", 5), 5);
}

TEST(LogLine, refuses_what_is_no_flat_object) {
  for (const char* text : {"", "{", "{}", "x", R"({"t":1)", R"({"t":1,)", R"({"t":})", R"({"t":"1)",
                           R"({"t":{"a":1}})", R"({"t":[1]})", R"({"t":"\"","b":1})", R"({t:1})",
                           R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1})"})
    EXPECT_FALSE(LogLine::parse(text).has_value()) << text;
}

TEST(Thinner, keeps_a_part_of_all_and_the_whole_number) {
  Thinner<int> few(100);
  for (int i = 0; i < 99; ++i) few.add(i);
  EXPECT_EQ(few.kept().size(), 99U);
  Thinner<int> many(1000);
  constexpr int kTotal = 1'000'000;
  for (int i = 0; i < kTotal; ++i) many.add(i);
  EXPECT_EQ(many.total(), 1'000'000U);
  EXPECT_GE(many.kept().size(), 300U);
  EXPECT_LT(many.kept().size(), 1000U);
  EXPECT_TRUE(std::is_sorted(many.kept().begin(), many.kept().end()));
  // From all parts, and of all that come in turn.
  std::array<int, 10> tenths{};
  std::array<int, 4> turns{};
  for (const int i : many.kept()) {
    ++tenths[static_cast<std::size_t>(i / (kTotal / 10))];
    ++turns[static_cast<std::size_t>(i % 4)];
  }
  for (const int n : tenths) EXPECT_GT(n, 10);
  for (const int n : turns) EXPECT_GT(n, 30);
}

std::string sent(std::int64_t t, std::uint32_t psn, std::uint16_t pdc = 7) {
  return fmt::format(
      R"({{"t":{},"event":"request-sent","pdc":{},"psn":{},"payload_bytes":100,"entropy_value":9}})",
      t, pdc, psn);
}

TEST(Story, one_file) {
  Story story;
  story.begin_file("client.events", "event log");
  story.add_line(sent(1'000'000'000, 4294967295));
  story.add_line(sent(1'500'000'000, 0));
  story.add_line(
      R"({"t":1600000000,"event":"retransmitted","pdc":7,"psn":0,"cause":1,"entropy_value":10})");
  story.add_line(
      R"({"t":1700000000,"event":"cwnd","pdc":7,"psn":0,"bytes":5000,"inflight_bytes":100})");
  story.add_line(
      R"({"t":1800000000,"peer":"10.0.0.1","window":6000,"inflight":1,"base_rtt_us":10,"rtt_us":12.5,"paths":[{"entropy":9,"state":"good","score":0}]})");
  story.add_line("no line of ours");
  story.add_line(R"({"events":{"rto":2},"drops":{"bad-crc":1}})");
  const Json all = story.to_json();
  const Json& file = all["files"][0];
  EXPECT_EQ(file["lines"], 7);
  EXPECT_EQ(file["wrong"], 1);
  EXPECT_EQ(file["counters"]["drops"]["bad-crc"], 1);
  // Across the wrap, from the first one; times from the first event.
  EXPECT_EQ(file["streams"][0]["pdc"], 7);
  EXPECT_EQ(file["streams"][0]["arriving"], false);
  EXPECT_EQ(file["streams"][0]["rows"], Json::parse("[[0.0,0,0],[0.5,1,0],[0.6,1,1]]"));
  EXPECT_EQ(file["window"]["rows"], Json::parse("[[0.7,5000.0,100.0],[0.8,6000.0,1.0]]"));
  EXPECT_EQ(file["rtt"]["rows"], Json::parse("[[0.8,12.5,10.0]]"));
  EXPECT_EQ(file["paths"]["rows"][0][2][0]["entropy"], 9);
  EXPECT_EQ(file["choices"]["rows"][2][1], 10.0);
  EXPECT_EQ(all["events"]["total"], 4);
  EXPECT_EQ(all["events"]["rows"][2][2], "retransmitted");
}

TEST(Story, hosts_of_a_simulation__are_files_of_their_own) {
  Story story;
  story.begin_file("run.trace", "event log");
  const auto sent_by = [](std::size_t host, std::int64_t t) {
    return fmt::format(R"({{"t":{},"host":{},"event":"request-sent","pdc":7,"psn":{}}})", t, host,
                       host);
  };
  for (std::size_t i = 0; i < 2 * Story::kHostsMax; ++i) story.add_line(sent_by(i, 1'000'000'000));
  story.add_line(sent_by(1, 3'000'000'000));
  story.add_line(R"({"t_ns":5,"event":"request-sent","pdc":7,"psn":5})");
  const Json all = story.to_json();
  const Json& files = all["files"];
  ASSERT_EQ(files.size(), Story::kHostsMax);
  EXPECT_EQ(files[0]["name"], "run.trace, host 0");
  EXPECT_EQ(files[0]["wrong"], 1) << "a line without a time";
  EXPECT_EQ(files[0]["notes"].size(), 1U);
  EXPECT_EQ(files[1]["name"], "run.trace, host 1");
  EXPECT_EQ(files[1]["kind"], "event log");
  EXPECT_EQ(files[1]["lines"], 2);
  EXPECT_EQ(files[1]["streams"][0]["rows"], Json::parse("[[0.0,0,0],[2.0,0,0]]"));
  EXPECT_EQ(all["events"]["total"], Story::kHostsMax + 1);
  EXPECT_EQ(all["events"]["rows"][1][5], "") << "the host is in the name of the file";
}

TEST(Story, keeps_the_directions_of_a_pdc_apart) {
  Story story;
  story.begin_file("x", "event log");
  story.add_line(sent(1000, 5));
  story.add_line(
      R"({"t":2000,"event":"request-delivered","pdc":7,"psn":4000000000,"payload_bytes":5})");
  story.add_line(
      R"({"t":3000,"event":"ack-received","pdc":7,"psn":5,"cack_psn":5,"newly_acknowledged_packets":1})");
  const Json streams = story.to_json()["files"][0]["streams"];
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(streams[0]["total"], 2);
  EXPECT_EQ(streams[1]["arriving"], true);
  EXPECT_EQ(streams[1]["pdc"], 7);
  EXPECT_EQ(streams[1]["rows"][0][1], 0);
}

TEST(Story, is_bounded_and_says_what_it_leaves_out) {
  Story story;
  story.begin_file("client.events", "event log");
  constexpr std::uint32_t kLines = 200'000;
  for (std::uint32_t i = 0; i < kLines; ++i)
    story.add_line(sent(i * 1000, i, static_cast<std::uint16_t>(i < 100'000 ? 7 : 8 + i % 1000)));
  story.add_line(R"({"t":5,"event":"rto","pdc":7,"psn":3,"timeouts_of_this_packet":1,"rto_ns":5})");
  const Json all = story.to_json();
  EXPECT_EQ(all["events"]["total"], kLines + 1);
  EXPECT_LE(all["events"]["rows"].size(), Story::kEventsMax + 1);
  EXPECT_EQ(all["files"][0]["streams"].size(), Story::kStreamsMax);
  EXPECT_GT(all["files"][0]["streams_left_out"], 0);
  EXPECT_EQ(all["files"][0]["streams"][0]["total"], 100'001);
  EXPECT_LT(all["files"][0]["streams"][0]["rows"].size(), Story::kPointsMax);
  // What went wrong is not thinned together with what went well.
  std::size_t timeouts = 0;
  for (const Json& row : all["events"]["rows"]) timeouts += row[2] == "rto";
  EXPECT_EQ(timeouts, 1U);
}

TEST(Story, hostile_lines_end_nothing) {
  Story story;
  story.begin_file("x", "event log");
  for (const char* line :
       {"{\"t\":1,\"peer\":5}", "{\"t\":\"x\",\"peer\":\"y\"}",
        "{\"t\":1,\"peer\":\"y\",\"paths\":7}", "[]", "null", "{\"events\":1,\"drops\":[]}",
        "{\"t\":99999999999999999999,\"event\":\"cwnd\"}", "{\"t\":1,\"event\":\"</script>\"}"})
    story.add_line(line);
  EXPECT_NO_THROW(static_cast<void>(story.to_json()));
}

}  // namespace
}  // namespace uet::dump
