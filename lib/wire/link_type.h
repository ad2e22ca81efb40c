/// What a captured packet starts with.
#pragma once

#include <cstdint>

namespace uet::wire {

/// Link types of capture files (the numbers of tcpdump.org).
enum class LinkType : std::uint32_t {
  kEthernet = 1,
  kRawOld = 12,  ///< what some systems write for kRaw
  kRaw = 101,
  kLinuxSll = 113,
  kUet = 147,  ///< DLT_USER0: bare UET packets, as our tests write them
  kIpv4 = 228,
  kIpv6 = 229,
  kLinuxSll2 = 276,
};

}  // namespace uet::wire
