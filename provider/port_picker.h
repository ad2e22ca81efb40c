/// Which ports this process uses, among those that it may.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fep/settings/settings.h"
#include "lib/base/result.h"
#include "lib/base/trace.h"
#include "lib/net/port.h"
#include "provider/address_lock.h"
#include "provider/port_candidates.h"

namespace uet::provider {

/// The addresses of this process. Finding one (fi_getinfo) takes nothing, so programs that only look
/// at us leave the addresses to those that use us; opening a domain takes one, and the process keeps
/// it until it exits. Between the two another process may have been faster: an address that we
/// proposed is then exchanged for another, one that the application named itself is refused. What a
/// program without our locks has is noticed when it is to be taken, or opened.
/// Callers serialise. [FI 9, "Several processes on one host"]
class PortPicker {
 public:
  using Picked = base::Result<PortChoice, std::string>;  ///< on failure a sentence for the user

  /// The process's own: the one it has, else the first that is free now.
  Picked find_own(const fep::Settings& settings);
  /// One for each device that is configured, so that a program may use several: its own first, then what is free of the others, in the
  /// order of the settings. Where nothing is configured only its own.
  base::Result<std::vector<PortChoice>, std::string> find_rails(const fep::Settings& settings);
  /// An address that the application names itself: it must be ours, or configured or local, and
  /// free. Where processes share it, the first free one of them.
  Picked find(const fep::Settings& settings, net::FabricAddress address);

  /// The same, and no other process gets it any more.
  Picked take_own(const fep::Settings& settings);
  /// What was proposed under this name of a domain, else its own.
  Picked take_named(const fep::Settings& settings, const std::string& domain_name);
  /// `address` as it came from an fi_info: proposed by us or named by the application.
  Picked take(const fep::Settings& settings, net::FabricAddress address);

  /// The port behind an address that only we have spoken of; null for others.
  const PortChoice* proposal(net::FabricAddress address) const;

  /// The port behind an address that was taken could not be opened: is_held_by_stranger(). The process lets the address go; what is taken
  /// next is another one, where the application did not name it.
  void lose(net::FabricAddress address);

  /// In a child made by fork(): the addresses are the parent's.
  void abandon_in_child();

 private:
  struct Held {
    PortChoice choice;
    AddressLock lock;
  };
  struct Proposal {
    PortChoice choice;
    bool is_own = false;  ///< else a further rail
    std::optional<net::FabricAddress> taken_instead;
  };
  Candidates own_candidates(const fep::Settings& settings) const;
  const Held* held(net::FabricAddress address) const;
  Picked first_free(Candidates candidates) const;
  Picked take_first(const fep::Settings& settings, Candidates candidates);
  const PortChoice* rail_on(const Candidates& candidates, const std::string& device) const;
  Candidates without_held(Candidates candidates) const;
  void propose(const PortChoice& choice, bool is_own);
  Picked take_rail(const fep::Settings& settings, Proposal& proposal);

  std::vector<Held> held_;
  std::optional<PortChoice> own_;          ///< held, or what find_own() said last
  std::vector<Proposal> proposed_;         ///< and never named by the application
  std::vector<net::FabricAddress> named_;  ///< by the application, among what we could propose
};

/// Whether a program that knows nothing of our locks has the UDP port: an endpoint of another make, or one of ours that has another /tmp, as
/// in a container with the network of its host. Only where this process has not opened it.
bool is_held_by_stranger(const PortChoice& choice, const fep::Settings& settings);

}  // namespace uet::provider
