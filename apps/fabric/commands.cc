#include "apps/fabric/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/fabric/values.h"

namespace uet::fabric {

namespace {

constexpr std::array kHelp = {
    Commands::Help{"stats", "everything that is counted"},
    Commands::Help{"paths", "each path: state, speed, what it carried, marked, cut and lost"},
    Commands::Help{"links | legs | flows | macs | rules | clock", "one part of stats"},
    Commands::Help{"kill LINK", "what is sent there is lost from now on, and nobody is told"},
    Commands::Help{"heal LINK", "undoes kill"},
    Commands::Help{"rate LINK VALUE", "a fraction (0.1, 10%) or a rate (100Mb/s)"},
    Commands::Help{"delay LINK TIME", "one way"},
    Commands::Help{"pause LINK TIME", "nothing is sent for so long"},
    Commands::Help{"loss LINK P",
                   "also duplicate, late_duplicate, reorder, corrupt, truncate, "
                   "trim: the probability that it happens to a packet"},
    Commands::Help{"burst LINK ENTER LEAVE [LOSS]", "losses in bursts, as Gilbert and Elliott"},
    Commands::Help{"perfect LINK", "no faults any more"},
    Commands::Help{"trimming on|off", "in all switches"},
    Commands::Help{"marking on|off", "in all switches"},
    Commands::Help{"match KEY=VALUE... do=ACTION",
                   "singles packets out: from=LEG to=LEG type=rud_req psn=N pdc=N entropy=N skip=N "
                   "count=N (0: all) do=drop|trim|corrupt|duplicate|mark|delay:TIME"},
    Commands::Help{"unmatch ID|all", "takes a rule away"},
    Commands::Help{"capture FILE | capture off", "pcapng of what comes and leaves"},
    Commands::Help{"help", "this list"},
    Commands::Help{"quit", "ends the fabric"},
};

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

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpaces = " \t\r";
  for (;;) {
    const std::size_t start = text.find_first_not_of(kSpaces);
    if (start == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find_first_of(kSpaces, start), text.size());
    words.push_back(text.substr(start, end - start));
    text.remove_prefix(end);
  }
}

/// The probability in a profile that a command sets.
double sim::FaultProfile::*member_of(std::string_view what) {
  using P = sim::FaultProfile;
  if (what == "loss") return &P::loss;
  if (what == "duplicate") return &P::duplicate;
  if (what == "late_duplicate") return &P::late_duplicate;
  if (what == "reorder") return &P::reorder;
  if (what == "corrupt") return &P::corrupt;
  if (what == "truncate") return &P::truncate;
  if (what == "trim") return &P::trim;
  return nullptr;
}

/// A part of stats, or null.
Json (*report_of(std::string_view what))(Emulator&) {
  if (what == "paths") return paths_report;
  if (what == "links") return links_report;
  if (what == "legs") return legs_report;
  if (what == "flows") return flows_report;
  if (what == "macs") return macs_report;
  if (what == "rules") return rules_report;
  return nullptr;
}

bool changes_links(std::string_view what) {
  constexpr std::array<std::string_view, 7> kOthers = {"kill",  "heal",  "rate",   "delay",
                                                       "pause", "burst", "perfect"};
  return member_of(what) != nullptr || std::ranges::find(kOthers, what) != kOthers.end();
}

}  // namespace

std::vector<Commands::Help> Commands::help() {
  return {kHelp.begin(), kHelp.end()};
}

Json Commands::run(std::string_view line) {
  const Words words = words_of(line);
  if (words.empty()) return failed("empty command; help lists all");
  const std::string_view what = words[0];
  if (auto* report = report_of(what)) return with(what, report(emulator_));
  if (changes_links(what)) return change_links(words);
  if (what == "match") {
    const std::size_t rest = static_cast<std::size_t>(what.data() - line.data()) + what.size();
    return match(line.substr(rest));
  }
  if (what == "unmatch") return unmatch(words);
  if (what == "trimming" || what == "marking") return switch_on_off(words);
  if (what == "capture") return capture(words);
  if (what == "clock") return with("clock", hooks_.clock ? hooks_.clock() : Json());
  if (what == "stats") {
    Json reply = done();
    reply.update(stats_report(emulator_));
    if (hooks_.clock) reply["clock"] = hooks_.clock();
    return reply;
  }
  if (what == "help") {
    Json list = Json::array();
    for (const Help& h : kHelp) list.push_back({{"usage", h.usage}, {"meaning", h.meaning}});
    return with("help", std::move(list));
  }
  if (what == "quit") {
    if (hooks_.quit) hooks_.quit();
    return done();
  }
  return failed(fmt::format("unknown command \"{}\"; help lists all", what));
}

