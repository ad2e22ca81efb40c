// The key file: who may read it, and what may stand in it. [TSS 13.2]
#include "keys/key_file.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "keys/counter_state.h"
#include "keys/file_keys.h"
#include "keys/secret_json.h"
#include "tests/base/temp_folder.h"

namespace uet::keys::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using uet::test::TempFolder;

const std::string kKey(64, 'a');
const std::string kKeyA = "0f" + std::string(62, 'a'), kKeyB = "1e" + std::string(62, 'b');

json good() {
  return {{"format", "uet-sdkdb/1"},
          {"node", {{"state_dir", "state"}}},
          {"secure_domains",
           {{{"sdi", "0x12c0de"},
             {"mode", "direct"},
             {"tx_an", 0},
             {"keys", {{{"an", 0}, {"key", kKeyA}}}}}}}};
}

base::Result<KeyFile, std::string> parse(const json& j) {
  const std::string text = j.dump();
  return parse_key_file(SecretText(text.begin(), text.end()), "/folder");
}

/// The complaint about `good()` after `change`.
std::string why(const std::function<void(json&)>& change) {
  json j = good();
  change(j);
  const auto parsed = parse(j);
  return parsed ? "" : parsed.error();
}

TEST(KeyFile, smallest_file_has_the_documented_defaults) {
  const auto file = parse(good());
  ASSERT_TRUE(file.has_value()) << file.error();
  ASSERT_EQ(file->domains.size(), 1u);
  const tss::DomainConfig& d = file->domains[0];
  EXPECT_EQ(file->state_folder, "/folder/state");
  EXPECT_EQ(d.sdi, 0x12c0deu);
  EXPECT_FALSE(d.ssi_mode);
  EXPECT_TRUE(d.tsc_floor);
  EXPECT_EQ(d.tsc_floor_window, 1u << 20);
  EXPECT_EQ(d.replay_window, 0u);
  EXPECT_EQ(d.counter_fatal, tss::kCounterMax);
  EXPECT_EQ(d.auth_fail_threshold, 1u << 20);
  EXPECT_EQ(d.opening, tss::OpeningMethod::kExpected);
}

TEST(KeyFile, whole_example_is_read) {
  json j = good();
  j["node"] = {{"ssi", "0x00a1b2c3"},
               {"state_dir", "/var/lib/uet/tss"},
               {"tsc_partition", {{"bits", 2}, {"id", 1}}}};
  j["policy"] = {{"allow_plaintext", false},
                 {"trim_hints", "on"},
                 {"tsc_floor", "off"},
                 {"tsc_floor_window", 1048576},
                 {"replay_window", 4096}};
  json& d = j["secure_domains"][0];
  d["mode"] = "cluster";
  d["role"] = "peer";
  d["ssi_mode"] = true;
  d["alg"] = "AES-256-GCM";
  d["keys"].push_back({{"an", 1}, {"key", kKeyB}});
  d["tx_an"] = 1;
  d["rekey"] = {{"mask", "0x0000ffff00000000"}, {"shift", 32}};
  d["epoch"] = {{"tx", 3}, {"reject_old", true}, {"rx_max_lifetime", 9}};
  d["limits"] = {{"counter_fatal", "0xffffffffffff"},
                 {"auth_fail_threshold", 77},
                 {"auth_fail_action", "drop_domain"}};
  d["offsets"] = {{"aad_from", "ip_src"}, {"coff_extra", 12}, {"kdf_ipv6_ignores_ssi", true}};
  d["pdc"] = {{"psn_method", "1rtt"}, {"new_pdc_time_ms", 50}};
  d["members"] = {{{"ssi", "0x00a1b2c4"}, {"ip", "10.1.2.4"}},
                  {{"ssi", "0x00a1b2c3"}, {"ip", "fd00::1"}}};
  d["job_ids"] = {1, 7};
  const auto file = parse(j);
  ASSERT_TRUE(file.has_value()) << file.error();
  const tss::DomainConfig& c = file->domains[0];
  EXPECT_EQ(file->state_folder, "/var/lib/uet/tss");
  EXPECT_EQ(c.mode, tss::Mode::kCluster);
  EXPECT_EQ(c.ssi, 0x00a1b2c3u);
  EXPECT_EQ(c.partition.id, 1u);
  EXPECT_FALSE(c.tsc_floor);
  EXPECT_EQ(c.replay_window, 4096u);
  EXPECT_EQ(c.keys.size(), 2u);
  EXPECT_TRUE(c.tx_an);
  EXPECT_EQ(c.rekey.shift, 32u);
  EXPECT_EQ(c.epoch, 3u);
  EXPECT_TRUE(c.reject_old_epochs && c.stop_at_auth_fail_threshold && c.kdf_ipv6_ignores_ssi);
  EXPECT_EQ(c.max_epoch_age, 9u);
  EXPECT_EQ(c.auth_fail_threshold, 77u);
  EXPECT_EQ(c.clear_bytes, 12u);
  EXPECT_EQ(c.opening, tss::OpeningMethod::kChallenge);
  EXPECT_EQ(c.new_pdc_time, base::Duration::from_ms(50));
  ASSERT_EQ(c.members.size(), 2u);
  EXPECT_EQ(c.jobs, (std::vector<std::uint32_t>{1, 7}));
}

