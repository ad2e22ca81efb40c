/// Sentences for the user, and how often one may be said.
#pragma once

#include <string>
#include <vector>

namespace uet::provider {

using Remarks = std::vector<std::string>;

/// Looks come once a second, so a warning is repeated after a minute at the earliest.
inline constexpr int kLooksBetweenWarnings = 60;

}  // namespace uet::provider
