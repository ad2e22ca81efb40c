#include "apps/sim/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>

#include "apps/sim/link_change.h"
#include "lib/base/quantity.h"

namespace uet::sim {

namespace {

template <typename Choice>
std::map<std::string, Choice> words_of() {
  std::map<std::string, Choice> words;
  for (const Choice value : cc::all_choices<Choice>()) words.emplace(cc::name_of(value), value);
  return words;
}

/// Takes what lib/base/quantity.h knows as a number of bytes.
template <typename T>
CLI::Option* add_size(CLI::App& command, const std::string& name, T& to, std::uint64_t least,
                      std::uint64_t most, const std::string& help) {
  const auto take = [name, &to, least, most](const std::string& text) {
    const auto bytes = base::parse_byte_size(text, most);
    if (!bytes || *bytes < least)
      throw CLI::ValidationError(
          name, fmt::format("'{}' is no number of bytes in the range of {} to {}: 4096, 64k, 8M",
                            text, least, most));
    to = static_cast<T>(*bytes);
  };
  return command.add_option_function<std::string>(name, take, help)->type_name("SIZE");
}

}  // namespace

const std::map<std::string, cc::Algorithm> kAlgorithms = words_of<cc::Algorithm>();
const std::map<std::string, cc::LoadBalancing> kBalancers = words_of<cc::LoadBalancing>();

std::string check(const RunOptions& o) {
  if (o.matrix.empty() == o.pattern.empty()) return "give either --matrix or --pattern";
  if ((o.paths & (o.paths - 1)) != 0) return "--paths must be a power of two";
  if (o.calm_run_packets != 0 && o.calm_run_packets < o.run_packets)
    return "--calm-run-packets must be at least --run-packets";
  for (const double number : {o.link_gbps, o.repair_us, o.end_us}) {
    if (std::isnan(number)) return "--link-gbps, --repair-us and --end-us must be numbers";
  }
  return {};
}

base::Result<TrafficMatrix, std::string> load(const RunOptions& o) {
  if (!o.pattern.empty()) return build_pattern(o.pattern, o.hosts, o.bytes, o.seed);
  std::ifstream file(o.matrix);
  if (!file) return fmt::format("{}: cannot be opened", o.matrix);
  auto matrix = parse_matrix(file);
  if (!matrix) return fmt::format("{}: {}", o.matrix, matrix.error());
  return matrix;
}

base::Result<RunConfig, std::string> configure(const RunOptions& o, const TrafficMatrix& matrix) {
  RunConfig c;
  const auto tiers = o.tiers == 0 ? std::nullopt : std::optional<std::uint32_t>(o.tiers);
  c.fabric.tree = FatTree::for_hosts(matrix.nodes, tiers);
  c.fabric.hosts = matrix.nodes;
  c.fabric.planes = o.planes;
  c.fabric.link_rate = base::BitRate::from_bps(static_cast<std::uint64_t>(o.link_gbps * 1e9));
  c.fabric.hop_delay = SimSpan::from_ps(o.hop_ns * 1000);
  c.fabric.mtu_payload = o.mtu_payload;
  c.fabric.trimming = !o.no_trim;
  c.fabric.queue_bytes = o.queue_bytes;
  // The receiver's credit owns the last hop, so marks there would be about nothing. [CC 8]
  c.fabric.mark_last_hop =
      o.algorithm != cc::Algorithm::kRccc && o.algorithm != cc::Algorithm::kBoth;
  c.algorithm = o.algorithm;
  c.load_balancing = o.load_balancing;
  c.paths = static_cast<std::uint16_t>(o.paths);
  c.run_packets = static_cast<std::uint16_t>(o.run_packets);
  c.calm_run_packets = static_cast<std::uint16_t>(std::max(o.calm_run_packets, o.run_packets));
  c.ack_every_packet = o.ack_every_packet;
  if (o.repair_us >= 0) {
    c.repair_delay = SimSpan::from_ps(static_cast<std::int64_t>(o.repair_us * 1e6));
  }
  c.seed = o.seed;
  c.packets_max = o.packets;
  if (o.end_us > 0) c.end = SimTime::from_ps(static_cast<std::int64_t>(o.end_us * 1e6));
  for (const std::string& text : o.degrade) {
    auto changes = parse_degrade(text, c.fabric.tree);
    if (!changes) return changes.error();
    c.changes.insert(c.changes.end(), changes->begin(), changes->end());
  }
  for (const std::string& text : o.fail) {
    auto changes = parse_fail(text);
    if (!changes) return changes.error();
    c.changes.insert(c.changes.end(), changes->begin(), changes->end());
  }
  return c;
}

void add_simulation_options(CLI::App& command, RunOptions& o) {
  CLI::Option* const matrix =
      command.add_option("--matrix", o.matrix, "flows, in htsim's .cm format");
  command.add_option(
      "--pattern", o.pattern,
      "built-in flows instead: permutation, incast, outcast, all-to-all, ring-allreduce, "
      "tree-allreduce, all-gather, reduce-scatter, pipeline");
  command.add_option("--hosts", o.hosts, "hosts of --pattern")
      ->check(CLI::Range(2, 65536))
      ->excludes(matrix)
      ->capture_default_str();
  add_size(command, "--bytes", o.bytes, 1, 0xffffffff,
           "bytes of one host of --pattern, also with k, M or G (2000000)")
      ->excludes(matrix);
  command
      .add_option("--tiers", o.tiers,
                  "2: leaf-spine, 3: fat tree (default: by the number of hosts)")
      ->check(CLI::IsMember({2, 3}));
  command.add_option("--link-gbps", o.link_gbps, "speed of every link")
      ->check(CLI::Range(0.001, 10000.0))
      ->capture_default_str();
  command.add_option("--hop-ns", o.hop_ns, "delay of every link")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  command.add_option("--mtu-payload", o.mtu_payload, "payload bytes of a full packet")
      ->check(CLI::Range(64, 16000))
      ->capture_default_str();
  command.add_option("--run-packets", o.run_packets, "packets in a row that take one path")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      .add_option("--calm-run-packets", o.calm_run_packets,
                  "the same while the fabric shows no congestion; at least --run-packets, which "
                  "is the default")
      ->check(CLI::Range(1, 256));
  command.add_option("--paths", o.paths, "entropy values of a flow, a power of two")
      ->check(CLI::Range(1, 32768))
      ->capture_default_str();
  command
      .add_option("--planes", o.planes,
                  "fabrics side by side, each a whole tree; every host has a port into each")
      ->check(CLI::Range(1u, net::kMaxPlanes))
      ->capture_default_str();
  command.add_option("--degrade", o.degrade,
                     "LINKS[=FACTOR][@START_US[-END_US]][~PERIOD_US], for example spine0=0.25; or "
                     "a number of spines at 25 %");
  command.add_option(
      "--fail", o.fail,
      "LINKS[@START_US[-END_US]][~PERIOD_US], for example spine0@50 or leaf0-spine1@10-200");
  command
      .add_option("--repair-us", o.repair_us,
                  "switches route around dead links so long after they died (default: never)")
      ->check(CLI::Range(0.0, 1e9));
  command.add_flag("--no-trim", o.no_trim,
                   "switches drop instead of trimming, with five times the queue");
  add_size(command, "--queue-bytes", o.queue_bytes, 0, std::uint64_t{1} << 40,
           "data queue of a switch port, also with k, M or G (default: from the bandwidth-delay "
           "product)");
  command.add_flag("--ack-every-packet", o.ack_every_packet, "receivers acknowledge every packet");
  command
      .add_option("--end-us", o.end_us,
                  "stop at so many us of simulated time even if flows still run")
      ->check(CLI::Range(1e-6, 1e12));
  command
      .add_option("--packets", o.packets,
                  "packets that all hosts and switches together may hold at once; a run that needs "
                  "more ends with an error")
      ->check(CLI::Range(1000, 100'000'000))
      ->capture_default_str();
}

}  // namespace uet::sim
