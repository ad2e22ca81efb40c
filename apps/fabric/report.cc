#include "apps/fabric/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace uet::fabric {

namespace {

double rate_mbps(const sim::Link& link) {
  return static_cast<double>(link.config().rate.bps()) * link.speed_factor() * 1e-6;
}

/// Sums over several links, or the numbers of one.
struct LinkSums {
  std::uint64_t packets = 0, bytes = 0, control = 0, marks = 0, trims = 0, drops = 0, lost = 0;
  std::int64_t waiting = 0, peak = 0;
  sim::FaultCounters faults{};

  void add(const sim::Link& link) {
    const sim::QueueCounters& c = link.queue().counters();
    packets += c.data_packets;
    bytes += c.data_bytes;
    control += c.control_packets;
    marks += c.marks;
    trims += c.trims;
    drops += c.drops_data + c.drops_control;
    lost += link.lost_while_down();
    waiting += link.queue().data_bytes() + link.queue().control_bytes();
    peak = std::max(peak, c.peak_data_bytes);
    const sim::FaultCounters f = link.fault_counters();
    for (std::size_t i = 0; i < f.size(); ++i) faults[i] += f[i];
  }

  void put(Json& to) const {
    to["data_packets"] = packets;
    to["data_bytes"] = bytes;
    to["control_packets"] = control;
    to["marks"] = marks;
    to["trims"] = trims;
    to["drops"] = drops;
    to["lost_while_down"] = lost;
    to["queue_bytes"] = waiting;
    to["queue_peak_bytes"] = peak;
    for (std::size_t i = 0; i < faults.size(); ++i)
      if (faults[i] != 0 && static_cast<sim::Fault>(i) != sim::Fault::kPartition)
        to["faults"][std::string(sim::name_of(static_cast<sim::Fault>(i)))] = faults[i];
  }
};

std::string text_of(const net::MacAddress& m) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", m[0], m[1], m[2], m[3], m[4],
                     m[5]);
}

}  // namespace

Json paths_report(Emulator& emulator) {
  Json all = Json::array();
  LeafSpine& net = emulator.net();
  for (std::size_t i = 0; i < net.spines(); ++i) {
    const auto links = net.path(i);
    LinkSums sums;
    std::size_t up = 0;
    double slowest = rate_mbps(*links.front());
    for (const sim::Link* link : links) {
      sums.add(*link);
      up += link->is_up();
      slowest = std::min(slowest, rate_mbps(*link));
    }
    Json path = {{"name", net.spine(i).name()},
                 {"state", up == links.size() ? "up"
                           : up == 0          ? "down"
                                              : "partly down"},
                 {"rate_mbps", slowest}};
    sums.put(path);
    all.push_back(std::move(path));
  }
  return all;
}

Json links_report(Emulator& emulator) {
  Json all = Json::array();
  for (const sim::Link* link : emulator.net().links()) {
    Json one = {{"name", link->name},
                {"state", link->is_up() ? "up" : "down"},
                {"rate_mbps", rate_mbps(*link)},
                {"delay_us", link->config().delay.us()}};
    LinkSums sums;
    sums.add(*link);
    sums.put(one);
    const sim::QueueConfig& queue = link->queue().config();
    if (queue.data_limit_bytes < sim::QueueConfig::kUnlimited)
      one["queue_limit_bytes"] = queue.data_limit_bytes;
    all.push_back(std::move(one));
  }
  return all;
}

Json legs_report(Emulator& emulator) {
  Json all = Json::array();
  for (std::size_t i = 0; i < emulator.legs().size(); ++i) {
    Leg& leg = *emulator.legs()[i];
    const LegCounters& c = leg.counters;
    all.push_back({{"name", leg.name()},
                   {"device", leg.device().facts().name},
                   {"leaf", emulator.scenario().legs[i].leaf},
                   {"connections", leg.device().link_generation()},
                   {"rx_frames", c.rx_frames},
                   {"rx_bytes", c.rx_bytes},
                   {"tx_frames", c.tx_frames},
                   {"tx_bytes", c.tx_bytes},
                   {"tx_marked", c.tx_marked},
                   {"tx_trimmed", c.tx_trimmed},
                   {"tx_waiting", leg.waiting()},
                   {"flooded", c.flooded},
                   {"rx_held", c.rx_held},
                   {"drops",
                    {{"rx_runt", c.rx_runt},
                     {"rx_too_large", c.rx_too_large},
                     {"rx_bad_source", c.rx_bad_source},
                     {"rx_no_packet", c.rx_no_packet},
                     {"rx_to_itself", c.rx_to_itself},
                     {"tx_full", c.tx_full},
                     {"tx_stalled", c.tx_stalled},
                     {"tx_no_buffer", c.tx_no_buffer}}}});
  }
  return all;
}

Json flows_report(Emulator& emulator) {
  Json all = Json::array();
  const auto& names = emulator.leg_names();
  for (std::size_t from = 0; from < names.size(); ++from) {
    for (std::size_t to = 0; to < names.size(); ++to) {
      const FlowCounters& f = emulator.flow(from, to);
      if (f.frames + f.trimmed == 0) continue;
      all.push_back({{"from", names[from]},
                     {"to", names[to]},
                     {"frames", f.frames},
                     {"bytes", f.bytes},
                     {"marked", f.marked},
                     {"trimmed", f.trimmed}});
    }
  }
  return all;
}

Json macs_report(Emulator& emulator) {
  Json all = Json::array();
  for (const MacTable::Entry& entry : emulator.macs().entries())
    all.push_back({{"mac", text_of(entry.mac)},
                   {"leg", emulator.leg_names()[entry.leg]},
                   {"silent_s", (emulator.now() - entry.seen).us() * 1e-6}});
  return all;
}

Json rules_report(Emulator& emulator) {
  Json all = Json::array();
  for (const MatchRule& rule : emulator.rules().rules())
    all.push_back({{"id", rule.id},
                   {"rule", rule.text},
                   {"agreed", rule.agreed},
                   {"applied", rule.applied},
                   {"spent", rule.is_spent()}});
  return all;
}

Json stats_report(Emulator& emulator) {
  const auto& pool = emulator.simulation().packets_pool;
  return {{"time_s", emulator.now().us() * 1e-6},
          {"legs", legs_report(emulator)},
          {"flows", flows_report(emulator)},
          {"paths", paths_report(emulator)},
          {"links", links_report(emulator)},
          {"macs", macs_report(emulator)},
          {"mac_table",
           {{"size", emulator.macs().size()},
            {"capacity", emulator.macs().capacity()},
            {"moved", emulator.macs().moved()},
            {"displaced", emulator.macs().displaced()}}},
          {"rules", rules_report(emulator)},
          {"packets", {{"in_use", pool.in_use()}, {"capacity", pool.capacity()}}},
          {"events", emulator.simulation().events.events_run()}};
}

}  // namespace uet::fabric
