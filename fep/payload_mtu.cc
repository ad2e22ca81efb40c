#include <array>

#include "fep/fep.h"
#include "ses/payload_sizes.h"

namespace uet::fep {

std::uint32_t payload_mtu_for(std::size_t ip_mtu) {
  // IPv6, UDP, security with source identifier, rendezvous extension: more than any packet needs.
  // [WIRE 7.2]
  constexpr std::size_t kWorstOverhead = 160;
  for (const std::uint32_t payload : std::array{8192u, 4096u, 2048u, ses::kEthernetPayload}) {
    if (payload + kWorstOverhead <= ip_mtu) return payload;
  }
  return ses::kSmallestPayload;
}

}  // namespace uet::fep
