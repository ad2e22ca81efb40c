/// uet-stat: the endpoints of this user on this host, while they run.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "apps/program.h"
#include "apps/stat/explanations.h"
#include "apps/stat/view.h"
#include "lib/base/version.h"
#include "lib/ports/live_socket.h"

namespace uet::stat {
namespace {

using Json = nlohmann::json;

constexpr int kPatienceMs = 2000;
constexpr std::size_t kAll = 65536;

struct Settings {
  std::optional<long> pid;
  bool json = false, prometheus = false, events = false, all = false;
  std::optional<double> watch;
  std::uint64_t count = 0;             ///< of watch; 0: for ever
  std::optional<std::string> explain;  ///< a name of a drop or event; empty: all
  ViewOptions view;
};

void say_silent(const ports::LiveAnswer& answer) {
  fmt::print(stderr, "uet-stat: {}: {}\n", answer.path,
             answer.error.empty() ? "no answer" : answer.error);
}

struct Answers {
  std::vector<Json> processes;
  bool is_one_silent = false;  ///< of those that were asked; told on standard error
};

Answers ask(const Settings& s) {
  Answers answers;
  for (const ports::LiveAnswer& answer : ports::ask_live_processes(
           s.all ? fmt::format("stat {}", kAll) : "stat", kPatienceMs, s.pid)) {
    Json process = Json::parse(answer.text, nullptr, false);
    if (process.is_object()) {
      answers.processes.push_back(std::move(process));
    } else {
      answers.is_one_silent = true;
      say_silent(answer);
    }
  }
  return answers;
}

int say_none(const Settings& s) {
  const std::string folder = ports::live_folder(false);
  fmt::print(
      stderr,
      "uet-stat: no live endpoint{} of this user{}. It is seen by the user of its program, with "
      "the same XDG_RUNTIME_DIR, in the same container, and while the program runs (of the C++ "
      "library: while it polls)\n",
      s.pid ? fmt::format(" in process {}", *s.pid) : "", folder.empty() ? "" : " in " + folder);
  return 1;
}

int show_explanations(const std::string& name) {
  const std::vector<std::string> lines = explain(name);
  for (const std::string& line : lines) fmt::print("{}\n", line);
  if (!lines.empty()) return 0;
  fmt::print(stderr,
             "uet-stat: '{}' is neither a drop nor an event; --explain without a name lists them\n",
             name);
  return 2;
}

int show_events(const Settings& s) {
  bool any = false, is_one_silent = false;
  for (const ports::LiveAnswer& answer : ports::ask_live_processes("events", kPatienceMs, s.pid)) {
    fmt::print("{}", answer.text);
    any = any || !answer.text.empty();
    if (!answer.text.empty() && answer.error.empty()) continue;
    is_one_silent = true;
    say_silent(answer);
  }
  if (any) return 0;
  return is_one_silent ? 1 : say_none(s);
}

int show_once(const Settings& s) {
  const auto [processes, is_one_silent] = ask(s);
  if (s.json)
    fmt::print("{}\n", Json(processes).dump());
  else if (s.prometheus)
    fmt::print("{}", to_prometheus(processes));
  else
    for (const Json& process : processes) fmt::print("{}", to_text(process, {}, s.view));
  if (!processes.empty()) return 0;
  return is_one_silent ? 1 : say_none(s);
}

int watch(const Settings& s) {
  std::map<std::string, Json> before;
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  for (std::uint64_t turn = 0; s.count == 0 || turn < s.count; ++turn) {
    if (turn > 0) std::this_thread::sleep_for(std::chrono::duration<double>(*s.watch));
    std::map<std::string, Json> now;
    std::string text = is_terminal ? "\033[H\033[2J" : "";
    for (Json& process : ask(s).processes) {
      const std::string pid = process.value("pid", Json()).dump();
      if (s.json)
        text += process.dump() + '\n';
      else
        text += to_text(process, before[pid], s.view);
      now[pid] = std::move(process);
    }
    if (now.empty() && !s.json) text += "no live endpoint of this user\n";
    fmt::print("{}{}", text, s.json ? "" : "\n");
    std::fflush(stdout);
    before = std::move(now);
  }
  return 0;
}

int run(int argc, char** argv) {
  Settings s;
  CLI::App app("The UET endpoints of this user on this host, while they run.", "uet-stat");
  app.set_version_flag("--version", std::string(base::kVersion));
  app.add_option("-p,--pid", s.pid, "only this process");
  app.add_flag("--paths", s.view.paths, "a line for each path");
  app.add_flag("!--no-pdcs", s.view.pdcs, "no line for each PDC");
  app.add_flag("--all", s.all, "every PDC and peer, not only 256 of an endpoint");
  auto* const json =
      app.add_flag("--json", s.json, "one JSON array; with --watch one object a line");
  auto* const prometheus =
      app.add_flag("--prometheus", s.prometheus, "metrics in the text format of Prometheus");
  auto* const watch_option =
      app.add_option("-w,--watch", s.watch, "again every so many seconds (1), with rates")
          ->expected(0, 1)
          ->default_str("1")
          ->check(CLI::Range(0.05, 86400.0));
  app.add_option("-c,--count", s.count, "of --watch: end after so many times")->needs(watch_option);
  auto* const events = app.add_flag(
      "--events", s.events,
      "the last events of each endpoint (its flight recorder), one JSON object a line");
  auto* const explain =
      app.add_option("--explain", s.explain, "what a drop or an event means and what to do; all")
          ->expected(0, 1)
          ->default_str("");
  for (CLI::Option* other : {json, prometheus, watch_option, events}) explain->excludes(other);
  prometheus->excludes(json)->excludes(watch_option)->excludes(events);
  events->excludes(watch_option)->excludes(json);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (watch_option->count() > 0 && !s.watch) s.watch = 1;
  if (explain->count() > 0) return show_explanations(s.explain.value_or(""));
  if (s.events) return show_events(s);
  return s.watch ? watch(s) : show_once(s);
}

}  // namespace
}  // namespace uet::stat

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-stat", [&] { return uet::stat::run(argc, argv); });
}
