#include "fep/report/live_state.h"

#include <nlohmann/json.hpp>

#include "lib/base/version.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

fep::Settings settings_with(std::map<std::string, std::string> variables) {
  const auto settings =
      fep::Settings::load([&](std::string_view key) -> std::optional<std::string> {
        const auto it = variables.find(std::string(key));
        return it == variables.end() ? std::nullopt : std::optional(it->second);
      });
  EXPECT_TRUE(settings.has_value());
  return *settings;
}

class LiveStateTest : public testing::TestWithParam<Order> {
 public:
  explicit LiveStateTest(const char* algorithm = "nscc")
      : pair_(LinkConfig{}, with_order(GetParam(), {{"PATHS", "16"}, {"CC", algorithm}}),
              GetParam() != Order::kNone) {}

 protected:
  void send(std::size_t bytes) {
    auto out = pattern(bytes, 1), in = std::vector<std::uint8_t>(bytes);
    const iovec out_iov = iov(out), in_iov = iov(in);
    ASSERT_TRUE(pair_.ses(1).receive(pair_.now, pair_.sides[1].endpoint, {.iov = {&in_iov, 1}}));
    ASSERT_TRUE(pair_.ses(0).send(pair_.now, pair_.sides[0].endpoint,
                                  {.peer = pair_.sides[0].peer, .iov = {&out_iov, 1}}));
    ASSERT_TRUE(pair_.run_until([&] { return pair_.completions(0).count() > 0; }));
  }
  nlohmann::json snapshot(std::size_t side, fep::SnapshotLimits limits = {}) {
    return nlohmann::json::parse(
        fep::snapshot(pair_.now, *pair_.sides[side].fep, settings_with({{"PATHS", "16"}}), limits));
  }

  FepPair pair_;
};

INSTANTIATE_TEST_SUITE_P(Order, LiveStateTest, testing::ValuesIn(kOrders),
                         [](const auto& order) { return name_of(order.param); });

TEST_P(LiveStateTest, a_snapshot__tells_choices_counters_contexts_and_pdcs) {
  send(1 << 18);
  const auto sender = snapshot(0), target = snapshot(1);
  const bool is_rod = GetParam() == Order::kContext;
  EXPECT_EQ(sender["paths"], "16");
  EXPECT_EQ(sender["chosen_by"]["paths"], "FI_UET_PATHS");
  EXPECT_EQ(sender["chosen_by"]["cc"], "default");
  EXPECT_EQ(sender["payload"], std::to_string(pair_.sides[0].fep->payload_mtu()));
  EXPECT_EQ(sender["contexts"][0]["payload"], pair_.sides[0].fep->payload_mtu());
  EXPECT_EQ(sender["events"]["request-sent"],
            pair_.sides[0].trace.count(base::EventId::kRequestSent));
  EXPECT_GT(sender["gauges"]["pool_packets"], 0);
  for (const char* gauge :
       {"half_open_reaped", "pdcs_unproven", "unproven_evicted", "openings_remembered",
        "clear_breaks", "stored_unproven", "header_only_messages", "senders", "reads_returning",
        "returns_open", "returns_waiting"})
    EXPECT_TRUE(sender["gauges"].contains(gauge)) << gauge;
  EXPECT_GE(target["gauges"].value("senders", 0), 1);
  EXPECT_EQ(sender.value("protection", ""), "crc");
  EXPECT_FALSE(sender.contains("sdi"));
  EXPECT_FALSE(sender["gauges"].contains("keys_derived"));
  ASSERT_EQ(sender["contexts"].size(), 1u);
  EXPECT_GT(sender["contexts"][0]["window"], 0);
  EXPECT_EQ(sender["contexts"][0].contains("ordered"), is_rod);
  EXPECT_FALSE(sender["contexts"][0].contains("credit"));
  EXPECT_EQ(sender["contexts"][0].contains("paths"), !is_rod);
  ASSERT_EQ(sender["pdcs"].size(), 1u);
  EXPECT_EQ(sender["pdcs"][0]["mode"], is_rod ? "rod" : "rud");
  EXPECT_EQ(sender["pdcs"][0]["role"], "initiator");
  EXPECT_EQ(target["pdcs"][0]["role"], "target");
  EXPECT_EQ(sender["pdcs"][0]["pdc"], target["pdcs"][0]["peer_pdc"]);
  EXPECT_EQ(sender["pdcs"][0]["unacked"], 0);
  EXPECT_EQ(sender["pdcs"][0].value("locks", 9), 0);
  EXPECT_EQ(target["pdcs"][0].value("owed", 9), 0);
}

