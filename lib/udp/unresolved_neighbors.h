/// The kernel's neighbors that answer neither ARP nor Neighbor Discovery: what is sent to them stays in the kernel.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/net/fabric_address.h"

namespace uet::udp {

/// As the kernel listed them last. Needs no privilege and keeps no descriptor.
class UnresolvedNeighbors {
 public:
  /// Of one address family. `interface_index`: only those behind it count, 0: those that no interface of this host leads to.
  /// `scope`: the interface of link-local addresses.
  UnresolvedNeighbors(bool is_v4, unsigned interface_index, unsigned scope)
      : is_v4_(is_v4), interface_index_(interface_index), scope_(scope) {}

  /// Asks the kernel for its table. True when it holds packets for some neighbor. Where it will not tell, none is unresolved.
  bool look();
  /// The same from messages of the kernel, NLMSG_DONE or not.
  bool look_at(std::span<const std::uint8_t> messages);
  void clear() { hosts_.clear(); }
  bool is_empty() const { return hosts_.empty(); }
  /// Whether a packet to `host` would stay in the kernel. Where the kernel asks no longer, one packet may go: it has the kernel ask
  /// again. If it does not, the way there is another one.
  bool keeps(const net::FabricAddress& host);

 private:
  struct Host {
    net::FabricAddress address;
    bool is_given_up = false;  ///< by the kernel
    bool was_asked = false;    ///< a packet went to it since the last look
    bool is_unused = false;    ///< and the kernel did not ask for it: packets take another way
  };
  struct Table;

  void read(std::span<const std::uint8_t> messages, Table& table) const;
  bool take(Table& table);
  Host* find(const net::FabricAddress& address);

  bool is_v4_;
  unsigned interface_index_;
  unsigned scope_;
  std::vector<Host> hosts_;  ///< in the order of their addresses
};

}  // namespace uet::udp
