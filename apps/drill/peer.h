/// What the user says about the endpoint under test, and how to reach it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "lib/base/units.h"
#include "lib/net/fabric_address.h"

namespace uet::drill {

struct Peer {
  net::FabricAddress address;
  bool relative = true;
  std::uint32_t job_id = 1;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 1;
  std::uint32_t initiator = 0x7d1;  ///< what we call ourselves
  std::uint64_t key = 0;            ///< of its memory, with the capability "memory"
  std::uint64_t base = 0;           ///< what stands for the first byte of that memory
  std::uint32_t payload_mtu = 1024;
  bool has_crc = true;
  std::set<std::string> can = {
      "rod",  "noop",     "probe",        "remote-data", "return-data", "ack-data",      "go-back",
      "rudi", "trimming", "large-writes", "any-start",   "openings",    "standard-reads"};
  std::string keys;         ///< key file; empty: packets are not secured
  std::string initiate;     ///< command that makes it initiate an operation
  bool is_by_hand = false;  ///< a person does
};

/// Windows of time that fit the network.
struct Timing {
  base::Duration patience = base::Duration::from_seconds(2);  ///< for an expected packet
  base::Duration quiet = base::Duration::from_ms(150);        ///< of silence that proves silence
  base::Duration reach = base::Duration::from_seconds(5);     ///< for the first sign of life
  base::Duration by_hand = base::Duration::from_seconds(60);  ///< for a person
};

/// A capability that scripts may need.
struct Capability {
  const char* name;
  const char* meaning;
  const char* without;  ///< what to do about it
};

/// "memory", "receives", ...; null when there is none of that name.
const Capability* find_capability(const std::string& name);
/// One line each, for --help.
std::string list_capabilities();

}  // namespace uet::drill
