#include "fep/settings/settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <set>

#include "fep/settings/port_entries.h"
#include "lib/base/near_name.h"
#include "lib/base/quantity.h"
#include "lib/net/ip_port.h"
#include "lib/net/link_messages.h"
#include "lib/net/port_name.h"

namespace uet::fep {
namespace {

using Kind = Setting::Kind;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto at = text.find(separator);
    const auto part = trim(text.substr(0, at));
    if (!part.empty()) parts.emplace_back(part);
    text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  }
  return parts;
}

/// Decimal or 0x hexadecimal, nothing behind it.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  int radix = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    radix = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto plain = parse_number(text);
  return plain ? plain : base::parse_byte_size(text, UINT64_MAX);
}

/// Without unit, it is in that of the setting.
std::optional<base::Duration> parse_time(std::string_view text, const Setting& setting) {
  const auto quantity = base::split_quantity(text);
  const bool is_plain = quantity && quantity->second.empty();
  return base::parse_duration(std::string(text).append(is_plain ? setting.unit : ""));
}

std::string words(std::string_view choices) {
  std::string out;
  for (const std::string& word : split(choices, ' ')) out += (out.empty() ? "" : ", ") + word;
  return out;
}

base::Duration time_from(std::uint64_t ns) {
  return base::Duration::from_ns(static_cast<std::int64_t>(ns));
}

/// What a value of this setting may be, for messages and documentation.
std::string allowed(const Setting& setting) {
  const std::string range = std::to_string(setting.min) + " to " + std::to_string(setting.max);
  switch (setting.kind) {
    case Kind::kBool:
      return "0 or 1";
    case Kind::kInteger:
      return setting.choices.empty() ? "a whole number from " + range
                                     : "one of " + words(setting.choices);
    case Kind::kNumberList:
      return "whole numbers from " + range + ", separated by |";
    case Kind::kSize:
      return "bytes from " + range + ", with K, M or G behind the number for its multiples";
    case Kind::kDuration:
      return "a time from " + base::duration_text(time_from(setting.min)) + " to " +
             base::duration_text(time_from(setting.max)) +
             " with unit ns, us, ms, s or min; without unit it is in " + std::string(setting.unit);
    case Kind::kChoice:
      return "one of " + words(setting.choices);
    case Kind::kAddress:
      return "an IPv4 or IPv6 address";
    case Kind::kText:
    case Kind::kTextList:
      return "text";
  }
  return {};
}

/// Stores `raw`, or the default where it is empty, where the setting points; false when it is none of what is allowed.
bool assign(Settings& into, const Setting& setting, std::string_view raw) {
  const std::string_view text = trim(raw).empty() ? setting.fallback : trim(raw);
  const auto in_range = [&](std::uint64_t v) { return v >= setting.min && v <= setting.max; };
  const auto is_choice = [&](std::string_view word) {
    const auto all = split(setting.choices, ' ');
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  switch (setting.kind) {
    case Kind::kText:
      into.*std::get<std::string Settings::*>(setting.target) = text;
      return true;
    case Kind::kTextList:
      into.*std::get<std::vector<std::string> Settings::*>(setting.target) = split(text, '|');
      return true;
    case Kind::kBool: {
      const std::string word = lower(text);
      const bool yes = word == "1" || word == "true" || word == "yes" || word == "on";
      if (!yes && word != "0" && word != "false" && word != "no" && word != "off") return false;
      into.*std::get<bool Settings::*>(setting.target) = yes;
      return true;
    }
    case Kind::kInteger:
    case Kind::kSize: {
      if (const auto* optional =
              std::get_if<std::optional<std::uint64_t> Settings::*>(&setting.target);
          optional != nullptr && text.empty()) {
        into.** optional = std::nullopt;
        return true;
      }
      const auto value = setting.kind == Kind::kSize ? parse_size(text) : parse_number(text);
      if (!value) return false;
      if (setting.choices.empty() ? !in_range(*value) : !is_choice(std::to_string(*value)))
        return false;
      if (const auto* plain = std::get_if<std::uint64_t Settings::*>(&setting.target))
        into.** plain = *value;
      else
        into.*std::get<std::optional<std::uint64_t> Settings::*>(setting.target) = *value;
      return true;
    }
    case Kind::kNumberList: {
      auto& list = into.*std::get<std::vector<std::uint64_t> Settings::*>(setting.target);
      list.clear();
      for (const std::string& part : split(text, '|')) {
        const auto value = parse_number(part);
        if (!value || !in_range(*value)) return false;
        list.push_back(*value);
      }
      return true;
    }
    case Kind::kDuration: {
      const auto time = parse_time(text, setting);
      if (!time || !in_range(static_cast<std::uint64_t>(time->ns()))) return false;
      into.*std::get<base::Duration Settings::*>(setting.target) = *time;
      return true;
    }
    case Kind::kChoice: {
      const auto all = split(setting.choices, ' ');
      const auto at = std::find(all.begin(), all.end(), lower(text));
      if (at == all.end()) return false;
      std::get<void (*)(Settings&, std::size_t)>(setting.target)(
          into, static_cast<std::size_t>(at - all.begin()));
      return true;
    }
    case Kind::kAddress: {
      const auto address = text.empty() ? net::FabricAddress{} : net::FabricAddress::parse(text);
      if (!address) return false;
      into.*std::get<net::FabricAddress Settings::*>(setting.target) = *address;
      return true;
    }
  }
  return false;
}

const Setting* find_by_file_key(std::string_view key) {
  const auto all = settings();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Setting& s) {
    return s.key != "CONFIG" && lower(s.key) == key;
  });
  return at == all.end() ? nullptr : &*at;
}

