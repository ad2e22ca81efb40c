#include "apps/sim/run_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace uet::sim {

namespace {

using Json = nlohmann::ordered_json;

std::string count(std::uint64_t n, std::string_view what) {
  if (n == 1) return fmt::format("1 {}", what);
  const std::string_view end = what == "leaf" ? "ves" : "s";
  return fmt::format("{} {}{}", n, what == "leaf" ? "lea" : what, end);
}

std::string traffic_of(const RunOptions& o, const TrafficMatrix& matrix) {
  if (!o.pattern.empty()) {
    return fmt::format("{}, {}, {} a host", o.pattern, count(matrix.nodes, "host"),
                       count(o.bytes, "byte"));
  }
  return fmt::format("{}, {}, {}", o.matrix, count(matrix.nodes, "host"),
                     count(matrix.flows.size(), "flow"));
}

std::string fabric_of(const FabricConfig& f) {
  const FatTree& tree = f.tree;
  std::string text =
      tree.tiers == 2
          ? fmt::format("leaf-spine, {}, {}", count(tree.leaves(), "leaf"),
                        count(tree.tops(), "spine"))
          : fmt::format("fat tree, {}, {}, {}", count(tree.leaves(), "leaf"),
                        count(tree.aggregations(), "aggregation"), count(tree.tops(), "core"));
  if (f.planes > 1) text += fmt::format(" in each of {} planes", f.planes);
  text += fmt::format(", {:g} Gb/s links, {} ns a hop, {} of payload in a packet",
                      static_cast<double>(f.link_rate.bps()) / 1e9, f.hop_delay.ps() / 1000,
                      count(f.mtu_payload, "byte"));
  text += f.trimming ? ", trimming" : ", no trimming";
  if (f.queue_bytes != 0) text += fmt::format(", queues of {}", count(f.queue_bytes, "byte"));
  return text;
}

std::string transport_of(const RunConfig& c) {
  std::string text = fmt::format("cc {}, lb {}, {}", cc::name_of(c.algorithm),
                                 cc::name_of(c.load_balancing), count(c.paths, "path"));
  if (c.run_packets > 1) text += fmt::format(", runs of {} packets on one path", c.run_packets);
  if (c.calm_run_packets > c.run_packets)
    text += fmt::format(", of {} without congestion", c.calm_run_packets);
  if (c.ack_every_packet) text += ", an ACK for every packet";
  return text;
}

std::string faults_of(const RunConfig& c) {
  std::string text;
  for (const LinkChange& change : c.changes) text += (text.empty() ? "" : ", ") + in_words(change);
  if (text.empty()) return "none";
  if (c.repair_delay.ps() >= 0)
    text += fmt::format("; switches route around dead links after {:g} us", c.repair_delay.us());
  return text;
}

}  // namespace

std::string in_words(const LinkChange& change) {
  std::string text = change.links;
  if (change.speed > 0)
    text += fmt::format(" at {:g} %", 100 * change.speed);
  else
    text += " down";
  if (change.flap_period.ps() > 0)
    text += fmt::format(" for half of every {:g} us", change.flap_period.us());
  if (change.from > SimTime{}) text += fmt::format(" from {:g} us", change.from.us());
  if (!change.until.is_never()) text += fmt::format(" to {:g} us", change.until.us());
  return text;
}

RunName name_run(const RunOptions& options, const RunConfig& config, const TrafficMatrix& matrix) {
  return {.traffic = traffic_of(options, matrix),
          .fabric = fabric_of(config.fabric),
          .transport = transport_of(config),
          .faults = faults_of(config)};
}

Json run_json(const RunOptions& o, const RunConfig& c, const TrafficMatrix& matrix) {
  const FatTree& tree = c.fabric.tree;
  Json j;
  if (!o.pattern.empty()) {
    j["pattern"] = o.pattern;
    j["bytes"] = o.bytes;
  } else {
    j["matrix"] = o.matrix;
  }
  j["hosts"] = matrix.nodes;
  j["tiers"] = tree.tiers;
  j["leaves"] = tree.leaves();
  j[tree.tiers == 2 ? "spines" : "cores"] = tree.tops();
  j["planes"] = c.fabric.planes;
  j["link_gbps"] = static_cast<double>(c.fabric.link_rate.bps()) / 1e9;
  j["hop_ns"] = c.fabric.hop_delay.ps() / 1000;
  j["mtu_payload"] = c.fabric.mtu_payload;
  j["trimming"] = c.fabric.trimming;
  j["queue_bytes"] = c.fabric.switch_queue(false).data_limit_bytes;
  j["cc"] = cc::name_of(c.algorithm);
  j["lb"] = cc::name_of(c.load_balancing);
  j["paths"] = c.paths;
  j["run_packets"] = c.run_packets;
  j["calm_run_packets"] = std::max(c.calm_run_packets, c.run_packets);  // as endpoints take it
  j["ack_every_packet"] = c.ack_every_packet;
  auto& faults = j["faults"] = Json::array();
  for (const LinkChange& change : c.changes) faults.push_back(in_words(change));
  j["repair_us"] = c.repair_delay.ps() < 0 ? Json(nullptr) : Json(c.repair_delay.us());
  j["seed"] = c.seed;
  return j;
}

}  // namespace uet::sim