// Covers: TSS-T27, TSS-T34, TSS-T53
TEST(KeyFile, each_fault_is_named_and_no_digit_of_a_key_told) {
  const auto domain = [](json& j) -> json& { return j["secure_domains"][0]; };
  const std::vector<std::pair<std::function<void(json&)>, std::string>> faults = {
      {[](json& j) { j["format"] = "uet-sdkdb/2"; }, "format"},
      {[](json& j) { j["surprise"] = 1; }, "surprise"},
      {[](json& j) { j.erase("node"); }, "node"},
      {[](json& j) { j["node"].erase("state_dir"); }, "node.state_dir"},
      {[](json& j) {
         j["policy"] = {{"allow_plaintext", true}};
       },
       "allow_plaintext"},
      {[](json& j) {
         j["policy"] = {{"trim_hints", "maybe"}};
       },
       "trim_hints"},
      {[](json& j) {
         j["policy"] = {{"replay_window", 65}};
       },
       "replay_window"},
      {[](json& j) { j["secure_domains"] = json::array(); }, "secure_domains"},
      {[](json& j) { j["secure_domains"] = 5; }, "secure_domains"},
      {[](json& j) { j["secure_domains"].push_back(j["secure_domains"][0]); }, "stands twice"},
      {[&](json& j) { domain(j)["sdi"] = "0x1000000"; }, "sdi"},
      {[&](json& j) { domain(j).erase("sdi"); }, "sdi"},
      {[&](json& j) { domain(j)["sdi"] = -1; }, "sdi"},
      {[&](json& j) { domain(j)["mode"] = "pairwise"; }, "mode"},
      {[&](json& j) { domain(j)["mode"] = "server"; }, "role"},
      {[&](json& j) { domain(j)["alg"] = "AES-128-GCM"; }, "alg"},
      {[&](json& j) { domain(j)["ssi_mode"] = "yes"; }, "ssi_mode"},
      {[&](json& j) { domain(j)["ssi_mode"] = true; }, "node.ssi"},
      {[&](json& j) { domain(j)["tx_an"] = 1; }, "tx_an"},
      {[&](json& j) { domain(j)["unknown"] = {}; }, "unknown"},
      {[&](json& j) { domain(j)["keys"][0]["key"] = kKeyA.substr(1); }, "keys[0].key"},
      {[&](json& j) { domain(j)["keys"][0]["key"] = kKeyA + "0"; }, "keys[0].key"},
      {[&](json& j) { domain(j)["keys"][0]["key"] = "g" + kKeyA.substr(1); }, "keys[0].key"},
      {[&](json& j) { domain(j)["keys"][0]["key"] = kKey; }, "keys"},
      {[&](json& j) { domain(j)["keys"][0]["an"] = 2; }, "keys[0].an"},
      {[&](json& j) { domain(j)["keys"][0]["ivmask"] = std::string(24, '1'); }, "ivmask"},
      {[&](json& j) {
         domain(j)["keys"].push_back({{"an", 0}, {"key", kKeyB}});
       },
       "one AN"},
      {[&](json& j) {
         domain(j)["keys"].push_back({{"an", 1}, {"key", kKeyA}});
       },
       "keys"},
      {[&](json& j) {
         domain(j)["rekey"] = {{"mask", 3}, {"shift", 0}};
       },
       "rekey"},
      {[&](json& j) {
         domain(j)["members"] = {{{"ip", "10.0.0"}}};
       },
       "members[0].ip"},
      {[&](json& j) { domain(j)["job_ids"] = {1 << 24}; }, "job_ids"},
      {[&](json& j) {
         domain(j)["pdc"] = {{"psn_method", "2rtt"}};
       },
       "psn_method"},
      {[&](json& j) {
         domain(j)["offsets"] = {{"coff_extra", 13}};
       },
       "coff_extra"},
      {[&](json& j) {
         json other = domain(j);
         other["sdi"] = 5;
         j["secure_domains"].push_back(other);
       },
       "two places"},
  };
  for (const auto& [change, name] : faults) {
    const std::string error = why(change);
    EXPECT_THAT(error, HasSubstr(name));
    EXPECT_THAT(error, Not(HasSubstr("aaaa")));
    EXPECT_THAT(error, Not(HasSubstr("bbbb")));
  }
  const std::string torn = good().dump().substr(0, 200);
  EXPECT_FALSE(parse_key_file(SecretText(torn.begin(), torn.end()), "/").has_value());
}