/// "1h" as "60min", where it is a time in a unit that people write and settings do not take.
std::string known_time(std::string_view text) {
  struct Unit {
    std::string_view word;
    std::uint64_t factor;
    const char* known;
  };
  static constexpr std::array kUnits = {
      Unit{"h", 60, "min"},  Unit{"hour", 60, "min"},  Unit{"hours", 60, "min"},
      Unit{"m", 1, "min"},   Unit{"minute", 1, "min"}, Unit{"minutes", 1, "min"},
      Unit{"sec", 1, "s"},   Unit{"second", 1, "s"},   Unit{"seconds", 1, "s"},
      Unit{"msec", 1, "ms"}, Unit{"usec", 1, "us"},    Unit{"nsec", 1, "ns"}};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number(text.substr(0, digits));
  const std::string unit = lower(trim(text.substr(digits)));
  const auto at = std::ranges::find(kUnits, unit, &Unit::word);
  if (!number || at == kUnits.end() || *number > UINT32_MAX) return {};
  return std::to_string(*number * at->factor) + at->known;
}

/// "64MiB" as "64M", the same of sizes.
std::string known_size(std::string_view text) {
  for (const std::string_view end : {"iB", "ib", "B", "b"})
    if (text.ends_with(end)) return std::string(text.substr(0, text.size() - end.size()));
  return {};
}

/// What `value` was probably meant to be, as this setting takes it; empty where that cannot be told.
std::string nearest_form(const Setting& setting, std::string_view value) {
  const std::string near = setting.kind == Kind::kDuration ? known_time(trim(value))
                           : setting.kind == Kind::kSize   ? known_size(trim(value))
                                                           : "";
  Settings scratch;
  return near.empty() || !assign(scratch, setting, near) ? "" : near;
}

std::string refused(const Setting& setting, std::string_view value, const std::string& where) {
  const std::string near = nearest_form(setting, value);
  return "FI_UET_" + std::string(setting.key) + where + ": \"" + std::string(value) + "\" is not " +
         allowed(setting) + (near.empty() ? "" : "; did you mean " + near + "?");
}

const Settings& defaults() {
  static const Settings all = [] {
    Settings s;
    for (const Setting& setting : settings()) UET_CHECK(assign(s, setting, setting.fallback));
    return s;
  }();
  return all;
}

/// Puts the entries of the file into `into`; a message when one is unknown or wrong.
std::optional<std::string> load_file(Settings& into, const std::string& path) {
  const auto entries = read_settings_file(path);
  if (!entries) return entries.error();
  for (const auto& [key, text] : *entries) {
    const Setting* setting = find_by_file_key(key);
    if (setting == nullptr) {
      constexpr std::string_view kPrefix = "fi_uet_";
      std::string near = lower(nearest_setting(key));
      if (near.starts_with(kPrefix)) near.erase(0, kPrefix.size());
      const std::string guess =
          find_by_file_key(near) == nullptr ? "" : "; did you mean " + near + "?";
      return "FI_UET_CONFIG: " + path + ": unknown setting \"" + key + "\"" + guess +
             "; settings are the FI_UET_ variables of fi_info -e in lower case without FI_UET_";
    }
    if (!assign(into, *setting, text)) return refused(*setting, text, " (in " + path + ")");
    into.chosen_by[setting->key] = path;
  }
  return std::nullopt;
}

