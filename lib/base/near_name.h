/// "Did you mean ...": the known name that a misspelt one is probably about.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace uet::base {

/// Insertions, deletions, replacements and swaps of neighbours that lead from one to the other, letters of either case being equal.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1]))
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

/// The nearest of `known`, or empty when none is near: more than a third of the letters would have to change. A name that
/// begins with what was written is near, too.
inline std::string_view near_name(std::string_view written,
                                  std::span<const std::string_view> known) {
  constexpr std::size_t kLetters = 64;  // longer than any name; bounds the work
  if (written.empty() || written.size() > kLetters) return {};
  std::string_view best;
  const std::size_t least = written.size() > 4 ? 2 : 1;
  std::size_t best_distance = std::max(least, written.size() / 3) + 1;
  for (const std::string_view name : known) {
    std::size_t distance = edit_distance(written, name);
    if (written.size() >= 3 && name.size() > written.size() &&
        edit_distance(written, name.substr(0, written.size())) == 0)
      distance = std::min<std::size_t>(distance, 1);
    if (distance >= best_distance || distance >= name.size()) continue;
    best = name;
    best_distance = distance;
  }
  return best;
}

}  // namespace uet::base
