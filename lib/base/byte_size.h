/// Sizes as people write them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace uet::base {

/// A whole number of bytes, or of KiB, MiB or GiB with k, M or G behind it (either case).
/// Nothing for other text and for more than `most`.
inline std::optional<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unsigned shift = 0;
  if (unit == "k" || unit == "K")
    shift = 10;
  else if (unit == "m" || unit == "M")
    shift = 20;
  else if (unit == "g" || unit == "G")
    shift = 30;
  else if (!unit.empty())
    return std::nullopt;
  if (value > most >> shift) return std::nullopt;
  return value << shift;
}

}  // namespace uet::base
