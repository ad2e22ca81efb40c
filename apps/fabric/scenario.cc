#include "apps/fabric/scenario.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <variant>

#include "apps/fabric/values.h"
#include "lib/base/quantity.h"
#include "lib/net/capture_file.h"
#include "lib/toml/toml_file.h"

namespace uet::fabric {

namespace {

using toml_file::Entry;
using toml_file::Section;

/// Where the value of a key goes.
template <typename T>
using Target = std::variant<std::uint64_t T::*, base::BitRate T::*, base::Duration T::*, bool T::*,
                            std::string T::*>;

template <typename T>
struct Key {
  std::string_view name;
  Target<T> target;
  std::string_view help;
  std::uint64_t min = 0, max = UINT64_MAX;  ///< numbers
};

struct UetKeys {
  std::uint64_t udp_port = 4793, ip_protocol = 253;
  std::uint64_t dscp_data = 0, dscp_trimmable = 18, dscp_trimmable_rtx = 20, dscp_trimmed = 26,
                dscp_trimmed_last_hop = 28, dscp_control = 46;
};

constexpr std::array kFabricKeys = {
    Key<Scenario>{"leaves", &Scenario::leaves, "leaf switches", 1, kSwitchesMax},
    Key<Scenario>{"spines", &Scenario::spines,
                  "spine switches: paths between any two leaves; 0 with one leaf", 0, kSwitchesMax},
    Key<Scenario>{"host_rate", &Scenario::host_rate, "links between legs and leaves"},
    Key<Scenario>{"rate", &Scenario::rate, "links between leaves and spines"},
    Key<Scenario>{"delay", &Scenario::delay, "of each link, one way"},
    Key<Scenario>{
        "queue", &Scenario::queue,
        "data bytes that wait in front of a link; 0: one bandwidth-delay product, without "
        "trimming five"},
    Key<Scenario>{"ecn_low", &Scenario::ecn_low,
                  "no marks below this many waiting bytes; 0: a fifth of queue"},
    Key<Scenario>{"ecn_high", &Scenario::ecn_high,
                  "everything is marked above; 0: four fifths of queue"},
    Key<Scenario>{"trimming", &Scenario::trimming, "cut what does not fit instead of dropping it"},
    Key<Scenario>{"marking", &Scenario::marking, "set ECN marks"},
    Key<Scenario>{"seed", &Scenario::seed, "of hashes and faults"},
    Key<Scenario>{"packets", &Scenario::packets, "packets that the fabric may hold", 64, 1 << 20},
    Key<Scenario>{"max_frame", &Scenario::max_frame, "bytes of the largest frame", 1514, 16384},
    Key<Scenario>{"nic_queue", &Scenario::nic_queue,
                  "bytes taken from a leg ahead of its transmitter", 1514, 1 << 30},
};

constexpr std::array kUetKeys = {
    Key<UetKeys>{"udp_port", &UetKeys::udp_port, "UDP destination port of UET", 1, 65535},
    Key<UetKeys>{"ip_protocol", &UetKeys::ip_protocol, "IP protocol of native UET", 1, 255},
    Key<UetKeys>{"dscp_data", &UetKeys::dscp_data, "data that is dropped, not trimmed", 0, 63},
    Key<UetKeys>{"dscp_trimmable", &UetKeys::dscp_trimmable, "data that may be trimmed", 0, 63},
    Key<UetKeys>{"dscp_trimmable_rtx", &UetKeys::dscp_trimmable_rtx,
                 "retransmissions that may be trimmed", 0, 63},
    Key<UetKeys>{"dscp_trimmed", &UetKeys::dscp_trimmed, "what trimmed packets become", 0, 63},
    Key<UetKeys>{"dscp_trimmed_last_hop", &UetKeys::dscp_trimmed_last_hop,
                 "and in front of their destination", 0, 63},
    Key<UetKeys>{"dscp_control", &UetKeys::dscp_control, "acknowledgements", 0, 63},
};

constexpr std::array kRunKeys = {
    Key<Scenario>{"control", &Scenario::control, "path of the control socket"},
    Key<Scenario>{
        "capture", &Scenario::capture,
        "pcapng file for every frame, PATH[,size=64M][,files=4][,snap=BYTES]; empty: none"},
    Key<Scenario>{"stats", &Scenario::stats, "JSON file written at the end; - is standard output"},
    Key<Scenario>{"realtime", &Scenario::realtime, "run before everything else on the machine"},
    Key<Scenario>{"duration", &Scenario::duration, "end after so long; 0s: when told"},
};

struct LegKeys : LegConfig {
  std::string memif;
  std::uint64_t count = 1;
};

constexpr std::array kLegKeys = {
    Key<LegKeys>{"name", &LegKeys::name, "letters, digits, _ and .; %n is the number of the leg"},
    Key<LegKeys>{"memif", &LegKeys::memif,
                 "path of a memif socket that this leg serves; %n as above"},
    Key<LegKeys>{"port", &LegKeys::port,
                 "any other device: dpdk:<vdev or PCI address>[,key=value...]; %n as above"},
    Key<LegKeys>{"leaf", &LegKeys::leaf,
                 "its leaf switch, from 0; with count, legs take leaves in turn from there", 0,
                 kSwitchesMax},
    Key<LegKeys>{"rate", &LegKeys::rate, "of its link; [fabric] host_rate otherwise"},
    Key<LegKeys>{"mtu", &LegKeys::mtu, "IP MTU of the device; 0: its own", 0, 16128},
    Key<LegKeys>{"count", &LegKeys::count, "so many legs alike", 1, kLegsMax},
};

constexpr std::string_view kLinkHelp =
    "like the command of this name, from the beginning: rate, delay, loss, duplicate, "
    "late_duplicate, reorder, corrupt, truncate, trim, kill = true";

std::string in_quotes(std::string_view text) {
  return '"' + std::string(text) + '"';
}

/// Nothing, or what is allowed.
template <typename T>
std::optional<std::string> set(T& object, const Key<T>& key, const std::string& text) {
  const auto number_limits = [&] {
    return "a whole number from " + std::to_string(key.min) +
           (key.max == UINT64_MAX ? "" : " to " + std::to_string(key.max));
  };
  if (const auto* member = std::get_if<std::uint64_t T::*>(&key.target)) {
    const auto value = parse_size(text);
    if (!value || *value < key.min || *value > key.max) return number_limits();
    object.*(*member) = *value;
  } else if (const auto* rate = std::get_if<base::BitRate T::*>(&key.target)) {
    const auto value = parse_rate(text);
    if (!value) return "a rate, as \"250Mb/s\" or \"1Gb/s\"";
    object.*(*rate) = *value;
  } else if (const auto* duration = std::get_if<base::Duration T::*>(&key.target)) {
    const auto value = base::parse_duration(text);
    if (!value) return "a time with its unit, as \"50us\" or \"2s\"";
    object.*(*duration) = *value;
  } else if (const auto* flag = std::get_if<bool T::*>(&key.target)) {
    const auto value = parse_switch(text);
    if (!value) return "true or false";
    object.*(*flag) = *value;
  } else {
    object.*(std::get<std::string T::*>(key.target)) = text;
  }
  return std::nullopt;
}

std::string with_number(std::string text, std::size_t number) {
  const std::string digits = std::to_string(number);
  for (std::size_t at = 0; (at = text.find("%n", at)) != std::string::npos; at += digits.size())
    text.replace(at, 2, digits);
  return text;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

/// What a device spec says behind `key`; empty when it says nothing.
std::string_view spec_value(std::string_view spec, std::string_view key) {
  const std::string mark = "," + std::string(key) + "=";
  const std::size_t at = spec.find(mark);
  if (at == std::string_view::npos) return {};
  spec.remove_prefix(at + mark.size());
  return spec.substr(0, spec.find(','));
}

constexpr std::size_t kSocketPathMax = 107;  ///< of a Unix socket, in bytes

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  base::Result<Scenario, std::string> read(const std::vector<Section>& sections) {
    for (const Section& section : sections) {
      if (!error_.empty()) break;
      if (section.name.empty()) {
        if (!section.entries.empty())
          fail(section.entries.front().line,
               "keys stand below a heading: [fabric], [run], [uet], "
               "[[leg]], [[link]] or [[at]]");
      } else {
        read_section(section);
      }
    }
    if (error_.empty()) check_whole();
    if (!error_.empty()) return error_;
    std::ranges::stable_sort(scenario_.commands, {}, &TimedCommand::time);
    return std::move(scenario_);
  }

 private:
  void fail(unsigned line, const std::string& what) {
    if (error_.empty()) error_ = path_ + ":" + std::to_string(line) + ": " + what;
  }

  template <typename T, std::size_t N>
  void read_keys(const Section& section, const std::array<Key<T>, N>& keys, T& object) {
    for (const Entry& entry : section.entries) {
      const auto key = std::ranges::find(keys, entry.key, &Key<T>::name);
      if (key == keys.end()) {
        std::string known;
        for (const Key<T>& k : keys) known += (known.empty() ? "" : ", ") + std::string(k.name);
        fail(entry.line, "unknown key " + in_quotes(entry.key) + " in " + in_quotes(section.name) +
                             "; it knows " + known);
        return;
      }
      if (const auto allowed = set(object, *key, entry.text))
        fail(entry.line, entry.key + ": " + in_quotes(entry.text) + " is not " + *allowed);
    }
  }

  void read_section(const Section& section) {
    const bool is_list = section.name == "leg" || section.name == "link" || section.name == "at";
    const bool is_table =
        section.name == "fabric" || section.name == "run" || section.name == "uet";
    if (!is_list && !is_table) {
      fail(section.line, "unknown heading " + in_quotes(section.name) +
                             "; there are [fabric], [run], [uet], [[leg]], [[link]] and [[at]]");
    } else if (is_list != section.is_repeated) {
      fail(section.line,
           "write " + (is_list ? "[[" + section.name + "]]" : "[" + section.name + "]"));
    } else if (section.name == "fabric") {
      read_keys(section, kFabricKeys, scenario_);
    } else if (section.name == "run") {
      read_keys(section, kRunKeys, scenario_);
    } else if (section.name == "uet") {
      read_uet(section);
    } else if (section.name == "leg") {
      read_leg(section);
    } else if (section.name == "link") {
      read_link(section);
    } else {
      read_at(section);
    }
  }

  void read_uet(const Section& section) {
    UetKeys keys;
    read_keys(section, kUetKeys, keys);
    scenario_.rules = {static_cast<std::uint16_t>(keys.udp_port),
                       static_cast<std::uint8_t>(keys.ip_protocol)};
    const auto dscp = [](std::uint64_t v) { return static_cast<std::uint8_t>(v); };
    scenario_.dscp = {
        dscp(keys.dscp_data),    dscp(keys.dscp_trimmable),        dscp(keys.dscp_trimmable_rtx),
        dscp(keys.dscp_trimmed), dscp(keys.dscp_trimmed_last_hop), dscp(keys.dscp_control)};
  }

  void read_leg(const Section& section) {
    LegKeys keys;
    read_keys(section, kLegKeys, keys);
    if (!error_.empty()) return;
    if (keys.memif.empty() == keys.port.empty()) {
      fail(section.line, "a leg has either memif = \"<socket>\" or port = \"dpdk:...\"");
      return;
    }
    const std::string& place = keys.memif.empty() ? keys.port : keys.memif;
    if (keys.count > 1 && place.find("%n") == std::string::npos) {
      fail(section.line, "several legs need %n in " + in_quotes(place));
      return;
    }
    if (keys.count > 1 && !keys.name.empty() && keys.name.find("%n") == std::string::npos) {
      fail(section.line, "several legs need %n in name = " + in_quotes(keys.name) +
                             ": it is the number of the leg");
      return;
    }
    for (std::uint64_t i = 0; i < keys.count; ++i) {
      const std::size_t number = scenario_.legs.size();
      LegConfig leg = keys;
      leg.line = section.line;
      leg.name = with_number(keys.name.empty() ? "host%n" : keys.name, number);
      // One after the other takes the next leaf; more legs than leaves begin again at the first.
      leg.leaf = keys.leaf + i;
      leg.wraps = keys.count > 1;
      leg.port = with_number(keys.port, number);
      if (!keys.memif.empty())
        leg.port = "dpdk:net_memif" + std::to_string(number) + ",role=server,socket-abstract=no," +
                   "socket=" + with_number(keys.memif, number);
      scenario_.legs.push_back(leg);
    }
  }

  void command(base::Duration time, std::string text, unsigned line) {
    scenario_.commands.push_back({time, std::move(text), line});
  }

  void read_link(const Section& section) {
    const auto name = std::ranges::find(section.entries, "name", &Entry::key);
    if (name == section.entries.end()) {
      fail(section.line, "a link needs a name, as \"spine1\" or \"leaf0-spine1\"");
      return;
    }
    constexpr std::array<std::string_view, 9> kCommands = {"rate",      "delay",          "loss",
                                                           "duplicate", "late_duplicate", "reorder",
                                                           "corrupt",   "truncate",       "trim"};
    for (const Entry& entry : section.entries) {
      if (entry.key == "name") continue;
      if (entry.key == "kill") {
        const auto is_killed = parse_switch(entry.text);
        if (!is_killed)
          fail(entry.line, "kill: " + in_quotes(entry.text) + " is not true or false");
        else if (*is_killed)
          command({}, "kill " + name->text, entry.line);
      } else if (std::ranges::find(kCommands, entry.key) != kCommands.end()) {
        command({}, entry.key + " " + name->text + " " + entry.text, entry.line);
      } else {
        fail(entry.line,
             "unknown key " + in_quotes(entry.key) + " in \"link\"; " + std::string(kLinkHelp));
      }
    }
  }

  void read_at(const Section& section) {
    const auto time = std::ranges::find(section.entries, "time", &Entry::key);
    const auto what = std::ranges::find(section.entries, "do", &Entry::key);
    if (time == section.entries.end() || what == section.entries.end() ||
        section.entries.size() != 2) {
      fail(section.line, "an [[at]] has time = \"5s\" and do = \"<command>\"");
      return;
    }
    const auto when = base::parse_duration(time->text);
    if (!when) {
      fail(time->line,
           "time: " + in_quotes(time->text) + " is not a time with its unit, as \"5s\"");
      return;
    }
    // A list is several commands at the same time.
    for (std::size_t at = 0; at <= what->text.size();) {
      const std::size_t bar = std::min(what->text.find('|', at), what->text.size());
      command(*when, what->text.substr(at, bar - at), what->line);
      at = bar + 1;
    }
  }

  void check_whole() {
    Scenario& s = scenario_;
    if (s.legs.empty()) fail(1, "no [[leg]]: nothing can be plugged in");
    if (s.legs.size() > kLegsMax)
      fail(s.legs.back().line, "more than " + std::to_string(kLegsMax) + " legs");
    if (s.leaves > 1 && s.spines == 0)
      fail(1, "[fabric] several leaves need spines = <number of paths>");
    std::set<std::string> names;
    for (LegConfig& leg : s.legs) {
      if (!is_name(leg.name)) {
        fail(leg.line, "name: " + in_quotes(leg.name) + " is not made of letters, digits, _ and .");
      } else if (!names.insert(leg.name).second || leg.name.starts_with("leaf") ||
                 leg.name.starts_with("spine")) {
        fail(leg.line, "name: " + in_quotes(leg.name) + " is taken; each leg needs its own");
      }
      if (leg.wraps) leg.leaf %= s.leaves;
      if (leg.leaf >= s.leaves)
        fail(leg.line, "leaf: there are " + std::to_string(s.leaves) + " leaves, from 0");
    }
    check_ports();
    if (s.control.size() > kSocketPathMax) fail(1, "[run] control: " + too_long(s.control));
    if (std::string why; !s.capture.empty()) {
      net::CaptureFileConfig config{.path = {}, .interface_name = {}};
      if (!net::CaptureFileConfig::parse(s.capture, config, why)) fail(1, "[run] capture: " + why);
    }
    if (s.ecn_high != 0 && s.ecn_low > s.ecn_high) fail(1, "[fabric] ecn_low is above ecn_high");
  }

  static std::string too_long(std::string_view socket) {
    return in_quotes(socket) + " is too long for a socket; " + std::to_string(kSocketPathMax) +
           " bytes are the most";
  }

  /// What opening the devices would refuse, as far as their names tell.
  void check_ports() {
    std::map<std::string, std::string> owners;  ///< of sockets
    for (const LegConfig& leg : scenario_.legs) {
      constexpr std::string_view kDpdk = "dpdk:";
      if (!leg.port.starts_with(kDpdk) || leg.port.size() == kDpdk.size()) {
        fail(leg.line, "port: " + in_quotes(leg.port) +
                           " is no device; write dpdk:<vdev or PCI address>[,key=value...]");
        continue;
      }
      const std::string_view socket = spec_value(leg.port, "socket");
      if (socket.size() > kSocketPathMax) fail(leg.line, too_long(socket));
      if (socket.empty()) continue;
      // One socket can have several interfaces of different numbers.
      const std::string place = std::filesystem::path(socket).lexically_normal().string() + ',' +
                                std::string(spec_value(leg.port, "id"));
      const auto [owner, is_free] = owners.emplace(place, leg.name);
      if (!is_free)
        fail(leg.line, "the socket " + in_quotes(socket) + " is that of leg " + owner->second +
                           " already; each leg needs its own");
    }
  }

  const std::string& path_;
  Scenario scenario_;
  std::string error_;
};

template <typename T>
std::string_view type_of(const Key<T>& key) {
  constexpr std::array<std::string_view, 5> kTypes = {"number", "rate", "time", "true or false",
                                                      "text"};
  return kTypes[key.target.index()];
}

std::string in_largest_unit(std::uint64_t value,
                            std::initializer_list<std::pair<std::uint64_t, const char*>> units) {
  for (const auto& [size, name] : units) {
    if (value % size == 0) return std::to_string(value / size) + name;
  }
  return std::to_string(value);
}

// Values as a scenario would say them; empty where there is none.
std::string text_of(std::uint64_t number) {
  return std::to_string(number);
}
std::string text_of(base::BitRate rate) {
  if (rate.bps() == 0) return {};
  return in_largest_unit(rate.bps(), {{1'000'000'000, "Gb/s"}, {1'000'000, "Mb/s"}, {1, "b/s"}});
}
std::string text_of(base::Duration time) {
  return base::duration_text(time);
}
std::string text_of(bool flag) {
  return flag ? "true" : "false";
}
std::string text_of(const std::string& text) {
  return text;
}

}  // namespace

base::Result<Scenario, std::string> Scenario::parse(std::string_view content,
                                                    const std::string& path) {
  const auto sections = toml_file::parse(content, path);
  if (!sections) return sections.error();
  return Reader(path).read(*sections);
}

base::Result<Scenario, std::string> Scenario::read(const std::string& path) {
  const auto sections = toml_file::read(path);
  if (!sections) return sections.error();
  auto scenario = Reader(path).read(*sections);
  if (scenario) scenario->file = path;
  return scenario;
}

std::vector<ScenarioKey> scenario_keys() {
  static const Scenario kScenario;
  static const UetKeys kUet;
  static const LegKeys kLeg;
  std::vector<ScenarioKey> all;
  const auto add = [&all](std::string_view section, const auto& keys, const auto& defaults) {
    for (const auto& key : keys)
      all.push_back({section, key.name, type_of(key),
                     std::visit([&](auto member) { return text_of(defaults.*member); }, key.target),
                     key.help});
  };
  add("[fabric]", kFabricKeys, kScenario);
  add("[uet]", kUetKeys, kUet);
  add("[run]", kRunKeys, kScenario);
  add("[[leg]]", kLegKeys, kLeg);
  all.push_back(
      {"[[link]]", "name", "text", "", "a switch, a leg, \"leaf0-spine1\" or \"leaf0>spine1\""});
  all.push_back({"[[link]]", "...", "as the command", "", kLinkHelp});
  all.push_back({"[[at]]", "time", "time", "", "since the beginning"});
  all.push_back({"[[at]]", "do", "text or list", "", "commands of the control socket"});
  return all;
}

}  // namespace uet::fabric
