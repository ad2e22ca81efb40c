// What uet-keys writes, in the hands of endpoints: hosts that got copies of one file, and rotation in server mode. [TSS 5, 7.4]
#include "apps/keys/commands.h"

#include <gmock/gmock.h>

#include "keys/file_keys.h"
#include "keys/host_identity.h"
#include "tests/keys/temp_folder.h"
#include "tests/tss/recording_ciphers.h"

namespace uet::apps::keys {
namespace {

using testing::HasSubstr;
using tss::test::host;
using tss::test::Node;
using tss::test::RecordingCiphers;
using uet::keys::test::TempFolder;

/// A host: a folder with the key file, and beside it the state folder, which has one name on all hosts.
struct Host {
  Host(const TempFolder& folder, const std::string& name) : file(folder / (name + "/keys.json")) {
    std::filesystem::create_directory(folder / name);
    ::chmod((folder / name).c_str(), 0700);
  }
  tss::DomainConfig domain() const {
    const auto read = uet::keys::read_key_file(file);
    EXPECT_TRUE(read) << read.error();
    return read ? read->domains[0] : tss::DomainConfig{};
  }
  /// As scp would, over what is there.
  void copy_from(const Host& other) const {
    std::filesystem::copy_file(other.file, file, std::filesystem::copy_options::overwrite_existing);
  }
  int install(std::optional<std::uint32_t> ssi = {},
              std::optional<std::uint32_t> server_id = {}) const {
    return keys::install({.file = file, .ssi = ssi, .server_id = server_id});
  }
  /// Why no endpoint starts, or nothing.
  std::string why_closed() const {
    std::string error;
    (void)uet::keys::FileKeys::open(file, 1, "", error);
    return error;
  }
  const std::string file;
};
constexpr const char* kState = "state";

// Covers: TSS-T32
TEST(UetKeys, servers_of_one_domain__and_their_client_share_no_iv) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second"), client(folder, "client");
  ASSERT_EQ(make_new({.out = first.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  ASSERT_EQ(derive({.file = first.file, .out = client.file, .ssi = 7, .ip = "10.0.0.2"}), 0);
  second.copy_from(first);
  EXPECT_NE(second.install(), 0) << "the number of another server";
  ASSERT_EQ(second.install({}, 1), 0);
  EXPECT_EQ(check(second.file), 0);

  RecordingCiphers ciphers;
  std::vector<std::unique_ptr<Node>> nodes;  // each on a host of its own: no store is shared
  for (const Host* h : {&first, &second, &client})
    nodes.push_back(std::make_unique<Node>(h->domain(), h == &client ? host(2) : host(10), nullptr,
                                           tss::Carrier{}, ciphers));
  for (int i = 0; i < 1000; ++i)
    for (auto& node : nodes) ASSERT_TRUE(node->seal(tss::test::text_of(16), host(2)));
  EXPECT_EQ(ciphers.repeats(), 0u);

  // A copy that comes later is the first server's again, until this one is prepared.
  second.copy_from(first);
  EXPECT_THAT(second.why_closed(), HasSubstr("another host"));
  EXPECT_NE(check(second.file), 0);
  ASSERT_EQ(second.install(), 0);
  EXPECT_EQ(second.why_closed(), "");
  EXPECT_EQ(second.domain().partition, uet::keys::partition_of_server(1));
}

TEST(UetKeys, server_with_ssi__has_no_part_of_the_counters_by_default) {
  const TempFolder folder;
  const Host server(folder, "server");
  ASSERT_EQ(make_new({.out = server.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  std::ifstream in(server.file);
  auto json = nlohmann::json::parse(in);
  json["node"].erase("tsc_partition");
  folder.write("server/keys.json", json.dump());
  EXPECT_THAT(server.why_closed(), HasSubstr("--server-id"));
  EXPECT_NE(server.install(), 0);
  ASSERT_EQ(server.install({}, 0), 0);
  EXPECT_EQ(server.domain().partition.id, 0x10u);
}

TEST(UetKeys, install__each_host_keeps_its_own_ssi) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .ssi = 1, .state_folder = kState}), 0);
  second.copy_from(first);
  EXPECT_NE(second.install(), 0) << "the SSI of another host";
  ASSERT_EQ(second.install(2), 0);
  EXPECT_EQ(second.domain().ssi, 2u);
  ASSERT_EQ(rotate(first.file, RotateStep::kAdd, {}), 0);
  second.copy_from(first);
  EXPECT_THAT(second.why_closed(), HasSubstr("another host"));
  ASSERT_EQ(second.install(), 0);
  EXPECT_EQ(second.domain().ssi, 2u);
  EXPECT_EQ(second.why_closed(), "");
  EXPECT_EQ(first.install(), 0) << "where the file was made";
  EXPECT_EQ(first.domain().ssi, 1u);
}

// Endpoints that use the first one would not start any more.
TEST(UetKeys, install__a_host_has_one_ssi_in_a_domain) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .ssi = 1, .state_folder = kState}), 0);
  second.copy_from(first);
  ASSERT_EQ(second.install(2), 0);
  EXPECT_NE(second.install(3), 0);
  EXPECT_EQ(second.domain().ssi, 2u);
  EXPECT_EQ(second.why_closed(), "");
}

