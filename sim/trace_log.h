/// Sinks for the events of simulated endpoints.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "lib/base/trace.h"
#include "sim/frame.h"

namespace uet::sim {

/// Writes every event as one JSON object a line, as FI_UET_TRACE does, with the host behind the time: `t` in ns, host, event,
/// PDC, PSN and the event's two values by name.
class TraceLog {
 public:
  explicit TraceLog(std::ostream& out) : out_(out) {}
  void watch(HostId host, base::Trace& trace);

 private:
  class Sink final : public base::TraceSink {
   public:
    Sink(std::ostream& out, HostId host) : out_(out), host_(host) {}
    void on_event(const base::Event& event) override;

   private:
    std::ostream& out_;
    HostId host_;
  };
  std::ostream& out_;
  std::vector<std::unique_ptr<Sink>> sinks_;
};

/// Remembers the last congestion window that an endpoint reported.
class LastWindow final : public base::TraceSink {
 public:
  explicit LastWindow(base::Trace& trace) { trace.add_sink(*this); }
  void on_event(const base::Event& event) override {
    if (event.id != base::EventId::kWindowChanged) return;
    window_ = static_cast<std::int64_t>(event.a);
    inflight_ = static_cast<std::int64_t>(event.b);
    has_value_ = true;
  }
  bool has_value() const { return has_value_; }
  std::int64_t window() const { return window_; }
  std::int64_t inflight() const { return inflight_; }

 private:
  std::int64_t window_ = 0, inflight_ = 0;
  bool has_value_ = false;
};

}  // namespace uet::sim
