#include "apps/fabric/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <span>

#include "apps/fabric/values.h"
#include "apps/fabric/words.h"
#include "lib/base/quantity.h"
#include "lib/base/result.h"

namespace uet::fabric {

namespace {

Json done() {
  return {{"ok", true}};
}

Json failed(std::string error) {
  return {{"ok", false}, {"error", std::move(error)}};
}

Json with(std::string_view name, Json value) {
  Json reply = done();
  reply[std::string(name)] = std::move(value);
  return reply;
}

/// What a command does to each of its links, or why it cannot be understood.
using Change = std::function<void(Emulator&, sim::Link&)>;
using ChangeOr = base::Result<Change, std::string>;

ChangeOr set_up(bool up) {
  return Change([up](Emulator&, sim::Link& l) { l.set_up(up); });
}

ChangeOr rate_change(std::string_view text) {
  const auto rate = parse_rate(text);
  const auto factor = text.ends_with('%') ? parse_probability(text) : parse_factor(text);
  if (!rate && (!factor || *factor <= 0 || *factor > 1))
    return fmt::format(
        "\"{}\" is neither a fraction above 0 and up to 1, as 0.1 or 10%, nor a rate as 100Mb/s",
        text);
  return Change([rate, factor](Emulator& emulator, sim::Link& l) {
    const auto full = static_cast<double>(l.config().rate.bps());
    emulator.net().set_speed(l, rate ? static_cast<double>(rate->bps()) / full : *factor);
  });
}

ChangeOr time_change(std::string_view text, void (*change)(Emulator&, sim::Link&, sim::SimSpan)) {
  const auto time = base::parse_duration(text);
  if (!time) return fmt::format("\"{}\" is no time, as 5ms", text);
  return Change([span = sim::SimSpan::from(*time), change](Emulator& emulator, sim::Link& l) {
    change(emulator, l, span);
  });
}

/// Sets as many of `members` as there are texts; `required` of them there must be.
ChangeOr fault_change(std::span<const std::string_view> texts,
                      std::vector<double sim::FaultProfile::*> members, std::size_t required,
                      std::string_view usage) {
  if (texts.size() < required || texts.size() > members.size())
    return fmt::format("write {}", usage);
  std::vector<double> values;
  for (const std::string_view text : texts) {
    const auto value = parse_probability(text);
    if (!value) return fmt::format("\"{}\" is no probability, as 0.01 or 1%", text);
    values.push_back(*value);
  }
  return Change(
      [members = std::move(members), values = std::move(values)](Emulator&, sim::Link& l) {
        sim::FaultProfile profile = l.fault_profile();
        for (std::size_t i = 0; i < members.size(); ++i)
          profile.*members[i] = i < values.size() ? values[i] : sim::FaultProfile{}.*members[i];
        l.set_faults(profile);
      });
}

/// A command that changes links: `what LINK VALUE...`, or `what LINK...` where there is no value.
struct LinkCommand {
  std::string_view name;
  Commands::Help help;  ///< empty: another entry's speaks for it too
  std::size_t min_values, max_values;
  ChangeOr (*parse)(std::span<const std::string_view> values);
};

template <double sim::FaultProfile::*kMember>
ChangeOr one_fault(std::span<const std::string_view> values) {
  return fault_change(values, {kMember}, 1, "one probability behind the link");
}

using Values = std::span<const std::string_view>;
using P = sim::FaultProfile;
constexpr Commands::Help kAsAbove{};
constexpr std::array kLinkCommands = {
    LinkCommand{
        "kill",
        {"kill LINK...", "what is on them, and what is sent there from now on, is lost silently"},
        0,
        0,
        [](Values) { return set_up(false); }},
    LinkCommand{"heal", {"heal LINK...", "undoes kill"}, 0, 0, [](Values) { return set_up(true); }},
    LinkCommand{"rate",
                {"rate LINK VALUE", "a fraction (0.1, 10%) or a rate (100Mb/s)"},
                1,
                1,
                [](Values v) { return rate_change(v[0]); }},
    LinkCommand{"delay",
                {"delay LINK TIME", "one way"},
                1,
                1,
                [](Values v) {
                  return time_change(
                      v[0], [](Emulator&, sim::Link& l, sim::SimSpan span) { l.set_delay(span); });
                }},
    LinkCommand{"pause",
                {"pause LINK TIME", "nothing is sent for so long"},
                1,
                1,
                [](Values v) {
                  return time_change(v[0], [](Emulator& emulator, sim::Link& l, sim::SimSpan span) {
                    l.pause_until(emulator.now() + span);
                  });
                }},
    LinkCommand{"loss",
                {"loss LINK P",
                 "also duplicate, late_duplicate, reorder, corrupt, truncate, "
                 "trim: the probability that it happens to a packet"},
                1,
                1,
                one_fault<&P::loss>},
    LinkCommand{"duplicate", kAsAbove, 1, 1, one_fault<&P::duplicate>},
    LinkCommand{"late_duplicate", kAsAbove, 1, 1, one_fault<&P::late_duplicate>},
    LinkCommand{"reorder", kAsAbove, 1, 1, one_fault<&P::reorder>},
    LinkCommand{"corrupt", kAsAbove, 1, 1, one_fault<&P::corrupt>},
    LinkCommand{"truncate", kAsAbove, 1, 1, one_fault<&P::truncate>},
    LinkCommand{"trim", kAsAbove, 1, 1, one_fault<&P::trim>},
    LinkCommand{"burst",
                {"burst LINK ENTER LEAVE [LOSS]", "losses in bursts, as Gilbert and Elliott"},
                1,
                3,
                [](Values v) {
                  return fault_change(v, {&P::burst_enter, &P::burst_leave, &P::burst_loss}, 2,
                                      "burst LINK ENTER LEAVE [LOSS]");
                }},
    LinkCommand{"perfect",
                {"perfect LINK...", "no faults any more"},
                0,
                0,
                [](Values) -> ChangeOr {
                  return Change([](Emulator&, sim::Link& l) { l.set_faults({}); });
                }},
};

/// A part of stats.
struct Report {
  std::string_view name;
  Json (*make)(Emulator&);
};
constexpr std::array kReports = {
    Report{"paths", paths_report}, Report{"links", links_report}, Report{"legs", legs_report},
    Report{"flows", flows_report}, Report{"macs", macs_report},   Report{"rules", rules_report},
};

template <typename Table>
auto* find_in(const Table& table, std::string_view name) {
  const auto at =
      std::ranges::find_if(table, [name](const auto& entry) { return entry.name == name; });
  return at == table.end() ? nullptr : &*at;
}

}  // namespace

/// Every other command.
struct Commands::Entry {
  std::string_view name;
  Help help;
  Json (Commands::*run)(const Words& words, std::string_view rest);
  bool takes_words = true;
};

namespace {
constexpr Commands::Help kPathsHelp{
    "paths", "each path: state, speed, what it carried, marked, cut and lost"};
constexpr Commands::Help kPartsHelp{"links | legs | flows | macs | rules | clock",
                                    "one part of stats"};
}  // namespace

const std::vector<Commands::Entry>& Commands::entries() {
  static const std::vector<Entry> kEntries = {
      {"stats", {"stats", "everything that is counted"}, &Commands::stats, false},
      {"clock", {}, &Commands::clock, false},
      {"trimming", {"trimming on|off", "in all switches"}, &Commands::switch_on_off},
      {"marking", {"marking on|off", "in all switches"}, &Commands::switch_on_off},
      {"match",
       {"match KEY=VALUE... do=ACTION",
        "singles packets out: from=LEG to=LEG type=rud_req psn=N pdc=N entropy=N skip=N "
        "count=N (0: all) do=drop|trim|corrupt|duplicate|mark|delay:TIME"},
       &Commands::match},
      {"unmatch", {"unmatch ID|all", "takes a rule away"}, &Commands::unmatch},
      {"route",
       {"route LEG SOURCE DESTINATION ENTROPY...",
        "which spine packets of UET over UDP take from this leg to another leaf, by their IP "
        "addresses "
        "and entropy values"},
       &Commands::route},
      {"capture",
       {"capture FILE | capture off", "pcapng of what comes and leaves"},
       &Commands::capture},
      {"help", {"help", "this list"}, &Commands::list, false},
      {"quit", {"quit", "ends the fabric"}, &Commands::quit, false},
  };
  return kEntries;
}

/// What is counted, what changes links, everything else.
std::vector<Commands::Help> Commands::help() {
  std::vector<Help> all;
  const auto add = [&all](const Help& help) {
    if (!help.usage.empty()) all.push_back(help);
  };
  add(entries().front().help);
  add(kPathsHelp);
  add(kPartsHelp);
  for (const LinkCommand& command : kLinkCommands) add(command.help);
  for (std::size_t i = 1; i < entries().size(); ++i) add(entries()[i].help);
  return all;
}

Json Commands::run(std::string_view line) {
  const Words words = words_of(line);
  if (words.empty()) return failed("empty command; help lists all");
  const std::string_view what = words[0];
  const auto takes_none = [&] {
    return failed(
        fmt::format("{}: \"{}\" is a word too many; write {} alone", what, words[1], what));
  };
  if (const auto* report = find_in(kReports, what))
    return words.size() > 1 ? takes_none() : with(what, report->make(emulator_));
  if (find_in(kLinkCommands, what) != nullptr) return change_links(words);
  if (const Entry* entry = find_in(entries(), what)) {
    if (!entry->takes_words && words.size() > 1) return takes_none();
    const std::size_t rest = static_cast<std::size_t>(what.data() - line.data()) + what.size();
    return (this->*entry->run)(words, line.substr(rest));
  }
  return failed(fmt::format("unknown command \"{}\"; help lists all", what));
}

Json Commands::change_links(const Words& words) {
  const std::string_view what = words[0];
  if (words.size() < 2) return failed(fmt::format("{}: which link? \"all\" means all", what));
  const LinkCommand& command = *find_in(kLinkCommands, what);
  const std::size_t names = command.max_values == 0 ? words.size() - 1 : 1;
  std::vector<sim::Link*> links;
  for (const std::string_view name : Values(words).subspan(1, names)) {
    const std::vector<sim::Link*> found = emulator_.net().find(name);
    if (found.empty()) {
      return failed(fmt::format(
          "{}: there is no link \"{}\"; write a switch (spine0, leaf1), a leg, leaf0-spine1, "
          "leaf0>spine1 or all",
          what, name));
    }
    links.insert(links.end(), found.begin(), found.end());
  }
  const Values values = Values(words).subspan(1 + names);
  if (values.size() < command.min_values)
    return failed(fmt::format("{} {}: a value is missing", what, words[1]));
  if (values.size() > command.max_values)
    return failed(fmt::format("{} {}: \"{}\" is a word too many", what, words[1],
                              values[command.max_values]));
  const ChangeOr change = command.parse(values);
  if (!change) return failed(fmt::format("{}: {}", what, change.error()));
  for (sim::Link* link : links) (*change)(emulator_, *link);
  return done();
}

Json Commands::stats(const Words&, std::string_view) {
  Json reply = done();
  reply.update(stats_report(emulator_));
  if (hooks_.clock) reply["clock"] = hooks_.clock();
  return reply;
}

Json Commands::clock(const Words&, std::string_view) {
  return with("clock", hooks_.clock ? hooks_.clock() : Json());
}

Json Commands::list(const Words&, std::string_view) {
  Json list = Json::array();
  for (const Help& h : help()) list.push_back({{"usage", h.usage}, {"meaning", h.meaning}});
  return with("help", std::move(list));
}

Json Commands::quit(const Words&, std::string_view) {
  if (hooks_.quit) hooks_.quit();
  return done();
}

Json Commands::match(const Words&, std::string_view rest) {
  auto rule = MatchRules::parse(rest, emulator_.leg_names());
  if (!rule) return failed("match: " + rule.error());
  const auto id = emulator_.rules().add(std::move(*rule));
  if (!id) return failed(fmt::format("match: there are {} rules already", MatchRules::kMax));
  return with("id", *id);
}

Json Commands::unmatch(const Words& words, std::string_view) {
  if (words.size() == 2 && words[1] == "all") {
    emulator_.rules().clear();
    return done();
  }
  const auto id = words.size() == 2 ? parse_number(words[1]) : std::nullopt;
  if (!id || *id > UINT32_MAX || !emulator_.rules().remove(static_cast<std::uint32_t>(*id)))
    return failed("unmatch: write the number of a rule, or all");
  return done();
}

Json Commands::switch_on_off(const Words& words, std::string_view) {
  const auto on = words.size() == 2 ? parse_switch(words[1]) : std::nullopt;
  if (!on) return failed(fmt::format("{}: write on or off", words[0]));
  if (words[0] == "trimming")
    emulator_.net().set_trimming(*on);
  else
    emulator_.net().set_marking(*on);
  return done();
}

/// The fabric learns legs by MAC and reads IP addresses as hash input only, so both have to be said.
Json Commands::route(const Words& words, std::string_view) {
  if (emulator_.net().spines() == 0) return failed("route: with one leaf there are no spines");
  if (words.size() < 5) return failed("route: write route LEG SOURCE DESTINATION ENTROPY...");
  const auto& legs = emulator_.leg_names();
  const auto leg = std::ranges::find(legs, words[1]);
  if (leg == legs.end()) return failed(fmt::format("route: there is no leg \"{}\"", words[1]));
  const auto source = net::FabricAddress::parse(std::string(words[2]));
  const auto destination = net::FabricAddress::parse(std::string(words[3]));
  if (!source || !destination || source->is_v4() != destination->is_v4())
    return failed("route: SOURCE and DESTINATION are IP addresses of one family");
  const std::uint64_t flow = flow_between(*source, *destination, emulator_.scenario().rules);
  const auto index = static_cast<std::size_t>(leg - legs.begin());
  Json list = Json::array();
  for (const std::string_view word : Values(words).subspan(4)) {
    const auto entropy = parse_number(word);
    if (!entropy || *entropy > UINT16_MAX)
      return failed(fmt::format("route: \"{}\" is no entropy value from 0 to 65535", word));
    const std::size_t spine =
        emulator_.net().spine_of(index, flow, static_cast<std::uint16_t>(*entropy));
    list.push_back({{"entropy", *entropy}, {"path", emulator_.net().spine(spine).name()}});
  }
  return with("route", std::move(list));
}

Json Commands::capture(const Words& words, std::string_view) {
  if (words.size() != 2) return failed("capture: write a file, or off");
  if (!hooks_.capture) return failed("capture: not here");
  const std::string problem = hooks_.capture(words[1] == "off" ? "" : std::string(words[1]));
  return problem.empty() ? done() : failed("capture: " + problem);
}

}  // namespace uet::fabric