TEST(KeyFile, servers_key_may_serve_several_domains) {
  json j = good();
  j["node"]["tsc_partition"] = {{"bits", 1}, {"id", 1}};
  json& d = j["secure_domains"][0];
  d["mode"] = d["role"] = "server";
  d["ssi_mode"] = true;
  json other = d;
  other["sdi"] = 5;
  j["secure_domains"].push_back(other);
  const auto file = parse(j);
  ASSERT_TRUE(file.has_value()) << file.error();
  EXPECT_EQ(file->domains[1].partition.bits, 1u);
  EXPECT_EQ(file->domains[1].partition.id, 1u);
}

/// Two servers without one would send to their clients under the same keys and IVs. A client's is the half that servers never have.
TEST(KeyFile, server_with_ssi_needs_a_partition_and_a_client_has_one) {
  json j = good();
  json& d = j["secure_domains"][0];
  d["mode"] = d["role"] = "server";
  d["ssi_mode"] = true;
  const auto with_part = [&](unsigned bits, unsigned id) {
    j["node"]["tsc_partition"] = {{"bits", bits}, {"id", id}};
    const auto file = parse(j);
    return file ? std::string() : file.error();
  };
  EXPECT_THAT(parse(j).error(), HasSubstr("uet-keys install --server-id"));
  EXPECT_THAT(with_part(1, 0), HasSubstr("top bit"));
  EXPECT_EQ(with_part(5, 17), "");
  d["role"] = "client";
  d["keys"][0]["ivmask"] = std::string(24, '1');
  j["node"]["ssi"] = 7;
  EXPECT_THAT(with_part(5, 17), HasSubstr("top bit"));
  j["node"].erase("tsc_partition");
  const auto client = parse(j);
  ASSERT_TRUE(client.has_value()) << client.error();
  EXPECT_EQ(client->domains[0].partition, (tss::CounterPartition{.bits = 1, .id = 0}));
}

TEST(KeyFile, server_with_ssi_lists_clients_by_ssi_and_address) {
  json j = good();
  j["node"]["tsc_partition"] = {{"bits", 1}, {"id", 1}};
  json& d = j["secure_domains"][0];
  d["mode"] = d["role"] = "server";
  d["ssi_mode"] = true;
  const auto why_not = [&] {
    const auto file = parse(j);
    return file ? tss::why_unusable_at(file->domains[0], *net::FabricAddress::parse("10.0.0.1"))
                : file.error();
  };
  EXPECT_THAT(why_not(), HasSubstr("members: there is none"));
  d["members"] = {{{"ip", "10.0.0.7"}}};
  EXPECT_THAT(why_not(), HasSubstr("members[0].ssi: is missing"));
  d["members"][0]["ssi"] = 7;
  EXPECT_EQ(why_not(), "");
  d["members"].push_back({{"ssi", 8}, {"ip", "10.0.0.7"}});
  EXPECT_THAT(why_not(), HasSubstr("10.0.0.7 stands twice"));
}

