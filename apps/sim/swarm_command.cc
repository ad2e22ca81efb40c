#include "apps/sim/commands.h"
namespace uet::sim {
void add_swarm_command(CLI::App&, int&) {}
}  // namespace uet::sim
