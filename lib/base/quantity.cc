#include "lib/base/quantity.h"

#include <array>
#include <charconv>
#include <cmath>

namespace uet::base {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ns;
};
constexpr std::array kUnits = {Unit{"min", 60'000'000'000}, Unit{"s", 1'000'000'000},
                               Unit{"ms", 1'000'000}, Unit{"us", 1'000}, Unit{"ns", 1}};

}  // namespace

std::optional<std::pair<double, std::string_view>> split_quantity(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || !(value >= 0) || !std::isfinite(value)) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return std::pair(value, rest);
}

std::optional<Duration> parse_duration(std::string_view text) {
  constexpr double kDay = 86'400e9;  // a double holds each of its nanoseconds
  const auto quantity = split_quantity(text);
  if (!quantity) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.name != quantity->second) continue;
    const double ns = quantity->first * static_cast<double>(unit.ns);
    if (ns > kDay) return std::nullopt;
    return Duration::from_ns(std::llround(ns));
  }
  return std::nullopt;
}

std::string duration_text(Duration duration) {
  for (const Unit& unit : kUnits)
    if (unit.name != "min" && duration.ns() % unit.ns == 0)
      return std::to_string(duration.ns() / unit.ns) + std::string(unit.name);
  return {};
}

std::optional<std::uint64_t> parse_byte_size(std::string_view text, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
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
