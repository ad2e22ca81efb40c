/// IPv6 addresses that do not last, and the order in which ports take the addresses of an interface.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "lib/net/fabric_address.h"

namespace uet::udp {

/// A port has the address of an interface with the lowest rank; of several the first that the kernel lists.
enum class AddressRank {
  kV4,
  kV6,
  kPassingV6,  ///< while there is no other
  kLinkLocal,  ///< says nothing of the link that it is on
};

/// The IPv6 addresses of this network namespace that are temporary (RFC 8981; the kernel deletes them after some days), deprecated, or
/// not proven to be the only ones of their link.
class PassingAddresses {
 public:
  /// None where the kernel does not tell.
  static PassingAddresses read();
  /// `text` as in /proc/net/if_inet6; lines of another form are passed over.
  static PassingAddresses parse(std::string_view text);

  AddressRank rank_of(const std::string& interface, const net::FabricAddress& address) const;

 private:
  std::set<std::pair<std::string, net::FabricAddress>> all_;
};

}  // namespace uet::udp
