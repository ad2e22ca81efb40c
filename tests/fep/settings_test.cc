#include "fep/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>

#include "fep/settings/port_entries.h"
#include "fep/settings/profiles.h"
#include "keys/reload_signal.h"
#include "tests/pds/software_profile.h"

namespace uet::fep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

base::Result<Settings, std::string> load(const std::map<std::string, std::string>& variables) {
  return Settings::load([&](std::string_view key) -> std::optional<std::string> {
    const auto it = variables.find(std::string(key));
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  const auto loaded = load(variables);
  return loaded ? "accepted" : loaded.error();
}

/// A configuration file that lives as long as this object.
class File {
 public:
  explicit File(const std::string& text) {
    const int fd = mkstemp(path_);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  ~File() { std::remove(path_); }
  std::string path() const { return path_; }

 private:
  char path_[32] = "/tmp/uet-settings-XXXXXX";
};

TEST(Settings, wrong_values__name_the_variable_the_value_and_what_is_allowed) {
  const struct {
    const char *key, *value, *allowed;
  } kWrong[] = {
      {"PORT", "udpp", "udp[:interface"},
      {"PORT", "dpdk:", "dpdk:<vdev"},
      {"PORT", "udp,nosuch=1", "unknown setting 'nosuch=1'"},
      {"PORT", "udp:lo,sockets=0", "sockets is a number from 1 to 64"},
      {"PORT", "udp:b,sockets=65", "sockets is a number from 1 to 64"},
      {"PORT", "udp,merge=false", "merge is 0 or 1"},
      {"ADDR", "10.0.0.256", "IPv4 or IPv6"},
      {"GATEWAY", "router", "IPv4 or IPv6"},
      {"PREFIX", "129", "0 to 128"},
      {"VLAN", "4095", "0 to 4094"},
      {"ENCAP", "tcp", "udp, ip"},
      {"UDP_PORT", "0", "1 to 65535"},
      {"MAX_PAYLOAD", "3000", "1024, 1280, 2048, 4096, 8192"},
      {"PROTECT", "aes", "auto, crc, none, tss"},
      {"JOB", "0x1000000", "0 to 16777215"},
      {"JOB", "-1", "whole number"},
      {"JOBS", "1|x", "whole numbers"},
      {"MODE", "relative", "rel, abs"},
      {"PIDONFEP", "4096", "0 to 4095"},
      {"RI", "4095", "0 to 4094"},
      {"CC", "bbr", "nscc, rccc, both, none"},
      {"PATHS", "3", "1, 2, 4"},
      {"RTO_MAX", "5 fortnights", "unit ns, us, ms, s or min"},
      {"RTO_INIT", "1ns", "10us to 8s"},
      {"PEER_TIMEOUT", "-1", "0s to 86400s"},
      {"PROGRESS", "never", "auto, manual, thread"},
      {"COMPLETION", "delivery", "transmit, inject"},
      {"INJECT_SIZE", "8", "16 to 65536"},
      {"OVERFLOW_BYTES", "lots", "K, M or G"},
      {"REJECT_LONG", "maybe", "0 or 1"},
      {"TX_SIZE", "0", "1 to 65536"},
      {"PEER_TIMEOUT", "1h", "did you mean 60min?"},
      {"BASE_RTT", "50 usec", "did you mean 50us?"},
      {"OVERFLOW_BYTES", "64MiB", "did you mean 64M?"},
      {"INJECT_SIZE", "16kb", "did you mean 16k?"},
      {"ADDR", "0.0.0.0", "not a unicast address"},
      {"ADDR", "224.0.0.%r", "not a unicast address"},
      {"ADDR", "255.255.255.255", "not a unicast address"},
      {"PORT", "udp:224.0.0.1", "not a unicast address"},
      {"MPR", "100", "128, 256"},
      {"DPDK_BURST", "129", "0 to 128"},
  };
  for (const auto& wrong : kWrong) {
    EXPECT_THAT(refusal({{wrong.key, wrong.value}}),
                AllOf(HasSubstr("FI_UET_" + std::string(wrong.key)), HasSubstr(wrong.value),
                      HasSubstr(wrong.allowed)));
  }
}

TEST(Settings, combinations_that_cannot_work__are_refused) {
  EXPECT_THAT(refusal({{"ENCAP", "ip"}}), HasSubstr("needs a dpdk port"));
  EXPECT_THAT(refusal({{"PORT", "udp:a+udp:b"}, {"ENCAP", "ip"}}), HasSubstr("needs a dpdk port"));
  EXPECT_THAT(refusal({{"PORT", "udp:a+dpdk:b"}}), HasSubstr("all be udp"));
  EXPECT_THAT(refusal({{"PORT", "udp:c|udp:a+udp:a"}}), HasSubstr("two planes use a"));
  EXPECT_EQ(refusal({{"PORT", "dpdk:net_memif0,id=1+dpdk:net_memif1,id=1"}}), "accepted");
  EXPECT_THAT(refusal({{"PORT", "udp"}, {"VLAN", "7"}}), HasSubstr("needs a dpdk port"));
  EXPECT_THAT(refusal({{"GATEWAY", "10.0.0.1"}}), HasSubstr("kernel routes"));
  EXPECT_THAT(refusal({{"DPDK_ARGS", "--no-huge"}}), HasSubstr("for dpdk ports"));
  EXPECT_THAT(refusal({{"PORT", "udp:a"}, {"DPDK_BURST", "64"}}), HasSubstr("for dpdk ports"));
  EXPECT_THAT(refusal({{"PORT", "udp:a|udp:b"}, {"ADDR", "10.0.0.1|10.0.0.2|10.0.0.3"}}),
              HasSubstr("same number"));
  EXPECT_THAT(refusal({{"RTO_INIT", "200ms"}}), HasSubstr("200ms > 100ms"));
  EXPECT_THAT(refusal({{"JOB", "3"}, {"JOBS", "1|2"}}), HasSubstr("not in FI_UET_JOBS"));
}

TEST(Settings, defaults__are_valid_and_match_the_specification) {
  const auto s = load({});
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_EQ(s->ports, std::vector<std::string>{"udp"});
  EXPECT_EQ(s->udp_port, 4793u);
  EXPECT_EQ(s->rto_max, Duration::from_ms(100));
  EXPECT_EQ(s->peer_timeout, Duration::from_seconds(60));
  EXPECT_EQ(s->overflow_bytes, 64u << 20);
  EXPECT_FALSE(s->initiator_id.has_value());
}

TEST(Settings, empty__is_the_default) {
  for (const Setting& setting : settings()) {
    const auto s = load({{std::string(setting.key), ""}});
    ASSERT_TRUE(s.has_value()) << s.error();
  }
  const File file("mtu = 1500\npeer_timeout = \"10s\"\n");
  const auto s = load({{"CONFIG", file.path()}, {"MTU", ""}, {"PORT", ""}, {"INITIATOR_ID", ""}});
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_EQ(s->mtu, 0u);
  EXPECT_EQ(s->ports, std::vector<std::string>{"udp"});
  EXPECT_FALSE(s->initiator_id.has_value());
  EXPECT_EQ(s->peer_timeout, Duration::from_seconds(10));
}

TEST(Settings, lists__are_split_and_trimmed) {
  const auto s = load({{"ADDR", " 127.0.0.2 | fd00::%r "}, {"JOBS", "1|0x2"}});
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_EQ(s->addresses, (std::vector<std::string>{"127.0.0.2", "fd00::%r"}));
  EXPECT_EQ(s->jobs, (std::vector<std::uint64_t>{1, 2}));
}

TEST(Settings, times__take_units_and_a_documented_unit_without) {
  EXPECT_EQ(load({{"PEER_TIMEOUT", "5"}})->peer_timeout, Duration::from_seconds(5));
  EXPECT_EQ(load({{"RTO_MAX", "50"}})->rto_max, Duration::from_ms(50));
  EXPECT_EQ(load({{"BASE_RTT", "20 us"}})->base_rtt, Duration::from_us(20));
  EXPECT_EQ(load({{"TAIL_LOSS_TIME", "10"}})->tail_loss_time, Duration::from_ms(10));
  EXPECT_THAT(refusal({{"TAIL_LOSS_TIME", "11"}}), HasSubstr("TAIL_LOSS_TIME"));
  EXPECT_EQ(load({{"PEER_TIMEOUT", "0"}})->peer_timeout, Duration());
}

TEST(Settings, file__gives_values_and_variables_win) {
  const File file(
      "port = \"udp:lo\"\npaths = 8\nreject_long = true\naddr = [\"127.0.0.2\", \"127.0.0.3\"]\n");
  const auto s = load({{"CONFIG", file.path()}, {"PATHS", "4"}});
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_EQ(s->ports, std::vector<std::string>{"udp:lo"});
  EXPECT_EQ(s->addresses.size(), 2u);
  EXPECT_TRUE(s->reject_long);
  EXPECT_EQ(s->paths, 4u);
}

TEST(Settings, file__every_defect_has_its_message) {
  EXPECT_THAT(refusal({{"CONFIG", "/does/not/exist"}}), HasSubstr("cannot read"));
  EXPECT_THAT(refusal({{"CONFIG", "/"}}), HasSubstr("cannot read"));
  const File typo("pathz = 3\n"), broken("port = \n"), table("[port]\nx = 1\n"),
      value("paths = 3\n"), self("config = \"x\"\n");
  EXPECT_THAT(refusal({{"CONFIG", typo.path()}}),
              HasSubstr("unknown setting \"pathz\"; did you mean paths?"));
  EXPECT_THAT(refusal({{"CONFIG", broken.path()}}), HasSubstr(":1:"));
  EXPECT_THAT(refusal({{"CONFIG", table.path()}}), HasSubstr("\"port\" must be"));
  EXPECT_THAT(refusal({{"CONFIG", value.path()}}),
              AllOf(HasSubstr("FI_UET_PATHS"), HasSubstr(value.path())));
  EXPECT_THAT(refusal({{"CONFIG", self.path()}}), HasSubstr("unknown setting \"config\""));
}

TEST(Settings, file__is_named_where_its_values_do_not_fit) {
  for (const char* text :
       {"mtu = 900", "rto_init = \"300ms\"", "impair = \"drop=1\"", "addr = [\"127.0.0.2\", 3]",
        "key_log = \"/tmp/x\"", "pds = \"Nonsense=1\"", "vlan = 7", "port = \"udp,x=1\""}) {
    const File file(std::string(text) + "\n");
    EXPECT_THAT(refusal({{"CONFIG", file.path()}}), HasSubstr(" (in " + file.path() + ")")) << text;
  }
  const File file("max_payload = 8192\nrendezvous = false\nrendezvous_from = \"64K\"\n");
  EXPECT_THAT(refusal({{"CONFIG", file.path()}}),
              AllOf(HasSubstr("FI_UET_RENDEZVOUS_FROM (in " + file.path() + ") announces"),
                    HasSubstr("FI_UET_RENDEZVOUS=1")));
  const auto s = load({{"CONFIG", file.path()}, {"RENDEZVOUS_FROM", "0"}});
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_THAT(s->fep_config({.address = net::FabricAddress::from_v4(1), .ip_mtu = 1500}).error(),
              HasSubstr("FI_UET_MAX_PAYLOAD (in " + file.path() + "): "));
}

TEST(Settings, file__may_be_empty) {
  const File empty("");
  EXPECT_TRUE(load({{"CONFIG", empty.path()}}).has_value());
}

TEST(Settings, profile__gives_values_and_variables_win) {
  const auto s = load({{"PORT", "dpdk:net_null0"}, {"CONFIG", "profile:reference"}, {"RI", "3"}});
  ASSERT_TRUE(s.has_value()) << s.error();
  EXPECT_EQ(s->encap, Encapsulation::kIp);
  EXPECT_EQ(s->max_payload, 1024u);
  EXPECT_EQ(s->ri, 3u);
  EXPECT_EQ(s->peer_timeout, Duration::from_seconds(1));
  EXPECT_EQ(s->who_chose("MAX_PAYLOAD"), "profile:reference");
}

TEST(Settings, profile__of_the_reference_says_that_it_needs_a_port) {
  EXPECT_EQ(refusal({{"CONFIG", "profile:reference"}}),
            "FI_UET_ENCAP (in profile:reference): ip needs a dpdk port, and the default port is "
            "\"udp\"");
}

TEST(Settings, profile__every_one_makes_an_endpoint) {
  for (const Profile& profile : profiles()) {
    const auto s =
        load({{"PORT", "dpdk:net_null0"}, {"CONFIG", "profile:" + std::string(profile.name)}});
    ASSERT_TRUE(s.has_value()) << s.error();
    const auto config = s->fep_config({.address = net::FabricAddress::from_v4(0x0a000001)});
    EXPECT_TRUE(config.has_value()) << config.error();
  }
}

// [decision 168]
TEST(Settings, addr__one_alone_has_the_same_indices_in_each_process) {
  const auto first = [](const char* addresses, std::uint32_t process) {
    const auto s = load({{"ADDR", addresses}});
    return s->fep_config({.address = net::FabricAddress::from_v4(0x0a000001)}, process)
        ->ses.first_index;
  };
  EXPECT_EQ(first("10.0.0.1", 123'456), 1);
  EXPECT_EQ(first("10.0.0.%r", 123'456), 1);
  EXPECT_EQ(first("", 123'456), 1 + 123'456 % ses::kMaxIndex);
  EXPECT_EQ(first("10.0.0.1|10.0.0.2", 123'456), 1 + 123'456 % ses::kMaxIndex);
  EXPECT_EQ(first("", ses::kMaxIndex - 1), ses::kMaxIndex);
}

TEST(Settings, profile__of_the_specification_has_its_limits) {
  const auto s = load({{"CONFIG", "profile:specification"}});
  ASSERT_TRUE(s.has_value()) << s.error();
  const auto config = s->fep_config({.address = net::FabricAddress::from_v4(0x0a000001)});
  ASSERT_TRUE(config.has_value()) << config.error();
  EXPECT_EQ(config->pds.max_rto_retx_cnt, 5);
  EXPECT_EQ(config->pds.max_nack_retx_cnt, 5);
  EXPECT_EQ(config->pds.rto_init_time, Duration::from_ms(1));
  EXPECT_EQ(config->pds.rto_max, Duration::from_seconds(8));
  EXPECT_FALSE(config->pds.rod_reorder);
  EXPECT_FALSE(config->ses.spray_ordered);
}

TEST(Settings, profile__an_unknown_one_is_refused_with_the_known_ones) {
  EXPECT_THAT(refusal({{"CONFIG", "profile:refrence"}}),
              AllOf(HasSubstr("no profile \"refrence\""), HasSubstr("reference, specification")));
}

TEST(Settings, unknown_variables__finds_misspelt_names) {
  const char* const environment[] = {"FI_UET_PORT=udp", "FI_UET_PRT=udp", "FI_LOG_LEVEL=warn",
                                     "HOME=/", nullptr};
  EXPECT_EQ(unknown_variables(environment), std::vector<std::string>{"FI_UET_PRT"});
  EXPECT_EQ(about_unknown_variable("FI_UET_PRT", "a page"),
            "FI_UET_PRT is no setting and is ignored; did you mean FI_UET_PORT?");
  EXPECT_EQ(nearest_setting("FI_UET_LOADBALANCE"), "FI_UET_LB");
  EXPECT_EQ(nearest_setting("FI_UET_ADDRESS"), "FI_UET_ADDR");
  EXPECT_EQ(about_unknown_variable("FI_UET_FOO", "a page"),
            "FI_UET_FOO is no setting and is ignored; a page lists the settings");
}

TEST(Settings, describe__says_type_and_default) {
  for (const Setting& setting : settings()) {
    EXPECT_THAT(describe(setting), HasSubstr("default: ")) << setting.key;
    EXPECT_LT(describe(setting).size(), 400u) << setting.key;
  }
}

TEST(Settings, cc_and_lb__take_the_words_of_all_choices) {
  for (const cc::Algorithm algorithm : cc::all_choices<cc::Algorithm>())
    EXPECT_EQ(load({{"CC", std::string(cc::name_of(algorithm))}})->cc, algorithm);
  for (const cc::LoadBalancing lb : cc::all_choices<cc::LoadBalancing>()) {
    const auto s = load({{"LB", std::string(cc::name_of(lb))}});
    if (cc::is_for_simulation(lb))
      EXPECT_THAT(s.error(), HasSubstr("oblivious, bitmap"));
    else
      EXPECT_EQ(s->lb, lb);
  }
  EXPECT_EQ(load({{"LB", "auto"}})->lb, std::nullopt);
}

TEST(Settings, fep_config__payload_that_does_not_fit_the_port_is_refused) {
  const auto s = load({{"MAX_PAYLOAD", "4096"}});
  net::PortFacts facts{
      .name = "udp:eth0", .address = net::FabricAddress::from_v4(0x0a000001), .ip_mtu = 1500};
  EXPECT_THAT(s->fep_config(facts).error(),
              AllOf(HasSubstr("FI_UET_MAX_PAYLOAD"), HasSubstr("udp:eth0"), HasSubstr("1500")));
  facts.ip_mtu = 4184;  // the exact size of a full packet with CRC
  EXPECT_TRUE(s->fep_config(facts).has_value());
}

// [decision 168]
TEST(Settings, fep_config__a_shared_address_takes_four_bytes_of_each_packet) {
  const auto s = load({{"MAX_PAYLOAD", "4096"}});
  net::PortFacts facts{.address = net::FabricAddress::from_v4(0x0a000001).with_udp_port(20480),
                       .ip_mtu = 4184};
  EXPECT_THAT(s->fep_config(facts).error(), HasSubstr("FI_UET_MAX_PAYLOAD"));
  facts.ip_mtu = 4188;
  EXPECT_TRUE(s->fep_config(facts).has_value());
}

TEST(Settings, port_entries__a_single_port_or_address_serves_for_all) {
  const auto entries = [](const char* ports, const char* addresses) {
    std::string out;
    for (const auto& [spec, address] : port_entries(*load({{"PORT", ports}, {"ADDR", addresses}})))
      out += spec + "@" + address + " ";
    return out;
  };
  EXPECT_EQ(entries("", ""), "udp@ ");
  EXPECT_EQ(entries("udp:a|udp:b", ""), "udp:a@ udp:b@ ");
  EXPECT_EQ(entries("udp:a|udp:b", "10.0.0.1"), "udp:a@10.0.0.1 udp:b@10.0.0.1 ");
  EXPECT_EQ(entries("udp", "10.0.0.1|10.0.0.2"), "udp@10.0.0.1 udp@10.0.0.2 ");
  EXPECT_EQ(entries("udp:a|udp:b", "10.0.0.1|10.0.0.2"), "udp:a@10.0.0.1 udp:b@10.0.0.2 ");
}

TEST(Settings, port_request__only_endpoints_without_keys_share_an_address) {
  const auto may_share = [](const char* keys) {
    return load({{"KEYS", keys}})->port_request("udp", {}, base::Rng(1)).may_share;
  };
  EXPECT_TRUE(may_share(""));
  EXPECT_FALSE(may_share("keys.json"));
}

TEST(Settings, fep_config__a_shared_address_has_no_keys) {
  const auto s = load({{"KEYS", "keys.json"}});
  const net::PortFacts facts{
      .address = net::FabricAddress::from_v4(0x0a000001).with_udp_port(20480), .ip_mtu = 9000};
  EXPECT_THAT(
      s->fep_config(facts).error(),
      AllOf(HasSubstr("FI_UET_KEYS"), HasSubstr("shares 10.0.0.1"), HasSubstr("FI_UET_ADDR")));
}

TEST(Settings, fep_config__read_data_that_does_not_fit_an_ack_is_refused) {
  const auto s = load({{"PDS", "Max_ACK_Data_Size=4096"}, {"MAX_PAYLOAD", "4096"}});
  net::PortFacts facts{
      .name = "udp:eth0", .address = net::FabricAddress::from_v4(0x0a000001), .ip_mtu = 4184};
  EXPECT_THAT(s->fep_config(facts).error(),
              AllOf(HasSubstr("Max_ACK_Data_Size"), HasSubstr("udp:eth0"), HasSubstr("4092")));
  facts.ip_mtu = 4188;
  EXPECT_TRUE(s->fep_config(facts).has_value());
}

TEST(Settings, keys__that_cannot_be_used_stop_the_endpoint) {
  const net::PortFacts facts{.address = net::FabricAddress::from_v4(0x0a000001), .ip_mtu = 9000};
  EXPECT_THAT(load({{"KEYS", "/nowhere/keys.json"}})->fep_config(facts).error(),
              HasSubstr("FI_UET_KEYS: /nowhere/keys.json"));
  for (const char* protect : {"crc", "none"})
    EXPECT_THAT(load({{"KEYS", "k"}, {"PROTECT", protect}}).error(), HasSubstr("contradict"));
  EXPECT_THAT(load({{"PROTECT", "tss"}}).error(), HasSubstr("FI_UET_KEYS"));
  EXPECT_THAT(load({{"KEY_LOG", "x"}}).error(), HasSubstr("FI_UET_KEY_LOG"));
  EXPECT_THAT(refusal({{"KEYS_SIGNAL", "hup"}}), HasSubstr("FI_UET_KEYS_SIGNAL"));
  EXPECT_EQ(load({})->fep_config(facts)->protection, DataProtection::kCrc);
  EXPECT_EQ(load({{"PROTECT", "none"}})->fep_config(facts)->protection, DataProtection::kNone);
}

/// One that would do nothing as it stands is a mistake of its user.
TEST(Settings, rendezvous__names_what_a_setting_needs) {
  EXPECT_THAT(refusal({{"RENDEZVOUS_FROM", "64K"}, {"RENDEZVOUS", "0"}}),
              HasSubstr("FI_UET_RENDEZVOUS=1"));
  EXPECT_THAT(refusal({{"RENDEZVOUS_EAGER", "4K"}, {"RENDEZVOUS", "1"}}),
              HasSubstr("FI_UET_RENDEZVOUS_FROM"));
  EXPECT_EQ(refusal({{"RENDEZVOUS_EAGER", "4K"}, {"RENDEZVOUS_FROM", "64K"}, {"RENDEZVOUS", "1"}}),
            "accepted");
}

TEST(Settings, fep_config__takes_parameters_of_the_specification_by_name) {
  const net::PortFacts facts{.address = net::FabricAddress::from_v4(1), .ip_mtu = 9000};
  const auto config = load({{"PDS", "Max_RTO_Retx_Cnt=5,NACK_Retx_Time=20us"}, {"RTO_INIT", "2ms"}})
                          ->fep_config(facts);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->pds.max_rto_retx_cnt, 5);
  EXPECT_EQ(config->pds.nack_retx_time, Duration::from_us(20));
  EXPECT_EQ(config->pds.rto_init_time, Duration::from_ms(2));
  EXPECT_THAT(refusal({{"PDS", "Max_RTO_Retx_Cnt=16"}}),
              AllOf(HasSubstr("FI_UET_PDS"), HasSubstr("Max_RTO_Retx_Cnt"), HasSubstr("15")));
  EXPECT_THAT(refusal({{"PDS", "Max_RTO=1"}}), HasSubstr("Max_RTO"));
  EXPECT_THAT(
      refusal({{"PDS", "RTO_Init_Time=1s"}}),
      HasSubstr("RTO_Init_Time is 1s, and must not be longer than RTO_Max, which is 100ms"));
  EXPECT_EQ(refusal({{"PDS", "RTO_Init_Time=1s,RTO_Max=1s"}}), "accepted");
}

TEST(Settings, fep_config__parameters_by_name_win_over_settings_that_say_the_same) {
  const net::PortFacts facts{.address = net::FabricAddress::from_v4(1), .ip_mtu = 9000};
  const auto config =
      load({{"PDS", "RTO_Init_Time=5ms,Max_PDC=64"}, {"RTO_INIT", "2ms"}, {"MAX_PDC", "512"}})
          ->fep_config(facts);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->pds.rto_init_time, Duration::from_ms(5));
  EXPECT_EQ(config->pds.max_pdc, 64u);
}

/// fi_getinfo says so, and not only the call that opens the port.
TEST(Settings, load__refuses_what_no_port_can_have) {
  EXPECT_THAT(refusal({{"MTU", "600"}}), AllOf(HasSubstr("FI_UET_MTU"), HasSubstr("1280")));
  EXPECT_THAT(refusal({{"IMPAIR", "loss=2"}}), HasSubstr("FI_UET_IMPAIR"));
}

TEST(Settings, load__refuses_what_the_port_would_ignore) {
  EXPECT_THAT(refusal({{"PREFIX", "16"}}), HasSubstr("FI_UET_PREFIX"));
  EXPECT_THAT(refusal({{"IFNAME", "eth0"}, {"PORT", "dpdk:net_memif0"}}),
              HasSubstr("FI_UET_IFNAME"));
  EXPECT_THAT(refusal({{"RESTART_LIMIT", "5"}}), HasSubstr("FI_UET_DEFERRABLE"));
  EXPECT_THAT(refusal({{"IP_PROTOCOL", "17"}}), HasSubstr("FI_UET_ENCAP=ip"));
  EXPECT_THAT(refusal({{"PORT", "dpdk:net_null0"}, {"ENCAP", "ip"}, {"UDP_PORT", "5000"}}),
              HasSubstr("FI_UET_ENCAP=udp"));
  EXPECT_THAT(refusal({{"LINK_GBPS", "1"}, {"LINK_MBPS", "500"}}), HasSubstr("give one"));
}

TEST(Settings, load__refuses_a_second_name_of_the_interface) {
  for (const char* port : {"udp:d0", "udp:10.8.0.1,sockets=4", "udp:c0+udp:d0"})
    EXPECT_THAT(refusal({{"PORT", port}, {"IFNAME", "c0"}}),
                AllOf(HasSubstr("FI_UET_IFNAME: c0"), HasSubstr(port), HasSubstr("leave one out")));
  EXPECT_EQ(refusal({{"PORT", "udp:c0"}, {"IFNAME", "c0"}}), "accepted");
  EXPECT_EQ(refusal({{"PORT", "udp,sockets=4"}, {"IFNAME", "c0"}}), "accepted");
}

TEST(Settings, load__refuses_addresses_that_no_host_of_a_dpdk_port_has) {
  const auto at = [](const char* address, const char* prefix, const char* gateway) {
    return refusal(
        {{"PORT", "dpdk:net_null0"}, {"ADDR", address}, {"PREFIX", prefix}, {"GATEWAY", gateway}});
  };
  EXPECT_THAT(at("10.0.0.0", "0", ""), HasSubstr("10.0.0.0 is the name of a network"));
  EXPECT_THAT(at("10.0.0.1|10.0.0.255", "0", ""), HasSubstr("10.0.0.255 is the broadcast address"));
  EXPECT_THAT(at("127.0.0.3", "0", ""), HasSubstr("loopback"));
  EXPECT_THAT(at("10.0.0.1", "0", "10.0.0.1"), HasSubstr("FI_UET_GATEWAY is its router"));
  EXPECT_THAT(at("10.0.0.1", "64", ""), HasSubstr("prefix length 64"));
  for (const auto& [address, prefix] : {std::pair("10.0.0.255", "16"), std::pair("10.0.0.0", "31"),
                                        std::pair("10.0.0.%r", "0"), std::pair("fd00::", "0")})
    EXPECT_EQ(at(address, prefix, ""), "accepted") << address;
}

TEST(Settings, fep_config__follows_the_policy_for_peers_that_compute) {
  const auto config = load({})->fep_config(
      net::PortFacts{.address = net::FabricAddress::from_v4(1), .ip_mtu = 9000});
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->payload_mtu, 8192u);
  EXPECT_EQ(config->pds.max_rto_retx_cnt, 15);
  EXPECT_EQ(config->pds.rto_max, Duration::from_ms(100));
  EXPECT_EQ(config->pds.peer_timeout, Duration::from_seconds(60));
}

// A receive that the sender is still filling must not end before it.
TEST(Settings, fep_config__waits_for_the_rest_of_a_message_as_long_as_its_sender_tries) {
  const auto idle = [](const char* peer_timeout, const char* pds) {
    return load({{"PEER_TIMEOUT", peer_timeout}, {"PDS", pds}})
        ->fep_config(net::PortFacts{.address = net::FabricAddress::from_v4(1), .ip_mtu = 9000})
        ->ses.message_idle;
  };
  EXPECT_EQ(idle("5", ""), Duration::from_seconds(60));
  EXPECT_EQ(idle("60", ""), Duration::from_seconds(60));
  EXPECT_EQ(idle("600", ""), Duration::from_seconds(600));
  EXPECT_EQ(idle("0", ""), Duration::from_seconds(3600));
  EXPECT_EQ(idle("0", "Max_RTO_Retx_Cnt=5"), Duration::from_seconds(60));
}

TEST(Settings, fep_config__judges_paths_where_there_are_several_planes) {
  const auto chosen = [](std::map<std::string, std::string> variables, std::uint8_t planes) {
    const auto config =
        load(std::move(variables))
            ->fep_config(net::PortFacts{
                .address = net::FabricAddress::from_v4(1), .ip_mtu = 9000, .planes = planes});
    return config->cc.load_balancing;
  };
  EXPECT_EQ(chosen({}, 1), cc::LoadBalancing::kOblivious);
  EXPECT_EQ(chosen({}, 2), cc::LoadBalancing::kBitmap);
  EXPECT_EQ(chosen({{"LB", "oblivious"}}, 2), cc::LoadBalancing::kOblivious);
}

TEST(Settings, keys_signal__asks_all_endpoints_to_read_their_keys_again) {
  net::PortFacts facts;
  facts.address = net::FabricAddress::from_v4(1);
  facts.ip_mtu = 9000;
  EXPECT_FALSE(load({{"KEYS_SIGNAL", "kill"}}));
  // The file is not there, but the signal is for all endpoints of the process.
  EXPECT_FALSE(load({{"KEYS", "/nowhere/keys.json"}, {"KEYS_SIGNAL", "usr2"}})->fep_config(facts));
  const std::uint64_t before = keys::reload_requests();
  ASSERT_EQ(::raise(SIGUSR2), 0);
  EXPECT_EQ(keys::reload_requests(), before + 1);
  ::signal(SIGUSR2, SIG_DFL);
}

// Tests of packet delivery use it in place of the settings.
TEST(Settings, defaults_are_the_software_profile_of_the_tests) {
  net::PortFacts facts;
  facts.address = net::FabricAddress::from_v4(0x0a000001);
  facts.ip_mtu = 9000;
  const auto config = load({})->fep_config(facts);
  ASSERT_TRUE(config) << config.error();
  const pds::PdsConfig& real = config->pds;
  const pds::PdsConfig tests = pds::test::software_profile();
  EXPECT_EQ(real.rto_init_time, tests.rto_init_time);
  EXPECT_EQ(real.rto_max, tests.rto_max);
  EXPECT_EQ(real.tail_loss_time, tests.tail_loss_time);
  EXPECT_EQ(real.tail_loss_asks, tests.tail_loss_asks);
  EXPECT_EQ(real.reorder_window, tests.reorder_window);
  EXPECT_EQ(real.peer_timeout, tests.peer_timeout);
  EXPECT_EQ(real.max_rto_retx_cnt, tests.max_rto_retx_cnt);
  EXPECT_EQ(real.max_nack_retx_cnt, tests.max_nack_retx_cnt);
  EXPECT_EQ(real.rod_reorder, tests.rod_reorder);
  EXPECT_EQ(real.local_mp_range, tests.local_mp_range);
  EXPECT_EQ(real.max_pdc, tests.max_pdc);
  EXPECT_EQ(real.pdc_idle_time, tests.pdc_idle_time);
}

}  // namespace
}  // namespace uet::fep
