#include "apps/sim/link_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace uet::sim {

namespace {

std::optional<double> number(std::string_view text) {
  double value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  if (!std::isfinite(value) || value < 0) return {};
  return value;
}

std::optional<SimTime> time_us(std::string_view text) {
  const auto us = number(text);
  if (!us || *us > 1e9) return {};
  return SimTime::from_ps(static_cast<std::int64_t>(*us * 1e6));
}

/// Cuts what follows the last `mark` off `text`; nothing when the mark is not there.
std::optional<std::string_view> cut_behind(std::string_view& text, char mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view tail = text.substr(at + 1);
  text = text.substr(0, at);
  return tail;
}

/// Takes the times off the end of `text`; empty, or what is wrong.
std::string take_times(std::string_view& text, LinkChange& change) {
  if (const auto period = cut_behind(text, '~')) {
    const auto us = time_us(*period);
    if (!us || us->ps() < 2) return fmt::format("'{}' is no period in microseconds", *period);
    change.flap_period = *us - SimTime{};
  }
  if (const auto span = cut_behind(text, '@')) {
    const std::size_t dash = span->find('-');
    const auto from = time_us(span->substr(0, dash));
    if (!from) return fmt::format("'{}' is no time in microseconds", span->substr(0, dash));
    change.from = *from;
    if (dash != std::string_view::npos) {
      const auto until = time_us(span->substr(dash + 1));
      if (!until || *until <= *from) {
        return fmt::format("'{}' is no time in microseconds after the start",
                           span->substr(dash + 1));
      }
      change.until = *until;
    }
  }
  return {};
}

/// "spine:0" and "spine 0" are taken for "spine0"; "0" for the top-tier switch of that number only
/// by parse_degrade.
std::string link_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    if (c != ':' && c != ' ') name += c;
  }
  return name;
}

}  // namespace

base::Result<std::vector<LinkChange>, std::string> parse_degrade(std::string_view text,
                                                                 const FatTree& tree) {
  constexpr double kQuarter = 0.25;
  std::vector<LinkChange> changes;
  std::uint32_t count{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (count > tree.tops())
      return fmt::format("--degrade {}: there are only {}", count, tree.tops());
    for (std::uint32_t i = 0; i < count; ++i) {
      LinkChange change;
      change.speed = kQuarter;
      change.links = tree.tiers == 2 ? fmt::format("spine{}", i)
                                     : fmt::format("core{0}>agg{1}", i, i / (tree.radix / 2));
      changes.push_back(change);
    }
    return changes;
  }
  LinkChange change;
  change.speed = kQuarter;
  std::string_view rest = text;
  if (const std::string why = take_times(rest, change); !why.empty()) {
    return fmt::format("--degrade {}: {}", text, why);
  }
  auto factor = cut_behind(rest, '=');
  if (!factor && std::count(rest.begin(), rest.end(), ':') > 1) factor = cut_behind(rest, ':');
  if (factor) {
    const bool is_percent = factor->ends_with('%');
    auto speed = number(is_percent ? factor->substr(0, factor->size() - 1) : *factor);
    if (speed && is_percent) *speed /= 100;
    if (!speed || *speed > 1)
      return fmt::format("--degrade {}: '{}' is neither a factor from 0 to 1 nor a percentage",
                         text, *factor);
    change.speed = *speed;
  }
  change.links = link_name(rest);
  changes.push_back(change);
  return changes;
}

base::Result<std::vector<LinkChange>, std::string> parse_fail(std::string_view text) {
  LinkChange change;
  change.speed = 0;
  std::string_view rest = text;
  if (const std::string why = take_times(rest, change); !why.empty()) {
    return fmt::format("--fail {}: {}", text, why);
  }
  change.links = link_name(rest);
  return std::vector<LinkChange>{change};
}

}  // namespace uet::sim
