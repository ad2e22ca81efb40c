#include "sim/fabric.h"

#include <fmt/format.h>

#include "lib/base/check.h"

namespace uet::sim {

Fabric::Fabric(Simulation& simulation, const WireModel& model, const FabricConfig& config,
               const SimPortConfig& port_config, std::span<const std::uint32_t> own_pools)
    : simulation_(simulation), model_(model), config_(config) {
  const FatTree& tree = config.tree;
  UET_CHECK(config.hosts <= tree.hosts());
  UET_CHECK(config.planes >= 1 && config.planes <= net::kMaxPlanes);
  const auto add = [&](std::vector<std::unique_ptr<Switch>>& to, std::uint32_t n,
                       const char* name) {
    for (std::uint32_t i = 0; i < n; ++i) {
      to.push_back(
          std::make_unique<Switch>(simulation, model, name + std::to_string(i), config.hosts));
    }
  };
  planes_.resize(config.planes);
  for (Plane& plane : planes_) {
    add(plane.leaves, tree.leaves(), "leaf");
    add(plane.aggregations, tree.aggregations(), "agg");
    add(plane.tops, tree.tops(), tree.tiers == 2 ? "spine" : "core");
  }
  for (HostId h = 0; h < config.hosts; ++h) {
    SlabPool& pool =
        own_pools.empty() ? simulation.packets_pool : simulation.add_pool(own_pools[h]);
    ports_.push_back(
        std::make_unique<SimPort>(simulation, model, h, config.hosts, port_config, pool));
  }
  for (unsigned p = 0; p < config.planes; ++p) {
    connect_hosts(planes_[p], p);
    if (tree.tiers == 2) {
      build_two_tiers(planes_[p]);
    } else {
      build_three_tiers(planes_[p]);
    }
  }
}

void Fabric::connect_hosts(Plane& plane, unsigned number) {
  const std::uint32_t per_leaf = config_.tree.hosts_per_leaf();
  for (HostId h = 0; h < config_.hosts; ++h) {
    Switch& leaf = *plane.leaves[h / per_leaf];
    const LinkConfig up{config_.link_rate, config_.hop_delay, QueueConfig{}};
    plane.host_links.push_back(std::make_unique<Link>(simulation_, model_, up, leaf));
    plane.host_links.back()->name = fmt::format("host{}>{}", h, leaf.name());
    ports_[h]->attach(*plane.host_links.back());
    const LinkConfig down{config_.link_rate, config_.hop_delay, config_.switch_queue(true)};
    const std::size_t port =
        leaf.add_port(down, ports_[h]->sink(number), fmt::format("{}>host{}", leaf.name(), h));
    leaf.route_hosts(h, 1, port);
  }
}

std::size_t Fabric::connect(Switch& from, Switch& to) {
  const LinkConfig config{config_.link_rate, config_.hop_delay, config_.switch_queue(false)};
  return from.add_port(config, to, fmt::format("{}>{}", from.name(), to.name()), &to);
}

void Fabric::build_two_tiers(Plane& plane) {
  const std::uint32_t per_leaf = config_.tree.hosts_per_leaf();
  for (std::size_t l = 0; l < plane.leaves.size(); ++l) {
    Switch& leaf = *plane.leaves[l];
    const std::size_t first_up = leaf.ports();
    for (const auto& spine : plane.tops) connect(leaf, *spine);
    leaf.set_uplinks(first_up, plane.tops.size());
    for (const auto& spine : plane.tops) {
      const std::size_t down = connect(*spine, leaf);
      spine->route_hosts(static_cast<HostId>(l * per_leaf), per_leaf, down);
    }
  }
}

void Fabric::build_three_tiers(Plane& plane) {
  const FatTree& tree = config_.tree;
  const std::uint32_t per_leaf = tree.hosts_per_leaf();
  const std::uint32_t half =
      tree.radix / 2;  // leaves of a pod, aggregations of a pod, uplinks of each
  for (std::uint32_t pod = 0; pod < tree.pods(); ++pod) {
    for (std::uint32_t l = 0; l < half; ++l) {
      const std::uint32_t leaf_index = pod * half + l;
      Switch& leaf = *plane.leaves[leaf_index];
      const std::size_t first_up = leaf.ports();
      for (std::uint32_t a = 0; a < half; ++a) connect(leaf, *plane.aggregations[pod * half + a]);
      leaf.set_uplinks(first_up, half);
      for (std::uint32_t a = 0; a < half; ++a) {
        Switch& agg = *plane.aggregations[pod * half + a];
        agg.route_hosts(leaf_index * per_leaf, per_leaf, connect(agg, leaf));
      }
    }
    for (std::uint32_t a = 0; a < half; ++a) {
      Switch& agg = *plane.aggregations[pod * half + a];
      const std::size_t first_up = agg.ports();
      // Aggregation a of every pod reaches the same cores: a down path is unique.
      for (std::uint32_t c = 0; c < half; ++c) connect(agg, *plane.tops[a * half + c]);
      agg.set_uplinks(first_up, half);
      for (std::uint32_t c = 0; c < half; ++c) {
        Switch& core = *plane.tops[a * half + c];
        core.route_hosts(pod * half * per_leaf, half * per_leaf, connect(core, agg));
      }
    }
  }
}

std::vector<Link*> Fabric::all_links() {
  std::vector<Link*> links;
  for (Plane& plane : planes_) links_of(plane, links);
  return links;
}

void Fabric::links_of(Plane& plane, std::vector<Link*>& links) {
  for (const auto& l : plane.host_links) links.push_back(l.get());
  for (const auto* tier : {&plane.leaves, &plane.aggregations, &plane.tops}) {
    for (const auto& s : *tier) {
      for (std::size_t p = 0; p < s->ports(); ++p) links.push_back(&s->link(p));
    }
  }
}

std::vector<Link*> Fabric::find_links(std::string_view spec) {
  std::vector<Link*> candidates;
  if (spec.starts_with("plane")) {
    const std::size_t slash = spec.find('/');
    const std::string_view plane = spec.substr(0, slash);
    for (std::size_t p = 0; p < planes_.size(); ++p) {
      if (plane == fmt::format("plane{}", p)) links_of(planes_[p], candidates);
    }
    if (slash == std::string_view::npos) return candidates;
    spec.remove_prefix(slash + 1);
  } else {
    candidates = all_links();
  }
  const std::size_t arrow = spec.find('>');
  const std::size_t dash = spec.find('-');
  const std::size_t cut = std::min(arrow, dash);
  const std::string_view left = spec.substr(0, cut);
  const std::string_view right = cut == std::string_view::npos ? "" : spec.substr(cut + 1);
  std::vector<Link*> found;
  for (Link* link : candidates) {
    const std::string_view name = link->name;
    const std::string_view from = name.substr(0, name.find('>'));
    const std::string_view to = name.substr(name.find('>') + 1);
    bool match;
    if (cut == std::string_view::npos) {
      match = from == left || to == left;
    } else {
      match = (from == left && to == right) || (dash == cut && from == right && to == left);
    }
    if (match) found.push_back(link);
  }
  return found;
}

void Fabric::repair_routes() {
  for (Plane& plane : planes_) {
    for (auto* tier : {&plane.tops, &plane.aggregations, &plane.leaves}) {
      for (const auto& s : *tier) s->repair_routes();
    }
  }
}

FabricTotals Fabric::totals() {
  FabricTotals t;
  for (Link* link : all_links()) {
    const QueueCounters& c = link->queue().counters();
    t.trims += c.trims;
    t.drops += c.drops_data + c.drops_control;
    t.marks += c.marks;
    t.lost_while_down += link->lost_while_down();
  }
  for (const auto& port : ports_) t.drops += port->dropped_on_arrival();
  return t;
}

std::vector<std::uint64_t> Fabric::top_packets() {
  std::vector<std::uint64_t> packets;
  for (const Plane& plane : planes_) {
    for (const auto& top : plane.tops) {
      std::uint64_t sum = 0;
      for (std::size_t p = 0; p < top->ports(); ++p)
        sum += top->link(p).queue().counters().data_packets;
      packets.push_back(sum);
    }
  }
  return packets;
}

}  // namespace uet::sim
