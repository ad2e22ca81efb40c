/// `uet-perf fabric`: bandwidth, latency and message rate of any libfabric provider, between two
/// processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/perf/control_channel.h"
#include "apps/perf/figure.h"

namespace uet::perf {

/// Operations in flight when the user names no number.
inline constexpr std::uint64_t kDefaultWindow = 16;

/// As the user wrote them; what is empty was not said.
struct FabricOptions {
  std::vector<std::string> tests;
  std::vector<std::string> providers;
  std::string peer;    ///< control address of the server; empty: be the server
  std::string listen;  ///< server: control address to listen on
  std::uint16_t control_port = 4794;
  std::vector<std::uint64_t> sizes;    ///< bytes of a message
  std::optional<std::uint64_t> count;  ///< messages of a run
  std::optional<std::uint64_t> window;
  std::optional<std::uint64_t> warm_up;  ///< messages of the run that does not count
  unsigned runs = 5;
  std::optional<double> seconds;  ///< in which runs begin, in place of a number of them
  double timeout_s = 60;
  bool ordered = false;  ///< FI_ORDER_SAS
  bool verify = true;    ///< look at the bytes that arrived
  Format format = Format::kText;
};

/// Runs one side; prints the result on the client. Returns the exit code: 0 only when everything was measured.
int run_fabric(const FabricOptions& options);

/// The two sides, over a control connection that was greeted.
int run_fabric_server(const FabricOptions& options, ControlChannel& control, Patience& patience);
int run_fabric_client(const FabricOptions& options, ControlChannel& control, Patience& patience);

}  // namespace uet::perf
