#include "apps/stat/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

namespace uet::stat {
namespace {

using Json = nlohmann::json;

const Json& at(const Json& object, std::string_view key) {
  static const Json nothing;
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : nothing;
}

std::string text(const Json& object, std::string_view key) {
  const Json& value = at(object, key);
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "?" : value.dump();
}

double number(const Json& object, std::string_view key) {
  const Json& value = at(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

/// Bytes in the network. The destination counts in rounded units, so the sum may fall a little below zero.
double in_flight(const Json& object) {
  return std::max(number(object, "inflight"), 0.0);
}

/// The object under `key`, or an empty one.
const Json& members(const Json& object, std::string_view key) {
  static const Json none = Json::object();
  const Json& value = at(object, key);
  return value.is_object() ? value : none;
}

/// The same endpoint in an earlier snapshot of the process, or null.
const Json& earlier(const Json& before, const Json& endpoint) {
  static const Json nothing;
  for (const Json& e : at(before, "endpoints"))
    if (text(e, "address") == text(endpoint, "address") && number(e, "t") <= number(endpoint, "t"))
      return e;
  return nothing;
}

/// "12345" or "12345 (+678/s)".
std::string counter(const Json& endpoint, const Json& before, const char* name) {
  const double now = number(at(endpoint, "events"), name);
  const double seconds = (number(endpoint, "t") - number(before, "t")) / 1e9;
  if (before.is_null() || seconds <= 0) return fmt::format("{:.0f}", now);
  return fmt::format("{:.0f} ({:+.0f}/s)", now,
                     (now - number(at(before, "events"), name)) / seconds);
}

void add_numbers(std::string& out, const char* title, const Json& numbers) {
  if (!numbers.is_object() || numbers.empty()) return;
  out += fmt::format("{}:", title);
  for (const auto& [name, value] : numbers.items())
    out += fmt::format(" {} {}", name, value.dump());
  out += '\n';
}

void add_context(std::string& out, const Json& c, const ViewOptions& options) {
  out += fmt::format("    peer {}  window {:.0f}  inflight {:.0f}  rtt {:.1f} us (base {:.1f})",
                     text(c, "peer"), number(c, "window"), in_flight(c), number(c, "rtt_us"),
                     number(c, "base_rtt_us"));
  if (at(c, "payload").is_number()) out += fmt::format("  payload {:.0f}", number(c, "payload"));
  if (at(c, "credit").is_number()) out += fmt::format("  credit {:.0f}", number(c, "credit"));
  if (at(c, "ordered") == true) {
    out += "  ordered: one path\n";
    return;
  }
  std::map<std::string, int> states;
  double losses = 0, marks = 0, trims = 0;
  for (const Json& path : at(c, "paths")) {
    ++states[text(path, "state")];
    losses += number(path, "losses");
    marks += number(path, "marks");
    trims += number(path, "trims");
  }
  out += "  paths";
  for (const auto& [state, count] : states) out += fmt::format(" {} {}", count, state);
  out += fmt::format("  marked {:.0f} trimmed {:.0f} lost {:.0f}\n", marks, trims, losses);
  if (!options.paths) return;
  for (const Json& p : at(c, "paths"))
    out += fmt::format(
        "      path {:>5.0f} plane {:.0f} {:<9} score {:>2.0f}  rtt {:>8.1f} us  sent {:.0f} marks "
        "{:.0f} trims {:.0f} losses {:.0f}\n",
        number(p, "entropy"), number(p, "plane"), text(p, "state"), number(p, "score"),
        number(p, "rtt_us"), number(p, "sent"), number(p, "marks"), number(p, "trims"),
        number(p, "losses"));
}

void add_pdc(std::string& out, const Json& p) {
  out += fmt::format(
      "    pdc {:.0f}>{:.0f} {} {} {} {}  inflight {:.0f} unacked {:.0f} to resend {:.0f} "
      "retransmitted {:.0f} queued {:.0f}  "
      "peer window {:.0f}  beyond gap {:.0f} stored {:.0f} owed {:.0f} locks {:.0f}  heard {:.1f} "
      "ms ago\n",
      number(p, "pdc"), number(p, "peer_pdc"), text(p, "peer"), text(p, "mode"), text(p, "role"),
      text(p, "state"), in_flight(p), number(p, "unacked"), number(p, "to_resend"),
      number(p, "retransmitted"), number(p, "queued"), number(p, "peer_window"),
      number(p, "beyond_gap"), number(p, "stored"), number(p, "owed"), number(p, "locks"),
      number(p, "heard_ms"));
  add_numbers(out, "      nacks", at(p, "nacks"));
}

/// Gauges that are 0 while there is room for everything that peers send; the others.
Json signs_of_shortage(const Json& gauges) {
  Json out = Json::object();
  for (const char* name : {"header_only_messages", "returns_waiting", "refused_shares",
                           "half_open_reaped", "unproven_evicted", "clear_breaks"})
    if (number(gauges, name) != 0) out[name] = at(gauges, name);
  return out;
}

/// "crc", or with keys "tss (sdi 7, an 0)".
std::string protection(const Json& e) {
  const std::string how = text(e, "protection");
  return at(e, "sdi").is_null()
             ? how
             : fmt::format("{} (sdi {}, an {})", how, text(e, "sdi"), text(e, "an"));
}

/// "16", or "16 over 8 source ports".
std::string paths(const Json& e) {
  const std::string all = text(e, "paths");
  return at(e, "source_ports").is_null()
             ? all
             : fmt::format("{} over {} source ports", all, text(e, "source_ports"));
}

void add_endpoint(std::string& out, const Json& e, const Json& before, const ViewOptions& options) {
  out += fmt::format(
      "  {}  port {}  mtu {}  payload {}  protection {}  cc {}  lb {}  paths {}  version {}\n",
      text(e, "address"), text(e, "port"), text(e, "mtu"), text(e, "payload"), protection(e),
      text(e, "cc"), text(e, "lb"), paths(e), text(e, "version"));
  out += fmt::format("    packets in {} out {}  requests {} delivered {}\n",
                     counter(e, before, "packet-received"), counter(e, before, "packet-sent"),
                     counter(e, before, "request-sent"), counter(e, before, "request-delivered"));
  out += fmt::format("    retransmitted {}  timeouts {}  inferred losses {}  nacks in {} out {}\n",
                     counter(e, before, "retransmitted"), counter(e, before, "rto"),
                     counter(e, before, "inferred-loss"), counter(e, before, "nack-received"),
                     counter(e, before, "nack-sent"));
  const Json& g = at(e, "gauges");
  out += fmt::format(
      "    pool {:.0f} of {:.0f} free  pdcs {:.0f} ({:.0f} half open)  outstanding {:.0f}  queued "
      "{:.0f}  sends {:.0f}  "
      "receives {:.0f}  unexpected {:.0f} ({:.0f} bytes)\n",
      number(g, "pool_free"), number(g, "pool_packets"), number(g, "pdcs_open"),
      number(g, "pdcs_half_open"), number(g, "outstanding_packets"), number(g, "queued_messages"),
      number(g, "sends_active"), number(g, "receives_posted"), number(g, "unexpected_messages"),
      number(g, "unexpected_bytes"));
  add_numbers(out, "    short of room", signs_of_shortage(g));
  add_numbers(out, "    drops", at(e, "drops"));
  add_numbers(out, "    nacks", at(e, "nacks"));
  for (const Json& plane : at(e, "planes"))
    if (at(e, "planes").size() > 1)
      out += fmt::format(
          "    plane {:.0f} {}  sent {:.0f} received {:.0f} waiting {:.0f} times down {:.0f}\n",
          number(plane, "plane"), at(plane, "up") == true ? "up" : "DOWN", number(plane, "sent"),
          number(plane, "received"), number(plane, "waiting"), number(plane, "times_down"));
  for (const Json& context : at(e, "contexts")) add_context(out, context, options);
  if (!options.pdcs) return;
  for (const Json& pdc : at(e, "pdcs")) add_pdc(out, pdc);
  if (const double more = number(e, "pdcs_not_shown"); more > 0)
    out += fmt::format("    and {:.0f} more PDCs: --all\n", more);
}

/// A value between quotes of a label.
std::string label(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

using Families = std::map<std::string, std::string>;  ///< name to lines

void add_metric(Families& families, const std::string& name, const std::string& labels,
                const Json& value) {
  if (value.is_number()) families[name] += fmt::format("{}{{{}}} {}\n", name, labels, value.dump());
}

}  // namespace

std::string to_text(const Json& process, const Json& before, const ViewOptions& options) {
  std::string out = fmt::format("{} {}\n", text(process, "pid"), text(process, "program"));
  for (const Json& file : at(process, "not_written"))
    out += fmt::format("  not written: {:.0f} records of {}: {}\n", number(file, "records"),
                       text(file, "file"), text(file, "why"));
  for (const Json& endpoint : at(process, "endpoints"))
    add_endpoint(out, endpoint, earlier(before, endpoint), options);
  return out;
}

std::string to_prometheus(const std::vector<Json>& processes) {
  Families families;
  for (const Json& process : processes) {
    for (const Json& file : at(process, "not_written"))
      add_metric(families, "uet_records_not_written_total",
                 fmt::format(R"(pid="{}",program="{}",file="{}")", text(process, "pid"),
                             label(text(process, "program")), label(text(file, "file"))),
                 at(file, "records"));
    for (const Json& e : at(process, "endpoints")) {
      const std::string own =
          fmt::format(R"(pid="{}",program="{}",address="{}")", text(process, "pid"),
                      label(text(process, "program")), label(text(e, "address")));
      for (const auto& [name, value] : members(e, "events").items())
        add_metric(families, "uet_events_total", fmt::format(R"({},event="{}")", own, label(name)),
                   value);
      for (const auto& [name, value] : members(e, "drops").items())
        add_metric(families, "uet_drops_total", fmt::format(R"({},reason="{}")", own, label(name)),
                   value);
      for (const auto& [name, value] : members(e, "nacks").items())
        add_metric(families, "uet_nacks_total", fmt::format(R"({},nack="{}")", own, label(name)),
                   value);
      for (const auto& [name, value] : members(e, "gauges").items())
        add_metric(families, "uet_" + label(name), own, value);
      for (const Json& c : at(e, "contexts")) {
        const std::string labels =
            fmt::format(R"({},peer="{}",ordered="{}")", own, label(text(c, "peer")),
                        at(c, "ordered") == true ? "yes" : "no");
        for (const char* name : {"window", "credit", "inflight", "rtt_us", "base_rtt_us"})
          add_metric(families, fmt::format("uet_peer_{}", name), labels, at(c, name));
      }
    }
  }
  std::string out;
  for (const auto& [name, lines] : families)
    out += fmt::format("# TYPE {} {}\n{}", name, name.ends_with("_total") ? "counter" : "gauge",
                       lines);
  return out;
}

}  // namespace uet::stat
