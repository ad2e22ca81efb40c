#include "keys/key_file.h"

#include <algorithm>
#include <bit>

#include "keys/json_fields.h"

namespace uet::keys {
namespace {

using tss::DomainConfig;

struct Node {
  std::uint32_t ssi = 0;
  bool has_ssi = false;
  tss::CounterPartition partition;
};

void read_node(Fields& file, KeyFile& out, Node& node, const std::string& folder) {
  Fields f = file.object("node", true);
  std::string state = f.text("state_dir", "");
  if (state.empty()) f.fail("state_dir", "must name the folder of the counter state");
  out.state_folder = state.starts_with('/') ? state : folder + "/" + state;
  node.has_ssi = f.has("ssi");
  node.ssi = static_cast<std::uint32_t>(f.number("ssi", 0, 0xffff'ffff));
  Fields p = f.object("tsc_partition", false);
  node.partition.bits = static_cast<unsigned>(p.number("bits", 0, 16));
  node.partition.id = static_cast<std::uint32_t>(p.number("id", 0, 0xffff));
  p.finish();
  f.finish();
}

/// What holds for every domain of the file.
DomainConfig read_policy(Fields& file) {
  DomainConfig c;
  Fields f = file.object("policy", false);
  if (f.flag("allow_plaintext", false))
    f.fail("allow_plaintext", "true is not possible: an endpoint with keys never speaks in clear");
  c.trim_hints = f.choice("trim_hints", "off", {"off", "on"}) == 1;
  c.tsc_floor = f.choice("tsc_floor", "on", {"off", "on"}) == 1;
  c.tsc_floor_window = f.number("tsc_floor_window", c.tsc_floor_window, tss::kCounterMax);
  c.replay_window = static_cast<std::uint32_t>(f.number("replay_window", 0, 1u << 20));
  f.finish();
  return c;
}

void read_keys(Fields& f, DomainConfig& c) {
  for (Fields& k : f.list("keys")) {
    tss::KeyConfig key;
    key.an = k.number("an", 0, 1) == 1;
    k.secret("key", {key.key.data(), key.key.size()});
    if (k.has("ivmask")) {
      key.mask.emplace();
      k.secret("ivmask", {key.mask->data(), key.mask->size()});
    }
    key.epoch = static_cast<std::uint16_t>(k.number("epoch", 0, 0xffff));
    k.finish();
    c.keys.push_back(std::move(key));
  }
}

void read_members(Fields& f, DomainConfig& c) {
  for (Fields& m : f.list("members")) {
    tss::Member member;
    if (tss::needs_members(c) && !m.has("ssi")) m.fail("ssi", "is missing");
    member.ssi = static_cast<std::uint32_t>(m.number("ssi", 0, 0xffff'ffff));
    const auto address = net::FabricAddress::parse(m.text("ip", ""));
    if (!address) m.fail("ip", "is not an IPv4 or IPv6 address");
    member.address = address.value_or(net::FabricAddress{});
    m.finish();
    c.members.push_back(member);
  }
  std::sort(c.members.begin(), c.members.end());
}

void read_details(Fields& f, DomainConfig& c) {
  Fields rekey = f.object("rekey", false);
  c.rekey.mask = rekey.number("mask", 0, UINT64_MAX);
  c.rekey.shift = static_cast<unsigned>(rekey.number("shift", 0, 63));
  rekey.finish();
  Fields epoch = f.object("epoch", false);
  c.epoch = static_cast<std::uint16_t>(epoch.number("tx", 0, 0xffff));
  c.reject_old_epochs = epoch.flag("reject_old", false);
  c.max_epoch_age = static_cast<std::uint16_t>(epoch.number("rx_max_lifetime", 16, 0x7fff));
  epoch.finish();
  Fields limits = f.object("limits", false);
  c.counter_fatal = limits.number("counter_fatal", tss::kCounterMax, tss::kCounterMax);
  c.auth_fail_threshold =
      limits.number("auth_fail_threshold", c.auth_fail_threshold, tss::kCounterMax);
  c.stop_at_auth_fail_threshold =
      limits.choice("auth_fail_action", "alarm", {"alarm", "drop_domain"}) == 1;
  c.max_sources = static_cast<std::uint32_t>(limits.number("max_sources", c.max_sources, 1u << 20));
  limits.finish();
  Fields offsets = f.object("offsets", false);
  c.aad_from_tss = offsets.choice("aad_from", "ip_src", {"ip_src", "tss"}) == 1;
  c.clear_bytes = static_cast<std::uint8_t>(offsets.number("coff_extra", 0, 12));
  c.kdf_ipv6_ignores_ssi = offsets.flag("kdf_ipv6_ignores_ssi", false);
  offsets.finish();
  Fields pdc = f.object("pdc", false);
  c.opening = pdc.choice("psn_method", "0rtt", {"0rtt", "1rtt"}) == 0
                  ? tss::OpeningMethod::kExpected
                  : tss::OpeningMethod::kChallenge;
  c.new_pdc_time =
      base::Duration::from_ms(static_cast<std::int64_t>(pdc.number("new_pdc_time_ms", 100, 100)));
  pdc.finish();
}

DomainConfig read_domain(Fields& f, const Node& node, const DomainConfig& policy) {
  DomainConfig c = policy;
  c.sdi = static_cast<std::uint32_t>(f.number("sdi", 0, tss::kSdiMax));
  if (!f.has("sdi")) f.fail("sdi", "is missing");
  c.mode = static_cast<tss::Mode>(f.choice("mode", "", {"direct", "cluster", "server"}));
  c.role = static_cast<tss::Role>(f.choice("role", "peer", {"peer", "server", "client"}));
  (void)f.choice("alg", "AES-256-GCM", {"AES-256-GCM"});
  c.ssi_mode = f.flag("ssi_mode", false);
  c.tx_an = f.number("tx_an", 0, 1) == 1;
  read_keys(f, c);
  read_members(f, c);
  read_details(f, c);
  for (const std::uint64_t job : f.numbers("job_ids", 0xff'ffff))
    c.jobs.push_back(static_cast<std::uint32_t>(job));
  f.finish();

  c.partition = node.partition;
  // The half of the counters that no server has. A server's part is not to be guessed: others of the domain may have it. [TSS 5]
  if (c.role == tss::Role::kClient && c.ssi_mode && c.partition.bits == 0)
    c.partition = {.bits = 1, .id = 0};
  if (c.ssi_mode && c.role != tss::Role::kServer) {
    c.ssi = node.ssi;
    if (!node.has_ssi) f.fail("ssi_mode", "needs node.ssi, different on each node");
  }
  return c;
}

/// One key in two places would repeat IVs; only a server's key may serve several of its domains.
std::string why_shared(const std::vector<DomainConfig>& domains) {
  std::vector<std::pair<const DomainConfig*, const tss::KeyConfig*>> all;
  for (const DomainConfig& d : domains)
    for (const tss::KeyConfig& k : d.keys) all.emplace_back(&d, &k);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool both_servers = all[i].first != all[j].first &&
                                all[i].first->role == tss::Role::kServer &&
                                all[j].first->role == tss::Role::kServer;
      if (!both_servers && all[i].second->key == all[j].second->key)
        return "secure_domains: the same key stands in two places";
    }
  }
  return "";
}

}  // namespace

base::Result<KeyFile, std::string> parse_key_file(const SecretText& text,
                                                  const std::string& folder) {
  const SecretJson json = parse_secret(text);
  if (json.is_discarded()) return std::string("is not JSON");
  std::string error;
  Fields f(json, "", error);
  if (f.text("format", "") != kFormat) return "format: is not \"" + std::string(kFormat) + "\"";
  KeyFile out;
  Node node;
  read_node(f, out, node, folder);
  const DomainConfig policy = read_policy(f);
  for (Fields& d : f.list("secure_domains")) {
    DomainConfig c = read_domain(d, node, policy);
    if (const std::string why = tss::why_unusable(c); !why.empty()) d.fail("", why);
    for (const DomainConfig& other : out.domains)
      if (other.sdi == c.sdi) d.fail("sdi", "stands twice");
    out.domains.push_back(std::move(c));
  }
  f.finish();
  if (!error.empty()) return error;
  if (std::string why = why_shared(out.domains); !why.empty()) return why;
  if (out.domains.empty()) return std::string("secure_domains: there is none");
  return out;
}

base::Result<KeyFile, std::string> read_key_file(const std::string& path) {
  auto file = read_secret(path);
  if (!file) return file.error();
  auto parsed = parse_key_file(file->text, folder_of(path));
  if (!parsed) return path + ": " + parsed.error();
  parsed->version = file->version;
  return parsed;
}

base::Result<tss::DomainConfig, std::string> domain_for_job(const KeyFile& file,
                                                            std::uint32_t job) {
  for (const DomainConfig& d : file.domains)
    if (std::find(d.jobs.begin(), d.jobs.end(), job) != d.jobs.end()) return d;
  if (file.domains.size() == 1 && file.domains.front().jobs.empty()) return file.domains.front();
  return "no secure domain lists job " + std::to_string(job) + " in its job_ids";
}

SecretText to_hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  SecretText out;
  out.reserve(2 * bytes.size());
  for (const std::uint8_t b : bytes) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

bool from_hex(std::string_view text, std::span<std::uint8_t> out) {
  if (text.size() != 2 * out.size()) return false;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace uet::keys
