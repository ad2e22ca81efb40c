#include "sim/trace_log.h"

#include <fmt/ostream.h>

namespace uet::sim {

void TraceLog::watch(HostId host, base::Trace& trace) {
  sinks_.push_back(std::make_unique<Sink>(out_, host));
  trace.add_sink(*sinks_.back());
}

void TraceLog::Sink::on_event(const base::Event& event) {
  const base::EventDescription& d = base::describe(event.id);
  fmt::print(out_, R"({{"t_ns":{},"host":{},"event":"{}")", event.at.ns(), host_, d.name);
  if (event.pdc != 0) fmt::print(out_, R"(,"pdc":{},"psn":{})", event.pdc, event.psn.value());
  if (!d.a.empty()) fmt::print(out_, R"(,"{}":{})", d.a, event.a);
  if (!d.b.empty()) fmt::print(out_, R"(,"{}":{})", d.b, event.b);
  out_ << "}\n";
}

}  // namespace uet::sim
