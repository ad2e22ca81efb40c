/// One leg: a device that moves frames, and what waits for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/net/frame_device.h"
#include "sim/frame.h"
#include "sim/simulation.h"

namespace uet::fabric {

/// One number for each way in which a frame ends outside of a queue or a faulty link.
struct LegCounters {
  std::uint64_t rx_frames = 0, rx_bytes = 0;
  std::uint64_t tx_frames = 0, tx_bytes = 0;
  std::uint64_t tx_marked = 0, tx_trimmed = 0;
  std::uint64_t rx_runt = 0;        ///< no whole Ethernet header
  std::uint64_t rx_too_large = 0;   ///< more than [fabric] max_frame
  std::uint64_t rx_bad_source = 0;  ///< sender is a group
  std::uint64_t rx_no_packet = 0;   ///< the fabric's pool is empty
  std::uint64_t rx_to_itself = 0;   ///< destination is behind the same leg
  std::uint64_t flooded = 0;        ///< copies made of group and unknown destinations
  std::uint64_t rx_held = 0;        ///< turns in which nothing was taken: the transmitter is busy
  std::uint64_t tx_full = 0;        ///< the host takes nothing, and its share here is full
  std::uint64_t tx_stalled = 0;     ///< thrown away after the host took nothing for long
  std::uint64_t tx_no_buffer = 0;   ///< the device's pool is empty
};

/// Where the last link to a leg ends. Frames wait here for a turn, or a little longer when the host
/// is slow to take them.
class Leg final : public sim::FrameSink {
 public:
  Leg(sim::Simulation& simulation, std::string name, std::unique_ptr<net::FrameDevice> device);
  ~Leg() override;

  const std::string& name() const { return name_; }
  net::FrameDevice& device() { return *device_; }
  LegCounters counters;

  /// From the fabric; takes the frame.
  void on_frame(sim::Frame* frame) override;
  /// Takes what has come from the device, at most a burst.
  std::size_t receive(std::array<net::Packet, 32>& out) { return device_->receive_frames(out); }

  /// Called for each frame before it leaves.
  class Finisher {
   public:
    virtual ~Finisher() = default;
    virtual void finish(Leg& leg, sim::Frame& frame) = 0;
  };
  /// Gives the device what it takes; returns how many frames.
  std::size_t transmit(sim::SimTime now, Finisher& finisher);
  std::size_t waiting() const { return egress_.size() + (offered_end_ - offered_begin_); }

 private:
  static constexpr std::size_t kWaitingMax = 512;
  static constexpr std::size_t kBurst = 32;
  static constexpr base::Duration kPatience = base::Duration::from_seconds(1);

  void fill(Finisher& finisher);
  void throw_away();

  sim::Simulation& simulation_;
  std::string name_;
  std::unique_ptr<net::FrameDevice> device_;
  sim::FrameFifo egress_;
  /// Copied into the device's own packets and not taken yet.
  std::array<net::Packet, kBurst> offered_;
  std::size_t offered_begin_ = 0, offered_end_ = 0;
  sim::SimTime last_taken_;
};

}  // namespace uet::fabric
