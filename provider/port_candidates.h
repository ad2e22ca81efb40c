/// Which ports and addresses this process may use: those that the user configured, or what the host has. Nothing is opened or locked.
#pragma once

#include <string>
#include <vector>

#include "fep/settings/settings.h"
#include "lib/net/fabric_address.h"
#include "provider/interfaces.h"

namespace uet::provider {

/// One fabric address of this process and the port behind it, known without opening anything.
struct PortChoice {
  std::string spec;  ///< "udp" or "dpdk:..."
  net::FabricAddress address;
  std::string device;  ///< "eth0", "net_memif0", "0000:01:00.0"
  Interface facts;     ///< what fi_info shows about the device

  std::string domain_name() const { return "uet_" + device; }
  /// One UDP port of the kernel's: not DPDK, not several planes.
  bool is_one_udp_port() const;
};

struct Candidates {
  std::vector<PortChoice> ports;
  std::string why_none;  ///< why others are not among them

  /// `choice` first, then others on its device.
  void prefer(const PortChoice& choice);
};

/// In the order in which a process takes the first that is free.
Candidates own_ports(const fep::Settings& settings);
/// Those with this address, which the application named itself, and others of its host where processes share it.
Candidates ports_at(const fep::Settings& settings, net::FabricAddress address);
/// The address that the first process of this host takes, of the family of `own`; `own` where there is none.
net::FabricAddress first_on_host(const fep::Settings& settings, net::FabricAddress own);

/// Whether the user chose a port or an address at all.
bool is_configured(const fep::Settings& settings);

}  // namespace uet::provider
