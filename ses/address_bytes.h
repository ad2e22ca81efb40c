/// The address of an endpoint as programs carry it to their peers: 32 bytes, the same for libfabric programs and for programs
/// with the C++ library, and its printed form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ses/ses.h"

namespace uet::ses {

inline constexpr std::size_t kAddressBytes = 32;

using AddressBytes = std::array<std::uint8_t, kAddressBytes>;

/// [FI 4] A resource index of 0 means "any": the RI flag is then clear, and the address
/// cannot be inserted in an AV.
AddressBytes pack_address(const Address& address);

/// Reads any 32 bytes. Nothing when the version is unknown or the fabric address is missing.
/// `is_complete` tells addresses that name an endpoint from those that leave PIDonFEP or RI open.
std::optional<Address> unpack_address(std::span<const std::uint8_t> bytes);
bool is_complete(std::span<const std::uint8_t> bytes);

/// uet://10.0.0.1/pid3/ri15+1/id7/rel
std::string format_address(const Address& address);

}  // namespace uet::ses
