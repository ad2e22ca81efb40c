/// `uet-fabric run` and `uet-fabric check`.
#pragma once

#include "apps/fabric/scenario.h"

namespace uet::fabric {

/// Opens everything and turns until it is told to stop. Returns the exit code.
int run(const Scenario& scenario);

/// What is wrong with the scenario's commands: "line: sentence"; empty when nothing is.
std::string check_commands(const Scenario& scenario);

/// Why the files that it names for output cannot be these; empty when nothing is wrong.
std::string check_outputs(const Scenario& scenario);

}  // namespace uet::fabric
