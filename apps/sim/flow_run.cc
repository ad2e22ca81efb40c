#include "apps/sim/flow_run.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <unordered_map>

#include "apps/sim/flow_paths.h"
#include "apps/sim/host.h"
#include "lib/base/check.h"
#include "lib/base/percentile.h"
#include "sim/bounds.h"
#include "sim/fabric.h"
#include "sim/ooo_meter.h"
#include "sim/trace_log.h"

namespace uet::sim {

namespace {

/// Samples that a run keeps: of queues about twice as many as a chart has points, of the windows of all hosts 32 MB.
constexpr std::size_t kQueueSamplesMax = 4000, kWindowSamplesMax = 1'000'000;

/// One run: fabric, hosts, flows under way.
class Run {
 public:
  Run(const RunConfig& config, const TrafficMatrix& matrix);

  /// Empty, or why the changes cannot be applied.
  std::string schedule_changes();
  base::Result<RunResult, std::string> execute();

 private:
  void add_hosts();
  void connect_peers();
  void schedule_flows();
  void schedule_start(SimTime at, std::size_t flow);
  void start(std::size_t flow);
  void post_waiting(HostId host);
  void on_completion(Host& host, const ses::Completion& completion);
  void end_flow(std::size_t flow, const ses::Completion& completion);
  void fire(std::uint32_t trigger);
  void set_active(const LinkChange& change, const std::vector<Link*>& links, bool active);
  void note_paths(FlowResult& flow);
  void flap(const LinkChange& change, std::vector<Link*> links, bool changed);
  void sample();
  void thin_samples();
  bool is_finished() const { return finished_ == result_.flows.size(); }
  /// No flow is under way and none will start: those that are left wait for triggers that nothing fires.
  bool is_over() const { return starts_waiting_ == 0 && finished_ == started_; }
  void summarise();
  TopSpeeds top_speeds() const;
  fep::FepConfig fep_config() const;

