/// Addresses as libfabric programs see them: FI_ADDR_UET, and what a "service" means.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ses/address_bytes.h"

namespace uet::provider {

/// Values of our own, since upstream libfabric has assigned none. [FI 14.3]
inline constexpr std::uint32_t kAddrFormat = 0x80554554;
inline constexpr std::uint32_t kProtocol = 0x80554554;

using ses::AddressBytes;
using ses::format_address;
using ses::is_complete;
using ses::kAddressBytes;
using ses::pack_address;
using ses::unpack_address;

/// PIDonFEP, RI and initiator ID that a service text stands for.
struct ServiceAddress {
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::optional<std::uint32_t> initiator_id;
};

/// Decimal N is RI 1 + N mod 4094 at `default_pid`; "pid:ri[:initiator]" is taken as written.
/// [FI 3.1 rule f]
std::optional<ServiceAddress> parse_service(std::string_view service, std::uint16_t default_pid);

/// The identity an endpoint has when the program chose none.
constexpr std::uint32_t default_initiator_id(std::uint16_t pid_on_fep,
                                             std::uint16_t resource_index) {
  return (std::uint32_t{pid_on_fep} << 12) | resource_index;
}

}  // namespace uet::provider