TEST(KeyFile, job_chooses_the_domain) {
  json j = good();
  EXPECT_TRUE(domain_for_job(*parse(j), 55).has_value());
  j["secure_domains"][0]["job_ids"] = {1};
  json second = j["secure_domains"][0];
  second["sdi"] = 9;
  second["job_ids"] = {2, 3};
  second["keys"][0]["key"] = kKeyB;
  j["secure_domains"].push_back(second);
  const auto file = parse(j);
  ASSERT_TRUE(file.has_value()) << file.error();
  EXPECT_EQ(domain_for_job(*file, 1)->sdi, 0x12c0deu);
  EXPECT_EQ(domain_for_job(*file, 3)->sdi, 9u);
  EXPECT_THAT(domain_for_job(*file, 4).error(), HasSubstr("job 4"));
}

// Covers: TSS-T53
TEST(KeyFileOnDisk, only_a_private_file_is_read) {
  const TempFolder folder;
  const std::string text = good().dump();
  const auto refused = [](const std::string& path) {
    const auto file = read_key_file(path);
    return file ? std::string() : file.error();
  };
  EXPECT_EQ(refused(folder.write("good", text)), "");
  EXPECT_EQ(refused(folder.write("read-only", text, 0400)), "");
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610})
    EXPECT_THAT(refused(folder.write("mode", text, mode)), HasSubstr("chmod 600"));
  ASSERT_EQ(::symlink((folder / "good").c_str(), (folder / "link").c_str()), 0);
  EXPECT_THAT(refused(folder / "link"), HasSubstr("symbolic link"));
  folder.write("twice", text);
  ASSERT_EQ(::link((folder / "twice").c_str(), (folder / "second-name").c_str()), 0);
  EXPECT_THAT(refused(folder / "twice"), HasSubstr("hard link"));
  EXPECT_THAT(refused(folder / "absent"), HasSubstr("absent"));
  EXPECT_THAT(refused(folder.path()), HasSubstr("regular file"));
  EXPECT_THAT(refused(folder.write("large", std::string(2 << 20, ' '))), HasSubstr("1 MiB"));
  if (::geteuid() == 0) {
    folder.write("foreign", text);
    ASSERT_EQ(::chown((folder / "foreign").c_str(), 12345, 12345), 0);
    EXPECT_THAT(refused(folder / "foreign"), HasSubstr("another user"));
  }
  ASSERT_EQ(::chmod(folder.path().c_str(), 0770), 0);
  EXPECT_THAT(refused(folder / "good"), HasSubstr("others can replace it"));
}

TEST(KeyFileOnDisk, write_secret_replaces_whole_files_only_when_it_may) {
  const TempFolder folder;
  EXPECT_EQ(write_secret(folder / "a", "one", false), "");
  EXPECT_THAT(write_secret(folder / "a", "two", false), HasSubstr("exists"));
  EXPECT_EQ(read_secret(folder / "a")->text, "one");
  EXPECT_EQ(write_secret(folder / "a", "two", true), "");
  EXPECT_EQ(read_secret(folder / "a")->text, "two");
}

std::unique_ptr<FileKeys> open_keys(const std::string& path) {
  std::string error;
  auto keys = FileKeys::open(path, 1, "", error);
  EXPECT_NE(keys, nullptr) << error;
  return keys;
}

/// What a second's look finds.
std::optional<tss::DomainConfig> look(FileKeys& keys) {
  while (true) {
    if (auto domain = keys.changed_domain()) return domain;
    if (!keys.is_busy()) return std::nullopt;
    ::usleep(1000);
  }
}

