/// The queue in front of one link of a switch or host: two FIFOs, strict priority, trimming, ECN
/// marking.
#pragma once

#include <cstdint>
#include <limits>

#include "lib/base/rng.h"
#include "sim/frame.h"
#include "sim/wire_model.h"

namespace uet::sim {

struct QueueConfig {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;
  std::int64_t data_limit_bytes = kUnlimited;
  std::int64_t control_limit_bytes = kUnlimited;
  bool trimming = false;            ///< cut what does not fit instead of dropping it
  bool marking = false;             ///< set CE on data packets as they leave
  std::int64_t ecn_low_bytes = 0;   ///< no marks up to this many data bytes left behind
  std::int64_t ecn_high_bytes = 0;  ///< all marked above; linear probability between
  bool last_hop = false;            ///< leads to a host: trimmed packets say so

  /// The same queue in front of a link of `factor` times the speed.
  QueueConfig scaled(double factor) const;
};

struct QueueCounters {
  std::uint64_t data_packets = 0, data_bytes = 0, control_packets = 0;  ///< that left
  std::uint64_t marks = 0, trims = 0, drops_data = 0, drops_control = 0;
  std::int64_t peak_data_bytes = 0;
};

/// The packet that is being sent stays in the queue, and in its occupancy, until its last bit has
/// left.
class OutputQueue {
 public:
  OutputQueue(const QueueConfig& config, const WireModel& model)
      : config_(config), model_(&model) {}

  void configure(const QueueConfig& config) { config_ = config; }
  const QueueConfig& config() const { return config_; }

  /// Takes the frame, which may cost it (or another) its payload, or all of it; `pool` takes back
  /// what is dropped.
  void push(Frame* frame, base::Rng& rng, FramePool& pool);
  bool is_empty() const { return control_.is_empty() && data_.is_empty(); }
  /// Chooses what to send next and returns its size; must not be empty.
  std::uint32_t begin();
  /// The frame chosen by begin(), which leaves now: marked if the queue behind it is long.
  Frame* finish(base::Rng& rng);

  std::int64_t data_bytes() const { return data_bytes_; }
  std::int64_t control_bytes() const { return control_bytes_; }
  const QueueCounters& counters() const { return counters_; }

 private:
  void push_data(Frame* frame, base::Rng& rng, FramePool& pool);
  void push_control(Frame* frame, FramePool& pool);
  void cut(Frame* frame, FramePool& pool);
  void mark_maybe(Frame& frame, base::Rng& rng);
  bool newest_may_be_cut() const;

  QueueConfig config_;
  const WireModel* model_;
  FrameFifo data_, control_;
  std::int64_t data_bytes_ = 0, control_bytes_ = 0;
  Frame* sending_ = nullptr;
  QueueCounters counters_;
};

}  // namespace uet::sim
