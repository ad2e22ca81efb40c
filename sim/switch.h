/// An output-queued switch: looks up the port, hashes among equal uplinks, queues there. No latency
/// of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/link.h"
#include "sim/simulation.h"

namespace uet::sim {

class Switch final : public FrameSink {
 public:
  Switch(Simulation& simulation, const WireModel& model, std::string name, std::uint32_t hosts);

  /// A port towards `to`; returns its index. Ports must be added before traffic flows. `next`: the
  /// same when it is a switch.
  std::size_t add_port(const LinkConfig& config, FrameSink& to, std::string link_name,
                       const Switch* next = nullptr);
  /// Packets for these hosts leave by `port`: downward paths are unique.
  void route_hosts(HostId first, std::uint32_t count, std::size_t port);
  /// All other packets are spread over these ports by hash(flow, entropy, salt of this switch).
  void set_uplinks(std::size_t first_port, std::size_t count);

  /// From now on, leaves out uplinks that are down or behind which a host cannot be reached over
  /// links that are up now. Where none is left all are used, as before.
  void repair_routes();
  /// Do all links on some way from here up and then down to this host's leaf work?
  bool reaches(HostId host) const;

  void on_frame(Frame* frame) override;
  /// Which uplink a packet would take while all is well.
  std::size_t uplink_of(std::uint64_t flow, std::uint16_t entropy) const;

  const std::string& name() const { return name_; }
  std::size_t ports() const { return links_.size(); }
  Link& link(std::size_t port) { return *links_[port]; }

 private:
  static constexpr std::uint16_t kUp = 0xffff;
  using Uplinks = std::vector<std::uint16_t>;

  std::uint64_t hash(std::uint64_t flow, std::uint16_t entropy) const;
  Uplinks uplinks_to(HostId host) const;

  Simulation& simulation_;
  const WireModel& model_;
  std::string name_;
  std::uint64_t salt_;
  std::vector<std::uint16_t> port_of_host_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<const Switch*> next_;  ///< behind each port; null for a host
  std::size_t first_uplink_ = 0, uplinks_ = 0;
  // After a repair: sets of uplinks in use, and which of them leads to a host. Empty: all to all.
  std::vector<Uplinks> repaired_;
  std::vector<std::uint16_t> repaired_of_host_;
};

}  // namespace uet::sim
