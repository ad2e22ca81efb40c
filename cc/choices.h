/// The algorithms and the ways to choose paths, each with the word that users write for it: settings, live reports and uet-sim
/// read the words here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace uet::cc {

enum class Algorithm : std::uint8_t { kNscc, kRccc, kBoth, kNone };

enum class LoadBalancing : std::uint8_t {
  kOblivious,
  kBitmap,
  kReps,
  kMixed,
  kSingle,
  kRepsLegacy
};

// Without a default: the compiler refuses an enumerator that has no word.
constexpr std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kNscc:
      return "nscc";
    case Algorithm::kRccc:
      return "rccc";
    case Algorithm::kBoth:
      return "both";
    case Algorithm::kNone:
      return "none";
  }
  return {};
}

constexpr std::string_view name_of(LoadBalancing lb) {
  switch (lb) {
    case LoadBalancing::kOblivious:
      return "oblivious";
    case LoadBalancing::kBitmap:
      return "bitmap";
    case LoadBalancing::kReps:
      return "reps";
    case LoadBalancing::kMixed:
      return "mixed";
    case LoadBalancing::kSingle:
      return "single";
    case LoadBalancing::kRepsLegacy:
      return "reps_legacy";
  }
  return {};
}

/// For comparison with another simulator only: no setting of an endpoint offers it.
constexpr bool is_for_simulation(Algorithm) {
  return false;
}
constexpr bool is_for_simulation(LoadBalancing lb) {
  return lb == LoadBalancing::kRepsLegacy;
}

namespace detail {
template <typename Choice>
constexpr std::size_t count_of_choices() {
  std::size_t n = 0;
  while (!name_of(static_cast<Choice>(n)).empty()) ++n;
  return n;
}
}  // namespace detail

/// Every value of Algorithm or LoadBalancing, in its order.
template <typename Choice>
constexpr auto all_choices() {
  std::array<Choice, detail::count_of_choices<Choice>()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Choice>(i);
  return all;
}

}  // namespace uet::cc
