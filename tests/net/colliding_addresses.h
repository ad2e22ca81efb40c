/// Addresses that have one place in every table without a key.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lib/net/fabric_address.h"

namespace uet::net::test {

/// IPv6 addresses of one /64 and of many, all of which have the same FabricAddress::hash() without a key.
inline FabricAddress colliding(std::uint64_t i) {
  const std::array<std::uint64_t, 2> words = {0x20fe + (i << 16),
                                              0x5eed ^ ((0x20fe + (i << 16)) * 0x9e3779b97f4a7c15)};
  return FabricAddress::from_v6(std::bit_cast<std::array<std::uint8_t, 16>>(words));
}

}  // namespace uet::net::test
