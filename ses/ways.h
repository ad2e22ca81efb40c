/// What SES asks of the ways to its destinations. [SES 20]
#pragma once

#include "lib/base/units.h"
#include "lib/net/fabric_address.h"

namespace uet::ses {

using base::Instant;

/// Knows what the way to a destination carries.
class Ways {
 public:
  virtual ~Ways() = default;
  /// Payload bytes of a full packet: a legal payload MTU. Cheap, asked at the start of each longer message.
  virtual std::uint32_t payload_towards(Instant now, const net::FabricAddress& destination) = 0;
  /// No network is between us and the destination.
  virtual bool stays_on_host(Instant now, const net::FabricAddress& destination) {
    (void)now;
    (void)destination;
    return false;
  }
};

}  // namespace uet::ses
