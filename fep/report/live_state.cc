#include "fep/report/live_state.h"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "fep/report/event_log.h"
#include "fep/report/path_log.h"
#include "fep/security.h"
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

std::vector<Choice> choices_of(Fep& fep, const Settings& settings) {
  const net::PortFacts& facts = fep.port().facts();
  const FepConfig& config = fep.config();
  std::vector<Choice> out = {
      {"port", facts.name, "PORT", "default"},
      {"address", facts.address.to_string(), "ADDR", "first free one"},
      {"mtu", std::to_string(facts.ip_mtu), "MTU", "port"},
      {"payload", std::to_string(fep.payload_mtu()), "MAX_PAYLOAD", "mtu"},
      {"udp_port", facts.udp_encapsulation ? std::to_string(facts.udp_port) : "none", "UDP_PORT",
       "default"},
      {"cc", std::string(cc::name_of(config.cc.algorithm)), "CC", "default"},
      {"lb", std::string(cc::name_of(config.cc.load_balancing)), "LB",
       settings.lb ? "default" : "number of planes"},
      {"paths", std::to_string(config.cc.paths), "PATHS", "default"},
      {"job", std::to_string(settings.job), "JOB", "default"},
  };
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

void add_gauges(Out out, Fep& fep) {
  const pds::Pds::Gauges p = fep.pds().gauges();
  const ses::Ses::Gauges s = fep.ses().gauges();
  const net::PacketPool& pool = fep.port().pool();
  fmt::format_to(
      out,
      R"("gauges":{{"pool_packets":{},"pool_free":{},"pdcs_open":{},"pdcs_half_open":{},"outstanding_packets":{},)"
      R"("queued_messages":{},"stored_responses":{},"tombstones":{},"rudi_outstanding":{},"congestion_contexts":{},)"
      R"("endpoints":{},"peers":{},"memory_regions":{},"sends_active":{},"receives_posted":{},"messages_receiving":{},)"
      R"("unexpected_messages":{},"unexpected_bytes":{},"messages_held":{},"messages_fetching":{},"refused_shares":{}}},)",
      pool.capacity(), pool.available(), p.pdcs_open, p.pdcs_half_open, p.outstanding_packets,
      p.queued_messages, p.stored_responses, p.tombstones, p.rudi_outstanding, p.ccc_count,
      s.endpoints, s.peers, s.memory_regions, s.sends_active, s.receives_posted,
      s.messages_receiving, s.unexpected_messages, s.unexpected_bytes, s.messages_held,
      s.messages_fetching, s.refused_shares);
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
    line.pop_back();  // the end of the line
    fmt::format_to(out, "{}{}", seen == 1 ? "" : ",", line);
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
        R"("to_resend":{},"retransmitted":{},"queued":{},"peer_window":{},"beyond_gap":{},"stored":{},"next_psn":{},"cack":{},"received":{},)"
        R"("heard_ms":{:.3f},"active_ms":{:.3f},)",
        seen == 0 ? "" : ",", v.peer.to_string(), v.id, v.peer_id, name_of(v.mode),
        json_string(v.state), v.is_initiator ? "initiator" : "target", v.traffic_class, v.inflight,
        v.unacked, v.to_resend, v.resent, v.queued, v.peer_window, v.beyond_gap, v.stored,
        v.next.value(), v.cack.value(), v.received_up_to.value(), age_ms(now, v.heard_at),
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
