/// Another resolver of neighbors: the kernel, where it has the address and gets the answers to ARP and Neighbor
/// Discovery in our place.
#pragma once

#include <cstdint>

#include "lib/net/fabric_address.h"
#include "lib/net/frame_device.h"

namespace uet::net {

/// One thread; never blocks.
class NeighborResolver {
 public:
  enum class News : std::uint8_t {
    kNone,
    kFound,  ///< where a neighbor is now
    kLost,   ///< some came faster than they were taken: what was heard of any neighbor may be old
  };

  virtual ~NeighborResolver() = default;
  /// True when it knows already where `address` is. Otherwise it looks for it.
  virtual bool ask(const FabricAddress& address, MacAddress& mac) = 0;
  /// Takes the oldest news that came since. Those that are not taken for long get lost.
  virtual News poll(FabricAddress& address, MacAddress& mac) = 0;
};

}  // namespace uet::net
