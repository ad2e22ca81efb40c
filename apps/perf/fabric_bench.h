/// `uet-perf fabric`: bandwidth, latency and message rate of any libfabric provider, between two
/// processes.
#pragma once

#include <cstdint>
#include <string>

namespace uet::perf {

struct FabricOptions {
  std::string test = "write";  ///< write, read, send, tagged-latency, tagged-rate
  std::string provider = "uet";
  std::string peer;    ///< control address of the server; empty: be the server
  std::string listen;  ///< server: control address to listen on
  std::uint16_t control_port = 4794;
  std::size_t size = 1 << 20;  ///< bytes of a message
  std::uint64_t count = 2000;  ///< messages measured
  unsigned window = 16;        ///< operations in flight
  unsigned timeout_s = 60;
  bool ordered = false;  ///< FI_ORDER_SAS
  bool verify = true;    ///< look at the bytes that arrived
  bool json = false;
};

/// Runs one side; prints the result on the client. Returns the exit code.
int run_fabric(const FabricOptions& options);

}  // namespace uet::perf
