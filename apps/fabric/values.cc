#include "apps/fabric/values.h"

#include <array>
#include <charconv>
#include <cmath>

#include "lib/base/quantity.h"

namespace uet::fabric {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

/// The number in the first of the units, rounded.
template <std::size_t N>
std::optional<std::uint64_t> scaled(std::string_view text, const std::array<Unit, N>& units) {
  constexpr double kMost = 9e18;
  const auto parts = base::split_quantity(text);
  if (!parts) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != parts->second) continue;
    const double value = parts->first * unit.factor;
    if (value > kMost) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(value));
  }
  return std::nullopt;
}

}  // namespace

std::optional<base::BitRate> parse_rate(std::string_view text) {
  constexpr std::array kUnits = {Unit{"b/s", 1},    Unit{"bps", 1},    Unit{"Kb/s", 1e3},
                                 Unit{"Kbps", 1e3}, Unit{"kb/s", 1e3}, Unit{"K", 1e3},
                                 Unit{"Mb/s", 1e6}, Unit{"Mbps", 1e6}, Unit{"M", 1e6},
                                 Unit{"Gb/s", 1e9}, Unit{"Gbps", 1e9}, Unit{"G", 1e9}};
  const auto bps = scaled(text, kUnits);
  if (!bps || *bps == 0) return std::nullopt;
  return base::BitRate::from_bps(*bps);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::array kUnits = {Unit{"", 1},      Unit{"B", 1},       Unit{"k", 1024},
                                 Unit{"K", 1024},  Unit{"KiB", 1024},  Unit{"kB", 1000},
                                 Unit{"KB", 1000}, Unit{"M", 1 << 20}, Unit{"MiB", 1 << 20},
                                 Unit{"MB", 1e6},  Unit{"G", 1 << 30}, Unit{"GiB", 1 << 30}};
  return scaled(text, kUnits);
}

std::optional<double> parse_probability(std::string_view text) {
  const auto parts = base::split_quantity(text);
  if (!parts || (!parts->second.empty() && parts->second != "%")) return std::nullopt;
  const double value = parts->second.empty() ? parts->first : parts->first / 100;
  if (value > 1) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_factor(std::string_view text) {
  const auto parts = base::split_quantity(text);
  if (!parts || !parts->second.empty()) return std::nullopt;
  return parts->first;
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "1" || text == "on" || text == "true" || text == "yes") return true;
  if (text == "0" || text == "off" || text == "false" || text == "no") return false;
  return std::nullopt;
}

}  // namespace uet::fabric
