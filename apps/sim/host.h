/// A simulated host: a real fabric endpoint, driven by virtual time.
#pragma once

#include <functional>
#include <memory>

#include "fep/fep.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "sim/node.h"
#include "sim/sim_port.h"
#include "sim/simulation.h"

namespace uet::sim {

/// Owns one endpoint and one SES endpoint in it, and hands on its completions. May crash and start
/// again.
class Host final : public Actor, public ses::CompletionSink {
 public:
  using OnCompletion = std::function<void(Host&, const ses::Completion&)>;
  /// May complete the configuration for one life of the endpoint: security belongs to one.
  using BeforeStart = std::function<void(HostId, fep::FepConfig&)>;

  /// The endpoint starts at once.
  Host(Simulation& simulation, SimPort& port, const fep::FepConfig& config,
       const ses::EndpointConfig& endpoint, OnCompletion on_completion,
       std::size_t recorded_events = 64, BeforeStart before_start = {});
  ~Host() override;

  HostId id() const { return port_.host(); }
  bool is_up() const { return fep_ != nullptr; }
  fep::Fep& fep() { return *fep_; }
  ses::Ses& ses() { return fep_->ses(); }
  base::Trace& trace() { return *trace_; }
  Node& node() { return node_; }
  ses::EndpointId endpoint() const { return endpoint_; }
  ses::Address address() const { return fep_->ses().address_of(endpoint_); }
  base::Instant now() const { return node_.now(); }

  /// The process dies: no goodbye, all state is lost. Nothing may be on the stack of the endpoint.
  void crash();
  /// A new process with the same address.
  void restart();
  /// Counters of earlier lives are added here.
  std::uint64_t count(base::EventId id) const;

  // Actor
  bool turn(base::Instant now) override { return fep_->turn(now); }
  base::Instant next_deadline() const override { return fep_->next_deadline(); }
  // ses::CompletionSink
  void on_completion(ses::EndpointId endpoint, const ses::Completion& completion) override;

 private:
  SimPort& port_;
  fep::FepConfig config_;
  ses::EndpointConfig endpoint_config_;
  OnCompletion on_completion_;
  BeforeStart before_start_;
  std::size_t recorded_events_;
  base::Rng rng_;
  Node node_;
  std::unique_ptr<base::Trace> trace_;
  std::unique_ptr<fep::Fep> fep_;
  ses::EndpointId endpoint_ = 0;
  std::array<std::uint64_t, base::kEventCount> past_counts_{};
};

}  // namespace uet::sim
