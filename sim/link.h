/// One direction of a link: a queue, a transmitter that sends one packet at a time, a wire with
/// delay and faults.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sim/faults.h"
#include "sim/output_queue.h"
#include "sim/simulation.h"

namespace uet::sim {

struct LinkConfig {
  base::BitRate rate = base::BitRate::from_gbps(100);
  SimSpan delay = SimSpan::from(base::Duration::from_us(1));
  QueueConfig queue;
};

/// Told when a link has nothing left to send.
class LinkListener {
 public:
  virtual ~LinkListener() = default;
  virtual void on_link_idle() = 0;
  /// The link went down or came back.
  virtual void on_link_changed() {}
};

class Link final : public EventHandler {
 public:
  Link(Simulation& simulation, const WireModel& model, const LinkConfig& config, FrameSink& to);

  /// Queues the frame. Takes ownership.
  void send(Frame* frame);
  /// True when nothing is queued or being sent: a frame sent now leaves at once.
  bool is_idle() const { return !sending_; }
  void set_listener(LinkListener* listener) { listener_ = listener; }

  /// Speed, queue limits and marking thresholds become `factor` times the configured ones.
  /// The data queue keeps room for `queue_bytes_min`, however slow the link.
  void set_speed_factor(double factor, std::int64_t queue_bytes_min = 0);
  double speed_factor() const {
    return static_cast<double>(rate_.bps()) / static_cast<double>(config_.rate.bps());
  }
  /// For what leaves from now on.
  void set_delay(SimSpan delay) { config_.delay = delay; }
  /// Queue limits, trimming and marking at the configured speed; what is queued stays.
  void set_queue(const QueueConfig& queue);
  /// A link that goes down loses what is on it, and what it takes until it is up again, silently: as with a cable that is cut.
  /// Only the sender with several links looks, and is told when one is back.
  void set_up(bool up);
  bool is_up() const { return up_; }
  /// Starts no transmission before `end`; nothing is lost but what overflows.
  void pause_until(SimTime end);
  void set_faults(const FaultProfile& profile);

  const OutputQueue& queue() const { return queue_; }
  const LinkConfig& config() const { return config_; }
  FaultCounters fault_counters() const;
  /// What the wire does now; all zero while it is perfect.
  FaultProfile fault_profile() const { return faults_ ? faults_->profile() : FaultProfile{}; }
  std::uint64_t lost_while_down() const { return lost_while_down_; }
  std::string name;

  void on_event(std::uint32_t kind, void* data) override;

 private:
  enum Kind : std::uint32_t { kSent, kArrived, kResume };

  void start();
  void finish();
  void put_on_wire(Frame* frame);
  void arrive(Frame* frame);
  void lose(Frame* frame);
  Frame* copy_of(const Frame& frame);

  Simulation& simulation_;
  const WireModel& model_;
  LinkConfig config_;
  base::BitRate rate_;
  OutputQueue queue_;
  base::Rng rng_;
  FrameSink& to_;
  LinkListener* listener_ = nullptr;
  std::unique_ptr<FaultInjector> faults_;
  SimTime paused_until_;
  std::uint64_t lost_while_down_ = 0;
  std::uint32_t cuts_ = 0;             ///< how often it went down
  std::uint32_t cuts_when_begun_ = 0;  ///< with the transmission that is under way
  bool up_when_begun_ = true;
  bool sending_ = false;
  bool up_ = true;
};

}  // namespace uet::sim
