/// uet-sim: the UET endpoint under virtual time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "apps/command_word.h"
#include "apps/program.h"
#include "apps/sim/commands.h"
#include "lib/base/version.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Runs UET endpoints, as shipped, over a simulated fabric in virtual time"};
  app.footer("Examples: uet-sim(1); in the source tree, man ./docs/man/uet-sim.1");
  app.name("uet-sim");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(uet::base::kVersion));
  int exit_code = uet::sim::kDone;
  uet::sim::add_run_command(app, exit_code);
  uet::sim::add_compare_command(app, exit_code);
  uet::sim::add_swarm_command(app, exit_code);
  if (const std::string wrong = uet::apps::wrong_command(app, argc, argv); !wrong.empty()) {
    fmt::print(stderr, "uet-sim: {}\n", wrong);
    return uet::sim::kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return uet::sim::kUsage;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-sim", [&] { return run(argc, argv); });
}
