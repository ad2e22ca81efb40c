/// Randomness of the system, for the endpoints of programs.
#pragma once

#include "lib/base/rng.h"

namespace uet::ports {

/// The generator of one endpoint: from `seed`, or from a key that only this process knows when it is 0.
base::Rng make_rng(std::uint64_t seed);

/// The same at each call of one process, and another in its forked children: from `seed`, or by chance when it is 0.
std::uint32_t number_of_process(std::uint64_t seed);

}  // namespace uet::ports
