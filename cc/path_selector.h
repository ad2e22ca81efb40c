/// Which path the next packet takes. One selector per CCC; the ways of choosing differ in what
/// feedback they use. [CC 7]
#pragma once

#include <cstdint>
#include <memory>

#include "cc/path_table.h"
#include "lib/base/rng.h"

namespace uet::cc {

class PathSelector {
 public:
  virtual ~PathSelector() = default;
  /// Index into the table. Always answers: when no path fits the request, with the one at hand
  /// whose port is free.
  virtual std::uint32_t next(const PathRequest& request) = 0;
  /// What became of a packet on this path. The table has counted it already.
  virtual void on_feedback(Instant now, std::uint32_t index, PathFeedback kind) = 0;
  /// False where it makes no difference that a packet came through: good samples, one for each packet, are then not handed in.
  virtual bool uses_good_news() const { return true; }
  /// A packet came through unmarked, but slower than others while the window kept the next ones back.
  virtual void on_slow(Instant now, std::uint32_t index, Duration base_rtt) {
    (void)base_rtt;
    on_feedback(now, index, PathFeedback::kGood);
  }
  /// Tests write out sequences: every round begins at index 0.
  virtual void fix_order_for_test() {}
};

/// The selector that `config` asks for; kSingle for a CCC that is not sprayed. `table` and `rng`
/// must outlive it.
std::unique_ptr<PathSelector> make_path_selector(const CcConfig& config, bool sprayed,
                                                 PathTable& table, base::Rng& rng);

/// Number of entropy values such a CCC has, and whether it may stop using some of them.
std::uint32_t path_count_for(const CcConfig& config, bool sprayed);
bool evicts_paths(const CcConfig& config, bool sprayed);

}  // namespace uet::cc
