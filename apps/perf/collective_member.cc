#include "apps/perf/collective_member.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "apps/perf/plan.h"

namespace uet::perf {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<std::string> text(const nlohmann::json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_string() ? std::optional(at->get<std::string>()) : std::nullopt;
}

/// A whole number of at most `most`.
std::optional<std::uint64_t> number(const nlohmann::json& json, const char* key,
                                    std::uint64_t most) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_unsigned()) return std::nullopt;
  const auto value = at->get<std::uint64_t>();
  return value <= most ? std::optional(value) : std::nullopt;
}

}  // namespace

nlohmann::json to_json(const CollectiveRun& run) {
  return {{"test", run.shape.name},
          {"type", run.shape.elements.type()},
          {"reduction", run.shape.elements.reduction()},
          {"count", run.shape.count},
          {"members", run.shape.members},
          {"calls", run.calls},
          {"number", run.number},
          {"seed", run.seed}};
}

std::optional<CollectiveRun> run_from_json(const nlohmann::json& json) {
  const auto test = text(json, "test"), type = text(json, "type"),
             reduction = text(json, "reduction");
  const auto count = number(json, "count", kSizeMax),
             members = number(json, "members", kMembersMax),
             calls = number(json, "calls", kCountMax),
             first = number(json, "number", RunNumbers::kNumbers),
             seed = number(json, "seed", RunNumbers::kSeeds);
  if (!test || !type || !reduction || !count || !members || !calls || !first || !seed)
    return std::nullopt;
  const auto elements = Elements::of(*type, *reduction);
  if (!elements || *members == 0 || *count == 0 || *count % *members != 0 ||
      std::find(std::begin(kCollectives), std::end(kCollectives), *test) == std::end(kCollectives))
    return std::nullopt;
  return CollectiveRun{{*test, *elements, *count, static_cast<unsigned>(*members)},
                       *calls,
                       *first,
                       static_cast<unsigned>(*seed)};
}

std::size_t CollectiveMember::bytes_for(const CollectiveShape& shape) {
  return 2 * shape.bytes() + std::max<std::size_t>(shape.scratch_bytes(), 2);
}

void CollectiveMember::prepare(const CollectiveRun& run) {
  const CollectiveShape& s = run.shape;
  for (std::size_t i = 0; i < s.count_in(); ++i)
    s.elements.store(in() + i * s.elements.bytes(), s.given(group_->rank(), i, run.seed));
  std::memset(out(s), 0xee, s.bytes() + s.scratch_bytes());
}

CollectiveResult CollectiveMember::measure(const CollectiveRun& run) {
  const CollectiveShape& s = run.shape;
  endpoint_.set_waiting_for("the other members of a collective operation");
  run_barrier(*group_, run.number, scratch(s));
  const auto start = Clock::now();
  for (std::uint64_t call = 1; call <= run.calls; ++call)
    run_collective(s, *group_, run.number + call, in(), out(s), scratch(s));
  CollectiveResult result;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (std::size_t i = 0; i < s.count_out(); ++i)
    result.wrong +=
        s.elements.load(out(s) + i * s.elements.bytes()) != s.expected(group_->rank(), i, run.seed);
  return result;
}

}  // namespace uet::perf
