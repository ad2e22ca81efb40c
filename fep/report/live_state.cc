#include "fep/report/live_state.h"

#include <fmt/format.h>

#include <iterator>
#include <set>
#include <span>

#include "fep/report/event_log.h"
#include "fep/report/path_log.h"
#include "fep/security.h"
#include "lib/base/version.h"
#include "lib/net/impair_port.h"
#include "lib/wire/enums.h"

namespace uet::fep {
namespace {

/// What one line at the opening and every snapshot say: name, value, and the setting behind it.
struct Choice {
  std::string_view name;
  std::string value;
  std::string_view key;    ///< of the setting
  std::string_view usual;  ///< who chose it when the user did not
};

/// How packets are protected; with keys also the domain, and the key that packets leave under now.
void add_protection(std::vector<Choice>& out, Fep& fep) {
  const Security* security = fep.security();
  if (security == nullptr) {
    const bool has_crc = fep.config().protection == DataProtection::kCrc;
    out.push_back({"protection", has_crc ? "crc" : "none", "PROTECT", "default"});
    return;
  }
  const std::optional<bool> an = security->domain().tx_an();
  out.push_back({"protection", "tss", "KEYS", "default"});
  out.push_back({"sdi", std::to_string(security->domain().config().sdi), "KEYS", "default"});
  out.push_back({"an", an ? std::to_string(int{*an}) : "none", "KEYS", "default"});
}

/// How many values of the wire the paths have. A kernel-UDP port has that of each of its sockets. [decision 23]
std::size_t wire_paths(const net::Port& port, std::uint16_t paths) {
  std::set<std::uint16_t> seen;
  for (std::uint16_t entropy = 0; entropy < paths; ++entropy)
    seen.insert(port.wire_entropy(entropy));
  return seen.size();
}

/// The most that a packet carries; where the port's device is not the only way, each destination has its own.
Choice payload_of(const Fep& fep, const net::PortFacts& facts) {
  const std::string largest = std::to_string(fep.payload_mtu());
  if (net::largest_ip_packet(facts) == facts.ip_mtu)
    return {"payload", largest, "MAX_PAYLOAD", "mtu"};
  return {"payload", "up to " + largest, "MAX_PAYLOAD", "route to each peer"};
}

std::vector<Choice> choices_of(Fep& fep, const Settings& settings) {
  const net::PortFacts& facts = fep.port().facts();
  const FepConfig& config = fep.config();
  std::vector<Choice> out = {
      {"version", std::string(base::kVersion), "", "this build"},
      {"port", facts.name, "PORT", "default"},
      {"address", facts.address.to_string(), "ADDR", "first free one"},
      {"mtu", std::to_string(facts.ip_mtu), "MTU", "port"},
      payload_of(fep, facts),
      {"udp_port", facts.udp_encapsulation ? std::to_string(facts.udp_port) : "none", "UDP_PORT",
       "default"},
      {"cc", std::string(cc::name_of(config.cc.algorithm)), "CC", "default"},
      {"lb", std::string(cc::name_of(config.cc.load_balancing)), "LB",
       settings.lb ? "default" : "number of planes"},
      {"paths", std::to_string(config.cc.paths), "PATHS", "default"},
      {"job", std::to_string(settings.job), "JOB", "default"},
  };
  if (const std::size_t ports = wire_paths(fep.port(), config.cc.paths); ports < config.cc.paths)
    out.push_back({"source_ports", std::to_string(ports), "", "sockets= of FI_UET_PORT"});
  add_protection(out, fep);
  return out;
}

std::string who(const Settings& settings, const Choice& choice) {
  const std::string chosen = settings.who_chose(choice.key);
  return chosen == "default" ? std::string(choice.usual) : chosen;
}

using Out = std::back_insert_iterator<std::string>;

double us(Duration d) {
  return static_cast<double>(d.ns()) / 1000;
}

/// Milliseconds since `then`; -1 when that never was.
double age_ms(Instant now, Instant then) {
  return then == Instant() || then.is_never() ? -1 : us(now - then) / 1000;
}

void add_choices(Out out, Fep& fep, const Settings& settings) {
  std::string by;
  for (const Choice& c : choices_of(fep, settings)) {
    fmt::format_to(out, R"("{}":{},)", c.name, json_string(c.value));
    by += fmt::format(R"({}"{}":{})", by.empty() ? "" : ",", c.name, json_string(who(settings, c)));
  }
  fmt::format_to(out, R"("chosen_by":{{{}}},)", by);
}

using Gauges = std::vector<std::pair<std::string, std::uint64_t>>;

void add_delivery(Gauges& out, const pds::Pds::Gauges& p) {
  out.insert(out.end(), {{"pdcs_open", p.pdcs_open},
                         {"pdcs_half_open", p.pdcs_half_open},
                         {"half_open_reaped", p.half_open_reaped},
                         {"pdcs_unproven", p.pdcs_unproven},
                         {"unproven_evicted", p.unproven_evicted},
                         {"openings_remembered", p.openings_remembered},
                         {"clear_breaks", p.clear_breaks},
                         {"outstanding_packets", p.outstanding_packets},
                         {"queued_messages", p.queued_messages},
                         {"stored_responses", p.stored_responses},
                         {"stored_unproven", p.stored_unproven},
                         {"tombstones", p.tombstones},
                         {"rudi_outstanding", p.rudi_outstanding},
                         {"congestion_contexts", p.ccc_count}});
}

void add_messages(Gauges& out, const ses::Ses::Gauges& s) {
  out.insert(out.end(), {{"endpoints", s.endpoints},
                         {"peers", s.peers},
                         {"memory_regions", s.memory_regions},
                         {"sends_active", s.sends_active},
                         {"receives_posted", s.receives_posted},
                         {"messages_receiving", s.messages_receiving},
                         {"unexpected_messages", s.unexpected_messages},
                         {"unexpected_bytes", s.unexpected_bytes},
                         {"header_only_messages", s.header_only_messages},
                         {"messages_held", s.messages_held},
                         {"messages_fetching", s.messages_fetching},
                         {"senders", s.senders},
                         {"reads_returning", s.reads_returning},
                         {"returns_open", s.returns_open},
                         {"returns_waiting", s.returns_waiting},
                         {"refused_shares", s.refused_shares}});
}

void add_impairment(Gauges& out, const std::string& way, const net::ImpairCounters& c) {
  out.insert(out.end(), {{"impaired_" + way + "_lost", c.lost},
                         {"impaired_" + way + "_reordered", c.reordered},
                         {"impaired_" + way + "_duplicated", c.duplicated},
                         {"impaired_" + way + "_corrupted", c.corrupted},
                         {"impaired_" + way + "_delayed", c.delayed}});
}

void add_gauges(Out out, Fep& fep) {
  const net::PacketPool& pool = fep.port().pool();
  Gauges gauges = {{"pool_packets", pool.capacity()}, {"pool_free", pool.available()}};
  add_delivery(gauges, fep.pds().gauges());
  add_messages(gauges, fep.ses().gauges());
  if (const Security* security = fep.security())
    gauges.emplace_back("keys_derived", security->domain().stats().keys_derived);
  if (const net::ImpairPort* impairment = net::impairment_of(fep.port())) {
    add_impairment(gauges, "rx", impairment->rx_counters());
    add_impairment(gauges, "tx", impairment->tx_counters());
  }
  fmt::format_to(out, R"("gauges":{{)");
  const char* separator = "";
  for (const auto& [name, value] : gauges) {
    fmt::format_to(out, R"({}"{}":{})", separator, name, value);
    separator = ",";
  }
  fmt::format_to(out, "}},");
}

std::string name_of_nack(pds::NackWay way, std::uint8_t code) {
  const std::string_view name = wire::name_of(static_cast<wire::NackCode>(code));
  return fmt::format("{} {}", way == pds::NackWay::kSent ? "sent" : "received",
                     name.empty() ? fmt::format("code {}", code) : std::string(name));
}

/// Since the endpoint was opened.
void add_nacks(Out out, Fep& fep) {
  fmt::format_to(out, R"("nacks":{{)");
  const char* separator = "";
  for (const pds::NackWay way : {pds::NackWay::kReceived, pds::NackWay::kSent})
    for (unsigned code = 0; code < 256; ++code) {
      const std::uint64_t count = fep.pds().nacks(way, static_cast<std::uint8_t>(code));
      if (count == 0) continue;
      fmt::format_to(out, R"({}{}:{})", separator,
                     json_string(name_of_nack(way, static_cast<std::uint8_t>(code))), count);
      separator = ",";
    }
  fmt::format_to(out, "}},");
}

void add_nacks(Out out, std::span<const pds::NackCount> nacks) {
  fmt::format_to(out, R"("nacks":{{)");
  for (const pds::NackCount& n : nacks)
    fmt::format_to(out, R"({}{}:{})", &n == nacks.data() ? "" : ",",
                   json_string(name_of_nack(n.way, n.code)), n.count);
  fmt::format_to(out, "}}");
}

void add_contexts(Out out, Instant now, Fep& fep, std::size_t limit) {
  std::size_t seen = 0;
  fmt::format_to(out, R"("contexts":[)");
  fep.pds().for_each_congestion([&](const pds::Pds::CongestionView& view) {
    if (seen++ >= limit) return;
    std::string line = view.sprayed ? to_json(now, view) : ordered_to_json(now, view);
    line.resize(line.rfind('}'));
    fmt::format_to(out, R"({}{},"payload":{}}})", seen == 1 ? "" : ",", line,
                   fep.payload_towards(now, view.peer));
  });
  fmt::format_to(out, R"(],"contexts_not_shown":{},)", seen > limit ? seen - limit : 0);
}

void add_pdcs(Out out, Instant now, Fep& fep, std::size_t limit) {
  std::size_t seen = 0;
  fmt::format_to(out, R"("pdcs":[)");
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& v) {
    if (seen == limit) return false;
    fmt::format_to(
        out,
        R"({}{{"peer":"{}","pdc":{},"peer_pdc":{},"mode":"{}","state":{},"role":"{}","class":{},"inflight":{},"unacked":{},)"
        R"("to_resend":{},"retransmitted":{},"queued":{},"peer_window":{},"beyond_gap":{},"stored":{},"owed":{},"locks":{},"next_psn":{},"cack":{},"received":{},)"
        R"("heard_ms":{:.3f},"active_ms":{:.3f},)",
        seen == 0 ? "" : ",", v.peer.to_string(), v.id, v.peer_id, name_of(v.mode),
        json_string(v.state), v.is_initiator ? "initiator" : "target", v.traffic_class, v.inflight,
        v.unacked, v.to_resend, v.resent, v.queued, v.peer_window, v.beyond_gap, v.stored, v.owed,
        v.locks, v.next.value(), v.cack.value(), v.received_up_to.value(), age_ms(now, v.heard_at),
        age_ms(now, v.active_at));
    add_nacks(out, v.nacks);
    fmt::format_to(out, "}}");
    ++seen;
    return true;
  });
  const std::size_t open = fep.pds().gauges().pdcs_open;
  fmt::format_to(out, R"(],"pdcs_not_shown":{}}})", open > seen ? open - seen : 0);
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string describe_opening(Fep& fep, const Settings& settings) {
  std::string out;
  for (const Choice& c : choices_of(fep, settings))
    out += fmt::format("{}{} {} ({})", out.empty() ? "" : ", ", c.name, c.value, who(settings, c));
  return out +
         (settings.spray_ordered
              ? "; traffic is spread over the paths, ordered sends too where the peer restores "
                "their order; other ordered traffic keeps to one"
              : "; unordered traffic is spread over the paths, ordered traffic keeps to one");
}

std::string snapshot(Instant now, Fep& fep, const Settings& settings,
                     const SnapshotLimits& limits) {
  std::string text = "{";
  const Out out(text);
  add_choices(out, fep, settings);
  const std::string counters = counters_to_json(fep.trace());
  fmt::format_to(out, R"("t":{},{},)", now.ns(), counters.substr(1, counters.size() - 2));
  add_gauges(out, fep);
  add_nacks(out, fep);
  std::string planes = planes_to_json(now, fep.port());
  planes = planes.substr(planes.find("\"planes\""));
  fmt::format_to(out, "{},", planes.substr(0, planes.rfind(']') + 1));
  add_contexts(out, now, fep, limits.contexts);
  add_pdcs(out, now, fep, limits.pdcs);
  return text;
}

}  // namespace uet::fep
