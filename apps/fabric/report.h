/// What the fabric did, as JSON: for the control socket, the file at the end, and tests.
#pragma once

#include <nlohmann/json.hpp>

#include "apps/fabric/emulator.h"

namespace uet::fabric {

using Json = nlohmann::ordered_json;

/// One object for each path: state, speed, and what its links carried, marked, cut and lost.
Json paths_report(Emulator& emulator);
Json links_report(Emulator& emulator);
Json legs_report(Emulator& emulator);
/// What each leg got from each other one; nothing for pairs without traffic.
Json flows_report(Emulator& emulator);
Json macs_report(Emulator& emulator);
Json rules_report(Emulator& emulator);
/// All of the above, with time and pools.
Json stats_report(Emulator& emulator);

}  // namespace uet::fabric
