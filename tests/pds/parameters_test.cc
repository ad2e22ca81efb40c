// The parameters of the specification: names, defaults, ranges. [PDS 2]
#include "pds/parameters.h"

#include <gtest/gtest.h>

#include <set>

namespace uet::pds {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(Parameters, defaults_are_those_of_the_specification) {
  const std::pair<std::string_view, std::int64_t> kDefaults[] = {
      {"Limit_PSN_Range", 1},
      {"Default_MPR", 8},
      {"Override_MPR_Zero_Value", 0},
      {"Max_ACK_Data_Size", 16},
      {"Trimmable_ACK_Size", 10240},
      {"ACK_On_ECN", 1},
      {"Enb_ACK_Per_Pkt", 0},
      {"ACK_Gen_Trigger", 16384},
      {"ACK_Gen_Min_Pkt_Add", 1024},
      {"RTO_Init_Time", kMs},
      {"Max_RTO_Retx_Cnt", 5},
      {"NACK_Retx_Time", kMs},
      {"Max_NACK_Retx_Cnt", 5},
      {"New_PDC_Time", 5 * kMs},
      {"PDS_Clear_Time", kMs},
      {"Close_REQ_Time", kMs},
      {"Max_Tail_Loss_Retx", 5},
      {"Syn_Retx_Safety_Time", 5 * kMs},
      {"Local_MP_RANGE", 1024},
      {"PDC_Idle_Time", 1000 * kMs},
      {"PDCID_Quarantine", 2000 * kMs},
      {"Tombstone_Time", 2000 * kMs},
      {"Max_PDC", 1024},
      {"Max_PDC_Per_Key", 4},
      {"GTD_Store_Max", 4096},
      {"RUDI_Max_Outstanding", 128},
      {"SES_Procg_Limit", 30'000 * kMs},
      {"NACK_Rate_Limit", 1000},
      {"RTO_Max", 100 * kMs},
      {"Peer_Timeout", 60'000 * kMs},
  };
  const PdsConfig config;
  EXPECT_EQ(check_parameters(config), "");
  for (const auto& [name, value] : kDefaults) {
    const Parameter* p = find_parameter(name);
    ASSERT_NE(p, nullptr) << name;
    EXPECT_EQ(p->get(config), value) << name;
  }
}

TEST(Parameters, ends_of_each_range_are_taken_and_what_lies_beyond_is_refused) {
  std::set<std::string_view> names;
  for (const Parameter& p : parameters()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name << " twice";
    PdsConfig config;
    for (const std::int64_t value : {p.min, p.max}) {
      EXPECT_EQ(set_parameter(config, p, value), "") << p.name;
      EXPECT_EQ(p.get(config), value) << p.name << " does not fit its type";
    }
    const std::int64_t before = p.get(config);
    for (const std::int64_t value : {p.min - 1, p.max + 1}) {
      EXPECT_NE(set_parameter(config, p, value), "") << p.name << " takes " << value;
      EXPECT_EQ(p.get(config), before) << p.name;
    }
    if (p.step > 1) {
      EXPECT_NE(set_parameter(config, p, p.min + 1), "") << p.name;
    }
  }
  EXPECT_EQ(find_parameter("No_Such_Name"), nullptr);
}

TEST(Parameters, list_of_names_and_values) {
  PdsConfig config;
  EXPECT_EQ(set_parameters(config, ""), "");
  EXPECT_EQ(set_parameters(config, "RTO_Init_Time=5ms,Default_MPR=1,,NACK_Retx_Time=20us"), "");
  EXPECT_EQ(config.rto_init_time, base::Duration::from_ms(5));
  EXPECT_EQ(config.default_mpr, 1);
  EXPECT_EQ(config.nack_retx_time, base::Duration::from_us(20));
  for (const char* wrong :
       {"RTO", "RTO_Init_Time", "RTO_Init_Time=", "RTO_Init_Time=5", "RTO_Init_Time=ms",
        "RTO_Init_Time=9s", "RTO_Init_Time=99999999999999999999s", "Default_MPR=0",
        "Default_MPR=8x", "Default_MPR=-1", "=1", "No_Such_Name=1"})
    EXPECT_NE(set_parameters(config, wrong), "") << wrong;
  EXPECT_EQ(config.rto_init_time, base::Duration::from_ms(5));
}

TEST(Parameters, what_is_wrong_is_told_as_users_write_it) {
  PdsConfig config;
  EXPECT_EQ(set_parameters(config, "rto_init_time=5ms"),
            "there is no parameter rto_init_time; did you mean RTO_Init_Time?");
  EXPECT_EQ(set_parameters(config, "Nonsense=5"),
            "there is no parameter Nonsense; fi_uet(7) lists them");
  EXPECT_EQ(set_parameters(config, "New_PDC_Time=200ms"),
            "New_PDC_Time is 200ms, and must be from 0s to 100ms");
  EXPECT_EQ(set_parameters(config, "Max_ACK_Data_Size=9000"),
            "Max_ACK_Data_Size is 9000, and must be from 0 to 8192");
}

TEST(Parameters, each_has_a_line_for_the_manual_page) {
  for (const Parameter& p : parameters()) EXPECT_FALSE(p.help.empty()) << p.name;
}

TEST(Parameters, a_configuration_is_checked_as_a_whole) {
  PdsConfig config;
  config.max_rto_retx_cnt = 16;
  EXPECT_NE(check_parameters(config).find("Max_RTO_Retx_Cnt"), std::string::npos);
  config = PdsConfig();
  config.local_mp_range = 1000;
  EXPECT_NE(check_parameters(config).find("multiple of 128"), std::string::npos);
  config = PdsConfig();
  config.psn_range_reserve = config.psn_range;
  EXPECT_NE(check_parameters(config), "");
}

}  // namespace
}  // namespace uet::pds
