#include "apps/keys/commands.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "apps/keys/document.h"
#include "apps/keys/host_counters.h"
#include "keys/counter_state.h"
#include "keys/file_lock.h"
#include "keys/host_identity.h"
#include "keys/system_random.h"
#include "tss/kdf.h"
#include "tss/tx_counter.h"

namespace uet::apps::keys {
namespace {

using namespace uet::keys;  // NOLINT: this file is about nothing else

std::string default_state_folder() {
  if (::geteuid() == 0) return "/var/lib/uet/tss";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::string(state) + "/uet/tss";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.local/state/uet/tss";
}

SecretJson json_of(const tss::CounterPartition& partition) {
  return {{"bits", partition.bits}, {"id", partition.id}};
}

/// Beside the counter state, for copies of the file that come later. An error, or empty.
std::string record_identities(const KeyFile& file) {
  for (const tss::DomainConfig& d : file.domains) {
    if (!needs_identity(d) || d.keys.empty()) continue;  // no key, no state folder
    std::string why = record_identity(file.state_folder, d.sdi, identity_in(d));
    if (!why.empty()) return why;
  }
  return "";
}

/// Changes `node` to what this host recorded, where that was not given with the command: in the folder of `file`, or in the one that its
/// counters come from. An error, or empty.
std::string restore_identity(const KeyFile& file, const std::string& host_folder,
                             const InstallOptions& o, SecretJson& node) {
  std::optional<std::uint32_t> ssi;
  std::optional<tss::CounterPartition> partition;
  if (o.server_id) partition = partition_of_server(*o.server_id);
  for (const tss::DomainConfig& d : file.domains) {
    const bool is_server = d.role == tss::Role::kServer;
    const bool is_given = is_server ? o.server_id.has_value() : o.ssi.has_value();
    if (!needs_identity(d) || is_given) continue;
    auto here = recorded_identity(file.state_folder, d.sdi);
    if (here && !*here && !host_folder.empty()) here = recorded_identity(host_folder, d.sdi);
    if (!here) return here.error();
    const bool is_known = *here && (is_server || !ssi || *ssi == (*here)->ssi) &&
                          (!partition || o.server_id || *partition == (*here)->partition);
    if (!is_known && is_server)
      return "each server of this domain needs a number of its own, and a copy has that of the "
             "host it comes from: give this server's with --server-id";
    if (!is_known)
      return "senders of this domain are told apart by SSI, and a copy has that of the host it "
             "comes from: give this host's own with --ssi";
    if (!is_server) ssi = (*here)->ssi;
    if (!o.server_id) partition = (*here)->partition;
  }
  if (ssi) node["ssi"] = hex_number(*ssi, 8);
  if (!partition) return "";
  node.erase("tsc_partition");
  if (partition->bits != 0) node["tsc_partition"] = json_of(*partition);
  return "";
}

SecretJson new_key(int an) {
  tss::Key key;
  fill_random({key.data(), key.size()});
  return {{"an", an}, {"key", to_hex(key.bytes())}};
}

const char* name_of(tss::Mode mode) {
  constexpr const char* kNames[] = {"direct", "cluster", "server"};
  return kNames[static_cast<std::size_t>(mode)];
}

}  // namespace

int make_new(const NewOptions& o) {
  const FileLock lock(o.out, FileLock::Of::kNewFile);
  if (!lock.error().empty()) return failed(lock.error());
  auto known = PreparedKeys::read(o.out);
  if (!known) return failed(known.error());
  std::uint32_t sdi = o.sdi;
  while (sdi == 0) {
    std::array<std::uint8_t, 3> bytes;
    fill_random(bytes);
    sdi = std::uint32_t{bytes[0]} << 16 | std::uint32_t{bytes[1]} << 8 | bytes[2];
  }
  SecretJson node = {
      {"state_dir", plain(o.state_folder.empty() ? default_state_folder() : o.state_folder)}};
  if (o.ssi) node["ssi"] = hex_number(*o.ssi, 8);
  const bool is_numbered = o.mode == "server" && o.ssi;
  if (o.server_id && !is_numbered)
    return failed("--server-id is for servers of a domain with SSI: --mode server --ssi N");
  if (is_numbered) node["tsc_partition"] = json_of(partition_of_server(o.server_id.value_or(0)));
  SecretJson domain = {{"sdi", hex_number(sdi, 6)},
                       {"mode", plain(o.mode)},
                       {"role", o.mode == "server" ? "server" : "peer"},
                       {"ssi_mode", o.ssi.has_value()},
                       {"alg", "AES-256-GCM"},
                       {"tx_an", 0},
                       {"keys", SecretJson::array({new_key(0)})},
                       {"pdc", {{"psn_method", plain(o.opening)}}}};
  if (o.renew) domain["rekey"] = {{"mask", "0x0000ffff00000000"}, {"shift", 32}};
  if (!o.jobs.empty()) domain["job_ids"] = o.jobs;
  const SecretJson json = {{"format", plain(std::string(kFormat))},
                           {"node", node},
                           {"policy", {{"replay_window", o.replay_window}}},
                           {"secure_domains", SecretJson::array({domain})}};
  if (const std::string why = store(o.out, json, false); !why.empty()) return failed(why);
  const auto doc = load(o.out);
  if (!doc) return failed(doc.error());
  const auto made = prepare_counters(doc->parsed, "", *known, {});
  std::string why = made ? made->lost : made.error();
  if (why.empty()) why = record_identities(doc->parsed);
  if (!why.empty()) {
    ::unlink(o.out.c_str());  // a key without counters is of no use
    return failed(why);
  }
  std::printf("%s: secure domain 0x%06x, %s mode, one key (%s)\n", o.out.c_str(), sdi,
              o.mode.c_str(), key_name(doc->parsed.domains[0].keys[0]).c_str());
  if (tss::needs_members(doc->parsed.domains[0])) {
    std::printf(
        "Endpoints start when it lists a client: \"uet-keys derive %s --ssi N --ip ADDRESS --out "
        "CLIENTFILE\" for each. Then set FI_UET_KEYS=%s\n"
        "This is server %u. Another one gets a copy with its mode of 0600, and \"uet-keys install "
        "--server-id N\" there, N different on each\n",
        o.out.c_str(), o.out.c_str(), o.server_id.value_or(0));
    return 0;
  }
  if (doc->parsed.domains[0].mode == tss::Mode::kServer) {
    std::printf(
        "It is for servers. Each client gets a file of its own: \"uet-keys derive %s --ip ADDRESS "
        "--out CLIENTFILE\". Other servers get a copy with its mode of 0600, and \"uet-keys "
        "install\" there. Then set FI_UET_KEYS=%s\n",
        o.out.c_str(), o.out.c_str());
    return 0;
  }
  std::printf(
      "Copy it to every host of the domain with its mode of 0600, run \"uet-keys install%s\" "
      "there%s, and set FI_UET_KEYS=%s\n",
      o.ssi ? " --ssi N" : "", o.ssi ? ", N different on each" : "", o.out.c_str());
  return 0;
}

namespace {

bool derives_by_address(const tss::DomainConfig& d, const net::FabricAddress& address) {
  return !d.ssi_mode || (d.kdf_ipv6_ignores_ssi && !address.is_v4());
}

/// Why the client cannot have these addresses; empty when it can.
std::string why_wrong_addresses(const tss::DomainConfig& d,
                                const std::vector<net::FabricAddress>& addresses) {
  if (addresses.empty())
    return d.ssi_mode ? "the server has to know the client's address too: give --ip"
                      : "clients of this domain are told apart by address: give --ip";
  for (const net::FabricAddress& a : addresses) {
    if (!d.ssi_mode && !a.is_v4())
      return "--ip is not an IPv4 address; IPv6 needs a domain with SSI";
    if (addresses.size() > 1 && derives_by_address(d, a))
      return "the key of " + a.to_string() +
             " is that of the address, not of the SSI: derive a file for each address";
  }
  return "";
}

/// Two hosts with one SSI have one key and IV prefix, and each begins to count at 0. So an SSI gets no address later on: that would be
/// another host's. Empty when all is well.
std::string why_another_host(const tss::DomainConfig& d, std::uint32_t ssi,
                             const std::vector<net::FabricAddress>& addresses) {
  if (!d.ssi_mode || derives_by_address(d, addresses.front())) return "";
  std::string listed;
  std::vector<net::FabricAddress> strange = addresses;
  for (const tss::Member& m : d.members) {
    if (m.ssi != ssi || derives_by_address(d, m.address)) continue;
    listed += (listed.empty() ? "" : ", ") + m.address.to_string();
    std::erase(strange, m.address);
  }
  if (listed.empty() || strange.empty()) return "";
  return "the client with this SSI is listed at " + listed + " and not at " +
         strange.front().to_string() +
         ". Another host needs another SSI: two with one repeat IVs. When the same host has "
         "another "
         "address now, its file stays good: change that in \"members\" by hand. Addresses that a "
         "client has from the start are given in one command, each with --ip";
}

/// Adds the client to the members of a server's domain, for the next endpoint or within a second for one that runs. False when it is there.
bool list_member(Chosen& chosen, const tss::Member& client) {
  if (std::ranges::binary_search(chosen.config->members, client)) return false;
  SecretJson member = {{"ip", plain(client.address.to_string())}};
  if (chosen.config->ssi_mode) member["ssi"] = hex_number(client.ssi, 8);
  (*chosen.json)["members"].push_back(member);
  return true;
}

/// The client's domain, out of the server's.
SecretJson domain_of_client(const Chosen& server, const tss::Identity& identity) {
  const tss::DomainConfig& d = *server.config;
  SecretJson client = *server.json;
  client["role"] = "client";
  client.erase("members");
  client.erase("epoch");
  client["keys"] = SecretJson::array();
  for (const tss::KeyConfig& k : d.keys) {
    // The server's epoch is that of the key that it sends under; under the next one it begins at 0. [TSS 7.2]
    const std::uint16_t epoch = k.an == d.tx_an ? d.epoch : 0;
    const tss::DerivedKey key = tss::KeyDerivation(k.key).derive(
        tss::Label::kServer, {.epoch = epoch, .identity = identity});
    client["keys"].push_back({{"an", k.an ? 1 : 0},
                              {"key", to_hex(key.key.bytes())},
                              {"ivmask", to_hex(key.mask.bytes())},
                              {"epoch", epoch}});
  }
  return client;
}

}  // namespace

int derive(const DeriveOptions& o) {
  const FileLock lock(o.file);
  if (!lock.error().empty()) return failed(lock.error());
  auto doc = load(o.file);
  if (!doc) return failed(doc.error());
  auto chosen = choose(*doc, o.sdi);
  if (!chosen) return failed(chosen.error());
  const tss::DomainConfig& d = *chosen->config;
  if (d.role != tss::Role::kServer) return failed("only a server's domain has keys for clients");
  if (d.ssi_mode != o.ssi.has_value())
    return failed(d.ssi_mode ? "clients of this domain are told apart by SSI: give --ssi"
                             : "clients of this domain are told apart by address: give --ip");
  std::vector<net::FabricAddress> addresses;
  for (const std::string& ip : o.ip) {
    const auto address = net::FabricAddress::parse(ip);
    if (!address) return failed("--ip is not an IPv4 or IPv6 address");
    addresses.push_back(*address);
  }
  if (const std::string why = why_wrong_addresses(d, addresses); !why.empty()) return failed(why);
  if (const std::string why = why_another_host(d, o.ssi.value_or(0), addresses); !why.empty())
    return failed(why);
  SecretJson json = doc->json;
  if (o.ssi) json["node"]["ssi"] = hex_number(*o.ssi, 8);
  json["node"].erase("tsc_partition");  // a client has the half that no server has
  json["secure_domains"] = SecretJson::array(
      {domain_of_client(*chosen, derives_by_address(d, addresses.front())
                                     ? tss::Identity::of_address(addresses.front())
                                     : tss::Identity::of_ssi(*o.ssi))});
  // Without SSI the key tells the address, and a server with an empty list takes all.
  std::string listed;
  if (d.ssi_mode || !d.members.empty())
    for (const net::FabricAddress& a : addresses)
      if (list_member(*chosen, {.ssi = o.ssi.value_or(0), .address = a}))
        listed += (listed.empty() ? "" : ", ") + a.to_string();
  if (const std::string why = store(o.out, json, false); !why.empty()) return failed(why);
  if (!listed.empty()) {
    if (const std::string why = store(o.file, doc->json, true); !why.empty()) {
      ::unlink(o.out.c_str());  // the server would refuse it
      return failed(why);
    }
    std::printf("%s: lists %s as a member now. Other servers of the domain need that too.\n",
                o.file.c_str(), listed.c_str());
  }
  std::printf("%s: the key of one client. Move it there and run \"uet-keys install\".\n",
              o.out.c_str());
  return 0;
}

int install(const InstallOptions& o) {
  const FileLock lock(o.file);
  if (!lock.error().empty()) return failed(lock.error());
  auto text = read_secret(o.file);
  if (!text) return failed(text.error());
  auto known = PreparedKeys::read(o.file);
  if (!known) return failed(known.error());
  SecretJson json = parse_secret(text->text);
  if (!json.is_object()) return failed(o.file + ": is not JSON");
  SecretJson& node = json["node"];
  if (!node.is_object()) return failed(o.file + ": node: is not an object");
  const SecretJson before = node;
  if (o.ssi) node["ssi"] = hex_number(*o.ssi, 8);
  if (o.server_id) node["tsc_partition"] = json_of(partition_of_server(*o.server_id));
  const auto given = parse_key_file(json.dump(), folder_of(o.file));
  if (!given && o.state_folder.empty()) return failed(o.file + ": " + given.error());
  if (!o.state_folder.empty()) node["state_dir"] = plain(o.state_folder);
  auto parsed = parse_key_file(json.dump(), folder_of(o.file));
  if (!parsed) return failed(o.file + ": " + parsed.error());
  if (o.server_id && std::ranges::none_of(parsed->domains, tss::needs_members))
    return failed("--server-id is for servers of a domain with SSI");
  const std::string host_folder = folder_of_host(*parsed, *known);
  if (o.state_folder.empty() && !host_folder.empty()) {
    node["state_dir"] = plain(host_folder);
    parsed->state_folder = host_folder;
  }
  if (const std::string why = restore_identity(*parsed, host_folder, o, node); !why.empty())
    return failed(why);
  parsed = parse_key_file(json.dump(), folder_of(o.file));
  if (!parsed) return failed(o.file + ": " + parsed.error());
  // The state first: an endpoint may read the file the moment it is there.
  const auto done =
      prepare_counters(*parsed, given ? given->state_folder : "", *known, o.never_sent);
  if (!done) return failed(done.error());
  if (const std::string why = record_identities(*parsed); !why.empty()) return failed(why);
  if (node != before)
    if (const std::string why = store(o.file, json, true); !why.empty()) return failed(why);
  std::printf("%s%s: %d of its keys are new on this host; counters are kept in %s\n",
              done->notes.c_str(), o.file.c_str(), done->made, parsed->state_folder.c_str());
  if (done->moved != 0)
    std::printf(
        "The counters of %d keys came along from %s, which gives none any more: endpoints that run "
        "have to be opened again before those in hand are spent\n",
        done->moved, done->moved_from.c_str());
  return done->lost.empty() ? 0 : failed(done->lost);
}

namespace {

/// The key that `name` names, out of those of the domain; else null.
const tss::KeyConfig* find_key(const tss::DomainConfig& d, const std::string& name) {
  const auto at = std::ranges::find(d.keys, name, [](const auto& k) { return key_name(k); });
  return at == d.keys.end() ? nullptr : &*at;
}

/// The key that packets leave under, and the other one. Keys stand in the order in which they were made.
struct Pair {
  const tss::KeyConfig *sent_under, *other;
  bool is_other_newer;
};
Pair pair_of(const tss::DomainConfig& d) {
  const bool is_newest = d.keys[1].an == d.tx_an;
  return {&d.keys[is_newest ? 1 : 0], &d.keys[is_newest ? 0 : 1], !is_newest};
}

/// A second key, with counters on this host. The old one gets none: where they are lost, they must not begin anew.
int add_key(const std::string& file, Document& doc, const Chosen& chosen, PreparedKeys& known) {
  const tss::DomainConfig& d = *chosen.config;
  SecretJson& json = *chosen.json;
  if (d.keys.size() == 2)
    return failed(
        "both key slots are taken: \"uet-keys rotate --switch\" or \"uet-keys retire\" comes next");
  const std::uint32_t sdi = d.sdi;
  const bool is_first = d.keys.empty();
  const int an = is_first || d.keys[0].an ? 0 : 1;
  json["keys"].push_back(new_key(an));
  if (is_first) json["tx_an"] = an;
  const auto parsed = parse_key_file(doc.json.dump(), folder_of(file));
  if (!parsed) return failed(parsed.error());
  const auto at = std::ranges::find(parsed->domains, sdi, &tss::DomainConfig::sdi);
  const tss::KeyConfig& added = at->keys.back();
  if (const std::string why = remember_keys(*parsed, known, true); !why.empty()) return failed(why);
  // The state first: an endpoint may read the file the moment it is there.
  CounterState state(parsed->state_folder);
  std::string why;
  (void)state.create(tss::fingerprint_of(added.key), why);
  if (why.empty()) why = store(file, doc.json, true);
  if (!why.empty()) return failed(why);
  const char* const others =
      at->role == tss::Role::kServer
          ? "Copy the file to other servers of the domain (uet-keys install), derive and install "
            "every client's file again, then switch each server and each client: uet-keys rotate "
            "--switch"
      : needs_identity(*at)
          ? "Copy the file to every host (uet-keys install, which puts the host's own SSI or "
            "server "
            "id back), then switch each: uet-keys rotate --switch"
          : "Copy the file to every host (uet-keys install), then switch each: uet-keys rotate "
            "--switch";
  std::printf("%s: a second key, %s, which is accepted and not yet sent under. %s\n", file.c_str(),
              key_name(added).c_str(), others);
  if (!is_first && state.is_missing(tss::fingerprint_of(at->keys.front().key)))
    std::printf("The counters of key %s are gone on this host: it sends again after the switch\n",
                key_name(at->keys.front()).c_str());
  return 0;
}

int switch_key(const std::string& file, Document& doc, const Chosen& chosen,
               const std::string& to) {
  const tss::DomainConfig& d = *chosen.config;
  if (d.keys.size() != 2) return failed("there is no second key: \"uet-keys rotate\" makes one");
  const Pair keys = pair_of(d);
  const std::string now = key_name(*keys.sent_under), other = key_name(*keys.other);
  if (!to.empty() && find_key(d, to) == nullptr)
    return failed("the domain has no key " + to + " but " + now + ", which is sent under, and " +
                  other);
  if (to.empty() ? !keys.is_other_newer : to == now) {
    std::printf("%s: packets leave under key %s already%s\n", file.c_str(), now.c_str(),
                keys.is_other_newer
                    ? ""
                    : (", the newer one; back: uet-keys rotate --switch --to " + other).c_str());
    return 0;
  }
  // Endpoints would go on under the old key, and not start again.
  const auto counters =
      CounterState(doc.parsed.state_folder).status(tss::fingerprint_of(keys.other->key));
  if (!counters) return failed(counters.error());
  if (counters->is_retired)
    return failed(counters->moved_to.empty()
                      ? "key " + other + " was retired on this host"
                      : "the counters of key " + other + " are in " + counters->moved_to + " now");
  (*chosen.json)["tx_an"] = keys.other->an ? 1 : 0;
  if (d.epoch != 0) (*chosen.json)["epoch"]["tx"] = 0;  // a new key begins at epoch 0 [TSS 7.2]
  if (const std::string why = store(file, doc.json, true); !why.empty()) return failed(why);
  std::printf(
      "%s: packets leave under key %s within a second, and no more under %s. When every host has "
      "switched and 2 s have passed: uet-keys retire\n",
      file.c_str(), other.c_str(), now.c_str());
  return 0;
}

}  // namespace

int rotate(const std::string& file, RotateStep step, std::optional<std::uint32_t> sdi,
           const std::string& to) {
  const FileLock lock(file);
  if (!lock.error().empty()) return failed(lock.error());
  auto doc = load(file);
  if (!doc) return failed(doc.error());
  auto chosen = choose(*doc, sdi);
  if (!chosen) return failed(chosen.error());
  auto known = PreparedKeys::read(file);
  if (!known) return failed(known.error());
  if (chosen->config->role == tss::Role::kClient &&
      (step == RotateStep::kAdd || chosen->config->keys.size() != 2))
    return failed("a client's key comes from its server: rotate there, then derive and install");
  if (step == RotateStep::kAdd) return add_key(file, *doc, *chosen, *known);
  if (const std::string why = remember_keys(doc->parsed, *known, false); !why.empty())
    return failed(why);
  return switch_key(file, *doc, *chosen, to);
}

int retire(const std::string& file, std::optional<std::uint32_t> sdi, const std::string& name) {
  const FileLock lock(file);
  if (!lock.error().empty()) return failed(lock.error());
  auto doc = load(file);
  if (!doc) return failed(doc.error());
  auto chosen = choose(*doc, sdi);
  if (!chosen) return failed(chosen.error());
  const tss::DomainConfig& d = *chosen->config;
  if (d.keys.size() != 2) return failed("there is no key that packets no longer leave under");
  const Pair keys = pair_of(d);
  const std::string stays = key_name(*keys.sent_under), goes = key_name(*keys.other);
  if (!name.empty() && name != goes)
    return failed(name == stays ? "packets leave under key " + stays + ": switch first"
                                : "the domain has no key " + name + " but " + stays +
                                      ", which is sent under, and " + goes);
  if (name.empty() && keys.is_other_newer)
    return failed("key " + goes + " is newer than " + stays +
                  ", which packets leave under: \"uet-keys rotate --switch\" comes first. To give "
                  "the newer one up for good: --key " +
                  goes);
  auto known = PreparedKeys::read(file);
  if (!known) return failed(known.error());
  if (const std::string why = remember_keys(doc->parsed, *known, false); !why.empty())
    return failed(why);
  const auto gone = tss::fingerprint_of(keys.other->key);
  // A server's key may serve several domains.
  const bool is_shared = std::ranges::any_of(doc->parsed.domains, [&](const auto& domain) {
    return domain.sdi != d.sdi && std::ranges::any_of(domain.keys, [&](const tss::KeyConfig& k) {
             return k.key == keys.other->key;
           });
  });
  SecretJson left = SecretJson::array();
  for (std::size_t i = 0; i < d.keys.size(); ++i)
    if (&d.keys[i] != keys.other) left.push_back((*chosen->json)["keys"][i]);
  (*chosen->json)["keys"] = left;
  if (const std::string why = store(file, doc->json, true); !why.empty()) return failed(why);
  if (is_shared) {
    std::printf(
        "%s: key %s is out of this domain, and stays that of another in the file; %s stays\n",
        file.c_str(), goes.c_str(), stays.c_str());
    return 0;
  }
  // Its counters are lost to endpoints that still have it, and it never comes back on this host.
  const std::string why = CounterState(doc->parsed.state_folder).retire(gone);
  std::printf("%s: key %s is retired, %s stays\n", file.c_str(), goes.c_str(), stays.c_str());
  return why.empty() ? 0 : failed(why);
}

int check(const std::string& file) {
  const auto doc = load(file);
  if (!doc) return failed(doc.error());
  const auto known = PreparedKeys::read(file);
  if (!known) return failed(known.error());
  int status = 0;
  const CounterState state(doc->parsed.state_folder);
  for (const tss::DomainConfig& d : doc->parsed.domains) {
    std::printf("secure domain 0x%06x: %s mode%s\n", d.sdi, name_of(d.mode),
                d.ssi_mode ? ", senders named by SSI" : "");
    if (tss::needs_members(d) && d.members.empty()) {
      std::printf(
          "  no members: endpoints refuse to start. \"uet-keys derive\" with --ssi and --ip lists "
          "a client\n");
      status = 1;
    }
    if (d.keys.empty()) {
      std::printf("  no key: endpoints refuse to start\n");
      status = 1;
    }
    if (const std::string why = why_not_this_host(doc->parsed.state_folder, d); !why.empty()) {
      std::printf("  %s\n", why.c_str());
      status = 1;
    }
    for (const tss::KeyConfig& k : d.keys) {
      const auto print = tss::fingerprint_of(k.key);
      const auto counters = state.status(print);
      std::printf("  AN %d: key %s%s, ", k.an ? 1 : 0, key_name(k).c_str(),
                  k.an == d.tx_an ? ", sent under" : "");
      if (!counters && state.is_missing(print) && known->has(print)) {
        std::printf("%s\n", why_lost(key_name(k), doc->parsed.state_folder).c_str());
        status = 1;
      } else if (!counters) {
        std::printf("%s\n", counters.error().c_str());
        status = 1;
      } else if (counters->is_retired) {
        std::printf("%s\n", counters->moved_to.empty()
                                ? "retired on this host"
                                : ("its counters are in " + counters->moved_to + " now").c_str());
        status = 1;
      } else {
        const std::uint64_t all = tss::TxCounter::limit_of(d.partition, d.counter_fatal);
        const std::uint64_t left = all - std::min(counters->reserved, all);
        std::printf("%.4f %% of its counters given out, %" PRIu64
                    " left: for as many packets, or %" PRIu64 " processes that never close%s\n",
                    100.0 * static_cast<double>(all - left) / static_cast<double>(all), left,
                    left / tss::TxCounter::kFirstReservation, left == 0 ? " (rotate)" : "");
        if (!counters->note.empty()) std::printf("  %s\n", counters->note.c_str());
        if (left == 0 && k.an == d.tx_an) status = 1;
      }
    }
  }
  return status;
}

}  // namespace uet::apps::keys
