#include "apps/keys/commands.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "keys/counter_state.h"
#include "keys/host_identity.h"
#include "keys/key_file.h"
#include "keys/system_random.h"
#include "tss/kdf.h"
#include "tss/tx_counter.h"

namespace uet::apps::keys {
namespace {

using namespace uet::keys;  // NOLINT: this file is about nothing else

int failed(const std::string& why) {
  std::fprintf(stderr, "uet-keys: %s\n", why.c_str());
  return 1;
}

SecretText hex_number(std::uint64_t n, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(n));
  return text;
}

std::string default_state_folder() {
  if (::geteuid() == 0) return "/var/lib/uet/tss";
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::string(state) + "/uet/tss";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.local/state/uet/tss";
}

SecretText plain(const std::string& text) {
  return {text.begin(), text.end()};
}

/// A key file as it stands, for changing: the text is checked as endpoints check it.
struct Document {
  SecretJson json;
  KeyFile parsed;
};

base::Result<Document, std::string> load(const std::string& path) {
  auto text = read_secret(path);
  if (!text) return text.error();
  auto parsed = parse_key_file(text->text, folder_of(path));
  if (!parsed) return path + ": " + parsed.error();
  return Document{parse_secret(text->text), std::move(*parsed)};
}

std::string store(const std::string& path, const SecretJson& json, bool may_replace) {
  SecretText text = json.dump(2);
  text += '\n';
  const auto checked = parse_key_file(text, folder_of(path));
  if (!checked) return path + " would be wrong: " + checked.error();
  return write_secret(path, text, may_replace);
}

/// Makes the state of every key that this host never had. An error, or empty; `made` counts.
std::string create_states(const KeyFile& file, int& made) {
  CounterState state(file.state_folder);
  for (const tss::DomainConfig& d : file.domains) {
    for (const tss::KeyConfig& k : d.keys) {
      std::string error;
      const auto print = tss::fingerprint_of(k.key);
      if (state.create(print, error)) ++made;
      if (!error.empty()) return error;
      const auto status = state.status(print);
      if (status && status->is_retired)
        return "key " + short_name(print) + " was retired on this host and must not be used again";
    }
  }
  return "";
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

/// Changes `node` to what this host recorded, where that was not given with the command. An error, or empty.
std::string restore_identity(const KeyFile& file, const InstallOptions& o, SecretJson& node) {
  std::optional<std::uint32_t> ssi;
  std::optional<tss::CounterPartition> partition;
  if (o.server_id) partition = partition_of_server(*o.server_id);
  for (const tss::DomainConfig& d : file.domains) {
    const bool is_server = d.role == tss::Role::kServer;
    const bool is_given = is_server ? o.server_id.has_value() : o.ssi.has_value();
    if (!needs_identity(d) || is_given) continue;
    const auto here = recorded_identity(file.state_folder, d.sdi);
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

/// The domain that a command is about: its JSON and what was read from it.
struct Chosen {
  SecretJson* json = nullptr;
  const tss::DomainConfig* config = nullptr;
};

base::Result<Chosen, std::string> choose(Document& doc, std::optional<std::uint32_t> sdi) {
  if (!sdi && doc.parsed.domains.size() != 1)
    return std::string("the file has several secure domains: say which with --sdi");
  for (std::size_t i = 0; i < doc.parsed.domains.size(); ++i)
    if (!sdi || doc.parsed.domains[i].sdi == *sdi)
      return Chosen{&doc.json["secure_domains"][i], &doc.parsed.domains[i]};
  return std::string("the file has no secure domain with this SDI");
}

const char* name_of(tss::Mode mode) {
  constexpr const char* kNames[] = {"direct", "cluster", "server"};
  return kNames[static_cast<std::size_t>(mode)];
}

}  // namespace

int make_new(const NewOptions& o) {
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
  int made = 0;
  const auto doc = load(o.out);
  if (!doc) return failed(doc.error());
  std::string why = create_states(doc->parsed, made);
  if (why.empty()) why = record_identities(doc->parsed);
  if (!why.empty()) {
    ::unlink(o.out.c_str());  // a key without counters is of no use
    return failed(why);
  }
  std::printf("%s: secure domain 0x%06x, %s mode, one key (%s)\n", o.out.c_str(), sdi,
              o.mode.c_str(),
              short_name(tss::fingerprint_of(doc->parsed.domains[0].keys[0].key)).c_str());
  if (tss::needs_members(doc->parsed.domains[0])) {
    std::printf(
        "Endpoints start when it lists a client: \"uet-keys derive %s --ssi N --ip ADDRESS --out "
        "CLIENTFILE\" for each. Then set FI_UET_KEYS=%s\n"
        "This is server %u. Another one gets a copy with its mode of 0600, and \"uet-keys install "
        "--server-id N\" there, N different on each\n",
        o.out.c_str(), o.out.c_str(), o.server_id.value_or(0));
    return 0;
  }
  std::printf(
      "Copy it to every host of the domain with its mode of 0600, run \"uet-keys install%s\" "
      "there%s, and set FI_UET_KEYS=%s\n",
      o.ssi ? " --ssi N" : "", o.ssi ? ", N different on each" : "", o.out.c_str());
  return 0;
}

/// Adds the client to the members of a server's domain, for the next endpoint or within a second for one that runs. False when it is there.
bool list_member(Chosen& chosen, const tss::Member& client) {
  if (std::ranges::binary_search(chosen.config->members, client)) return false;
  SecretJson member = {{"ip", plain(client.address.to_string())}};
  if (chosen.config->ssi_mode) member["ssi"] = hex_number(client.ssi, 8);
  (*chosen.json)["members"].push_back(member);
  return true;
}

int derive(const DeriveOptions& o) {
  auto doc = load(o.file);
  if (!doc) return failed(doc.error());
  auto chosen = choose(*doc, o.sdi);
  if (!chosen) return failed(chosen.error());
  const tss::DomainConfig& d = *chosen->config;
  if (d.role != tss::Role::kServer) return failed("only a server's domain has keys for clients");
  if (d.ssi_mode != o.ssi.has_value())
    return failed(d.ssi_mode ? "clients of this domain are told apart by SSI: give --ssi"
                             : "clients of this domain are told apart by address: give --ip");
  const auto address = net::FabricAddress::parse(o.ip);
  if (!d.ssi_mode && (!address || !address->is_v4()))
    return failed("--ip is not an IPv4 address; IPv6 needs a domain with SSI");
  if (!address)
    return failed(o.ip.empty() ? "the server has to know the client's address too: give --ip"
                               : "--ip is not an IPv4 or IPv6 address");
  const bool by_address = !d.ssi_mode || (d.kdf_ipv6_ignores_ssi && !address->is_v4());
  const auto identity =
      by_address ? tss::Identity::of_address(*address) : tss::Identity::of_ssi(*o.ssi);
  SecretJson client = *chosen->json;
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
  SecretJson json = doc->json;
  if (o.ssi) json["node"]["ssi"] = hex_number(*o.ssi, 8);
  json["node"].erase("tsc_partition");  // a client has the half that no server has
  json["secure_domains"] = SecretJson::array({client});
  // Without SSI the key tells the address, and a server with an empty list takes all.
  const bool is_new = (d.ssi_mode || !d.members.empty()) &&
                      list_member(*chosen, {.ssi = o.ssi.value_or(0), .address = *address});
  if (const std::string why = store(o.out, json, false); !why.empty()) return failed(why);
  if (is_new) {
    if (const std::string why = store(o.file, doc->json, true); !why.empty()) {
      ::unlink(o.out.c_str());  // the server would refuse it
      return failed(why);
    }
    std::printf("%s: lists %s as a member now. Other servers of the domain need that too.\n",
                o.file.c_str(), address->to_string().c_str());
  }
  std::printf("%s: the key of one client. Move it there and run \"uet-keys install\".\n",
              o.out.c_str());
  return 0;
}

int install(const InstallOptions& o) {
  auto text = read_secret(o.file);
  if (!text) return failed(text.error());
  SecretJson json = parse_secret(text->text);
  if (!json.is_object()) return failed(o.file + ": is not JSON");
  SecretJson& node = json["node"];
  if (!node.is_object()) return failed(o.file + ": node: is not an object");
  const SecretJson before = node;
  if (o.ssi) node["ssi"] = hex_number(*o.ssi, 8);
  if (o.server_id) node["tsc_partition"] = json_of(partition_of_server(*o.server_id));
  if (!o.state_folder.empty()) node["state_dir"] = plain(o.state_folder);
  const auto given = parse_key_file(json.dump(), folder_of(o.file));
  if (!given) return failed(o.file + ": " + given.error());
  if (o.server_id && std::ranges::none_of(given->domains, tss::needs_members))
    return failed("--server-id is for servers of a domain with SSI");
  if (const std::string why = restore_identity(*given, o, node); !why.empty()) return failed(why);
  const auto parsed = parse_key_file(json.dump(), folder_of(o.file));
  if (!parsed) return failed(o.file + ": " + parsed.error());
  // The state first: an endpoint may read the file the moment it is there.
  int made = 0;
  if (const std::string why = create_states(*parsed, made); !why.empty()) return failed(why);
  if (const std::string why = record_identities(*parsed); !why.empty()) return failed(why);
  if (node != before)
    if (const std::string why = store(o.file, json, true); !why.empty()) return failed(why);
  std::printf("%s: %d of its keys are new on this host; counters are kept in %s\n", o.file.c_str(),
              made, parsed->state_folder.c_str());
  return 0;
}

int rotate(const std::string& file, RotateStep step, std::optional<std::uint32_t> sdi) {
  auto doc = load(file);
  if (!doc) return failed(doc.error());
  auto chosen = choose(*doc, sdi);
  if (!chosen) return failed(chosen.error());
  const tss::DomainConfig& d = *chosen->config;
  SecretJson& json = *chosen->json;
  const bool is_client = d.role == tss::Role::kClient;
  if (is_client && (step == RotateStep::kAdd || d.keys.size() != 2))
    return failed("a client's key comes from its server: rotate there, then derive and install");
  if (step == RotateStep::kAdd) {
    if (d.keys.size() == 2)
      return failed(
          "both key slots are taken: \"uet-keys rotate --switch\" or \"uet-keys retire\" "
          "comes next");
    const int an = d.keys.empty() || d.keys[0].an ? 0 : 1;
    json["keys"].push_back(new_key(an));
    if (d.keys.empty()) json["tx_an"] = an;
  } else {
    if (d.keys.size() != 2) return failed("there is no second key: \"uet-keys rotate\" makes one");
    json["tx_an"] = d.tx_an ? 0 : 1;
    if (d.epoch != 0) json["epoch"]["tx"] = 0;  // a new key begins at epoch 0 [TSS 7.2]
  }
  // The state first: an endpoint may read the file the moment it is there.
  const SecretText text = doc->json.dump();
  const auto parsed = parse_key_file(text, folder_of(file));
  if (!parsed) return failed(parsed.error());
  int made = 0;
  if (const std::string why = create_states(*parsed, made); !why.empty()) return failed(why);
  if (const std::string why = store(file, doc->json, true); !why.empty()) return failed(why);
  if (step == RotateStep::kAdd && d.role == tss::Role::kServer)
    std::printf(
        "%s: a second key, which is accepted and not yet sent under. Copy the file to other "
        "servers "
        "of the domain (uet-keys install), derive and install every client's file again, then "
        "switch each server and each client: uet-keys rotate --switch\n",
        file.c_str());
  else if (step == RotateStep::kAdd)
    std::printf(
        "%s: a second key, which is accepted and not yet sent under. Copy the file to every "
        "host (uet-keys install%s), then switch each: uet-keys rotate --switch\n",
        file.c_str(), needs_identity(d) ? ", which puts the host's own SSI or server id back" : "");
  else
    std::printf(
        "%s: packets leave under the other key within a second. When every host has "
        "switched and 2 s have passed: uet-keys retire\n",
        file.c_str());
  return 0;
}

int retire(const std::string& file, std::optional<std::uint32_t> sdi) {
  auto doc = load(file);
  if (!doc) return failed(doc.error());
  auto chosen = choose(*doc, sdi);
  if (!chosen) return failed(chosen.error());
  const tss::DomainConfig& d = *chosen->config;
  if (d.keys.size() != 2) return failed("there is no key that packets no longer leave under");
  tss::Fingerprint gone{};
  SecretJson left = SecretJson::array();
  for (std::size_t i = 0; i < d.keys.size(); ++i) {
    if (d.keys[i].an == d.tx_an)
      left.push_back((*chosen->json)["keys"][i]);
    else
      gone = tss::fingerprint_of(d.keys[i].key);
  }
  (*chosen->json)["keys"] = left;
  if (const std::string why = store(file, doc->json, true); !why.empty()) return failed(why);
  // Its counters are lost to endpoints that still have it, and it never comes back on this host.
  const std::string why = CounterState(doc->parsed.state_folder).retire(gone);
  std::printf("%s: key %s is retired\n", file.c_str(), short_name(gone).c_str());
  return why.empty() ? 0 : failed(why);
}

int check(const std::string& file) {
  const auto doc = load(file);
  if (!doc) return failed(doc.error());
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
      std::printf("  AN %d: key %s%s, ", k.an ? 1 : 0, short_name(print).c_str(),
                  k.an == d.tx_an ? ", sent under" : "");
      if (!counters) {
        std::printf("%s\n", counters.error().c_str());
        status = 1;
      } else if (counters->is_retired) {
        std::printf("retired on this host\n");
        status = 1;
      } else {
        const std::uint64_t all = tss::TxCounter::limit_of(d.partition, d.counter_fatal);
        const std::uint64_t left = all - std::min(counters->reserved, all);
        std::printf("%.4f %% of its counters given out, %" PRIu64
                    " left: for as many packets, or %" PRIu64 " processes that never close%s\n",
                    100.0 * static_cast<double>(all - left) / static_cast<double>(all), left,
                    left / tss::TxCounter::kFirstReservation, left == 0 ? " (rotate)" : "");
        if (left == 0 && k.an == d.tx_an) status = 1;
      }
    }
  }
  return status;
}

}  // namespace uet::apps::keys
