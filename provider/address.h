/// Addresses as libfabric programs see them: the 32 bytes of FI_ADDR_UET, their printed form, and
/// what a "service" means.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ses/ses.h"

namespace uet::provider {

/// Values of our own, since upstream libfabric has assigned none. [libfabric 14.3]
inline constexpr std::uint32_t kAddrFormat = 0x80554554;
inline constexpr std::uint32_t kProtocol = 0x80554554;
inline constexpr std::size_t kAddressBytes = 32;

using AddressBytes = std::array<std::uint8_t, kAddressBytes>;

/// [libfabric 4] A resource index of 0 means "any": the RI flag is then clear, and the address
/// cannot be inserted in an AV.
AddressBytes pack_address(const ses::Address& address);

/// Reads any 32 bytes. Nothing when the version is unknown or the fabric address is missing.
/// `is_complete` tells addresses that name an endpoint from those that leave PIDonFEP or RI open.
std::optional<ses::Address> unpack_address(std::span<const std::uint8_t> bytes);
bool is_complete(std::span<const std::uint8_t> bytes);

/// uet://10.0.0.1/pid3/ri15+1/id7/rel
std::string format_address(const ses::Address& address);

/// PIDonFEP, RI and initiator ID that a service text stands for.
struct ServiceAddress {
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;
  std::optional<std::uint32_t> initiator_id;
};

/// Decimal N is RI 1 + N mod 4094 at `default_pid`; "pid:ri[:initiator]" is taken as written.
/// [libfabric 3.1 rule f]
std::optional<ServiceAddress> parse_service(std::string_view service, std::uint16_t default_pid);

/// The identity an endpoint has when nobody chose one.
constexpr std::uint32_t default_initiator_id(std::uint16_t pid_on_fep,
                                             std::uint16_t resource_index) {
  return (std::uint32_t{pid_on_fep} << 12) | resource_index;
}

}  // namespace uet::provider
