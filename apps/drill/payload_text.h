/// `payload BYTES [fill=SEED] [at=POSITION]` in scripts. Without a seed any bytes will do in what leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "apps/drill/values.h"

namespace uet::drill {

struct PayloadText {
  static constexpr std::uint8_t kPlainByte = 0x42;

  std::size_t bytes = 0;
  std::optional<std::uint64_t> seed;  ///< of a pattern in which every position of a message differs
  std::uint64_t at = 0;               ///< position in the message of the first byte

  std::uint8_t byte(std::size_t i) const {
    if (!seed) return kPlainByte;
    const std::uint64_t n = at + i;
    return static_cast<std::uint8_t>(*seed + n * 167 + (n >> 8) * 59);
  }
  /// The first byte that is not of the pattern.
  std::optional<std::size_t> first_wrong(std::span<const std::uint8_t> is) const {
    for (std::size_t i = 0; seed && i < is.size(); ++i)
      if (is[i] != byte(i)) return i;
    return {};
  }

  /// words[i] is "payload"; `i` ends at the last word that belongs to it.
  static std::optional<PayloadText> read(std::span<const std::string> words, std::size_t& i,
                                         const Variables& variables, std::string& why_not) {
    const auto size = i + 1 < words.size() ? variables.read(words[i + 1], why_not)
                                           : std::optional<std::uint64_t>{};
    if (!size || *size > kMost) {
      if (why_not.empty()) why_not = "payload needs a number of bytes";
      return {};
    }
    PayloadText out;
    out.bytes = static_cast<std::size_t>(*size);
    for (++i; i + 1 < words.size(); ++i) {
      const std::string_view word = words[i + 1];
      if (word.starts_with("fill=")) {
        out.seed = variables.read(word.substr(5), why_not);
      } else if (word.starts_with("at=")) {
        out.at = variables.read(word.substr(3), why_not).value_or(0);
      } else {
        break;
      }
    }
    return out;
  }

 private:
  static constexpr std::uint64_t kMost = 9000;
};

}  // namespace uet::drill