/// `text` with every %r replaced by a digit, to check the form of an entry before the rank is
/// known.
std::string with_rank_zero(std::string text) {
  for (std::size_t at; (at = text.find("%r")) != std::string::npos;) text.replace(at, 2, 1, '0');
  return text;
}

/// One entry of FI_UET_PORT: the form of each plane, and whether they can be one endpoint.
std::optional<std::string> check_port(const std::string& spec) {
  const auto planes = net::planes_of(spec);
  for (const std::string& plane : planes) {
    const bool is_dpdk = plane.starts_with("dpdk:") && plane.size() > 5;
    if (!net::is_udp_port(plane) && !is_dpdk) {
      return "FI_UET_PORT: \"" + plane +
             "\" is not udp[:interface or address][,sockets=n][,merge=0] or dpdk:<vdev or PCI "
             "address>[,key=value...]";
    }
    net::UdpPortName name;
    std::string wrong;
    if (!is_dpdk && !net::parse_udp_port(plane, name, wrong))
      return "FI_UET_PORT: \"" + plane + "\": " + wrong;
    if (name.address != net::FabricAddress() && !net::is_unicast(name.address))
      return "FI_UET_PORT: \"" + plane + "\": " + name.address.to_string() +
             " is not a unicast address";
  }
  const std::string why = net::why_not_planes(planes);
  if (!why.empty()) return "FI_UET_PORT: \"" + spec + "\": " + why;
  return std::nullopt;
}

/// The interface is named once: FI_UET_IFNAME is for a port that names none.
std::optional<std::string> check_ifname(const Settings& s, const std::string& spec) {
  if (s.ifname.empty()) return std::nullopt;
  for (const std::string& plane : net::planes_of(spec)) {
    if (!net::is_udp_port(plane))
      return "FI_UET_IFNAME is for the udp port, and FI_UET_PORT says \"" + spec + "\"";
    net::UdpPortName name;
    std::string wrong;
    net::parse_udp_port(plane, name, wrong);  // check_port() has said what is wrong
    const bool names_other = !name.interface.empty() && name.interface != s.ifname;
    if (names_other || !name.address.is_unspecified())
      return "FI_UET_IFNAME: " + s.ifname + ", and FI_UET_PORT says \"" + spec +
             "\"; leave one out";
  }
  return std::nullopt;
}

/// The port that the user named, or did not.
std::string port_text(const Settings& s, const std::string& spec) {
  return (s.chosen_by.contains("PORT") ? "FI_UET_PORT says \"" : "the default port is \"") + spec +
         "\"";
}

/// Settings that are of no use to a port of this kind.
std::optional<std::string> check_kind(const Settings& s, const std::string& spec) {
  if (auto error = check_ifname(s, spec)) return error;
  if (!net::is_udp_port(net::planes_of(spec).front())) return std::nullopt;
  if (s.encap == Encapsulation::kIp)
    return "FI_UET_ENCAP: ip needs a dpdk port, and " + port_text(s, spec);
  if (s.vlan != 0) return "FI_UET_VLAN: a VLAN needs a dpdk port, and " + port_text(s, spec);
  const bool is_tuned = !s.dpdk_args.empty() || s.dpdk_rxd + s.dpdk_txd + s.dpdk_burst != 0;
  if (is_tuned)
    return "FI_UET_DPDK_ARGS, _RXD, _TXD and _BURST are for dpdk ports, and " + port_text(s, spec);
  if (!s.gateway.is_unspecified() || s.prefix != 0)
    return "FI_UET_GATEWAY and FI_UET_PREFIX: the kernel routes for the port \"" + spec +
           "\"; these are for dpdk ports";
  return std::nullopt;
}

