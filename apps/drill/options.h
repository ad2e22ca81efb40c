/// The command line of uet-drill.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/drill/peer.h"
#include "lib/net/port_plugin.h"

namespace uet::drill {

struct Options {
  net::PortRequest port;
  std::string impair;
  Peer peer;
  /// Capabilities by name: they have the last word on `peer.can`.
  std::set<std::string> with, without;
  Timing timing;
  std::vector<std::string>
      scripts;             ///< files, folders, or beginnings of the names of the installed ones
  std::string out;         ///< folder for report and captures; empty: none
  std::uint64_t seed = 0;  ///< 0: of the clock
  bool json = false, list = false;
};

/// Adds to what the peer can do what --with names, and takes away what --without does.
void apply_wishes(Options& options);
/// Nothing: play. Else the exit status, and everything was said.
std::optional<int> parse_options(int argc, char** argv, Options& options);

}  // namespace uet::drill
