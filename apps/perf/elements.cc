#include "apps/perf/elements.h"

#include <algorithm>
#include <cstring>

namespace uet::perf {
namespace {

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

/// Buffers are aligned for their elements; the compiler turns the copies into vector loads.
template <typename T, typename Operation>
void reduce(std::uint8_t* into, const std::uint8_t* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = Operation()(a, b);
    std::memcpy(into + i * sizeof(T), &a, sizeof(T));
  }
}

template <typename T>
auto reduce_of(std::string_view reduction) {
  return reduction == "sum"   ? reduce<T, Sum>
         : reduction == "max" ? reduce<T, Max>
         : reduction == "min" ? reduce<T, Min>
                              : nullptr;
}

/// Calls `use` with a value of the type of that name.
template <typename Use>
auto with_type(std::string_view type, Use&& use) {
  if (type == "float") return use(float{});
  if (type == "double") return use(double{});
  return use(std::int32_t{});
}

}  // namespace

std::optional<Elements> Elements::of(std::string_view type, std::string_view reduction) {
  // The names are kept: only those of the lists, which live for ever.
  const auto t = std::find(std::begin(kElementTypes), std::end(kElementTypes), type);
  const auto r = std::find(std::begin(kReductions), std::end(kReductions), reduction);
  if (t == std::end(kElementTypes) || r == std::end(kReductions)) return std::nullopt;
  return with_type(type, [&](auto value) {
    return Elements(*t, *r, sizeof value, reduce_of<decltype(value)>(reduction));
  });
}

double Elements::reduced(double a, double b) const {
  return reduction_ == "sum" ? a + b : reduction_ == "max" ? std::max(a, b) : std::min(a, b);
}

void Elements::store(std::uint8_t* at, double value) const {
  with_type(type_, [&](auto typed) {
    typed = static_cast<decltype(typed)>(value);
    std::memcpy(at, &typed, sizeof typed);
  });
}

double Elements::load(const std::uint8_t* at) const {
  return with_type(type_, [&](auto typed) {
    std::memcpy(&typed, at, sizeof typed);
    return static_cast<double>(typed);
  });
}

}  // namespace uet::perf