// Covers: TSS-T54
TEST(FileKeys, replaced_file_is_noticed_and_a_bad_one_changes_nothing) {
  const TempFolder folder;
  json j = good();
  const auto put = [&](const json& what) {
    const std::string text = what.dump();
    ASSERT_EQ(write_secret(folder / "keys", SecretText(text.begin(), text.end()), true), "");
  };
  put(j);
  const auto keys = open_keys(folder / "keys");
  EXPECT_FALSE(look(*keys));
  j["secure_domains"][0]["keys"].push_back({{"an", 1}, {"key", kKeyB}});
  put(j);
  const auto changed = look(*keys);
  ASSERT_TRUE(changed.has_value());
  EXPECT_EQ(changed->keys.size(), 2u);
  EXPECT_FALSE(look(*keys));

  testing::internal::CaptureStderr();
  json bad = j;
  bad["secure_domains"][0]["keys"][1]["an"] = 0;
  put(bad);
  EXPECT_FALSE(look(*keys));
  EXPECT_FALSE(look(*keys));
  bad = j;
  bad["secure_domains"][0]["mode"] = "cluster";
  put(bad);
  EXPECT_FALSE(look(*keys));
  ::unlink((folder / "keys").c_str());
  EXPECT_FALSE(look(*keys));
  EXPECT_FALSE(look(*keys));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
  EXPECT_THAT(said, HasSubstr("No such file"));
  EXPECT_THAT(said, Not(HasSubstr("bbbb")));
  put(j);
  EXPECT_TRUE(look(*keys));
}

/// What a running endpoint cannot follow keeps nothing else from it.
TEST(FileKeys, change_that_waits_for_the_next_start_is_told_and_the_keys_are_taken) {
  const TempFolder folder;
  json j = good();
  const auto keys = open_keys(folder.write("keys", j.dump()));
  const auto before = keys->domain();
  const auto read = [&] {
    folder.write("keys", j.dump());
    testing::internal::CaptureStderr();
    return look(*keys);
  };
  j["policy"]["replay_window"] = before.replay_window == 64 ? 128 : 64;
  j["secure_domains"][0]["limits"]["max_sources"] = before.max_sources - 1;
  j["secure_domains"][0]["pdc"]["new_pdc_time_ms"] = before.new_pdc_time.ns() / 1'000'000 - 1;
  j["node"]["state_dir"] = "elsewhere";
  j["secure_domains"][0]["keys"].push_back({{"an", 1}, {"key", kKeyB}});
  const auto changed = read();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("replay_window, max_sources, new_pdc_time_ms, state_dir takes effect when "
                        "the endpoint is opened again"));
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->keys.size(), 2u);
  EXPECT_EQ(changed->replay_window, before.replay_window) << "what is in use";
  j["secure_domains"][0]["tx_an"] = 1;
  ASSERT_TRUE(read());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("opened again")) << "it still is";
  j = good();
  ASSERT_TRUE(read());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// An old copy of the file comes back, from a backup or a tool that lays files out.
TEST(FileKeys, key_that_was_retired_here__is_not_taken_again) {
  const TempFolder folder;
  json j = good();
  const auto keys = open_keys(folder.write("keys", j.dump()));
  const tss::KeyConfig first = keys->domain().keys.front();
  j["secure_domains"][0]["keys"].push_back({{"an", 1}, {"key", kKeyB}});
  j["secure_domains"][0]["tx_an"] = 1;
  folder.write("keys", j.dump());
  ASSERT_TRUE(look(*keys));
  ASSERT_EQ(CounterState(folder / "state").retire(tss::fingerprint_of(first.key)), "");

  testing::internal::CaptureStderr();
  folder.write("keys", j.dump());
  ASSERT_TRUE(look(*keys));
  EXPECT_FALSE(keys->reserve(tss::fingerprint_of(first.key), 1));
  const auto without = look(*keys);
  ASSERT_TRUE(without);
  ASSERT_EQ(without->keys.size(), 1u);
  EXPECT_TRUE(without->keys[0].an);
  folder.write("keys", good().dump());
  EXPECT_FALSE(look(*keys)) << "sent under it would be nothing";
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("was retired on this host"));
}

/// A rotation is not missed because a process had no descriptor left in that second.
TEST(FileKeys, what_could_not_be_opened_is_tried_again) {
  const TempFolder folder;
  json j = good();
  const auto keys = open_keys(folder.write("keys", j.dump()));
  EXPECT_FALSE(look(*keys));
  j["secure_domains"][0]["keys"].push_back({{"an", 1}, {"key", kKeyB}});
  folder.write("keys", j.dump());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  testing::internal::CaptureStderr();
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(look(*keys));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto changed = look(*keys);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->keys.size(), 2u);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(said, HasSubstr("Too many open files"));
}

