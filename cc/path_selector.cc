#include "cc/path_selector.h"

#include "cc/paths_bitmap.h"
#include "cc/paths_mixed.h"
#include "cc/paths_oblivious.h"
#include "cc/paths_reps.h"
#include "cc/paths_single.h"

namespace uet::cc {
namespace {

bool is_single(const CcConfig& config, bool sprayed) {
  return !sprayed || config.load_balancing == LoadBalancing::kSingle;
}

}  // namespace

std::unique_ptr<PathSelector> make_path_selector(const CcConfig& config, bool sprayed,
                                                 PathTable& table, base::Rng& rng) {
  if (is_single(config, sprayed)) return std::make_unique<SinglePath>(config, table, rng);
  switch (config.load_balancing) {
    case LoadBalancing::kSingle:
      break;
    case LoadBalancing::kOblivious:
      return std::make_unique<ObliviousPaths>(table, rng);
    case LoadBalancing::kBitmap:
      return std::make_unique<BitmapPaths>(config, table, rng);
    case LoadBalancing::kReps:
      return std::make_unique<RepsPaths>(config, table, rng);
    case LoadBalancing::kMixed:
      return std::make_unique<MixedPaths>(config, table, rng);
    case LoadBalancing::kRepsLegacy:
      return std::make_unique<RepsLegacyPaths>(table, rng);
  }
  return std::make_unique<SinglePath>(config, table, rng);
}

std::uint32_t path_count_for(const CcConfig& config, bool sprayed) {
  return is_single(config, sprayed) ? 1 : config.paths;
}

bool evicts_paths(const CcConfig& config, bool sprayed) {
  return !is_single(config, sprayed) && config.load_balancing != LoadBalancing::kOblivious;
}

}  // namespace uet::cc