// The number is the node's, and what is recorded for the other domain must not bring an old one back.
TEST(UetKeys, install__a_server_number_is_not_lost_beside_another_domain) {
  const TempFolder folder;
  const Host server(folder, "server"), other(folder, "other");
  ASSERT_EQ(make_new({.out = server.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  ASSERT_EQ(make_new({.out = other.file, .ssi = 1, .state_folder = kState}), 0);
  std::ifstream of_server(server.file), of_other(other.file);
  auto json = nlohmann::json::parse(of_server);
  json["secure_domains"].push_back(nlohmann::json::parse(of_other)["secure_domains"][0]);
  const Host both(folder, "both");
  folder.write("both/keys.json", json.dump());
  ASSERT_EQ(both.install(1, 2), 0);
  ASSERT_EQ(both.domain().partition.id, 0x12u);
  EXPECT_TRUE(both.install({}, 3) != 0 || both.domain().partition.id == 0x13u);
}

TEST(UetKeys, install__of_a_domain_that_waits_for_its_first_key) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .ssi = 1, .state_folder = kState}), 0);
  std::ifstream in(first.file);
  auto json = nlohmann::json::parse(in);
  json["secure_domains"][0]["keys"] = nlohmann::json::array();
  folder.write("second/keys.json", json.dump());
  EXPECT_EQ(second.install(2), 0);
  second.copy_from(first);
  EXPECT_EQ(second.install(2), 0);
  EXPECT_EQ(second.why_closed(), "");
}

TEST(UetKeys, install__without_ssi_asks_for_nothing) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = kState}), 0);
  second.copy_from(first);
  EXPECT_EQ(second.install(), 0);
  EXPECT_NE(second.install({}, 3), 0) << "no server with SSI";
}

/// The order of uet-keys(1), with packets in both directions behind each step and an epoch that is not 0.
// Covers: TSS-T24, TSS-T30
TEST(UetKeys, server_mode__rotation_loses_nothing_at_any_step) {
  for (const bool has_ssi : {false, true}) {
    const TempFolder folder;
    const Host at_server(folder, "server"), at_client(folder, "client"), derived(folder, "derived");
    const std::optional<std::uint32_t> ssi = has_ssi ? std::optional(7u) : std::nullopt;
    ASSERT_EQ(
        make_new({.out = at_server.file, .mode = "server", .ssi = ssi, .state_folder = kState}), 0);
    std::ifstream in(at_server.file);
    auto json = nlohmann::json::parse(in);
    json["secure_domains"][0]["epoch"] = {{"tx", 7}};
    folder.write("server/keys.json", json.dump());
    const auto derive_client = [&] {
      const int status =
          derive({.file = at_server.file, .out = derived.file, .ssi = ssi, .ip = "10.0.0.2"});
      std::filesystem::rename(derived.file, at_client.file);
      return status == 0 && at_client.install() == 0;
    };
    ASSERT_TRUE(derive_client());
    Node server(at_server.domain(), host(1)), client(at_client.domain(), host(2));
    const auto expect_both_ways = [&](const char* step) {
      tell(server, at_server.domain());
      tell(client, at_client.domain());
      const auto text = tss::test::text_of(60);
      const auto request = client.seal(text, server.address);
      const auto answer = server.seal(text, client.address);
      ASSERT_TRUE(request && answer) << step;
      EXPECT_EQ(server.open(*request, client.address), text) << step;
      EXPECT_EQ(client.open(*answer, server.address), text) << step;
    };
    expect_both_ways("one key");
    ASSERT_EQ(rotate(at_server.file, RotateStep::kAdd, {}), 0);
    expect_both_ways("the server has the second key");
    EXPECT_NE(rotate(at_client.file, RotateStep::kSwitch, {}), 0) << "it has no second key";
    ASSERT_TRUE(derive_client());
    expect_both_ways("the client has it");
    ASSERT_EQ(rotate(at_server.file, RotateStep::kSwitch, {}), 0);
    expect_both_ways("the server has switched");
    ASSERT_EQ(rotate(at_client.file, RotateStep::kSwitch, {}), 0);
    expect_both_ways("the client has switched");
    ASSERT_EQ(retire(at_server.file, {}), 0);
    expect_both_ways("the server has retired the first key");
    ASSERT_EQ(retire(at_client.file, {}), 0);
    expect_both_ways("the client has, too");
    EXPECT_NE(rotate(at_client.file, RotateStep::kAdd, {}), 0) << "its keys come from the server";
  }
}

}  // namespace
}  // namespace uet::apps::keys
