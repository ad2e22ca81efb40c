#include "sim/bounds.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// Several flows through links that they share: their bytes, and the least that passes before the first of these is there and
/// after the last has left.
class Bundle {
 public:
  void add(SimTime start, std::int64_t bytes, SimSpan before, SimSpan behind) {
    before_ = parts_.empty() ? before : std::min(before_, before);
    behind_ = parts_.empty() ? behind : std::min(behind_, behind);
    parts_.emplace_back(start, bytes);
    bytes_ += bytes;
  }
  /// Time of the slowest flow: of the flows that start within some span, the last to end takes what all of them need, less the
  /// span.
  SimSpan slowest_flow(base::BitRate rate) {
    std::sort(parts_.begin(), parts_.end());
    SimSpan longest, most_idle = SimSpan::from_ps(std::numeric_limits<std::int64_t>::min() / 2);
    std::int64_t sent = 0;
    for (const auto& [start, bytes] : parts_) {
      most_idle = std::max(most_idle, (start - SimTime{}) - SimSpan::of_bytes(sent, rate));
      sent += bytes;
      longest = std::max(longest, SimSpan::of_bytes(sent, rate) + most_idle - (start - SimTime{}));
    }
    return parts_.empty() ? SimSpan{} : before_ + longest + behind_;
  }
  /// From `first` to the end of the last flow.
  SimSpan job(base::BitRate rate, SimTime first) {
    std::sort(parts_.begin(), parts_.end());
    SimSpan longest;
    std::int64_t left = bytes_;
    for (const auto& [start, bytes] : parts_) {
      longest = std::max(longest, (start - first) + SimSpan::of_bytes(left, rate));
      left -= bytes;
    }
    return parts_.empty() ? SimSpan{} : before_ + longest + behind_;
  }

 private:
  std::vector<std::pair<SimTime, std::int64_t>> parts_;
  std::int64_t bytes_ = 0;
  SimSpan before_, behind_;
};

/// The flows of a matrix by the links that they share. Packets count with the shortest that may be the first or the last of a
/// flow on its way, so that small ones do not beat the bound.
class Loads {
 public:
  Loads(const FabricConfig& f, const TrafficMatrix& matrix)
      : f_(f),
        t_(f),
        into_(matrix.nodes),
        out_of_(matrix.nodes),
        into_leaf_(f.tree.leaves()),
        out_of_leaf_(f.tree.leaves()) {}
  void add(const Flow& flow, SimTime start) {
    const std::uint32_t per_leaf = f_.tree.hosts_per_leaf();
    const std::int64_t bytes = wire_bytes(f_, flow.bytes), n = packets_of(f_, flow.bytes);
    const std::int64_t hops = f_.tree.hops(flow.source, flow.destination);
    const SimSpan last = SimSpan::of_bytes(bytes - (n - 1) * f_.packet_bytes(), f_.link_rate);
    const SimSpan ack = (t_.ack + t_.link) * hops;
    // On a path of its own a short last packet overtakes the full ones in front of it.
    const auto first_through = [&](std::int64_t links) {
      const SimSpan overtaking = t_.packet * ((n - 1) / f_.planes) + (last + t_.link) * links;
      return std::min(overtaking, (t_.packet + t_.link) * links);
    };
    const auto last_through = [&](std::int64_t links) {
      return t_.link + (last + t_.link) * links + ack;
    };
    into_[flow.destination].add(start, bytes, first_through(hops - 1), last_through(0));
    out_of_[flow.source].add(start, bytes, SimSpan{}, last_through(hops - 1));
    if (flow.source / per_leaf == flow.destination / per_leaf) return;
    into_leaf_[flow.destination / per_leaf].add(start, bytes, first_through(2), last_through(1));
    out_of_leaf_[flow.source / per_leaf].add(start, bytes, first_through(1), last_through(2));
  }
  /// The longest that `time_of` says of any links and their speed.
  SimSpan longest(const TopSpeeds& tops,
                  const std::function<SimSpan(Bundle&, base::BitRate)>& time_of) {
    SimSpan most;
    for (auto* hosts : {&into_, &out_of_}) {
      for (Bundle& b : *hosts) most = std::max(most, time_of(b, f_.host_rate()));
    }
    const double speed = std::accumulate(tops.begin(), tops.end(), 0.0);
    if (f_.tree.tiers != 2 || speed <= 0 || speed >= static_cast<double>(tops.size())) return most;
    const auto rate = base::BitRate::from_bps(
        static_cast<std::uint64_t>(static_cast<double>(f_.link_rate.bps()) * speed));
    for (auto* leaves : {&into_leaf_, &out_of_leaf_}) {
      for (Bundle& b : *leaves) most = std::max(most, time_of(b, rate));
    }
    return most;
  }

 private:
  const FabricConfig& f_;
  const Terms t_;
  std::vector<Bundle> into_, out_of_, into_leaf_, out_of_leaf_;
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

SimSpan job_bound(const FabricConfig& fabric, const TrafficMatrix& matrix, const TopSpeeds& tops) {
  SimTime first = SimTime::never();
  for (const Flow& f : matrix.flows) {
    if (!f.started_by) first = std::min(first, f.start);
  }
  if (first.is_never()) return {};
  Loads loads(fabric, matrix);
  for (const Flow& f : matrix.flows) loads.add(f, f.started_by ? first : f.start);
  return std::max(
      JobTimes(fabric, matrix).run(),
      loads.longest(tops, [first](Bundle& b, base::BitRate rate) { return b.job(rate, first); }));
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
  Loads loads(f, matrix);
  SimSpan bound;
  for (const Flow& flow : matrix.flows) {
    bound = std::max(bound, solo_bound(f, flow.source, flow.destination, flow.bytes));
    if (!flow.started_by) loads.add(flow, flow.start);
  }
  return std::max(bound, loads.longest(tops, [](Bundle& b, base::BitRate rate) {
    return b.slowest_flow(rate);
  }));
}

}  // namespace uet::sim