// What an ordered PDC says of a gap: both ends count it, by code, on the PDC and in the sums of the endpoint.
TEST_P(LiveStateTest, a_snapshot__counts_nacks_by_code_on_each_pdc_and_in_all) {
  bool is_lost = false;
  int packets = 0;
  pair_.link.config().drop = [&](std::size_t from, std::span<const std::uint8_t>) {
    const bool lose = from == 0 && !is_lost && ++packets == 4;
    is_lost |= lose;
    return lose;
  };
  send(1 << 16);
  const auto sender = snapshot(0), target = snapshot(1);
  EXPECT_EQ(sender["pdcs"][0]["retransmitted"],
            pair_.sides[0].trace.count(base::EventId::kPacketRetransmitted));
  EXPECT_GE(sender["pdcs"][0]["retransmitted"], 1);
  EXPECT_EQ(target["pdcs"][0]["retransmitted"], 0);
  const bool tells = GetParam() == Order::kContext;  // an unordered PDC tells of a gap by SACK
  EXPECT_EQ(sender["nacks"].empty(), !tells) << sender["nacks"];
  EXPECT_EQ(sender["nacks"], sender["pdcs"][0]["nacks"]);
  EXPECT_EQ(target["nacks"], target["pdcs"][0]["nacks"]);
  ASSERT_EQ(sender["nacks"].size(), target["nacks"].size());
  for (const auto& [name, count] : target["nacks"].items()) {
    EXPECT_TRUE(name.starts_with("sent ")) << name;
    EXPECT_EQ(sender["nacks"].value("received " + name.substr(5), 0), count) << sender["nacks"];
  }
}

class LiveStateWithCreditTest : public LiveStateTest {
 public:
  LiveStateWithCreditTest() : LiveStateTest("rccc") {}
};
INSTANTIATE_TEST_SUITE_P(Order, LiveStateWithCreditTest, testing::ValuesIn(kOrders),
                         [](const auto& order) { return name_of(order.param); });

TEST_P(LiveStateWithCreditTest, a_snapshot__tells_the_credit_of_a_peer) {
  send(1 << 18);
  const auto sender = snapshot(0);
  EXPECT_TRUE(sender["contexts"][0]["credit"].is_number()) << sender["contexts"][0];
}

TEST_P(LiveStateTest, a_snapshot__is_bounded_and_counts_what_it_leaves_out) {
  send(1 << 18);
  const auto none = snapshot(0, {.pdcs = 0, .contexts = 0});
  EXPECT_TRUE(none["pdcs"].empty());
  EXPECT_TRUE(none["contexts"].empty());
  EXPECT_EQ(none["pdcs_not_shown"], 1);
  EXPECT_EQ(none["contexts_not_shown"], 1);
}

TEST_P(LiveStateTest, taking_a_snapshot_changes_nothing) {
  send(1 << 16);
  const auto first = snapshot(0), second = snapshot(0);
  EXPECT_EQ(first, second);
}

