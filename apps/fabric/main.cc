/// uet-fabric: a leaf-spine fabric between processes, in real time.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/command_word.h"
#include "apps/fabric/control_socket.h"
#include "apps/fabric/run.h"
#include "apps/fabric/show.h"
#include "apps/program.h"
#include "lib/base/quantity.h"
#include "lib/base/version.h"

namespace uet::fabric {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

struct Options {
  std::string scenario, control, capture, stats, duration;
  bool realtime = false;
  std::string socket;
  std::vector<std::string> words;
  bool json = false;
};

/// The scenario with what the command line says instead.
base::Result<Scenario, std::string> load(const Options& options) {
  auto scenario = Scenario::read(options.scenario);
  if (!scenario) return scenario.error();
  if (!options.control.empty()) scenario->control = options.control;
  if (!options.capture.empty()) scenario->capture = options.capture;
  if (!options.stats.empty()) scenario->stats = options.stats;
  if (options.realtime) scenario->realtime = true;
  if (!options.duration.empty()) {
    const auto duration = base::parse_duration(options.duration);
    if (!duration) return "--duration: \"" + options.duration + "\" is no time, as 10s";
    scenario->duration = *duration;
  }
  if (const std::string problem = check_commands(*scenario); !problem.empty())
    return options.scenario + ":" + problem;
  if (const std::string problem = check_outputs(*scenario); !problem.empty()) return problem;
  return scenario;
}

int start(const Options& options, bool only_check) {
  const auto scenario = load(options);
  if (!scenario) {
    fmt::print(stderr, "uet-fabric: {}\n", scenario.error());
    return kUsage;
  }
  if (!only_check) return run(*scenario);
  fmt::print("{}: {} legs, {} leaves, {} spines, {} commands\n", options.scenario,
             scenario->legs.size(), scenario->leaves, scenario->spines, scenario->commands.size());
  return kDone;
}

int control(const Options& options) {
  std::string line, reply;
  for (const std::string& word : options.words) line += (line.empty() ? "" : " ") + word;
  constexpr int kTimeoutMs = 10'000;
  if (!ask(options.socket, line, kTimeoutMs, reply)) {
    fmt::print(stderr, "uet-fabric: {}\n", reply);
    return kFailed;
  }
  const Json parsed = Json::parse(reply, nullptr, false);
  const bool ok = parsed.is_object() && parsed.value("ok", false);
  if (options.json)
    fmt::print("{}\n", reply);
  else
    fmt::print(ok ? stdout : stderr, "{}", to_text(parsed.is_object() ? parsed : Json::object()));
  return ok ? kDone : kFailed;
}

int keys() {
  fmt::print("{:<10} {:<22} {:<14} {:<9} {}\n", "section", "key", "value", "default", "meaning");
  for (const ScenarioKey& key : scenario_keys()) {
    fmt::print("{:<10} {:<22} {:<14} {:<9} {}\n", key.section, key.key, key.type,
               key.fallback.empty() ? "-" : key.fallback, key.help);
  }
  fmt::print(
      "\nrate: \"250Mb/s\", \"1.5Gb/s\"; of a [[link]] also \"10%\" and 0.1. time: \"50us\", "
      "\"2s\". "
      "number of bytes: 65536, \"64KiB\". Chances: 0.01, \"1%\"\n");
  return kDone;
}

int main_of(int argc, char** argv) {
  CLI::App app("A leaf-spine fabric between processes, in real time", "uet-fabric");
  app.set_version_flag("--version", std::string(base::kVersion));
  app.require_subcommand(1);
  Options o;
  CLI::App* run = app.add_subcommand("run", "be the fabric of a scenario, until told to quit");
  run->add_option("scenario", o.scenario, "TOML file")->required();
  run->add_option("--control", o.control, "path of the control socket");
  run->add_option("--capture", o.capture, "pcapng file for every frame");
  run->add_option("--stats", o.stats, "JSON file at the end; - is standard output");
  run->add_option("--duration", o.duration, "end after so long, as 10s");
  run->add_flag("--realtime", o.realtime, "run before everything else on the machine");
  CLI::App* check = app.add_subcommand("check", "read a scenario and say what is wrong with it");
  check->add_option("scenario", o.scenario, "TOML file")->required();
  CLI::App* ctl = app.add_subcommand("ctl", "give a running fabric a command; help lists them");
  ctl->add_option("socket", o.socket, "its control socket")->required();
  ctl->add_option("command", o.words, "command and its words")->required();
  ctl->add_flag("--json", o.json, "the reply as it is");
  ctl->positionals_at_end();
  CLI::App* list = app.add_subcommand("keys", "what a scenario may say");
  if (const std::string wrong = apps::wrong_command(app, argc, argv); !wrong.empty()) {
    fmt::print(stderr, "uet-fabric: {}\n", wrong);
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  if (ctl->parsed()) return control(o);
  if (list->parsed()) return keys();
  return start(o, check->parsed());
}

}  // namespace
}  // namespace uet::fabric

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-fabric", [&] { return uet::fabric::main_of(argc, argv); });
}