/// What a network of its own can be for each dpdk port, but for addresses that have the rank of a process in them.
std::optional<std::string> check_hosts(const Settings& s) {
  for (const auto& [spec, text] : port_entries(s)) {
    const auto address = net::FabricAddress::parse(text);
    if (net::is_udp_port(net::planes_of(spec).front()) || !address) continue;
    net::IpPortConfig config;
    std::string wrong;
    const net::PortRequest request{.spec = spec,
                                   .address = *address,
                                   .prefix_length = static_cast<unsigned>(s.prefix),
                                   .gateway = s.gateway};
    if (!net::read_ip_config(request, config, wrong)) return "FI_UET_ADDR: " + wrong;
  }
  return std::nullopt;
}

/// One of two that say how packets look, or how fast a link is, leaves the other without a meaning.
std::optional<std::string> check_unused(const Settings& s) {
  if (s.encap == Encapsulation::kUdp && s.ip_protocol != defaults().ip_protocol)
    return "FI_UET_IP_PROTOCOL: " + std::to_string(s.ip_protocol) +
           " is for FI_UET_ENCAP=ip; packets in UDP have the protocol of that";
  if (s.encap == Encapsulation::kIp && s.udp_port != defaults().udp_port)
    return "FI_UET_UDP_PORT: " + std::to_string(s.udp_port) +
           " is for FI_UET_ENCAP=udp; packets directly in IP have no port";
  if (s.link_gbps != 0 && s.link_mbps != 0)
    return std::string("FI_UET_LINK_GBPS and FI_UET_LINK_MBPS are one rate in two units; give one");
  return std::nullopt;
}

/// What single values cannot show: forms of list entries, and settings that exclude each other.
std::optional<std::string> check(const Settings& s) {
  for (const std::string& spec : s.ports) {
    if (auto error = check_port(spec)) return error;
    if (auto error = check_kind(s, spec)) return error;
  }
  if (auto error = check_unused(s)) return error;
  // Those that IP itself uses: frames of that protocol are something else for every host on the way.
  constexpr std::array<std::uint32_t, 13> kOfIp{1,  6,  17, 43,  44,  50, 51,
                                                58, 59, 60, 135, 139, 140};
  if (s.encap == Encapsulation::kIp &&
      std::find(kOfIp.begin(), kOfIp.end(), s.ip_protocol) != kOfIp.end())
    return "FI_UET_IP_PROTOCOL: " + std::to_string(s.ip_protocol) +
           " is a protocol or header of IP itself; take one that has no other use, e.g. 253";
  for (const std::string& text : s.addresses) {
    const auto address = net::FabricAddress::parse(with_rank_zero(text));
    if (!address)
      return "FI_UET_ADDR: \"" + text +
             "\" is not an IPv4 or IPv6 address (several are separated by |)";
    if (!net::is_unicast(*address)) return "FI_UET_ADDR: " + text + " is not a unicast address";
  }
  if (s.ports.size() > 1 && s.addresses.size() > 1 && s.ports.size() != s.addresses.size())
    return "FI_UET_PORT has " + std::to_string(s.ports.size()) + " entries and FI_UET_ADDR " +
           std::to_string(s.addresses.size()) +
           "; give both the same number, or one of them a single entry";
  if (auto error = check_hosts(s)) return error;
  const bool in_clear = s.protect == Protection::kCrc || s.protect == Protection::kNone;
  if (!s.keys.empty() && in_clear)
    return std::string(
        "FI_UET_PROTECT: crc and none contradict FI_UET_KEYS: with keys nothing is "
        "sent in clear");
  if (s.keys.empty() && s.protect == Protection::kTss)
    return std::string("FI_UET_PROTECT: tss needs FI_UET_KEYS, the key file");
  if (s.keys.empty() && !s.key_log.empty())
    return std::string("FI_UET_KEY_LOG: there are no keys to log without FI_UET_KEYS");
  if (s.keys.empty() && s.keys_signal != KeysSignal::kNone)
    return std::string(
        "FI_UET_KEYS_SIGNAL: there is no key file to read again without FI_UET_KEYS, and the "
        "signal would end the process");
  if (s.rendezvous_from != 0 && !s.rendezvous)
    return std::string("FI_UET_RENDEZVOUS_FROM announces nothing without FI_UET_RENDEZVOUS=1");
  if (s.rendezvous_eager != 0 && s.rendezvous_from == 0)
    return std::string(
        "FI_UET_RENDEZVOUS_EAGER is sent with what FI_UET_RENDEZVOUS_FROM announces, which is 0");
  if (s.restart_limit != base::Duration() && !s.deferrable)
    return std::string("FI_UET_RESTART_LIMIT limits nothing without FI_UET_DEFERRABLE=1");
  if (s.rto_init > s.rto_max)
    return std::string("FI_UET_RTO_INIT must not be longer than FI_UET_RTO_MAX (") +
           base::duration_text(s.rto_init) + " > " + base::duration_text(s.rto_max) + ")";
  if (std::string wrong = s.why_no_port_suits(); !wrong.empty()) return wrong;
  if (!s.jobs.empty() && std::find(s.jobs.begin(), s.jobs.end(), s.job) == s.jobs.end())
    return "FI_UET_JOB: " + std::to_string(s.job) + " is not in FI_UET_JOBS";
  return std::nullopt;
}

}  // namespace

