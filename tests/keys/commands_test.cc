// What uet-keys writes, in the hands of endpoints: hosts that got copies of one file, and rotation in server mode. [TSS 5, 7.4]
#include "apps/keys/commands.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "keys/counter_state.h"
#include "keys/file_keys.h"
#include "keys/host_identity.h"
#include "tests/base/temp_folder.h"
#include "tests/tss/recording_ciphers.h"

namespace uet::apps::keys {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using tss::test::host;
using tss::test::Node;
using tss::test::RecordingCiphers;
using uet::keys::CounterState;
using uet::test::TempFolder;

constexpr const char* kState = "state";

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
  json read() const {
    std::ifstream in(file);
    return json::parse(in);
  }
  void write(const json& content) const {
    std::ofstream(file) << content.dump();
    EXPECT_EQ(::chmod(file.c_str(), 0600), 0);
  }
  std::string folder() const { return std::filesystem::path(file).parent_path(); }
  std::string state() const { return folder() + "/" + kState; }
  /// Of the key at this place of the list.
  tss::Fingerprint key(std::size_t i) const { return fingerprint_of(domain().keys.at(i).key); }
  std::string name(std::size_t i) const { return uet::keys::short_name(key(i)); }
  /// Of the key that is sent under: what a process takes before it sends, or nothing.
  std::optional<std::uint64_t> first_counter() const {
    std::string error;
    const auto keys = uet::keys::FileKeys::open(file, 1, "", error);
    if (keys == nullptr) return std::nullopt;
    const tss::DomainConfig d = keys->domain();
    const auto at = std::ranges::find(d.keys, d.tx_an, &tss::KeyConfig::an);
    const auto range = keys->reserve(fingerprint_of(at->key), 1000);
    return range ? std::optional(range->first) : std::nullopt;
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

/// What a command says while `run` goes on, on both streams.
std::string said_by(const std::function<void()>& run) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run();
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
}

// Covers: TSS-T32
TEST(UetKeys, servers_of_one_domain__and_their_client_share_no_iv) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second"), client(folder, "client");
  ASSERT_EQ(make_new({.out = first.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  ASSERT_EQ(derive({.file = first.file, .out = client.file, .ssi = 7, .ip = {"10.0.0.2"}}), 0);
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

// --- Counters that were lost

TEST(UetKeys, rotate__does_not_begin_lost_counters_anew) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  ASSERT_EQ(host.first_counter(), 0u);
  const Host old(folder, "old");
  std::filesystem::remove_all(host.state());
  EXPECT_FALSE(host.first_counter());
  EXPECT_THAT(said_by([&] { EXPECT_EQ(rotate(host.file, RotateStep::kAdd, {}), 0); }),
              HasSubstr("counters of key " + host.name(0) + " are gone"));
  EXPECT_FALSE(host.first_counter()) << "packets still leave under the old key";
  EXPECT_THAT(said_by([&] { EXPECT_EQ(host.install(), 1); }), HasSubstr("rotate --switch"));
  EXPECT_NE(check(host.file), 0);
  EXPECT_FALSE(host.first_counter());
  old.copy_from(host);
  ASSERT_EQ(rotate(host.file, RotateStep::kSwitch, {}), 0);
  EXPECT_TRUE(CounterState(host.state()).is_missing(host.key(0)));
  EXPECT_EQ(host.first_counter(), 0u) << "of the new key";
  EXPECT_EQ(host.install(), 0) << "endpoints can send";
  EXPECT_FALSE(CounterState(host.state()).reserve(host.key(0), 1));
  ASSERT_EQ(retire(host.file, {}), 0);
  EXPECT_EQ(check(host.file), 0);
  host.copy_from(old);
  EXPECT_EQ(host.install(), 1) << "it was retired";
}

TEST(UetKeys, rotate__switch_makes_no_counters) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = kState}), 0);
  second.copy_from(first);
  ASSERT_EQ(second.install(), 0);
  ASSERT_EQ(rotate(first.file, RotateStep::kAdd, {}), 0);
  second.copy_from(first);
  EXPECT_THAT(said_by([&] { EXPECT_EQ(rotate(second.file, RotateStep::kSwitch, {}), 1); }),
              HasSubstr("uet-keys install"));
  EXPECT_FALSE(second.domain().tx_an);
  ASSERT_EQ(second.install(), 0);
  EXPECT_EQ(rotate(second.file, RotateStep::kSwitch, {}), 0);
  EXPECT_TRUE(second.domain().tx_an);
}

