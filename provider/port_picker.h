/// Which port this process uses, and opening it. The only file that knows that there are several
/// kinds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fep/settings.h"
#include "lib/base/result.h"
#include "lib/base/trace.h"
#include "lib/net/port.h"
#include "provider/address_lock.h"
#include "provider/interfaces.h"

namespace uet::provider {

/// One fabric address of this process and the port behind it, known without opening anything.
struct PortChoice {
  std::string spec;  ///< "udp" or "dpdk:..."
  net::FabricAddress address;
  std::string device;  ///< "eth0", "net_memif0", "0000:01:00.0"
  Interface facts;     ///< what fi_info shows about the device

  std::string domain_name() const { return "uet_" + device; }
};

/// The addresses of this process. Finding one (fi_getinfo) takes nothing, so programs that only look
/// at us leave the addresses to those that use us; opening a domain takes one, and the process keeps
/// it until it exits. Between the two another process may have been faster: an address that we
/// proposed is then exchanged for another, one that the application named itself is refused.
/// Callers serialise. [libfabric 9, "Several processes on one host"]
class PortPicker {
 public:
  using Picked = base::Result<PortChoice, std::string>;  ///< on failure a sentence for the user

  /// The process's own: the one it has, else the first that is free now.
  Picked find_own(const fep::Settings& settings);
  /// An address that the application names itself: it must be ours, or configured or local, and
  /// free.
  Picked find(const fep::Settings& settings, net::FabricAddress address);

  /// The same, and no other process gets it any more.
  Picked take_own(const fep::Settings& settings);
  /// `address` as it came from an fi_info: proposed by us or named by the application.
  Picked take(const fep::Settings& settings, net::FabricAddress address);

  /// Whether `address` is one that only we have spoken of.
  bool was_proposed(net::FabricAddress address) const;

  /// In a child made by fork(): the addresses are the parent's.
  void abandon_in_child();

 private:
  struct Held {
    PortChoice choice;
    AddressLock lock;
  };
  struct Candidates {
    std::vector<PortChoice> ports;
    std::string why_none;  ///< why others are not among them
  };
  Candidates own_candidates(const fep::Settings& settings) const;
  static Candidates candidates_at(const fep::Settings& settings, net::FabricAddress address);
  const Held* held(net::FabricAddress address) const;
  Picked first_free(Candidates candidates) const;
  Picked take_first(Candidates candidates);

  std::vector<Held> held_;
  std::optional<PortChoice> own_;             ///< held, or what find_own() said last
  std::vector<net::FabricAddress> proposed_;  ///< by find_own(), and never named by the application
  std::vector<net::FabricAddress> named_;     ///< by the application, among what we could propose
};

/// Whether the user chose a port or an address at all.
bool is_configured(const fep::Settings& settings);

}  // namespace uet::provider
