/// Every parameter of congestion control, with the specification's defaults. [UET 3.6]
#pragma once

#include <cstdint>

#include "lib/base/units.h"

namespace uet::cc {

enum class Algorithm : std::uint8_t { kNone, kNscc, kRccc, kBoth, kTfc };
enum class LoadBalancing : std::uint8_t { kSingle, kOblivious, kBitmap, kReps, kMixed };

/// Filled by the owner of the FEP; the cc helper extends it. Zero durations and rates mean "derive".
struct CcConfig {
  Algorithm algorithm = Algorithm::kNscc;
  LoadBalancing load_balancing = LoadBalancing::kOblivious;
  std::uint16_t paths = 16;                                     ///< entropy values per CCC, a power of two
  std::uint8_t planes = 1;
  bool trimming = false;                                        ///< the fabric trims
  base::Duration config_base_rtt = base::Duration::from_us(50); ///< RTT of one MTU packet over the longest idle path
  base::BitRate link_rate = base::BitRate::from_gbps(10);
  std::uint32_t mtu_bytes = 4204;                               ///< nominal size of a full packet
  std::uint32_t ack_gen_trigger = 16384;
};

}  // namespace uet::cc