/// As a container does at each start, whose volume with the state was forgotten once.
TEST(UetKeys, install__does_not_begin_lost_counters_anew) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = kState}), 0);
  second.copy_from(first);
  for (int start = 0; start < 3; ++start) {
    ASSERT_EQ(second.install(), 0);
    EXPECT_EQ(second.first_counter(), 1000u * static_cast<unsigned>(start));
  }
  std::filesystem::remove_all(second.state());
  for (int start = 0; start < 2; ++start)
    EXPECT_THAT(said_by([&] { EXPECT_EQ(second.install(), 1); }), HasSubstr("--never-sent-here"));
  second.copy_from(first);
  EXPECT_EQ(second.install(), 1) << "a copy is the same key";
  EXPECT_FALSE(second.first_counter());
  // The way out that the message names.
  ASSERT_EQ(rotate(first.file, RotateStep::kAdd, {}), 0);
  second.copy_from(first);
  EXPECT_EQ(second.install(), 1);
  EXPECT_FALSE(second.first_counter());
  ASSERT_EQ(rotate(second.file, RotateStep::kSwitch, {}), 0);
  EXPECT_EQ(second.first_counter(), 0u);
  EXPECT_EQ(second.install(), 0);
}

TEST(UetKeys, install__takes_the_operators_word_that_a_host_never_sent) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  std::filesystem::remove_all(host.state());
  ASSERT_EQ(keys::install({.file = host.file}), 1);
  ASSERT_EQ(keys::install({.file = host.file, .never_sent = {host.name(0)}}), 0);
  EXPECT_EQ(host.first_counter(), 0u);
  ASSERT_EQ(keys::install({.file = host.file, .never_sent = {host.name(0)}}), 0);
  EXPECT_EQ(host.first_counter(), 1000u) << "counters that are there go on";
}

/// The word is about one key: of two that are lost the other one stays so.
TEST(UetKeys, install__word_for_a_new_key_begins_no_old_one) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  ASSERT_EQ(host.first_counter(), 0u);
  ASSERT_EQ(rotate(host.file, RotateStep::kAdd, {}), 0);
  std::filesystem::remove_all(host.state());
  EXPECT_EQ(keys::install({.file = host.file, .never_sent = {host.name(1)}}), 1);
  EXPECT_FALSE(host.first_counter());
  ASSERT_EQ(rotate(host.file, RotateStep::kSwitch, {}), 0);
  EXPECT_EQ(host.first_counter(), 0u);
}

/// A copy names a folder that a user cannot make.
TEST(UetKeys, install__that_could_make_no_counters_is_none) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = kState}), 0);
  second.copy_from(first);
  folder.write("second/state", "a file");
  EXPECT_EQ(second.install(), 1);
  std::filesystem::remove(second.state());
  EXPECT_EQ(second.install(), 0);
  EXPECT_EQ(second.first_counter(), 0u);
}

/// Damaged, or where others can write: there are counters, and none begin anew in another folder.
TEST(UetKeys, install__counters_that_cannot_be_read_are_not_gone) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  ASSERT_EQ(host.first_counter(), 0u);
  std::filesystem::remove(host.file + ".prepared");  // the version before
  for (const auto& entry : std::filesystem::directory_iterator(host.state()))
    std::ofstream(entry.path()) << "something else";
  EXPECT_THAT(said_by([&] {
                EXPECT_EQ(keys::install({.file = host.file, .state_folder = folder / "other"}), 1);
              }),
              HasSubstr("damaged"));
}

/// The version before wrote nothing beside the file.
TEST(UetKeys, install__of_a_host_that_an_older_version_prepared) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  ASSERT_EQ(host.first_counter(), 0u);
  std::filesystem::remove(host.file + ".prepared");
  EXPECT_EQ(check(host.file), 0);
  ASSERT_EQ(host.install(), 0);
  EXPECT_EQ(host.first_counter(), 1000u);
  std::filesystem::remove_all(host.state());
  EXPECT_EQ(host.install(), 1) << "known from now on";
}

