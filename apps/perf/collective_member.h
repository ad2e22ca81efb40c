/// One member of `uet-perf collective`: its endpoint, and its part of each run.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/perf/collectives.h"
#include "apps/perf/fabric_group.h"

namespace uet::perf {

/// What all members do alike: one operation, over and over.
struct CollectiveRun {
  CollectiveShape shape;
  std::uint64_t calls = 1;
  std::uint64_t number = 0;  ///< of the barrier before it; each call takes the next
  unsigned seed = 0;         ///< of the data
};
nlohmann::json to_json(const CollectiveRun& run);
/// Null when a field is missing or beyond its bound; it comes from the network.
std::optional<CollectiveRun> run_from_json(const nlohmann::json& json);

struct CollectiveResult {
  double seconds = 0;       ///< of all calls
  std::uint64_t wrong = 0;  ///< elements of the result
};

/// One provider's endpoint with memory for the largest run.
class CollectiveMember {
 public:
  CollectiveMember(Patience& patience, const std::string& provider, std::size_t bytes,
                   std::function<void(bool)> look)
      : endpoint_(patience, provider, false, bytes, std::move(look)) {}

  FabricEndpoint& endpoint() { return endpoint_; }
  /// What this member gives the others to reach it, and `names` of all of them.
  std::vector<std::uint8_t> name() { return endpoint_.name(); }
  void join(unsigned rank, const std::vector<std::vector<std::uint8_t>>& names) {
    group_ = std::make_unique<FabricGroup>(endpoint_, rank, names);
  }
  static std::size_t bytes_for(const CollectiveShape& shape);

  /// Fills memory: what arrives in the run, and nothing else, makes the result right.
  void prepare(const CollectiveRun& run);
  /// From a barrier on; the result is looked at when the clock has stopped.
  CollectiveResult measure(const CollectiveRun& run);

 private:
  std::uint8_t* in() { return endpoint_.buffer(); }
  std::uint8_t* out(const CollectiveShape& shape) { return in() + shape.bytes(); }
  std::uint8_t* scratch(const CollectiveShape& shape) { return in() + 2 * shape.bytes(); }

  FabricEndpoint endpoint_;
  std::unique_ptr<FabricGroup> group_;
};

}  // namespace uet::perf
