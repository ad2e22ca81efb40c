#include "apps/sim/host.h"

#include <utility>

#include "lib/base/check.h"

namespace uet::sim {

Host::Host(Simulation& simulation, SimPort& port, const fep::FepConfig& config,
           const ses::EndpointConfig& endpoint, OnCompletion on_completion,
           std::size_t recorded_events, BeforeStart before_start)
    : port_(port),
      config_(config),
      endpoint_config_(endpoint),
      on_completion_(std::move(on_completion)),
      before_start_(std::move(before_start)),
      recorded_events_(recorded_events),
      rng_(simulation.fork_rng()),
      node_(simulation, port) {
  restart();
}

Host::~Host() {
  node_.set_actor(nullptr);
}

void Host::restart() {
  UET_CHECK(fep_ == nullptr);
  trace_ = std::make_unique<base::Trace>(recorded_events_);
  if (before_start_) before_start_(id(), config_);
  fep_ = std::make_unique<fep::Fep>(config_, port_, rng_, *trace_, node_.now());
  const auto opened = fep_->ses().open_endpoint(node_.now(), endpoint_config_, *this);
  UET_CHECK(opened.has_value());
  endpoint_ = opened.value();
  node_.set_actor(this);
}

void Host::crash() {
  node_.set_actor(nullptr);
  for (std::size_t i = 0; i < past_counts_.size(); ++i) {
    past_counts_[i] += trace_->count(static_cast<base::EventId>(i));
  }
  fep_.reset();
  trace_.reset();
}

std::uint64_t Host::count(base::EventId id) const {
  return past_counts_[static_cast<std::size_t>(id)] + (trace_ ? trace_->count(id) : 0);
}

void Host::on_completion(ses::EndpointId, const ses::Completion& completion) {
  if (on_completion_) on_completion_(*this, completion);
}

}  // namespace uet::sim