TEST(UetKeys, install__of_a_damaged_key_makes_the_other_ones_counters) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = kState}), 0);
  second.copy_from(first);
  ASSERT_EQ(second.install(), 0);
  for (const auto& entry : std::filesystem::directory_iterator(second.state()))
    std::ofstream(entry.path()) << "something else";
  ASSERT_EQ(rotate(first.file, RotateStep::kAdd, {}), 0);
  second.copy_from(first);
  EXPECT_THAT(said_by([&] { EXPECT_EQ(second.install(), 1); }), HasSubstr("damaged"));
  ASSERT_EQ(rotate(second.file, RotateStep::kSwitch, {}), 0);
  EXPECT_EQ(second.first_counter(), 0u);
}

/// A file that is mounted read-only, and counters on a volume.
TEST(UetKeys, install__where_nothing_can_be_written_beside_the_file) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  const std::string state = folder / "volume/state";
  std::filesystem::create_directory(folder / "volume");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = state}), 0);
  std::filesystem::remove_all(state);
  second.copy_from(first);
  const bool is_root = ::geteuid() == 0;  // who writes in any folder
  constexpr uid_t kOther = 65534;
  for (const std::string& path : {folder.path(), folder / "volume", second.folder(), second.file})
    ASSERT_TRUE(!is_root || ::chown(path.c_str(), kOther, kOther) == 0);
  ASSERT_EQ(::chmod(second.folder().c_str(), 0500), 0);
  ASSERT_TRUE(!is_root || ::seteuid(kOther) == 0);
  const std::string said = said_by([&] { EXPECT_EQ(second.install(), 1); });
  const bool is_made = std::filesystem::exists(state);
  const int claimed = keys::install({.file = second.file, .never_sent = {second.name(0)}});
  const auto counter = second.first_counter();
  const int again = second.install();
  std::filesystem::remove_all(state);
  const int lost = second.install();
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  ASSERT_EQ(::chmod(second.folder().c_str(), 0700), 0);
  EXPECT_THAT(said, HasSubstr("--never-sent-here"));
  EXPECT_FALSE(is_made);
  EXPECT_EQ(claimed, 0);
  EXPECT_EQ(counter, 0u);
  EXPECT_EQ(again, 0) << "each start, with the volume";
  EXPECT_EQ(lost, 1) << "and without";
}

// --- Counters in another folder

TEST(UetKeys, install__carries_counters_to_another_folder) {
  for (const bool has_ssi : {false, true}) {
    const TempFolder folder;
    const Host host(folder, "host");
    const std::optional<std::uint32_t> ssi = has_ssi ? std::optional(3u) : std::nullopt;
    ASSERT_EQ(make_new({.out = host.file, .ssi = ssi, .state_folder = kState}), 0);
    ASSERT_EQ(host.first_counter(), 0u);
    const Host before(folder, "before");
    before.copy_from(host);
    EXPECT_THAT(
        said_by([&] { EXPECT_EQ(keys::install({.file = host.file, .state_folder = "new"}), 0); }),
        HasSubstr(host.state()));
    EXPECT_EQ(host.first_counter(), 1000u);
    EXPECT_EQ(host.domain().ssi, ssi.value_or(0));
    // What has the old folder gets nothing there.
    EXPECT_FALSE(CounterState(host.state()).reserve(host.key(0), 1));
    // A copy that names the old folder, as other hosts have it: this host's own is put back.
    host.copy_from(before);
    EXPECT_FALSE(host.first_counter());
    EXPECT_NE(check(host.file), 0);
    ASSERT_EQ(host.install(), 0);
    EXPECT_EQ(host.first_counter(), 2000u);
    // And back.
    ASSERT_EQ(keys::install({.file = host.file, .state_folder = kState}), 0);
    EXPECT_EQ(host.first_counter(), 3000u);
    EXPECT_EQ(check(host.file), 0);
  }
}

TEST(UetKeys, install__to_the_same_folder_by_another_name_moves_nothing) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  ASSERT_EQ(host.first_counter(), 0u);
  std::filesystem::create_symlink(host.state(), host.folder() + "/link");
  for (const std::string& name :
       {host.state(), host.state() + "/", host.folder() + "/../host/state", std::string("link"),
        std::string("./state")}) {
    ASSERT_EQ(keys::install({.file = host.file, .state_folder = name}), 0) << name;
    EXPECT_TRUE(CounterState(host.state()).reserve(host.key(0), 1)) << name;
  }
}

