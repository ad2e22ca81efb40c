#include "sim/bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>

namespace uet::sim {

namespace {

struct Terms {
  explicit Terms(const FabricConfig& f)
      : packet(SimSpan::of_bytes(f.packet_bytes(), f.link_rate)),
        ack(SimSpan::of_bytes(WireModel::kModelHeader, f.link_rate)),
        link(f.hop_delay) {}
  SimSpan packet, ack, link;
};

std::int64_t packets_of(const FabricConfig& f, std::uint64_t bytes) {
  return static_cast<std::int64_t>((bytes + f.mtu_payload - 1) / f.mtu_payload);
}

std::int64_t wire_bytes(const FabricConfig& f, std::uint64_t bytes) {
  return static_cast<std::int64_t>(bytes) + packets_of(f, bytes) * WireModel::kModelHeader;
}

/// Several flows through one link: their bytes, the nearest one's way, the earliest start.
struct Bundle {
  std::int64_t bytes = 0;
  std::int64_t hops = std::numeric_limits<std::int64_t>::max();
  SimTime start = SimTime::never();
  void add(std::int64_t more, std::int64_t flow_hops, SimTime flow_start) {
    bytes += more;
    hops = std::min(hops, flow_hops);
    start = std::min(start, flow_start);
  }
  SimSpan through(const FabricConfig& f) const {
    if (bytes == 0) return {};
    const Terms t(f);
    return (start - SimTime{}) + SimSpan::of_bytes(bytes, f.host_rate()) +
           (t.packet + t.link) * (hops - 1) + t.link + (t.ack + t.link) * hops;
  }
};

/// Flows in the order in which their triggers let them start, each alone on the fabric.
class JobTimes {
 public:
  JobTimes(const FabricConfig& fabric, const TrafficMatrix& matrix)
      : fabric_(fabric), matrix_(matrix), started_(matrix.flows.size()) {
    for (const Trigger& t : matrix.triggers) triggers_[t.id].rule = &t;
    for (std::size_t i = 0; i < matrix.flows.size(); ++i) {
      const Flow& f = matrix.flows[i];
      if (f.started_by) {
        triggers_[*f.started_by].starts.push_back(i);
      } else {
        first_ = std::min(first_, f.start);
        start(i, f.start);
      }
    }
  }
  SimSpan run() {
    while (!firings_.empty()) {
      const auto [at, id] = firings_.top();
      firings_.pop();
      State& t = triggers_[id];
      if (t.rule == nullptr || ++t.fired != t.rule->count) continue;
      for (const std::size_t flow : t.starts) start(flow, at);
    }
    return first_.is_never() ? SimSpan{} : last_ - first_;
  }

 private:
  struct State {
    const Trigger* rule = nullptr;
    std::uint32_t fired = 0;
    std::vector<std::size_t> starts;
  };
  void start(std::size_t index, SimTime at) {
    if (started_[index]) return;
    started_[index] = true;
    const Flow& f = matrix_.flows[index];
    const SimSpan there_and_back = solo_bound(fabric_, f.source, f.destination, f.bytes);
    const Terms t(fabric_);
    const SimSpan back = (t.ack + t.link) * fabric_.tree.hops(f.source, f.destination);
    last_ = std::max(last_, at + there_and_back);
    if (f.fires_when_sent) firings_.emplace(at + there_and_back, *f.fires_when_sent);
    if (f.fires_when_received) {
      firings_.emplace(at + (there_and_back - back), *f.fires_when_received);
    }
  }

  const FabricConfig& fabric_;
  const TrafficMatrix& matrix_;
  std::vector<bool> started_;
  std::unordered_map<std::uint32_t, State> triggers_;
  using Firing = std::pair<SimTime, std::uint32_t>;
  std::priority_queue<Firing, std::vector<Firing>, std::greater<>> firings_;
  SimTime first_ = SimTime::never(), last_;
};

}  // namespace

SimSpan job_bound(const FabricConfig& fabric, const TrafficMatrix& matrix) {
  return JobTimes(fabric, matrix).run();
}

SimSpan solo_bound(const FabricConfig& f, HostId from, HostId to, std::uint64_t bytes) {
  const Terms t(f);
  const std::int64_t hops = f.tree.hops(from, to);
  const std::int64_t n = packets_of(f, bytes);
  const std::int64_t last_bytes = wire_bytes(f, bytes) - (n - 1) * f.packet_bytes();
  const SimSpan last = SimSpan::of_bytes(last_bytes, f.link_rate);
  const SimSpan back = (t.ack + t.link) * hops;
  if (n == 1) return (last + t.link) * hops + back;
  // Planes carry one packet each at a time; the short one decides when it is alone in the last round.
  const std::int64_t planes = f.planes;
  const std::int64_t rounds = (n + planes - 1) / planes;
  const bool short_one_alone = planes == 1 || n % planes == 1;
  return t.packet * (rounds - 1) + (t.packet + t.link) * (hops - 1) +
         (short_one_alone && rounds > 1 ? last : t.packet) + t.link + back;
}

SimSpan matrix_bound(const FabricConfig& f, const TrafficMatrix& matrix, const TopSpeeds& tops) {
  const std::uint32_t per_leaf = f.tree.hosts_per_leaf();
  std::vector<Bundle> into(matrix.nodes), out_of(matrix.nodes);
  std::vector<Bundle> into_leaf(f.tree.leaves()), out_of_leaf(f.tree.leaves());
  SimSpan bound;
  for (const Flow& flow : matrix.flows) {
    const std::int64_t bytes = wire_bytes(f, flow.bytes);
    const std::int64_t hops = f.tree.hops(flow.source, flow.destination);
    bound = std::max(
        bound, (flow.start - SimTime{}) + solo_bound(f, flow.source, flow.destination, flow.bytes));
    into[flow.destination].add(bytes, hops, flow.start);
    out_of[flow.source].add(bytes, hops, flow.start);
    if (flow.source / per_leaf != flow.destination / per_leaf) {
      into_leaf[flow.destination / per_leaf].add(bytes, hops, flow.start);
      out_of_leaf[flow.source / per_leaf].add(bytes, hops, flow.start);
    }
  }
  for (HostId h = 0; h < matrix.nodes; ++h) {
    bound = std::max({bound, into[h].through(f), out_of[h].through(f)});
  }
  const double speed = std::accumulate(tops.begin(), tops.end(), 0.0);
  if (f.tree.tiers != 2 || tops.empty() || speed <= 0 ||
      speed >= static_cast<double>(tops.size())) {
    return bound;
  }
  const Terms t(f);
  for (const auto* leaves : {&into_leaf, &out_of_leaf}) {
    for (const Bundle& b : *leaves) {
      if (b.bytes == 0) continue;
      const auto drain = static_cast<std::int64_t>(
          static_cast<double>(SimSpan::of_bytes(b.bytes, f.link_rate).ps()) / speed);
      bound = std::max(bound, (b.start - SimTime{}) + SimSpan::from_ps(drain) +
                                  (t.packet + t.link) * 4 + (t.ack + t.link) * 4);
    }
  }
  return bound;
}

}  // namespace uet::sim
