/// Which destinations are addresses of this host.
#pragma once

#include <vector>

#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/udp/socket_address.h"

namespace uet::udp {

/// Remembers the kernel's list of addresses for a while: reading it takes milliseconds on a host with many interfaces, and ports ask
/// for every peer. An address that is taken away is none of this host at once, a new one is one within kFresh.
class OwnAddresses {
 public:
  static constexpr base::Duration kFresh = base::Duration::from_ms(500);

  /// Packets to `address` never leave this host. All of 127/8 is, as the kernel has it.
  bool has(base::Instant now, SocketAddress address);

 private:
  std::vector<net::FabricAddress> listed_;
  base::Instant list_again_at_;
};

}  // namespace uet::udp
