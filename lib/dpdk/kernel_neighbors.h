/// The kernel's table of neighbors, over netlink. No privileges are needed.
#pragma once

#include <memory>
#include <string>

#include "lib/net/neighbor_resolver.h"

namespace uet::dpdk {

class KernelNeighbors final : public net::NeighborResolver {
 public:
  /// Those behind `interface`. Null: `error` says why.
  static std::unique_ptr<KernelNeighbors> open(const std::string& interface, std::string& error);
  ~KernelNeighbors() override;

  bool ask(const net::FabricAddress& address, net::MacAddress& mac) override;
  News poll(net::FabricAddress& address, net::MacAddress& mac) override;

 private:
  KernelNeighbors() = default;
  bool look_up(const net::FabricAddress& address, net::MacAddress& mac, int& state) const;
  void make_it_look(const net::FabricAddress& address) const;
  void pass_over_news() const;

  int index_ = 0;
  int questions_ = -1;      ///< netlink
  int notifications_ = -1;  ///< netlink, of the group that hears of every change
  int datagrams_ = -1;      ///< UDP: makes the kernel need the neighbor
  int datagrams_v6_ = -1;
};

}  // namespace uet::dpdk