/// A folder that another host has, and this one sees, is not emptied without a word.
TEST(UetKeys, install__asks_whose_counters_the_folder_of_the_file_has) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second"), third(folder, "third");
  ASSERT_EQ(make_new({.out = first.file, .state_folder = folder / "shared"}), 0);
  ASSERT_EQ(first.first_counter(), 0u);
  for (const Host* h : {&second, &third}) h->copy_from(first);
  EXPECT_EQ(keys::install({.file = second.file, .state_folder = kState}), 1);
  EXPECT_EQ(first.first_counter(), 1000u);
  EXPECT_EQ(
      keys::install({.file = second.file, .state_folder = kState, .never_sent = {second.name(0)}}),
      0);
  EXPECT_EQ(second.first_counter(), 0u);
  EXPECT_EQ(first.first_counter(), 2000u);
  // They are this host's: it says so by an install in place.
  EXPECT_EQ(third.install(), 0);
  EXPECT_EQ(keys::install({.file = third.file, .state_folder = kState}), 0);
  EXPECT_EQ(third.first_counter(), 3000u);
}

/// Its SSI says that it is not this host's.
TEST(UetKeys, install__beside_the_state_of_another_ssi_asks_for_nothing) {
  const TempFolder folder;
  const Host first(folder, "first"), second(folder, "second");
  ASSERT_EQ(make_new({.out = first.file, .ssi = 1, .state_folder = folder / "shared"}), 0);
  ASSERT_EQ(first.first_counter(), 0u);
  second.copy_from(first);
  EXPECT_EQ(keys::install({.file = second.file, .state_folder = kState, .ssi = 1}), 1);
  EXPECT_EQ(keys::install({.file = second.file, .state_folder = kState, .ssi = 2}), 0);
  EXPECT_EQ(second.first_counter(), 0u);
  EXPECT_EQ(first.first_counter(), 1000u);
}

// --- Clients

