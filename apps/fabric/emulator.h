/// The fabric itself: frames of the legs through switches and links, in virtual time. Its caller
/// says what time it is; it reads no clock and knows no sockets.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "apps/fabric/leaf_spine.h"
#include "apps/fabric/leg.h"
#include "apps/fabric/mac_table.h"
#include "apps/fabric/match_rules.h"
#include "apps/fabric/scenario.h"
#include "sim/simulation.h"

namespace uet::fabric {

/// Sees frames as they come and as they leave.
class FrameTap {
 public:
  virtual ~FrameTap() = default;
  virtual void on_received(sim::SimTime now, const Leg& leg,
                           std::span<const std::uint8_t> frame) = 0;
  virtual void on_sent(sim::SimTime now, const Leg& leg, const sim::Frame& frame) = 0;
};

/// What one leg got from another.
struct FlowCounters {
  std::uint64_t frames = 0, bytes = 0;  ///< whole ones
  std::uint64_t marked = 0, trimmed = 0;
};

class Emulator final : private sim::EventHandler, private Leg::Finisher {
 public:
  /// One device for each leg of the scenario, in its order. The scenario is kept.
  Emulator(const Scenario& scenario, std::vector<std::unique_ptr<net::FrameDevice>> devices);
  ~Emulator() override;

  /// Everything up to `now`: what was due happens, what the devices have comes in, what arrived
  /// goes out. Returns how many frames moved.
  std::size_t turn(sim::SimTime now);
  /// When something is due next.
  sim::SimTime next_event() const { return simulation_.events.next_at(); }
  sim::SimTime now() const { return simulation_.now(); }

  const Scenario& scenario() const { return scenario_; }
  LeafSpine& net() { return net_; }
  MatchRules& rules() { return rules_; }
  const std::vector<std::string>& leg_names() const { return leg_names_; }
  std::vector<std::unique_ptr<Leg>>& legs() { return legs_; }
  const FlowCounters& flow(std::size_t from, std::size_t to) const {
    return flows_[from * legs_.size() + to];
  }
  const MacTable& macs() const { return macs_; }
  sim::Simulation& simulation() { return simulation_; }
  std::uint64_t frames_held() const { return simulation_.frames.in_use(); }
  /// Not owned; null ends it.
  void set_tap(FrameTap* tap) { tap_ = tap; }

 private:
  enum Kind : std::uint32_t { kHeldBack, kAside };

  static sim::WireModel wire_model(const Scenario& scenario);
  std::vector<sim::FrameSink*> sinks();

  std::size_t receive(std::size_t leg);
  void accept(std::size_t leg, std::span<const std::uint8_t> bytes);
  void forward(std::size_t from, const FrameView& view, std::span<const std::uint8_t> bytes);
  void enter(std::size_t from, std::size_t to, const FrameView& view,
             std::span<const std::uint8_t> bytes);
  sim::Frame* make_frame(std::size_t from, std::size_t to, const FrameView& view,
                         std::span<const std::uint8_t> bytes);
  void apply(const MatchRule& rule, sim::Frame* frame, const FrameView& view,
             std::span<const std::uint8_t> bytes);
  void send_aside(sim::Frame* frame);
  void on_event(std::uint32_t kind, void* data) override;
  void finish(Leg& leg, sim::Frame& frame) override;

  const Scenario scenario_;
  const sim::WireModel model_;
  sim::Simulation simulation_;
  std::vector<std::string> leg_names_;
  std::vector<std::unique_ptr<Leg>> legs_;
  LeafSpine net_;
  MacTable macs_;
  MatchRules rules_;
  std::vector<FlowCounters> flows_;
  std::vector<std::uint32_t> link_generations_;
  FrameTap* tap_ = nullptr;
  std::array<net::Packet, 32> burst_;
};

}  // namespace uet::fabric