TEST_P(LiveStateTest, the_opening_line__names_each_choice_and_who_made_it) {
  const std::string line =
      fep::describe_opening(*pair_.sides[0].fep, settings_with({{"CC", "nscc"}}));
  EXPECT_NE(line.find("cc nscc (FI_UET_CC)"), std::string::npos) << line;
  EXPECT_TRUE(line.starts_with("version " + std::string(base::kVersion) + " (this build), port "))
      << line;
  EXPECT_NE(line.find("job 1 (default)"), std::string::npos) << line;
  EXPECT_NE(line.find("payload " + std::to_string(pair_.sides[0].fep->payload_mtu()) + " (mtu)"),
            std::string::npos)
      << line;
}

/// A port as kernel-UDP has it: some source ports for all paths, and ways that carry more than its device.
class SocketsPort final : public net::Port {
 public:
  SocketsPort() {
    facts_.name = "udp:eth0";
    facts_.address = net::FabricAddress::from_v4(0x0a000001);
    facts_.ip_mtu = 1500;
    facts_.path_mtu_max = 65535;
  }
  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(Instant, std::span<net::RxPacket>) override { return 0; }
  std::size_t send(Instant, std::span<net::TxPacket> in) override { return in.size(); }
  std::uint16_t wire_entropy(std::uint16_t entropy) const override { return entropy % 8; }

 private:
  net::PortFacts facts_;
  net::HeapPacketPool pool_{64, 9000};
};

class SocketsPortStateTest : public testing::Test {
 protected:
  std::string line(std::map<std::string, std::string> variables) {
    return shown(std::move(variables), [&](fep::Fep& fep, const fep::Settings& settings) {
      return fep::describe_opening(fep, settings);
    });
  }
  nlohmann::json state(std::map<std::string, std::string> variables) {
    return nlohmann::json::parse(
        shown(std::move(variables), [](fep::Fep& fep, const fep::Settings& settings) {
          return fep::snapshot(Instant(), fep, settings, {});
        }));
  }

 private:
  template <typename Show>
  std::string shown(std::map<std::string, std::string> variables, Show show) {
    const fep::Settings settings = settings_with(std::move(variables));
    base::Trace trace;
    base::Rng rng(1);
    fep::Fep fep(*settings.fep_config(port_.facts()), port_, rng, trace, Instant());
    return show(fep, settings);
  }
  SocketsPort port_;
};

// [decision 23]
TEST_F(SocketsPortStateTest, paths__that_share_source_ports_are_told_so) {
  EXPECT_NE(line({{"PATHS", "64"}}).find("source_ports 8 (sockets= of FI_UET_PORT)"),
            std::string::npos);
  EXPECT_EQ(state({{"PATHS", "64"}})["paths"], "64");
  EXPECT_EQ(state({{"PATHS", "64"}})["source_ports"], "8");
  EXPECT_FALSE(state({{"PATHS", "8"}}).contains("source_ports"));
}

// [decision 125]
TEST_F(SocketsPortStateTest, payload__is_a_bound_where_the_way_decides) {
  EXPECT_NE(line({}).find("payload up to 8192 (route to each peer)"), std::string::npos)
      << line({});
  EXPECT_NE(line({{"MAX_PAYLOAD", "4096"}}).find("payload up to 4096 (FI_UET_MAX_PAYLOAD)"),
            std::string::npos);
}

TEST(JsonString, quotes_what_must_be_quoted) {
  EXPECT_EQ(fep::json_string("a\"b\\c\n"), R"("a\"b\\c\u000a")");
}

TEST(NearestSetting, names_the_setting_that_was_meant) {
  EXPECT_EQ(fep::nearest_setting("FI_UET_PATH"), "FI_UET_PATHS");
  EXPECT_EQ(fep::nearest_setting("FI_UET_IMPIAR"), "FI_UET_IMPAIR");
  EXPECT_EQ(fep::nearest_setting("peer_timout"), "FI_UET_PEER_TIMEOUT");
  EXPECT_EQ(fep::nearest_setting("FI_UET_FOO"), "");
  EXPECT_EQ(fep::nearest_setting("FI_UET_"), "");
}

}  // namespace
}  // namespace uet::test
