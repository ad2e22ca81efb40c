#include "lib/udp/own_addresses.h"

#include <algorithm>

#include "lib/udp/descriptor.h"
#include "lib/udp/local_addresses.h"

namespace uet::udp {

namespace {

/// Says no for nearly every peer of another host, and so spares the list.
bool can_be_bound(SocketAddress address) {
  if (address.any.sa_family == AF_INET)
    address.v4.sin_port = 0;
  else
    address.v6.sin6_port = 0;
  const auto d =
      Descriptor::open([&] { return socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0); });
  return d && bind(d.fd(), &address.any, address.length) == 0;
}

}  // namespace

/// Where sockets may be bound to any address (ip_nonlocal_bind), that alone says nothing.
bool OwnAddresses::has(base::Instant now, SocketAddress address) {
  if (!can_be_bound(address)) return false;
  const net::FabricAddress wanted = address.address().host();
  constexpr unsigned kLoopbackNet = 127;
  if (wanted.is_v4() && wanted.v4() >> 24 == kLoopbackNet) return true;
  if (now >= list_again_at_) {
    listed_ = bare_local_addresses();
    list_again_at_ = now + kFresh;
  }
  return std::find(listed_.begin(), listed_.end(), wanted) != listed_.end();
}

}  // namespace uet::udp
