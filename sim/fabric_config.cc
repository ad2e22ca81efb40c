#include "sim/fabric_config.h"

#include <algorithm>
#include <cmath>

namespace uet::sim {

std::uint32_t FatTree::hops(std::uint32_t from, std::uint32_t to) const {
  if (from / hosts_per_leaf() == to / hosts_per_leaf()) return 2;
  if (tiers == 2) return 4;
  const std::uint32_t hosts_per_pod = hosts_per_leaf() * leaves_per_pod();
  return from / hosts_per_pod == to / hosts_per_pod ? 4 : 6;
}

FatTree FatTree::for_hosts(std::uint32_t hosts, std::optional<std::uint32_t> tiers) {
  const auto smallest = [hosts](std::uint32_t n) {
    FatTree t{.tiers = n, .radix = 2};
    while (t.hosts() < hosts) t.radix += 2;
    return t;
  };
  if (tiers) return smallest(*tiers);
  const FatTree three = smallest(3);
  const FatTree two = smallest(2);
  if (three.hosts() == hosts) return three;
  if (two.hosts() == hosts) return two;
  constexpr std::uint32_t kLargestSwitch = 64;
  return two.radix <= kLargestSwitch ? two : three;
}

SimSpan FabricConfig::base_rtt() const {
  const std::int64_t hops = tree.longest_hops();
  return hop_delay * (2 * hops) + SimSpan::of_bytes(packet_bytes(), link_rate) * hops +
         SimSpan::of_bytes(WireModel::kModelHeader, link_rate) * hops;
}

std::int64_t FabricConfig::bdp_packets() const {
  const auto bits = static_cast<base::WideInt>(base_rtt().ps()) * link_rate.bps();
  const auto packet = static_cast<base::WideInt>(packet_bytes()) * 8'000'000'000'000;
  return static_cast<std::int64_t>((bits + packet - 1) / packet);
}

QueueConfig FabricConfig::switch_queue(bool last_hop) const {
  const std::int64_t packets = bdp_packets();
  const auto share = [&](double f) {
    return static_cast<std::int64_t>(std::ceil(f * static_cast<double>(packets))) * packet_bytes();
  };
  QueueConfig q;
  q.data_limit_bytes =
      queue_bytes != 0 ? queue_bytes : packets * packet_bytes() * (trimming ? 1 : 5);
  q.control_limit_bytes = 2 * q.data_limit_bytes;
  q.trimming = trimming;
  q.marking = !last_hop || mark_last_hop;
  q.ecn_low_bytes = ecn_low_bytes != 0 ? ecn_low_bytes : share(0.2);
  q.ecn_high_bytes = ecn_high_bytes != 0 ? ecn_high_bytes : share(0.8);
  q.last_hop = last_hop;
  return q;
}

std::uint32_t FabricConfig::ack_trigger() const {
  constexpr std::int64_t kUsual = 16384;
  constexpr std::int64_t kShortest = 2;  // hops: two hosts of one leaf
  const auto bytes_in = [this](SimSpan time) {
    return static_cast<std::int64_t>(static_cast<base::WideInt>(time.ps()) * host_rate().bps() / 8 /
                                     1'000'000'000'000);
  };
  // A short probe measures the base RTT from which the window follows; data takes longer.
  const SimSpan control = SimSpan::of_bytes(WireModel::kModelHeader, link_rate);
  const SimSpan probe_rtt = (hop_delay + control) * (2 * kShortest);
  const SimSpan rtt =
      probe_rtt + (SimSpan::of_bytes(packet_bytes(), link_rate) - control) * kShortest;
  const std::int64_t room = bytes_in(probe_rtt) * 3 / 2 - bytes_in(rtt);
  if (room >= kUsual) return kUsual;
  return static_cast<std::uint32_t>(std::max<std::int64_t>(room - packet_bytes(), 0));
}

SimSpan FabricConfig::rto_min() const {
  return SimSpan::from(base::Duration::from_us(15)) +
         SimSpan::of_bytes(switch_queue(false).data_limit_bytes, link_rate) * 6;
}

}  // namespace uet::sim
