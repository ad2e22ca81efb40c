/// The commands of uet-sim. Each adds its options to the command line and is run when it was
/// chosen.
#pragma once

namespace CLI {
class App;
}

namespace uet::sim {

/// Exit codes of all our tools.
enum ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2 };

void add_run_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_swarm_command(CLI::App& app, int& exit_code);

}  // namespace uet::sim
