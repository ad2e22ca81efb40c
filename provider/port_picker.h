/// Which port this process uses, and opening it. The only file that knows that there are several
/// kinds.
#pragma once

#include <memory>
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

/// The addresses this process holds. A process takes an address at its first fi_getinfo and keeps
/// it until it exits. Callers serialise. [libfabric 9, "Several processes on one host"]
class PortPicker {
 public:
  /// The process's own: taken now if there is none yet. On failure a sentence for the user.
  base::Result<PortChoice, std::string> own(const fep::Settings& settings);
  /// A further address that the application names itself: it must be ours, or configured or local,
  /// and free.
  base::Result<PortChoice, std::string> at(const fep::Settings& settings,
                                           net::FabricAddress address);

 private:
  struct Held {
    PortChoice choice;
    AddressLock lock;
  };
  /// Why the last candidates were refused; becomes the message when none is left.
  base::Result<PortChoice, std::string> take_first(std::vector<PortChoice> candidates,
                                                   std::string why_none);
  std::vector<Held> held_;
};

/// Whether the user chose a port or an address at all.
bool is_configured(const fep::Settings& settings);

}  // namespace uet::provider