  const RunConfig& config_;
  const TrafficMatrix& matrix_;
  Simulation simulation_;
  WireModel model_;
  Fabric fabric_;
  OooMeter ooo_;
  std::unique_ptr<TraceLog> trace_log_;
  std::vector<std::unique_ptr<Host>> hosts_;  ///< by HostId; null where no flow begins or ends
  std::vector<std::unique_ptr<LastWindow>> windows_;
  std::vector<std::uint64_t> keys_;  ///< memory key of each host
  std::vector<std::unordered_map<HostId, ses::PeerId>> peers_;
  std::vector<std::vector<std::size_t>> waiting_;  ///< flows of a host that SES could not take yet
  std::unordered_map<std::uint32_t, std::uint32_t> fired_;
  std::unordered_map<Link*, std::vector<const LinkChange*>> active_;  ///< changes that hold now
  // All flows read and write the same bytes: what they are does not matter, where they lie costs
  // time.
  std::vector<std::uint8_t> source_bytes_, sink_bytes_;
  RunResult result_;
  std::size_t finished_ = 0, started_ = 0, starts_waiting_ = 0;
  SimSpan sample_period_;
  std::size_t maximum_peers_ = 1;
};

std::size_t largest_flow(const TrafficMatrix& matrix) {
  std::uint64_t bytes = 1;
  for (const Flow& f : matrix.flows) bytes = std::max(bytes, f.bytes);
  return bytes;
}

Run::Run(const RunConfig& config, const TrafficMatrix& matrix)
    : config_(config),
      matrix_(matrix),
      simulation_(config.seed, config.packets_max, config.fabric.mtu_payload + 128),
      model_{.size = WireModel::Size::kModel, .overhead = 0, .dscp = {}},
      fabric_(simulation_, model_, config.fabric,
              SimPortConfig{.ip_mtu = config.fabric.mtu_payload + 256}),
      hosts_(matrix.nodes),
      windows_(matrix.nodes),
      keys_(matrix.nodes),
      peers_(matrix.nodes),
      waiting_(matrix.nodes),
      source_bytes_(largest_flow(matrix)),
      sink_bytes_(largest_flow(matrix)),
      sample_period_(config.sample_period) {
  if (config.trace != nullptr) trace_log_ = std::make_unique<TraceLog>(*config.trace);
  for (const Flow& flow : matrix.flows) result_.flows.push_back(FlowResult{.flow = flow});
  connect_peers();
  if (config.prepare) config.prepare(fabric_);
}

fep::FepConfig Run::fep_config() const {
  const FabricConfig& f = config_.fabric;
  fep::FepConfig c;
  c.protection = fep::DataProtection::kNone;
  c.payload_mtu = f.mtu_payload;
  c.burst = 4;

  c.cc.algorithm = config_.algorithm;
  c.cc.load_balancing = config_.load_balancing;
  c.cc.paths = config_.paths;
  c.cc.run_packets = config_.run_packets;
  c.cc.calm_run_packets = config_.calm_run_packets;
  c.cc.trimming = f.trimming;
  c.cc.config_base_rtt = base::Duration::from_ns((f.base_rtt().ps() + 500) / 1000);
  c.cc.link_rate = f.host_rate();
  c.cc.rto_min = f.rto_min().duration();
  // The published runs start with 1.5 BDP of speculative credit.
  c.cc.spec_window = (f.base_rtt().ps() * 3 / 2) *
                     static_cast<std::int64_t>(f.host_rate().bps() / 1'000'000) / 8'000'000;

  c.pds.nominal_extra =
      0;  // so that the nominal size is the size on the wire: payload and 64 bytes
  c.pds.ack_gen_trigger = f.ack_trigger();
  c.pds.use_trimming = f.trimming;
  c.pds.enb_ack_per_pkt = config_.ack_every_packet;
  c.pds.rto_init_time = f.rto_min().duration();
  c.pds.rto_max = base::Duration::from_ms(100);
  // The queues of two paths differ by less than two round trips; what is overtaken by more is lost.
  c.pds.reorder_window = c.cc.config_base_rtt * 2;
  c.pds.max_rto_retx_cnt = 15;  // no limit: flows wait for links to come back
  c.pds.max_nack_retx_cnt = 31;
  c.pds.pdc_idle_time = base::Duration::from_seconds(1000);
  c.pds.max_pdc_per_key = 1;  // one flow, one window, as in the published runs
  const auto peers = static_cast<std::uint32_t>(maximum_peers_);
  // A peer that sends a single packet never proves itself, and such PDCs get half of the places for targets (docs/decisions/0100).
  c.pds.max_pdc = std::max(16u, 3 * peers + 8);
  c.pds.max_messages = 4096;
  c.pds.max_messages_per_pdc = 4096;

  c.ses.max_endpoints = 2;
  c.ses.max_sends = std::max(64u, 2 * peers);
  c.ses.max_receives = 16;
  c.ses.max_messages = std::max(64u, 4 * peers);
  c.ses.max_peers = peers + 8;
  c.ses.max_memory_regions = 4;
  c.ses.overflow_msgs = 16;
  if (config_.adjust) config_.adjust(c);
  return c;
}

void Run::connect_peers() {
  std::vector<std::unordered_map<HostId, int>> talks_to(matrix_.nodes);
  for (const Flow& f : matrix_.flows) {
    talks_to[f.source][f.destination] = 1;
    talks_to[f.destination][f.source] = 1;
  }
  for (const auto& t : talks_to) maximum_peers_ = std::max(maximum_peers_, t.size());
  add_hosts();
  for (const Flow& f : matrix_.flows) {
    auto& known = peers_[f.source];
    if (known.contains(f.destination)) continue;
    const auto peer = hosts_[f.source]->ses().add_peer(hosts_[f.destination]->address());
    UET_CHECK(peer.has_value());
    known[f.destination] = peer.value();
  }
}

void Run::add_hosts() {
  const fep::FepConfig config = fep_config();
  for (const Flow& f : matrix_.flows) {
    for (const HostId h : {f.source, f.destination}) {
      if (hosts_[h]) continue;
      SimPort& port = fabric_.port(h);
      port.set_observer(&ooo_);
      hosts_[h] = std::make_unique<Host>(
          simulation_, port, config, ses::EndpointConfig{},
          [this](Host& host, const ses::Completion& c) { on_completion(host, c); });
      if (trace_log_) trace_log_->watch(h, hosts_[h]->trace());
      if (config_.sample_period.ps() > 0) {
        windows_[h] = std::make_unique<LastWindow>(hosts_[h]->trace());
      }
      const iovec memory{sink_bytes_.data(), sink_bytes_.size()};
      ses::MemoryRequest request;
      request.iov = {&memory, 1};
      request.remote_write = true;
      request.virtual_addressing = false;
      const auto key = hosts_[h]->ses().register_memory(request);
      UET_CHECK(key.has_value());
      keys_[h] = key.value();
    }
  }
}

void Run::schedule_flows() {
  for (std::size_t i = 0; i < matrix_.flows.size(); ++i) {
    if (matrix_.flows[i].started_by) continue;
    schedule_start(matrix_.flows[i].start, i);
  }
}

void Run::schedule_start(SimTime at, std::size_t flow) {
  ++starts_waiting_;
  simulation_.events.call_at(at, [this, flow] {
    --starts_waiting_;
    start(flow);
  });
}

void Run::start(std::size_t flow) {
  FlowResult& r = result_.flows[flow];
  if (!r.started.is_never()) return;  // a multishot trigger fires for each flow only once
  r.started = simulation_.now();
  ++started_;
  waiting_[r.flow.source].push_back(flow);
  post_waiting(r.flow.source);
}

void Run::post_waiting(HostId host) {
  auto& waiting = waiting_[host];
  Host& from = *hosts_[host];
  std::size_t posted = 0;
  for (; posted < waiting.size(); ++posted) {
    const std::size_t index = waiting[posted];
    const Flow& flow = result_.flows[index].flow;
    const iovec bytes{source_bytes_.data(), flow.bytes};
    ses::RmaRequest write;
    write.peer = peers_[host].at(flow.destination);
    write.iov = {&bytes, 1};
    write.key = keys_[flow.destination];
    write.context = index;
    if (flow.fires_when_received) write.data = index;
    if (!from.ses().rma(from.now(), from.endpoint(), write).has_value()) break;
  }
  if (posted == 0) return;
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(posted));
  from.node().poke();
}

void Run::on_completion(Host& host, const ses::Completion& completion) {
  if (completion.kind == ses::OpKind::kRemoteWrite) {
    if (!completion.has_data || completion.data >= result_.flows.size()) return;
    const Flow& flow = result_.flows[completion.data].flow;
    if (flow.fires_when_received) fire(*flow.fires_when_received);
    return;
  }
  if (completion.kind != ses::OpKind::kWrite) return;
  end_flow(completion.context, completion);
  if (!waiting_[host.id()].empty()) {
    // SES is in the middle of something: post from outside, at the same instant.
    simulation_.events.call_at(simulation_.now(), [this, id = host.id()] { post_waiting(id); });
  }
}

void Run::end_flow(std::size_t index, const ses::Completion& completion) {
  FlowResult& r = result_.flows[index];
  UET_CHECK(r.ended.is_never());
  r.ended = simulation_.now();
  r.code = static_cast<int>(completion.code);
  r.failed = completion.code != ses::ReturnCode::kOk;
  note_paths(r);
  ++finished_;
  if (config_.progress) {
    config_.progress(static_cast<double>(finished_) / static_cast<double>(result_.flows.size()),
                     simulation_.now());
  }
  if (r.flow.fires_when_sent) fire(*r.flow.fires_when_sent);
}

void Run::fire(std::uint32_t id) {
  const auto trigger = std::find_if(matrix_.triggers.begin(), matrix_.triggers.end(),
                                    [id](const Trigger& t) { return t.id == id; });
  UET_CHECK(trigger != matrix_.triggers.end());
  if (++fired_[id] != trigger->count && trigger->kind != Trigger::Kind::kMultiShot) return;
  for (std::size_t i = 0; i < matrix_.flows.size(); ++i) {
    if (matrix_.flows[i].started_by == id) {
      schedule_start(simulation_.now(), i);
    }
  }
}

std::string names_no_link(const std::string& links, const FabricConfig& f) {
  return fmt::format(
      "'{}' names no link of this fabric ({} leaves, {} aggregations, {} {}, {} hosts, {} "
      "plane{})",
      links, f.tree.leaves(), f.tree.aggregations(), f.tree.tops(),
      f.tree.tiers == 2 ? "spines" : "cores", f.hosts, f.planes, f.planes == 1 ? "" : "s");
}

std::string Run::schedule_changes() {
  for (const LinkChange& change : config_.changes) {
    std::vector<Link*> links = fabric_.find_links(change.links);
    if (links.empty()) return names_no_link(change.links, config_.fabric);
    if (change.flap_period.ps() > 0) {
      simulation_.events.call_at(change.from,
                                 [this, &change, links] { flap(change, links, true); });
      continue;
    }
    simulation_.events.call_at(change.from,
                               [this, &change, links] { set_active(change, links, true); });
    if (!change.until.is_never()) {
      simulation_.events.call_at(change.until,
                                 [this, &change, links] { set_active(change, links, false); });
    }
  }
  return {};
}

/// Changes of one link may overlap: it is up when none of them has it down, and as fast as the slowest.
void Run::set_active(const LinkChange& change, const std::vector<Link*>& links, bool active) {
  for (Link* link : links) {
    std::vector<const LinkChange*>& changes = active_[link];
    std::erase(changes, &change);
    if (active) changes.push_back(&change);
    bool up = true;
    double speed = 1;
    for (const LinkChange* c : changes) {
      up &= c->speed > 0;
      if (c->speed > 0) speed = std::min(speed, c->speed);
    }
    link->set_up(up);
    link->set_speed_factor(speed);
  }
  if (config_.repair_delay.ps() < 0) return;
  simulation_.events.call_at(simulation_.now() + config_.repair_delay,
                             [this] { fabric_.repair_routes(); });
}

void Run::note_paths(FlowResult& flow) {
  if (flow.started.is_never()) return;
  read_paths(hosts_[flow.flow.source]->fep().pds(), address_of(flow.flow.destination),
             config_.keep_paths, flow);
}

void Run::flap(const LinkChange& change, std::vector<Link*> links, bool changed) {
  if (simulation_.now() >= change.until || is_over()) {
    set_active(change, links, false);
    return;
  }
  set_active(change, links, changed);
  const SimTime next =
      std::min(change.until, simulation_.now() + SimSpan::from_ps(change.flap_period.ps() / 2));
  simulation_.events.call_at(
      next, [this, &change, links = std::move(links), changed] { flap(change, links, !changed); });
}

void Run::sample() {
  QueueSample q{.at = simulation_.now()};
  for (Link* link : fabric_.all_links()) {
    if (link->name.starts_with("host")) continue;
    q.longest_bytes = std::max(q.longest_bytes, link->queue().data_bytes());
    q.total_bytes += link->queue().data_bytes();
  }
  result_.queue_samples.push_back(q);
  for (HostId h = 0; h < windows_.size(); ++h) {
    if (!windows_[h] || !windows_[h]->has_value()) continue;
    result_.window_samples.push_back(
        WindowSample{simulation_.now(), h, windows_[h]->window(), windows_[h]->inflight()});
  }
  if (result_.queue_samples.size() >= kQueueSamplesMax ||
      result_.window_samples.size() >= kWindowSamplesMax)
    thin_samples();
  if (!is_over())
    simulation_.events.call_at(simulation_.now() + sample_period_, [this] { sample(); });
}

/// Leaves every second moment, with the longer one of two queues, and samples half as often from here on: a flow to a dead host
/// goes on for a minute.
void Run::thin_samples() {
  auto& queues = result_.queue_samples;
  std::vector<SimTime> kept;
  for (std::size_t i = 0; 2 * i < queues.size(); ++i) {
    QueueSample q = queues[2 * i];
    if (2 * i + 1 < queues.size()) {
      q.longest_bytes = std::max(q.longest_bytes, queues[2 * i + 1].longest_bytes);
      q.total_bytes = std::max(q.total_bytes, queues[2 * i + 1].total_bytes);
    }
    kept.push_back(q.at);
    queues[i] = q;
  }
  queues.resize(kept.size());
  std::erase_if(result_.window_samples, [&kept](const WindowSample& w) {
    return !std::binary_search(kept.begin(), kept.end(), w.at);
  });
  sample_period_ = sample_period_ * 2;
}

base::Result<RunResult, std::string> Run::execute() {
  schedule_flows();  // behind the changes of the same instant
  if (sample_period_.ps() > 0) simulation_.events.call_at(SimTime{}, [this] { sample(); });
  const SlabPool& pool = simulation_.packets_pool;
  while (!is_finished() && !pool.has_run_out() && simulation_.events.next_at() <= config_.end &&
         simulation_.events.run_next()) {
  }
  if (pool.has_run_out())
    return fmt::format(
        "after {:.1f} us of simulated time all {} packets are in use: let the run have more with "
        "--packets ({} MiB for each 100000), or simulate fewer hosts or flows",
        simulation_.now().us(), pool.capacity(), 100'000 * pool.buffer_bytes() >> 20);
  summarise();
  return std::move(result_);
}

SimSpan job_time(const std::vector<FlowResult>& flows) {
  SimTime first = SimTime::never(), last;
  for (const FlowResult& f : flows) {
    first = std::min(first, f.started);
    last = std::max(last, f.ended);
  }
  return flows.empty() ? SimSpan{} : last - first;
}

TopSpeeds Run::top_speeds() const {
  const std::size_t tops = config_.fabric.tree.tops();
  TopSpeeds speeds(tops * config_.fabric.planes, 1.0);
  const std::string prefix = config_.fabric.tree.tiers == 2 ? "spine" : "core";
  for (const LinkChange& change : config_.changes) {
    // Only what slows a whole switch down from the beginning to the end is part of the bound.
    if (change.from > SimTime{} || !change.until.is_never() || change.flap_period.ps() > 0)
      continue;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
      const std::string name = prefix + std::to_string(i % tops);
      const std::string plane = fmt::format("plane{}", i / tops);
      if (change.links == name || change.links == plane || change.links == plane + "/" + name) {
        speeds[i] = std::min(speeds[i], change.speed);
      }
    }
  }
  return speeds;
}

void Run::summarise() {
  RunResult& r = result_;
  std::vector<SimSpan> fcts;
  double sum = 0, squares = 0;
  for (const FlowResult& f : r.flows) {
    if (!f.is_complete()) continue;
    fcts.push_back(f.fct());
    const double rate = static_cast<double>(f.flow.bytes) / f.fct().us();
    sum += rate;
    squares += rate * rate;
  }
  r.completed = fcts.size();
  if (!fcts.empty()) {
    std::sort(fcts.begin(), fcts.end());
    r.fct_min = fcts.front();
    r.fct_median = base::median(fcts);
    r.fct_p99 = base::nearest_rank(fcts, 990);
    r.fct_max = fcts.back();
    r.jain = sum * sum / (static_cast<double>(fcts.size()) * squares);
  }
  for (const auto& host : hosts_) {
    if (!host) continue;
    r.retransmissions += host->count(base::EventId::kPacketRetransmitted);
    r.timeouts += host->count(base::EventId::kTimeout);
    SimPort& port = host->node().port();
    for (unsigned plane = 0; plane < port.planes(); ++plane) {
      r.packets += port.egress(plane).queue().counters().data_packets;
    }
  }
  const FabricTotals totals = fabric_.totals();
  r.trims = totals.trims;
  r.drops = totals.drops + totals.lost_while_down;
  r.marks = totals.marks;
  const auto tops = fabric_.top_packets();
  const auto through = std::accumulate(tops.begin(), tops.end(), std::uint64_t{0});
  for (const std::uint64_t n : tops) {
    r.top_share.push_back(through == 0 ? 0 : static_cast<double>(n) / static_cast<double>(through));
  }
  r.bound = matrix_bound(config_.fabric, matrix_, top_speeds());
  r.job_bound = job_bound(config_.fabric, matrix_, top_speeds());
  if (r.completed == r.flows.size()) r.job = job_time(r.flows);
  for (FlowResult& f : r.flows) {
    if (f.ended.is_never()) note_paths(f);
  }
  r.ooo_distance_max = ooo_.maximum();
  r.events = simulation_.events.events_run();
  r.fingerprint = simulation_.hash.value();
  r.packet_memory_bytes = simulation_.packets_pool.peak_bytes();
  r.ended = simulation_.now();
}

}  // namespace

std::string unknown_link(const RunConfig& config) {
  if (config.changes.empty()) return {};
  Simulation simulation(config.seed, config.packets_max, config.fabric.mtu_payload + 128);
  WireModel model{.size = WireModel::Size::kModel, .overhead = 0, .dscp = {}};
  Fabric fabric(simulation, model, config.fabric,
                SimPortConfig{.ip_mtu = config.fabric.mtu_payload + 256});
  for (const LinkChange& change : config.changes)
    if (fabric.find_links(change.links).empty()) return names_no_link(change.links, config.fabric);
  return {};
}

base::Result<RunResult, std::string> run_matrix(const RunConfig& config,
                                                const TrafficMatrix& matrix) {
  Run run(config, matrix);
  if (std::string error = run.schedule_changes(); !error.empty()) return error;
  return run.execute();
}

}  // namespace uet::sim
