#pragma once

#include "lib/base/units.h"

namespace uet::net {

/// When to offer a full device the rest again: it drains in microseconds. Only a loop without traffic waits that long; another one offers
/// the rest with the next burst.
inline constexpr base::Duration kFullDeviceRetry = base::Duration::from_us(20);

}  // namespace uet::net
