#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/base/rng.h"
#include "sim/traffic_matrix.h"

namespace uet::sim {

namespace {

/// Adds flows to a matrix and chains them: a flow may start when others have been received.
class Builder {
 public:
  explicit Builder(std::uint32_t nodes) { matrix_.nodes = nodes; }

  /// Starts at 0, or when `after` fires.
  std::size_t flow(HostId from, HostId to, std::uint64_t bytes,
                   std::optional<std::uint32_t> after = {}) {
    Flow f;
    f.id = static_cast<std::uint32_t>(matrix_.flows.size() + 1);
    f.source = from;
    f.destination = to;
    f.bytes = std::max<std::uint64_t>(bytes, 1);
    f.started_by = after;
    matrix_.flows.push_back(f);
    return matrix_.flows.size() - 1;
  }
  /// A trigger that fires when the last of `flows` has arrived.
  std::uint32_t when_received(const std::vector<std::size_t>& flows) {
    Trigger t;
    t.id = static_cast<std::uint32_t>(matrix_.triggers.size() + 1);
    t.kind = Trigger::Kind::kBarrier;
    t.count = static_cast<std::uint32_t>(flows.size());
    matrix_.triggers.push_back(t);
    for (const std::size_t f : flows) matrix_.flows[f].fires_when_received = t.id;
    return t.id;
  }
  std::uint32_t nodes() const { return matrix_.nodes; }
  TrafficMatrix take() { return std::move(matrix_); }

 private:
  TrafficMatrix matrix_;
};

/// A random order of the hosts in which none keeps its place.
void permutation(Builder& b, std::uint64_t bytes, std::uint64_t seed) {
  base::Rng rng(seed);
  std::vector<HostId> to(b.nodes());
  std::iota(to.begin(), to.end(), 0);
  // Sattolo's shuffle gives one cycle, so no host sends to itself.
  for (std::uint32_t i = b.nodes() - 1; i > 0; --i) std::swap(to[i], to[rng.below(i)]);
  for (HostId h = 0; h < b.nodes(); ++h) b.flow(h, to[h], bytes);
}

/// `steps` rounds round the ring: in each, every host passes one chunk on as soon as it has the one
/// before.
void ring(Builder& b, std::uint64_t bytes, std::uint32_t steps) {
  const std::uint32_t n = b.nodes();
  std::vector<std::optional<std::uint32_t>> ready(n);
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<std::optional<std::uint32_t>> next(n);
    for (HostId h = 0; h < n; ++h) {
      const HostId to = (h + 1) % n;
      const std::size_t f = b.flow(h, to, bytes / n, ready[h]);
      if (step + 1 < steps) next[to] = b.when_received({f});
    }
    ready = std::move(next);
  }
}

/// Reduce towards host 0 along a binary tree, then broadcast back.
void tree_allreduce(Builder& b, std::uint64_t bytes) {
  const std::uint32_t n = b.nodes();
  // Up: a host sends when both children have arrived. Children have larger numbers, so walk down.
  std::vector<std::vector<std::size_t>> arrivals(n);
  for (HostId h = n - 1; h > 0; --h) {
    std::optional<std::uint32_t> ready;
    if (!arrivals[h].empty()) ready = b.when_received(arrivals[h]);
    arrivals[(h - 1) / 2].push_back(b.flow(h, (h - 1) / 2, bytes, ready));
  }
  std::vector<std::uint32_t> have(n);
  have[0] = b.when_received(arrivals[0]);
  for (HostId h = 1; h < n; ++h) {
    const std::size_t f = b.flow((h - 1) / 2, h, bytes, have[(h - 1) / 2]);
    if (2 * h + 1 < n) have[h] = b.when_received({f});
  }
}

/// Micro-batches pass from host to host as through the stages of a pipeline.
void pipeline(Builder& b, std::uint64_t bytes) {
  constexpr std::uint32_t kBatches = 8;
  for (std::uint32_t batch = 0; batch < kBatches; ++batch) {
    std::optional<std::uint32_t> ready;
    for (HostId h = 0; h + 1 < b.nodes(); ++h) {
      const std::size_t f = b.flow(h, h + 1, bytes / kBatches, ready);
      if (h + 2 < b.nodes()) ready = b.when_received({f});
    }
  }
}

}  // namespace

base::Result<TrafficMatrix, std::string> build_pattern(std::string_view name, std::uint32_t nodes,
                                                       std::uint64_t bytes, std::uint64_t seed) {
  if (nodes < 2) return std::string("a pattern needs at least 2 hosts");
  Builder b(nodes);
  if (name == "permutation") {
    permutation(b, bytes, seed);
  } else if (name == "incast") {
    for (HostId h = 1; h < nodes; ++h) b.flow(h, 0, bytes);
  } else if (name == "outcast") {
    for (HostId h = 1; h < nodes; ++h) b.flow(0, h, bytes);
  } else if (name == "all-to-all") {
    for (HostId h = 0; h < nodes; ++h) {
      for (HostId step = 1; step < nodes; ++step) b.flow(h, (h + step) % nodes, bytes / nodes);
    }
  } else if (name == "ring-allreduce") {
    ring(b, bytes, 2 * (nodes - 1));
  } else if (name == "reduce-scatter" || name == "all-gather") {
    ring(b, bytes, nodes - 1);
  } else if (name == "tree-allreduce") {
    tree_allreduce(b, bytes);
  } else if (name == "pipeline") {
    pipeline(b, bytes);
  } else {
    return fmt::format(
        "'{}' is no pattern: permutation, incast, outcast, all-to-all, ring-allreduce, "
        "tree-allreduce, all-gather, reduce-scatter, pipeline",
        name);
  }
  return b.take();
}

}  // namespace uet::sim
