/// Another resolver of neighbors: the kernel, where it has the address and gets the answers to ARP and Neighbor
/// Discovery in our place.
#pragma once

#include "lib/net/fabric_address.h"
#include "lib/net/frame_device.h"

namespace uet::net {

/// One thread; never blocks.
class NeighborResolver {
 public:
  virtual ~NeighborResolver() = default;
  /// True when it knows already where `address` is. Otherwise it looks for it.
  virtual bool ask(const FabricAddress& address, MacAddress& mac) = 0;
  /// Takes one of the neighbors that it found since; false when there is none.
  virtual bool poll(FabricAddress& address, MacAddress& mac) = 0;
};

}  // namespace uet::net
