/// Leaf and spine switches with any number of legs on each leaf, built of the simulator's parts:
/// between two leaves there are as many paths as spines.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/fabric/scenario.h"
#include "sim/link.h"
#include "sim/simulation.h"
#include "sim/switch.h"

namespace uet::fabric {

class LeafSpine {
 public:
  /// `hosts` are where frames for each leg of the scenario end. All arguments outlive this.
  LeafSpine(sim::Simulation& simulation, const sim::WireModel& model, const Scenario& scenario,
            const std::vector<sim::FrameSink*>& hosts);

  /// The link from a leg to its leaf, and the other direction.
  sim::Link& uplink(std::size_t leg) { return *uplinks_[leg]; }
  sim::Link& downlink(std::size_t leg) { return *downlinks_[leg]; }

  std::size_t leaves() const { return leaves_.size(); }
  std::size_t spines() const { return spines_.size(); }
  sim::Switch& leaf(std::size_t i) { return *leaves_[i]; }
  sim::Switch& spine(std::size_t i) { return *spines_[i]; }

  const std::vector<sim::Link*>& links() const { return links_; }
  /// A switch or leg means all its links in both directions, "leaf0-spine1" one cable,
  /// "spine1>leaf0" one direction, "all" everything. Empty when nothing has that name.
  std::vector<sim::Link*> find(std::string_view name) const;
  /// Both directions of everything that path `spine` consists of.
  std::vector<sim::Link*> path(std::size_t spine) const;

  /// Which spine such a packet takes from its leg to another leaf. There must be a spine.
  std::size_t spine_of(std::size_t leg, std::uint64_t flow, std::uint16_t entropy) const;

  /// As the command: trimming and marking on or off, in all switches.
  void set_trimming(bool on);
  void set_marking(bool on);
  /// A fraction of the configured rate. Queues shrink with it, as those of the simulator do, but
  /// never below a few packets.
  void set_speed(sim::Link& link, double factor);

 private:
  sim::QueueConfig switch_queue(base::BitRate rate, bool last_hop) const;
  void connect_leg(std::size_t leg, sim::FrameSink& host);
  std::size_t connect(sim::Switch& from, sim::Switch& to);
  void change_queues(bool sim::QueueConfig::*member, bool on);

  sim::Simulation& simulation_;
  const sim::WireModel& model_;
  const Scenario& scenario_;
  std::vector<std::unique_ptr<sim::Switch>> leaves_, spines_;
  std::vector<std::unique_ptr<sim::Link>> uplinks_;
  std::vector<sim::Link*> downlinks_;
  std::vector<sim::Link*> links_;
};

}  // namespace uet::fabric
