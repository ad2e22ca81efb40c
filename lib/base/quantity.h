/// Quantities as people write them, in settings, scenarios and scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/units.h"

namespace uet::base {

/// A decimal number that is not negative, and what follows it and the spaces behind it; nothing where the text begins with none.
std::optional<std::pair<double, std::string_view>> split_quantity(std::string_view text);

/// "250ns", "1.5 ms", "0s", "2min": a unit is needed. Nothing for more than a day.
std::optional<Duration> parse_duration(std::string_view text);
/// In the largest unit of which it is a whole number: "1500us"; "0s" for none.
std::string duration_text(Duration duration);

/// A whole number of bytes, or of KiB, MiB or GiB with k, M or G behind it (either case, spaces between).
/// Nothing for other text and for more than `most`.
std::optional<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t most);

}  // namespace uet::base
