/// JSON whose texts are wiped when they go: key files and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "keys/secret_text.h"
#include "tss/locked_memory.h"

namespace uet::keys {

using SecretJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, SecretText, bool,
                                        std::int64_t, std::uint64_t, double>;

/// A byte of a text with secrets: a type of its own, so that what the parser keeps of it for messages is in memory for keys, too.
enum class SecretChar : unsigned char {};

}  // namespace uet::keys

template <>
struct std::allocator<uet::keys::SecretChar> : uet::tss::LockedAllocator<uet::keys::SecretChar> {
  allocator() = default;
  template <typename U>
  allocator(const allocator<U>&) {}  // NOLINT: converting, as allocators are
};

template <>
struct std::char_traits<uet::keys::SecretChar> {
  using char_type = uet::keys::SecretChar;
  using int_type = std::char_traits<char>::int_type;
  static constexpr int_type eof() { return std::char_traits<char>::eof(); }
  static constexpr int_type to_int_type(char_type c) { return static_cast<int_type>(c); }
  static constexpr char_type to_char_type(int_type c) { return static_cast<char_type>(c); }
};

namespace uet::keys {

/// Discarded when it is not JSON.
inline SecretJson parse_secret(const SecretText& text) {
  const auto* begin = reinterpret_cast<const SecretChar*>(text.data());
  return SecretJson::parse(begin, begin + text.size(), nullptr, false);
}

}  // namespace uet::keys
