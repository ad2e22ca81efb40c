/// Frames as they come and leave, in a pcapng file. What a switch did to a frame is in its comment.
#pragma once

#include <memory>
#include <string>

#include "apps/fabric/emulator.h"
#include "lib/net/capture_file.h"

namespace uet::fabric {

class FabricCapture final : public FrameTap {
 public:
  /// `unix_ns_at_zero`: the time of day when virtual time began. Null, with a sentence in `error`; so too where the capture would
  /// overwrite `scenario`.
  static std::unique_ptr<FabricCapture> open(const std::string& path, const std::string& scenario,
                                             std::int64_t unix_ns_at_zero, std::string& error);

  void on_received(sim::SimTime now, const Leg& leg, std::span<const std::uint8_t> frame) override;
  void on_sent(sim::SimTime now, const Leg& leg, const sim::Frame& frame) override;

 private:
  FabricCapture(std::unique_ptr<net::CaptureFile> file, std::int64_t unix_ns_at_zero)
      : file_(std::move(file)), unix_ns_at_zero_(unix_ns_at_zero) {}
  std::uint64_t time_of(sim::SimTime now) const;

  std::unique_ptr<net::CaptureFile> file_;
  std::int64_t unix_ns_at_zero_;
  std::string comment_;
};

}  // namespace uet::fabric
