/// The command line that EAL gets: what makes it a guest, and what the user adds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace uet::dpdk {

struct EalNeeds {
  std::string device;   ///< of a bus (PCI, auxiliary, VMBus), with its arguments; empty: none
  bool is_pci = false;  ///< that device
  std::size_t memory_bytes = 0;  ///< for the packets of the first port
  int node = -1;                 ///< that should have this memory; -1: where the process runs
  bool single_file = false;    ///< memory that peers map must be in one file: memif without copying
  std::string user_arguments;  ///< FI_UET_DPDK_ARGS
};

/// What the machine has.
struct EalSurroundings {
  std::vector<std::size_t> hugepages;  ///< bytes in those that are free, by node
  std::vector<int> cpus;               ///< that the process may run on
  int node = -1;                       ///< that has all these CPUs; -1: they are on several
  int process = 0;
};

/// False, and a sentence in `error`, when the user gives what a guest must not, or what DPDK would refuse with a page of help on stdout.
bool make_eal_arguments(const EalNeeds& needs, const EalSurroundings& machine,
                        std::vector<std::string>& arguments, std::string& error);

}  // namespace uet::dpdk