std::string describe(const Setting& setting) {
  std::string out(setting.help);
  if (setting.kind != Kind::kText && setting.kind != Kind::kTextList)
    out += " (" + allowed(setting);
  else
    out += " (text";
  return out +
         "; default: " + (setting.fallback.empty() ? "empty" : std::string(setting.fallback)) +
         (setting.libfabric_only ? "; libfabric only)" : ")");
}

base::Result<Settings, std::string> Settings::load(const Lookup& lookup) {
  Settings s = defaults();
  if (const auto path = lookup("CONFIG"); path && !path->empty()) {
    if (auto error = load_file(s, *path)) return std::move(*error);
  }
  for (const Setting& setting : settings()) {
    const auto text = lookup(setting.key);
    if (text && !assign(s, setting, *text)) return refused(setting, *text, "");
    if (!text) continue;
    if (trim(*text).empty())
      s.chosen_by.erase(setting.key);
    else
      s.chosen_by[setting.key] = "FI_UET_" + std::string(setting.key);
  }
  if (const auto error = check(s)) return s.with_origins(*error);
  return s;
}

std::string Settings::with_origins(std::string_view text) const {
  constexpr std::string_view kPrefix = "FI_UET_";
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  std::string out;
  std::set<std::string_view> named;
  for (std::size_t at; (at = text.find(kPrefix)) != std::string_view::npos;) {
    const std::size_t end =
        std::min(text.find_first_not_of(kLetters, at + kPrefix.size()), text.size());
    const auto key = text.substr(at + kPrefix.size(), end - at - kPrefix.size());
    out += text.substr(0, end);
    text.remove_prefix(end);
    const std::string from = who_chose(key);
    const bool is_in_file = from != "default" && !from.starts_with(kPrefix);
    // FI_UET_X=1 speaks of a value that is missing.
    if (is_in_file && !text.starts_with('=') && named.insert(key).second)
      out += " (in " + from + ")";
  }
  return out.append(text);
}

std::string Settings::who_chose(std::string_view key) const {
  const auto at = chosen_by.find(key);
  return at == chosen_by.end() ? "default" : at->second;
}

std::string nearest_setting(std::string_view name) {
  constexpr std::string_view kPrefix = "FI_UET_";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  // What others call it, and no number of changed letters leads to.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOtherNames = {{
      {"LOADBALANCE", "LB"},
      {"LOAD_BALANCING", "LB"},
      {"CONGESTION_CONTROL", "CC"},
      {"INTERFACE", "IFNAME"},
      {"ADDRESS", "ADDR"},
  }};
  std::vector<std::string_view> keys;
  for (const Setting& setting : settings()) keys.push_back(setting.key);
  for (const auto& other : kOtherNames) keys.push_back(other.first);
  std::string_view near = base::near_name(name, keys);
  for (const auto& [other, key] : kOtherNames)
    if (near == other) near = key;
  return near.empty() ? "" : std::string(kPrefix) + std::string(near);
}

std::string about_unknown_variable(const std::string& name, std::string_view list) {
  const std::string near = nearest_setting(name);
  return name + " is no setting and is ignored; " +
         (near.empty() ? std::string(list) + " lists the settings" : "did you mean " + near + "?");
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  constexpr std::string_view kPrefix = "FI_UET_";
  const auto all = settings();
  std::vector<std::string> unknown;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view key = name.substr(kPrefix.size());
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const Setting& s) { return s.key == key; });
    if (!known) unknown.emplace_back(name);
  }
  return unknown;
}

}  // namespace uet::fep
