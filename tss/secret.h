/// Key material: bytes that are wiped when they go, and the two forms in which keys are named.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace uet::tss {

/// Overwrites `size` bytes in a way that the compiler keeps.
void cleanse(void* data, std::size_t size);

/// N secret bytes. Every copy wipes itself.
template <std::size_t N>
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::span<const std::uint8_t, N> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { cleanse(bytes_.data(), N); }

  const std::uint8_t* data() const { return bytes_.data(); }
  std::uint8_t* data() { return bytes_.data(); }
  static constexpr std::size_t size() { return N; }
  std::span<const std::uint8_t, N> bytes() const { return bytes_; }
  bool operator==(const Secret&) const = default;

 private:
  std::array<std::uint8_t, N> bytes_{};
};

using Key = Secret<32>;   ///< AES-256: an initial key of a secure domain, or a key derived from one
using Mask = Secret<12>;  ///< what is put over every IV; zero in direct mode

struct DerivedKey {
  Key key;
  Mask mask;
};

/// Names a key without telling it: SHA-256 of its bytes. [TSS 7.6]
using Fingerprint = std::array<std::uint8_t, 32>;
Fingerprint fingerprint_of(const Key& key);

}  // namespace uet::tss
