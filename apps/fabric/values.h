/// Quantities as people write them, in scenarios and on the control socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/base/units.h"

namespace uet::fabric {

/// "250Mb/s", "10G", "1.5Gbps"; not 0.
std::optional<base::BitRate> parse_rate(std::string_view text);
/// "65536", "64KiB", "64K", "1MiB".
std::optional<std::uint64_t> parse_size(std::string_view text);
/// "0.01", "1%"; between 0 and 1.
std::optional<double> parse_probability(std::string_view text);
std::optional<std::uint64_t> parse_number(std::string_view text);
/// A plain number, not negative: "0.1".
std::optional<double> parse_factor(std::string_view text);
std::optional<bool> parse_switch(std::string_view text);

}  // namespace uet::fabric
