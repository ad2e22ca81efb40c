#include "apps/stat/view.h"

#include <gtest/gtest.h>

namespace uet::stat {
namespace {

using Json = nlohmann::json;

Json process(double t_ns, int sent) {
  return {{"pid", 7},
          {"program", "a \"b\""},
          {"not_written", {{{"file", "/x/y"}, {"records", 8}, {"why", "full"}}}},
          {"endpoints",
           {{{"address", "10.0.0.1"},
             {"port", "udp:lo"},
             {"protection", "crc"},
             {"t", t_ns},
             {"events", {{"packet-sent", sent}}},
             {"drops", {{"bad-crc", 3}}},
             {"gauges", {{"pool_free", 10}, {"refused_shares", 6}, {"clear_breaks", 0}}},
             {"contexts",
              {{{"peer", "10.0.0.2"},
                {"window", 100},
                {"credit", -50},
                {"paths", {{{"state", "good"}, {"losses", 2}}, {{"state", "evicted"}}}}},
               {{"peer", "10.0.0.3"}, {"ordered", true}}}},
             {"pdcs",
              {{{"pdc", 5},
                {"peer", "10.0.0.2"},
                {"state", "ESTABLISHED"},
                {"owed", 3},
                {"locks", 2},
                {"nacks", {{"sent TRIMMED", 9}}}}}},
             {"nacks", {{"received NO_RESOURCE", 12}}},
             {"pdcs_not_shown", 4}}}}};
}

TEST(StatView, text__tells_what_an_endpoint_does) {
  const std::string text = to_text(process(1e9, 100), {}, {});
  for (const char* part :
       {"7 a \"b\"", "10.0.0.1  port udp:lo", "out 100 ", "drops: bad-crc 3",
        "paths 1 evicted 1 good", "credit -50  ", "lost 2", "ordered: one path", "pdc 5>0 10.0.0.2",
        "and 4 more PDCs", "payload ?  protection crc  cc", "owed 3 locks 2",
        "    short of room: refused_shares 6\n", "\n    nacks: received NO_RESOURCE 12\n",
        "\n      nacks: sent TRIMMED 9\n", "\n  not written: 8 records of /x/y: full\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(to_text(process(1e9, 100), {}, {.pdcs = false}).find("pdc 5>0"), std::string::npos);
}

TEST(StatView, text__of_a_secured_endpoint_names_the_domain_and_the_key) {
  Json secured = process(1e9, 100);
  Json& endpoint = secured["endpoints"][0];
  endpoint["protection"] = "tss";
  endpoint["sdi"] = "7";
  endpoint["an"] = "1";
  const std::string text = to_text(secured, {}, {});
  EXPECT_NE(text.find("protection tss (sdi 7, an 1)  cc"), std::string::npos) << text;
}

TEST(StatView, text__says_where_paths_share_source_ports_and_what_each_peer_gets) {
  Json process_of_udp = process(1e9, 100);
  Json& endpoint = process_of_udp["endpoints"][0];
  endpoint["version"] = "0.1.0";
  endpoint["paths"] = "64";
  endpoint["source_ports"] = "8";
  endpoint["contexts"][0]["payload"] = 1280;
  const std::string text = to_text(process_of_udp, {}, {});
  EXPECT_NE(text.find("paths 64 over 8 source ports  version 0.1.0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("payload 1280  credit"), std::string::npos) << text;
}

TEST(StatView, text__rates_are_of_the_time_between_two_snapshots) {
  const std::string text = to_text(process(3e9, 300), process(1e9, 100), {});
  EXPECT_NE(text.find("out 300 (+100/s)"), std::string::npos) << text;
  EXPECT_EQ(to_text(process(1e9, 300), process(1e9, 100), {}).find("/s"), std::string::npos);
}

TEST(StatView, text__stands_any_answer) {
  for (const char* answer :
       {"{}", "[]", "null", R"({"endpoints":7})", R"({"endpoints":[7,null,{}]})",
        R"({"endpoints":[{"contexts":{"a":1},"pdcs":[[]],"events":[],"planes":7,"drops":"x"}]})"})
    EXPECT_FALSE(to_text(Json::parse(answer), Json::parse(answer), {.paths = true}).empty())
        << answer;
}

TEST(StatView, prometheus__one_family_after_the_other) {
  const std::string text = to_prometheus({process(1e9, 100), process(1e9, 200)});
  EXPECT_NE(text.find("# TYPE uet_events_total counter\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          R"(uet_events_total{pid="7",program="a \"b\"",address="10.0.0.1",event="packet-sent"} 100)"),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          R"(uet_nacks_total{pid="7",program="a \"b\"",address="10.0.0.1",nack="received NO_RESOURCE"} 12)"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(uet_records_not_written_total{pid="7",program="a \"b\"",file="/x/y"} 8)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("# TYPE uet_events_total"), text.rfind("# TYPE uet_events_total"));
  EXPECT_EQ(to_prometheus({Json::parse("[]"), Json::parse(R"({"endpoints":[{"events":7}]})")}), "");
}

}  // namespace
}  // namespace uet::stat
