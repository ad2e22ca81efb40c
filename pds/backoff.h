/// How long a packet that did not get through waits before it is sent again.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::pds {

inline constexpr base::Duration kLongestRto =
    base::Duration::from_seconds(8);  ///< of the specification

/// `first` up to the `steady`th time, then doubled each time, up to `longest`.
inline base::Duration longer_each_time(base::Duration first, unsigned times, unsigned steady,
                                       base::Duration longest) {
  base::Duration wait = first;
  for (unsigned i = steady; i < times && wait < longest; ++i) wait = wait * 2;
  return std::min(wait, longest);
}

/// Trimmed headers have strict priority, and a small packet is hardly shorter once trimmed: without back-off a few sources could
/// saturate a link with trimmed retransmissions. So a packet is sent again at once this often in a row, and then backs off. See
/// docs/decisions/0058.
inline constexpr unsigned kTrimsAnsweredAtOnce = 16;

}  // namespace uet::pds
