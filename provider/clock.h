/// The real clock. Everything below the provider gets the time as an argument.
#pragma once

#include "lib/base/units.h"

namespace uet::provider {

/// CLOCK_MONOTONIC.
base::Instant clock_now();

}  // namespace uet::provider