TEST(FileKeys, file_is_found_after_the_process_changed_its_folder) {
  const TempFolder folder;
  json j = good();
  folder.write("keys", j.dump());
  const std::string before = std::filesystem::current_path();
  ASSERT_EQ(::chdir(folder.path().c_str()), 0);
  const auto keys = open_keys("keys");
  ASSERT_EQ(::chdir("/"), 0);
  const tss::Fingerprint print = fingerprint_of(keys->domain().keys[0].key);
  std::string error;
  ASSERT_TRUE(CounterState(folder / "state").create(print, error)) << error;
  EXPECT_TRUE(keys->reserve(print, 1));
  j["secure_domains"][0]["keys"].push_back({{"an", 1}, {"key", kKeyB}});
  folder.write("keys", j.dump());
  EXPECT_TRUE(look(*keys));
  ASSERT_EQ(::chdir(before.c_str()), 0);
}

TEST(FileKeys, signal_makes_it_read_again_and_say_so) {
  const TempFolder folder;
  json j = good();
  const auto keys = open_keys(folder.write("keys", j.dump()));
  reload_on_signal(ReloadSignal::kUsr2);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(look(*keys));
  ASSERT_EQ(::raise(SIGUSR2), 0);
  const auto read = look(*keys);  // nothing has changed, but it was asked
  ASSERT_TRUE(read);
  EXPECT_EQ(read->keys.size(), j["secure_domains"][0]["keys"].size());
  EXPECT_TRUE(keys->asks_to_go_on());
  EXPECT_FALSE(keys->asks_to_go_on());
  EXPECT_FALSE(look(*keys));
  const auto late = open_keys(folder / "keys");
  EXPECT_FALSE(look(*late)) << "asked before it was there";
  j["secure_domains"][0]["keys"][0]["an"] = 2;
  folder.write("keys", j.dump());
  request_reload();
  EXPECT_FALSE(look(*keys));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("read again"));
  EXPECT_THAT(said, HasSubstr("the keys in use stay"));
  EXPECT_THAT(said, Not(HasSubstr("aaaa")));
  ::signal(SIGUSR2, SIG_DFL);
}

TEST(FileKeys, key_log_is_loud_private_and_read_back) {
  const TempFolder folder;
  const std::string path = folder.write("keys", good().dump());
  std::string error;
  testing::internal::CaptureStderr();
  auto keys = FileKeys::open(path, 1, folder / "log", error);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("WARNING"));
  ASSERT_NE(keys, nullptr) << error;
  struct stat s {};
  ASSERT_EQ(::stat((folder / "log").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  ASSERT_TRUE(keys->wants_keys());
  const tss::DerivedKey key{keys->domain().keys[0].key, {}};
  keys->on_key({.sdi = 7, .an = true, .is_for_all = true, .context = {}, .key = key});
  keys->on_key({.sdi = 8,
                .context = {.epoch = 3, .identity = tss::Identity::of_ssi(0xa1b2c3d4)},
                .key = key});
  const auto logged = read_key_log(folder / "log");
  ASSERT_TRUE(logged.has_value()) << logged.error();
  ASSERT_EQ(logged->size(), 2u);
  EXPECT_FALSE((*logged)[0].identity);
  EXPECT_TRUE((*logged)[0].an);
  EXPECT_EQ((*logged)[1].epoch, 3u);
  EXPECT_EQ(*(*logged)[1].identity, tss::Identity::of_ssi(0xa1b2c3d4));
  EXPECT_EQ((*logged)[1].key.key, key.key);
}

TEST(FileKeys, key_log_that_others_can_read_is_refused) {
  const TempFolder folder;
  std::string error;
  for (const mode_t mode : {0640, 0604, 0620}) {
    EXPECT_EQ(KeyLog::open(folder.write("log", "", mode), error), nullptr);
    EXPECT_THAT(error, HasSubstr("chmod 600"));
  }
  EXPECT_EQ(KeyLog::open("/dev/null", error), nullptr);
  ASSERT_EQ(::link(folder.write("log", "").c_str(), (folder / "second").c_str()), 0);
  EXPECT_EQ(KeyLog::open(folder / "log", error), nullptr);
  ::unlink((folder / "second").c_str());
  testing::internal::CaptureStderr();
  EXPECT_NE(KeyLog::open(folder / "log", error), nullptr) << error;
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace uet::keys::test