TEST(UetKeys, derive__one_ssi_is_one_host) {
  const TempFolder folder;
  const Host server(folder, "server");
  ASSERT_EQ(make_new({.out = server.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  const auto derive_to = [&](const char* name, std::uint32_t ssi, std::vector<std::string> ip) {
    return derive({.file = server.file, .out = folder / name, .ssi = ssi, .ip = std::move(ip)});
  };
  ASSERT_EQ(derive_to("seven", 7, {"10.0.0.7", "fd00::7"}), 0);
  EXPECT_EQ(server.domain().members.size(), 2u);
  const json listed = server.read();
  EXPECT_THAT(said_by([&] { EXPECT_EQ(derive_to("moved", 7, {"10.0.0.8"}), 1); }),
              testing::AllOf(HasSubstr("10.0.0.7, fd00::7"), HasSubstr("another SSI")));
  EXPECT_EQ(derive_to("moved", 7, {"10.0.0.7", "10.0.0.8"}), 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "moved"));
  EXPECT_EQ(server.read(), listed);
  // As in a rotation.
  EXPECT_EQ(derive_to("again", 7, {"fd00::7", "10.0.0.7"}), 0);
  EXPECT_EQ(derive_to("once-more", 7, {"10.0.0.7"}), 0);
  EXPECT_EQ(server.read(), listed);
  EXPECT_EQ(derive_to("eight", 8, {"10.0.0.8"}), 0);
}

/// Their keys are those of their addresses.
TEST(UetKeys, derive__where_the_address_makes_the_key_an_ssi_may_have_several) {
  const TempFolder folder;
  const Host server(folder, "server");
  ASSERT_EQ(make_new({.out = server.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  json content = server.read();
  content["secure_domains"][0]["offsets"] = {{"kdf_ipv6_ignores_ssi", true}};
  server.write(content);
  const auto derive_to = [&](const char* name, std::vector<std::string> ip) {
    return derive({.file = server.file, .out = folder / name, .ssi = 7, .ip = std::move(ip)});
  };
  EXPECT_EQ(derive_to("a", {"fd00::a"}), 0);
  EXPECT_EQ(derive_to("b", {"fd00::b"}), 0);
  EXPECT_EQ(derive_to("v4", {"10.0.0.7"}), 0);
  EXPECT_EQ(derive_to("other", {"10.0.0.8"}), 1);
  EXPECT_EQ(derive_to("two", {"fd00::c", "fd00::d"}), 1);
  EXPECT_EQ(server.domain().members.size(), 3u);
}

TEST(UetKeys, derive__at_once_loses_no_member) {
  constexpr std::uint32_t kClients = 12;
  const TempFolder folder;
  const Host server(folder, "server");
  ASSERT_EQ(make_new({.out = server.file, .mode = "server", .ssi = 1, .state_folder = kState}), 0);
  for (std::uint32_t i = 1; i <= kClients; ++i) {
    const std::string n = std::to_string(i);
    if (::fork() == 0)
      ::_exit(
          derive({.file = server.file, .out = folder / n, .ssi = 100 + i, .ip = {"10.0.0." + n}}));
  }
  for (std::uint32_t i = 0; i < kClients; ++i) {
    int status = -1;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(server.domain().members.size(), kClients);
}

// --- Rotation

TEST(UetKeys, rotate__switch_twice_stays_with_the_newer_key) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  for (int round = 0; round < 3; ++round) {  // the newer key has AN 1, then 0, then 1
    ASSERT_EQ(rotate(host.file, RotateStep::kAdd, {}), 0);
    const std::string older = host.name(0), newer = host.name(1);
    EXPECT_THAT(said_by([&] { EXPECT_EQ(retire(host.file, {}), 1); }),
                testing::AllOf(HasSubstr(older), HasSubstr("--key " + newer)));
    EXPECT_EQ(host.domain().keys.size(), 2u);
    ASSERT_EQ(rotate(host.file, RotateStep::kSwitch, {}), 0);
    const bool an = host.domain().tx_an;
    EXPECT_THAT(said_by([&] { EXPECT_EQ(rotate(host.file, RotateStep::kSwitch, {}), 0); }),
                HasSubstr("under key " + newer + " already"));
    EXPECT_EQ(host.domain().tx_an, an);
    EXPECT_THAT(said_by([&] { EXPECT_EQ(retire(host.file, {}), 0); }),
                HasSubstr("key " + older + " is retired, " + newer + " stays"));
    EXPECT_EQ(host.name(0), newer);
    EXPECT_EQ(check(host.file), 0);
  }
}

TEST(UetKeys, rotate__back_to_a_key_that_is_named) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .state_folder = kState}), 0);
  ASSERT_EQ(rotate(host.file, RotateStep::kAdd, {}), 0);
  ASSERT_EQ(rotate(host.file, RotateStep::kSwitch, {}), 0);
  const std::string older = host.name(0), newer = host.name(1);
  EXPECT_EQ(rotate(host.file, RotateStep::kSwitch, {}, "01234567"), 1);
  EXPECT_EQ(rotate(host.file, RotateStep::kSwitch, {}, newer), 0);
  EXPECT_TRUE(host.domain().tx_an);
  EXPECT_EQ(rotate(host.file, RotateStep::kSwitch, {}, older), 0);
  EXPECT_FALSE(host.domain().tx_an);
  EXPECT_EQ(retire(host.file, {}), 1);
  EXPECT_EQ(retire(host.file, {}, older), 1) << "it is sent under";
  EXPECT_EQ(retire(host.file, {}, "01234567"), 1);
  EXPECT_EQ(host.domain().keys.size(), 2u);
  EXPECT_EQ(retire(host.file, {}, newer), 0);
  EXPECT_EQ(host.name(0), older);
}

TEST(UetKeys, retire__leaves_a_key_to_the_other_domains_that_have_it) {
  const TempFolder folder;
  const Host host(folder, "host");
  ASSERT_EQ(make_new({.out = host.file, .mode = "server", .sdi = 1, .state_folder = kState}), 0);
  json content = host.read();
  content["secure_domains"].push_back(content["secure_domains"][0]);
  content["secure_domains"][0]["job_ids"] = {1};
  content["secure_domains"][1]["job_ids"] = {2};
  content["secure_domains"][1]["sdi"] = 2;
  host.write(content);
  const auto key = host.key(0);
  for (const std::uint32_t sdi : {1u, 2u}) {
    ASSERT_EQ(rotate(host.file, RotateStep::kAdd, sdi), 0);
    ASSERT_EQ(rotate(host.file, RotateStep::kSwitch, sdi), 0);
    EXPECT_TRUE(CounterState(host.state()).reserve(key, 1));
    ASSERT_EQ(retire(host.file, sdi), 0);
    EXPECT_EQ(check(host.file), 0);
  }
  EXPECT_FALSE(CounterState(host.state()).reserve(key, 1)) << "no domain has it any more";
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
          derive({.file = at_server.file, .out = derived.file, .ssi = ssi, .ip = {"10.0.0.2"}});
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
