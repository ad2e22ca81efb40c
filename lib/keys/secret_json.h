/// JSON whose texts are wiped when they go: key files and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tss/secret.h"

namespace uet::keys {

/// Wipes before it frees. Texts longer than a string object holds in itself, as keys are, live there.
template <typename T>
struct WipingAllocator {
  using value_type = T;
  WipingAllocator() = default;
  template <typename U>
  WipingAllocator(const WipingAllocator<U>&) {}  // NOLINT: converting, as allocators are
  T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
  void deallocate(T* p, std::size_t n) {
    tss::cleanse(p, n * sizeof(T));
    std::allocator<T>().deallocate(p, n);
  }
  bool operator==(const WipingAllocator&) const = default;
};

using SecretText = std::basic_string<char, std::char_traits<char>, WipingAllocator<char>>;
using SecretJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, SecretText, bool,
                                        std::int64_t, std::uint64_t, double>;

}  // namespace uet::keys
