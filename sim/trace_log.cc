#include "sim/trace_log.h"

#include <fmt/ostream.h>

#include <algorithm>
#include <string>

namespace uet::sim {

void TraceLog::watch(HostId host, base::Trace& trace) {
  sinks_.push_back(std::make_unique<Sink>(out_, host));
  trace.add_sink(*sinks_.back());
}

namespace {

/// The keys of FI_UET_TRACE: "role: 0 initiator, 1 target" becomes "role", "1 after an error" "after_an_error".
std::string key_of(std::string_view meaning) {
  if (meaning.starts_with("1 ")) meaning.remove_prefix(2);
  std::string key(meaning.substr(0, meaning.find(':')));
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

}  // namespace

void TraceLog::Sink::on_event(const base::Event& event) {
  const base::EventDescription& d = base::describe(event.id);
  fmt::print(out_, R"({{"t":{},"host":{},"event":"{}")", event.at.ns(), host_, d.name);
  if (event.pdc != 0) fmt::print(out_, R"(,"pdc":{},"psn":{})", event.pdc, event.psn.value());
  if (event.id == base::EventId::kPacketDropped && event.a < base::kDropReasonCount)
    fmt::print(out_, R"(,"reason":"{}")", base::name_of(static_cast<base::DropReason>(event.a)));
  else if (!d.a.empty())
    fmt::print(out_, R"(,"{}":{})", key_of(d.a), event.a);
  if (!d.b.empty()) fmt::print(out_, R"(,"{}":{})", key_of(d.b), event.b);
  out_ << "}\n";
}

}  // namespace uet::sim
