/// What uet-fabric shall be: legs, switches, links, faults, and what happens when. Knows texts and
/// numbers; opens nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/fabric/frame_view.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "sim/wire_model.h"

namespace uet::fabric {

/// One place where a host, or the outer world, is plugged in.
struct LegConfig {
  std::string name;
  std::string port;  ///< a device spec: "dpdk:net_memif0,role=server,socket=..."
  std::uint64_t leaf = 0;
  base::BitRate rate;  ///< 0: that of [fabric] host_rate
  std::uint64_t mtu = 0;
  bool wraps = false;  ///< one of several: leaves are taken in turn
  unsigned line = 0;
};

/// A command of the control socket that the scenario gives itself.
struct TimedCommand {
  base::Duration time;
  std::string text;
  unsigned line = 0;
};

struct Scenario {
  std::string file;  ///< that it was read from; empty: a text
  // [fabric]
  std::uint64_t leaves = 1;
  std::uint64_t spines = 0;  ///< paths between any two leaves
  base::BitRate host_rate = base::BitRate::from_gbps(1);
  base::BitRate rate = base::BitRate::from_gbps(1);  ///< leaf to spine and back
  base::Duration delay = base::Duration::from_us(50);
  std::uint64_t queue = 0, ecn_low = 0, ecn_high = 0;  ///< bytes; 0: derived
  bool trimming = true, marking = true;
  std::uint64_t seed = 1;
  std::uint64_t packets = 8192;     ///< that the fabric may hold
  std::uint64_t max_frame = 9216;   ///< bytes of the largest frame
  std::uint64_t nic_queue = 65536;  ///< bytes taken from a leg ahead of its transmitter
  // [uet]
  FrameRules rules;
  sim::DscpValues dscp;
  // [run]
  std::string control;  ///< path of the control socket
  std::string capture;  ///< pcapng file
  std::string stats;    ///< JSON file, written at the end
  bool realtime = false;
  base::Duration duration;  ///< 0: until told to quit

  std::vector<LegConfig> legs;
  std::vector<TimedCommand> commands;  ///< in the order of their time

  /// Round trip over the longest idle path, without the time on links.
  base::Duration idle_rtt() const { return delay * (leaves > 1 ? 8 : 4); }

  /// Nothing is opened or checked outside of the text. Fails with "path:line: what is wrong".
  static base::Result<Scenario, std::string> parse(std::string_view content,
                                                   const std::string& path);
  static base::Result<Scenario, std::string> read(const std::string& path);
};

inline constexpr std::size_t kLegsMax = 64;
inline constexpr std::size_t kSwitchesMax = 256;

/// One key of a scenario: what the README and the messages say about it.
struct ScenarioKey {
  std::string_view section;
  std::string_view key;
  std::string_view type;
  std::string fallback;  ///< as a scenario would say it; empty: none
  std::string_view help;
};
std::vector<ScenarioKey> scenario_keys();

}  // namespace uet::fabric
