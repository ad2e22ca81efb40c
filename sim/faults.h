/// What can go wrong with a packet on a wire, by seed.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "lib/base/rng.h"
#include "sim/frame.h"
#include "sim/sim_time.h"

namespace uet::sim {

enum class Fault : std::uint8_t {
  kLoss,
  kBurstLoss,
  kDuplicate,
  kLateDuplicate,
  kReorder,
  kCorrupt,
  kTruncate,
  kTrim,
  kPartition,
  kCount
};
inline constexpr std::size_t kFaultCount = static_cast<std::size_t>(Fault::kCount);
std::string_view name_of(Fault fault);
using FaultCounters = std::array<std::uint64_t, kFaultCount>;

/// Probabilities for each packet; all zero is a perfect wire.
struct FaultProfile {
  double loss = 0;
  // Gilbert-Elliott: a two-state chain, stepped once a packet, that loses packets with `burst_loss`
  // in its bad state.
  double burst_enter = 0, burst_leave = 1, burst_loss = 1;
  double duplicate = 0;       ///< a second copy right behind the first
  double late_duplicate = 0;  ///< a second copy after up to `late_delay`
  double reorder = 0;         ///< held back for up to `reorder_delay`
  double corrupt = 0;         ///< one bit flipped
  double truncate = 0;        ///< cut at a random byte, without saying so
  double trim = 0;            ///< trimmed as by a switch, if it may be
  SimSpan reorder_delay = SimSpan::from(base::Duration::from_us(20));
  SimSpan late_delay = SimSpan::from(base::Duration::from_ms(5));

  bool is_perfect() const {
    return loss == 0 && burst_enter == 0 && duplicate == 0 && late_duplicate == 0 && reorder == 0 &&
           corrupt == 0 && truncate == 0 && trim == 0;
  }
};

/// One wire's faults.
class FaultInjector {
 public:
  FaultInjector(const FaultProfile& profile, base::Rng rng) : profile_(profile), rng_(rng) {}

  struct Fate {
    bool lost = false;
    SimSpan extra_delay{};  ///< of the packet itself
    bool copied = false;
    SimSpan copy_delay{};  ///< behind the undelayed packet
    bool trimmed = false;  ///< the link does it, it knows the model
  };
  /// Draws what happens to `frame`, and damages its bytes if that is its fate; damaged packets are not trimmed later, since
  /// that would hide the damage from the checksum.
  Fate decide(Frame& frame);

  void set_profile(const FaultProfile& profile) { profile_ = profile; }
  const FaultProfile& profile() const { return profile_; }
  const FaultCounters& counters() const { return counters_; }
  void count(Fault fault) { ++counters_[static_cast<std::size_t>(fault)]; }

 private:
  bool is_lost();
  void damage(Frame& frame);

  FaultProfile profile_;
  base::Rng rng_;
  bool in_burst_ = false;
  FaultCounters counters_{};
};

}  // namespace uet::sim
