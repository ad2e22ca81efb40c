/// Turns whatever sits on a port at the right virtual times.
#pragma once

#include <cstdint>

#include "lib/base/units.h"
#include "sim/sim_port.h"
#include "sim/simulation.h"

namespace uet::sim {

/// The user of a port: a fabric endpoint, or a script in a test.
class Actor {
 public:
  virtual ~Actor() = default;
  /// Receives, runs timers, sends. True when something happened.
  virtual bool turn(base::Instant now) = 0;
  virtual base::Instant next_deadline() const = 0;
};

/// Turns its actor when a packet arrives, when the port can send again, at the actor's deadline and
/// when poked. An actor has a clock of its own, which may be ahead of the fabric's and may jump.
class Node final : public EventHandler, public PortListener {
 public:
  Node(Simulation& simulation, SimPort& port);
  ~Node() override;

  /// Null: no endpoint is there; packets are lost, as after a crash.
  void set_actor(Actor* actor);
  SimPort& port() { return port_; }
  /// What the actor's clock shows.
  base::Instant now() const { return simulation_.now().instant() + clock_offset_; }
  /// Moves the actor's clock forward.
  void jump_clock(base::Duration by);
  /// Every turn keeps the host busy for so long: a slow host.
  void set_turn_cost(SimSpan cost) { turn_cost_ = cost; }
  /// The user asked the actor for something: turn at once.
  void poke() { on_port_ready(); }
  std::uint64_t turns() const { return turns_; }

  void on_port_ready() override;
  void on_event(std::uint32_t kind, void* data) override;

 private:
  /// Turns at one instant without time passing: more means an actor that never finds an end.
  static constexpr int kMaxTurns = 10'000;
  /// How soon an actor that is due but cannot go on is asked again: about one turn of a polling loop.
  static constexpr SimSpan kPollInterval = SimSpan::from_ps(1'000'000);

  void turn_until_quiet();
  bool wants_turn(bool did_something);
  void arm_timer();
  SimTime fabric_time(base::Instant local) const;

  Simulation& simulation_;
  SimPort& port_;
  Actor* actor_ = nullptr;
  base::Duration clock_offset_{};
  SimSpan turn_cost_{};
  SimTime busy_until_;
  SimTime timer_at_ = SimTime::never();  ///< of the one timer event that still counts
  std::uint64_t turns_ = 0;
  bool in_turn_ = false;
  bool poked_ = false;
};

}  // namespace uet::sim
