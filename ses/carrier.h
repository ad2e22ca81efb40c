/// What SES needs from the layer that carries its messages. [SES 20]
#pragma once

#include "pds/pds.h"

namespace uet::ses {

using base::Instant;

/// The downward half of pds::Pds, with the same contracts. Tests put a scripted one in its place.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual pds::SubmitResult submit(Instant now, const pds::TxMessage& message) = 0;
  virtual pds::SubmitResult submit_return(Instant now, pds::RxHandle request,
                                          const pds::TxMessage& message) = 0;
  virtual void unlock(Instant now, pds::PdcRef pdc) = 0;
  virtual void abort(Instant now, pds::MessageToken token) = 0;
  virtual std::uint32_t truncate(Instant now, pds::MessageToken token,
                                 std::uint32_t extra_segments) = 0;
};

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
