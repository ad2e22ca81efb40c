/// Recycling of entropy values that worked. [CC 7.4]
#pragma once

#include <array>

#include "cc/path_selector.h"
#include "lib/base/ring.h"

namespace uet::cc {

/// A short ring of values that came back good. When a path breaks, the ring freezes: for a while
/// only values that worked before are used, again and again.
class RepsPaths final : public PathSelector {
 public:
  RepsPaths(const CcConfig& config, PathTable& table, base::Rng& rng)
      : config_(config), table_(table), rng_(rng) {}

  std::uint32_t next(const PathRequest& request) override;
  void on_feedback(Instant now, std::uint32_t index, PathFeedback kind) override;

 private:
  struct Slot {
    std::uint16_t index = 0;
    bool fresh = false;
    bool used = false;
  };
  std::optional<std::uint32_t> take_fresh(const PathRequest& request);
  std::optional<std::uint32_t> take_frozen(const PathRequest& request);
  void forget(std::uint32_t index);
  void thaw();

  const CcConfig& config_;
  PathTable& table_;
  base::Rng& rng_;
  std::array<Slot, 16> ring_{};
  std::uint8_t head_ =
      0;  ///< where the next good value goes; the slot after the newest, so the oldest
  std::uint8_t replay_ = 0;    ///< next slot while frozen
  std::uint16_t explore_ = 0;  ///< so many random choices follow a thaw
  bool frozen_ = false;
  Instant frozen_until_;
};

/// Good values in the order in which they came back, bounded by twice the number of paths; the
/// oldest gives way.
class PathFifo {
 public:
  explicit PathFifo(std::uint32_t paths) : values_(std::size_t{2} * paths) {}
  void push(std::uint32_t index);
  /// A bad sample of a value: its latest entry is void.
  void forget(std::uint32_t index);
  /// The oldest value that fits the request; those that do not are forgotten.
  std::optional<std::uint32_t> pop(const PathTable& table, const PathRequest& request);
  std::size_t size() const { return values_.size(); }

 private:
  static constexpr std::uint16_t kVoid = 0xffff;
  base::Ring<std::uint16_t> values_;
};

/// The simple form: first every path in turn, as many as the window holds, then what came back
/// good, else at random.
class RepsLegacyPaths final : public PathSelector {
 public:
  RepsLegacyPaths(PathTable& table, base::Rng& rng)
      : table_(table), rng_(rng), good_(table.size()) {}

  std::uint32_t next(const PathRequest& request) override;
  void on_feedback(Instant now, std::uint32_t index, PathFeedback kind) override;

 private:
  PathTable& table_;
  base::Rng& rng_;
  PathFifo good_;
  std::uint32_t introduced_ = 0;
};

/// A random path that fits; when none does after some draws, the next one that fits, or has a free
/// port at least.
std::uint32_t random_path(const PathTable& table, const PathRequest& request, base::Rng& rng);

}  // namespace uet::cc
