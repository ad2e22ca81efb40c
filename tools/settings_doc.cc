/// Fills the list of settings into a manual page: copies standard input to standard output and
/// replaces the lines @VARIABLES@ (FI_UET_ names), @KEYS@ (names in the file), @PARAMETERS@ (of FI_UET_PDS), @PROFILES@, @MEMIF_KEYS@, @DROPS@ and @EVENTS@.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <string>

#include "apps/stat/explanations.h"
#include "fep/settings/profiles.h"
#include "fep/settings/settings.h"
#include "lib/dpdk/memif_keys.h"
#include "pds/parameters.h"

namespace {

/// Backslashes and leading dots mean something to troff.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

void print_settings(bool as_variables) {
  std::string_view group;
  for (const uet::fep::Setting& setting : uet::fep::settings()) {
    if (!as_variables && setting.key == "CONFIG") continue;
    if (setting.group != group) fmt::print(".SS {}\n", setting.group);
    group = setting.group;
    const std::string name =
        as_variables ? "FI_UET_" + std::string(setting.key) : lower(setting.key);
    fmt::print(".TP\n.B {}\n{}\n", name, escaped(uet::fep::describe(setting)));
  }
}

void print_parameters() {
  using uet::pds::Parameter;
  const uet::pds::PdsConfig defaults =
      uet::fep::Settings::default_config(
          {.address = uet::net::FabricAddress::from_v4(1), .ip_mtu = 9000})
          .pds;
  for (const Parameter& p : uet::pds::parameters()) {
    const auto text = [&](std::int64_t value) { return uet::pds::value_text(p.unit, value); };
    const bool has_unit = p.unit == Parameter::Unit::kBytes || p.unit == Parameter::Unit::kPackets;
    fmt::print(".TP\n.B {}\n{} ({} to {}{}{}; default: {})\n", p.name, escaped(p.help), text(p.min),
               text(p.max),
               !has_unit                           ? ""
               : p.unit == Parameter::Unit::kBytes ? " bytes"
                                                   : " packets",
               p.step == 1 ? "" : fmt::format(", a multiple of {}", p.step), text(p.get(defaults)));
  }
}

void print_profiles() {
  for (const uet::fep::Profile& profile : uet::fep::profiles()) {
    fmt::print(".TP\n.B profile:{}\n{}:\n", profile.name, escaped(profile.help));
    const char* separator = "";
    for (const auto& [key, text] : profile.entries) {
      fmt::print("{}{} = {}", separator, key, escaped(text));
      separator = ", ";
    }
    fmt::print(".\n");
  }
}

void print_memif_keys() {
  for (const uet::dpdk::MemifKey& key : uet::dpdk::kMemifKeys)
    fmt::print(".TP\n.B {}={}\n{}\n", escaped(key.name), escaped(key.values), escaped(key.help));
}

void print_drops() {
  for (std::size_t i = 0; i < uet::base::kDropReasonCount; ++i) {
    const auto reason = static_cast<uet::base::DropReason>(i);
    const uet::stat::DropAdvice advice = uet::stat::advice_on(reason);
    fmt::print(".TP\n.B {}\n{} ({}). {}\n", escaped(name_of(reason)), escaped(text_of(reason)),
               name_of(advice.concern), escaped(advice.advice));
  }
}

void print_events() {
  for (std::size_t i = 0; i < uet::base::kEventCount; ++i) {
    const auto event = static_cast<uet::base::EventId>(i);
    fmt::print(".TP\n.B {}\n{}\n", escaped(describe(event).name),
               escaped(uet::stat::meaning_of(event)));
  }
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "@VARIABLES@" || line == "@KEYS@")
      print_settings(line == "@VARIABLES@");
    else if (line == "@PARAMETERS@")
      print_parameters();
    else if (line == "@PROFILES@")
      print_profiles();
    else if (line == "@MEMIF_KEYS@")
      print_memif_keys();
    else if (line == "@DROPS@")
      print_drops();
    else if (line == "@EVENTS@")
      print_events();
    else
      fmt::print("{}\n", line);
  }
}
