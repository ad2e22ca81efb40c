/// `uet-perf raw`: what a port can do without UET. The baseline that everything above it is
/// compared with.
#pragma once

#include <cstdint>
#include <string>

#include "lib/net/port_plugin.h"

namespace uet::perf {

/// Memory of a run that copies has 2^this bytes.
inline constexpr unsigned kLeastMemoryShift = 16, kMostMemoryShift = 30;

struct RawOptions {
  net::PortRequest request;
  net::FabricAddress peer;
  bool is_server = false;
  bool copy = false;  ///< copy the payload once on each side, and nothing else
  unsigned memory_shift =
      20;  ///< memory that is copied from, and the most that a server copies to, has 2^this bytes
  std::size_t size = 4096;  ///< bytes of a packet behind the UDP header
  double seconds =
      1.0;  ///< of each throughput measurement, in five runs of which the middle one counts
  std::uint32_t pings = 20000;
  unsigned timeout_s = 30;  ///< for the peer to come, and to answer
  bool json = false;
};

/// Runs one side; the client prints the result. Returns the exit code.
int run_raw(const RawOptions& options);

}  // namespace uet::perf
