/// How far packets overtake each other on their way.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "sim/sim_port.h"

namespace uet::sim {

/// For each sending PDC, how many PSNs a data packet arrives behind the highest one that arrived
/// before it.
class OooMeter final : public FrameObserver {
 public:
  void on_delivered(const Frame& frame) override;
  std::uint64_t maximum() const { return maximum_; }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> highest_;
  std::uint64_t maximum_ = 0;
};

}  // namespace uet::sim
