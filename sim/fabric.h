/// A whole fabric: hosts' ports, switches, links between them, and ways to break them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fabric_config.h"
#include "sim/sim_port.h"
#include "sim/simulation.h"
#include "sim/switch.h"

namespace uet::sim {

/// Sums over all links, and what hosts dropped on arrival.
struct FabricTotals {
  std::uint64_t trims = 0, drops = 0, marks = 0, lost_while_down = 0;
};

class Fabric {
 public:
  /// The model must outlive the fabric. `own_pools`: packets of each host's own pool; empty: all
  /// share the simulation's.
  Fabric(Simulation& simulation, const WireModel& model, const FabricConfig& config,
         const SimPortConfig& port_config, std::span<const std::uint32_t> own_pools = {});

  const FabricConfig& config() const { return config_; }
  SimPort& port(HostId host) { return *ports_[host]; }
  std::size_t hosts() const { return ports_.size(); }
  Switch& leaf(std::size_t i, std::size_t plane = 0) { return *planes_[plane].leaves[i]; }
  Switch& top(std::size_t i, std::size_t plane = 0) { return *planes_[plane].tops[i]; }
  std::size_t tops() const { return planes_[0].tops.size(); }

  /// Links named by `spec`: a switch or host ("spine0", "core3", "agg1", "leaf2", "host7") means
  /// all its links in both directions; "leaf2-spine0" one cable; "spine0>leaf2" one direction; all
  /// of them in every plane. "plane1" means all links of that plane, "plane1/spine0" only what is
  /// in it. Empty when nothing has that name.
  std::vector<Link*> find_links(std::string_view spec);

  /// Makes all switches leave out the uplinks behind which a destination cannot be reached over
  /// links that are up: what routing does some time after a failure or a repair.
  void repair_routes();
  /// All links, host links first.
  std::vector<Link*> all_links();

  FabricTotals totals();
  /// Data packets that each switch of the top tier sent, one plane after the other.
  std::vector<std::uint64_t> top_packets();

 private:
  /// One tree.
  struct Plane {
    std::vector<std::unique_ptr<Switch>> leaves, aggregations, tops;
    std::vector<std::unique_ptr<Link>> host_links;
  };
  void build_two_tiers(Plane& plane);
  void build_three_tiers(Plane& plane);
  void connect_hosts(Plane& plane, unsigned number);
  std::size_t connect(Switch& from, Switch& to);
  void links_of(Plane& plane, std::vector<Link*>& links);

  Simulation& simulation_;
  const WireModel& model_;
  FabricConfig config_;
  std::vector<Plane> planes_;
  std::vector<std::unique_ptr<SimPort>> ports_;
};

}  // namespace uet::sim