Json Commands::change_links(const Words& words) {
  const std::string_view what = words[0];
  if (words.size() < 2) return failed(fmt::format("{}: which link? \"all\" means all", what));
  const Links links = emulator_.net().find(words[1]);
  if (links.empty()) {
    return failed(fmt::format(
        "{}: there is no link \"{}\"; write a switch (spine0, leaf1), a leg, leaf0-spine1, "
        "leaf0>spine1 or all",
        what, words[1]));
  }
  const auto each = [&links](auto&& change) {
    for (sim::Link* link : links) change(*link);
    return done();
  };
  if (what == "kill" || what == "heal")
    return each([&](sim::Link& l) { l.set_up(what == "heal"); });
  if (what == "perfect") return each([](sim::Link& l) { l.set_faults({}); });
  if (words.size() < 3) return failed(fmt::format("{} {}: a value is missing", what, words[1]));
  if (what == "rate") {
    const auto rate = parse_rate(words[2]);
    const auto factor =
        words[2].ends_with('%') ? parse_probability(words[2]) : parse_factor(words[2]);
    constexpr double kMost = 1000;
    if (!rate && (!factor || *factor <= 0 || *factor > kMost))
      return failed(fmt::format("rate: \"{}\" is neither a fraction above 0 nor a rate as 100Mb/s",
                                words[2]));
    return each([&](sim::Link& l) {
      const auto full = static_cast<double>(l.config().rate.bps());
      emulator_.net().set_speed(l, rate ? static_cast<double>(rate->bps()) / full : *factor);
    });
  }
  if (what == "delay" || what == "pause") {
    const auto time = parse_duration(words[2]);
    if (!time) return failed(fmt::format("{}: \"{}\" is no time, as 5ms", what, words[2]));
    const auto span = sim::SimSpan::from(*time);
    return each([&](sim::Link& l) {
      what == "delay" ? l.set_delay(span) : l.pause_until(emulator_.now() + span);
    });
  }
  return change_fault(what, links, words);
}

Json Commands::change_fault(std::string_view what, const Links& links, const Words& words) {
  std::vector<double> values;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto value = parse_probability(words[i]);
    if (!value)
      return failed(fmt::format("{}: \"{}\" is no probability, as 0.01 or 1%", what, words[i]));
    values.push_back(*value);
  }
  const bool is_burst = what == "burst";
  if (is_burst ? values.size() < 2 || values.size() > 3 : values.size() != 1)
    return failed(is_burst ? "burst: write burst LINK ENTER LEAVE [LOSS]"
                           : fmt::format("{}: one probability is needed", what));
  for (sim::Link* link : links) {
    sim::FaultProfile profile = link->fault_profile();
    if (is_burst) {
      profile.burst_enter = values[0];
      profile.burst_leave = values[1];
      profile.burst_loss = values.size() == 3 ? values[2] : 1;
    } else {
      profile.*member_of(what) = values[0];
    }
    link->set_faults(profile);
  }
  return done();
}

Json Commands::match(std::string_view rest) {
  auto rule = MatchRules::parse(rest, emulator_.leg_names());
  if (!rule) return failed("match: " + rule.error());
  const auto id = emulator_.rules().add(std::move(*rule));
  if (!id) return failed(fmt::format("match: there are {} rules already", MatchRules::kMax));
  return with("id", *id);
}

Json Commands::unmatch(const Words& words) {
  if (words.size() == 2 && words[1] == "all") {
    emulator_.rules().clear();
    return done();
  }
  const auto id = words.size() == 2 ? parse_number(words[1]) : std::nullopt;
  if (!id || *id > UINT32_MAX || !emulator_.rules().remove(static_cast<std::uint32_t>(*id)))
    return failed("unmatch: write the number of a rule, or all");
  return done();
}

Json Commands::switch_on_off(const Words& words) {
  const auto on = words.size() == 2 ? parse_switch(words[1]) : std::nullopt;
  if (!on) return failed(fmt::format("{}: write on or off", words[0]));
  if (words[0] == "trimming")
    emulator_.net().set_trimming(*on);
  else
    emulator_.net().set_marking(*on);
  return done();
}

Json Commands::capture(const Words& words) {
  if (words.size() != 2) return failed("capture: write a file, or off");
  if (!hooks_.capture) return failed("capture: not here");
  const std::string problem = hooks_.capture(words[1] == "off" ? "" : std::string(words[1]));
  return problem.empty() ? done() : failed("capture: " + problem);
}

}  // namespace uet::fabric
