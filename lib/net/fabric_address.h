/// The address of a fabric endpoint: an IPv4 or IPv6 address; of a process that shares an IPv4 address with others, also its UDP port.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/hash_key.h"

namespace uet::net {

/// IPv4 is held as an IPv4-mapped IPv6 address (::ffff:a.b.c.d), so one representation serves both. [UET 2.4] The UDP port, if there
/// is one, stands in front of the mapping. [decision 168]
class FabricAddress {
 public:
  constexpr FabricAddress() = default;
  /// `v4` in host order: 0x7f000001 is 127.0.0.1.
  static constexpr FabricAddress from_v4(std::uint32_t v4) {
    using Half = std::array<std::uint8_t, 8>;
    const auto at = [v4](int shift) { return static_cast<std::uint8_t>(v4 >> shift); };
    const Half mapped{0, 0, 0xff, 0xff, at(24), at(16), at(8), at(0)};
    FabricAddress a;
    a.bytes_ =
        std::bit_cast<std::array<std::uint8_t, 16>>(Words{0, std::bit_cast<std::uint64_t>(mapped)});
    return a;
  }
  static constexpr FabricAddress from_v6(const std::array<std::uint8_t, 16>& v6) {
    FabricAddress a;
    a.bytes_ = v6;
    return a;
  }
  /// Parses "10.0.0.1" or "fd00::1"; nothing else (no names, no ports).
  static std::optional<FabricAddress> parse(std::string_view text);

  constexpr bool is_v4() const {
    using Half = std::array<std::uint8_t, 8>;
    constexpr auto kMapped = std::bit_cast<std::uint64_t>(Half{0, 0, 0xff, 0xff});
    constexpr auto kMask = std::bit_cast<std::uint64_t>(Half{0, 0, 0xff, 0xff});
    const Words w = words();
    return w[0] == 0 && (w[1] & kMask) == kMapped;
  }
  /// The UDP port that this endpoint has alone; 0: the one that all others have.
  constexpr std::uint16_t udp_port() const {
    return is_v4() ? static_cast<std::uint16_t>(bytes_[8] << 8 | bytes_[9]) : std::uint16_t{0};
  }
  /// UDP port of packets to this address, where others have `usual`.
  constexpr std::uint16_t udp_port_or(std::uint16_t usual) const {
    const std::uint16_t own = udp_port();
    return own != 0 ? own : usual;
  }
  /// Of an IPv4 address; 0: without.
  constexpr FabricAddress with_udp_port(std::uint16_t port) const {
    FabricAddress a = *this;
    a.bytes_[8] = static_cast<std::uint8_t>(port >> 8);
    a.bytes_[9] = static_cast<std::uint8_t>(port);
    return a;
  }
  /// The same host: what networks know.
  constexpr FabricAddress host() const { return udp_port() != 0 ? with_udp_port(0) : *this; }
  /// fe80::/10: which link it is on, it does not say. [RFC 4291 2.5.6]
  constexpr bool is_link_local() const { return bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80; }
  /// 127.0.0.0/8 and ::1.
  constexpr bool is_loopback() const {
    if (is_v4()) return v4() >> 24 == 127;
    return *this == from_v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  }
  constexpr bool is_unspecified() const { return *this == FabricAddress{}; }
  constexpr std::uint32_t v4() const {
    return (std::uint32_t{bytes_[12]} << 24) | (std::uint32_t{bytes_[13]} << 16) |
           (std::uint32_t{bytes_[14]} << 8) | bytes_[15];
  }
  /// All 16 bytes, network order; of IPv4 the last four are the address.
  constexpr const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }
  std::string to_string() const;

  constexpr auto operator<=>(const FabricAddress&) const = default;
  // Two words, not sixteen bytes: every packet compares addresses.
  constexpr bool operator==(const FabricAddress& o) const {
    const Words a = words(), b = o.words();
    return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
  }

  /// For tables whose keys peers choose: of the address and `more`.
  std::size_t hash(const base::HashKey& key, std::uint64_t more = 0) const {
    const auto [lo, hi] = words();
    return key(lo, hi, more);
  }
  /// Peers can make addresses that collide: for keys of our own, and for places that are shared anyway.
  std::size_t hash() const {
    const auto [lo, hi] = words();
    // What differs within a network is in the highest bits, and tables take the lowest: a product alone moves nothing down.
    std::uint64_t x = hi ^ (lo * 0x9e3779b97f4a7c15ULL);
    x = (x ^ (x >> 32)) * 0xff51afd7ed558ccdULL;
    x = (x ^ (x >> 32)) * 0xc4ceb9fe1a85ec53ULL;
    return static_cast<std::size_t>(x ^ (x >> 32));
  }

 private:
  using Words = std::array<std::uint64_t, 2>;
  constexpr Words words() const { return std::bit_cast<Words>(bytes_); }

  std::array<std::uint8_t, 16> bytes_{};
};

}  // namespace uet::net

template <>
struct std::hash<uet::net::FabricAddress> {
  std::size_t operator()(const uet::net::FabricAddress& a) const { return a.hash(); }
};
