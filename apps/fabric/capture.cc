#include "apps/fabric/capture.h"

#include <utility>

#include "apps/output_path.h"

namespace uet::fabric {

std::unique_ptr<FabricCapture> FabricCapture::open(const std::string& path,
                                                   const std::string& scenario,
                                                   std::int64_t unix_ns_at_zero,
                                                   std::string& error) {
  net::CaptureFileConfig config{.path = {}, .interface_name = "uet-fabric"};
  config.started_ns = static_cast<std::uint64_t>(unix_ns_at_zero);
  if (!net::CaptureFileConfig::parse(path, config, error)) return nullptr;
  if (apps::is_input(config.path, {scenario})) {
    error = config.path + " is the scenario; capture into another file";
    return nullptr;
  }
  auto file = net::CaptureFile::open(config, error);
  if (file == nullptr) return nullptr;
  return std::unique_ptr<FabricCapture>(new FabricCapture(std::move(file), unix_ns_at_zero));
}

std::uint64_t FabricCapture::time_of(sim::SimTime now) const {
  return static_cast<std::uint64_t>(unix_ns_at_zero_ + now.instant().ns());
}

void FabricCapture::on_received(sim::SimTime now, const Leg& leg,
                                std::span<const std::uint8_t> frame) {
  comment_ = "from " + leg.name();
  file_->write({.time_ns = time_of(now),
                .data = frame,
                .direction = wire::PacketDirection::kInbound,
                .comment = comment_});
}

void FabricCapture::on_sent(sim::SimTime now, const Leg& leg, const sim::Frame& frame) {
  comment_ = "to " + leg.name();
  if (frame.trimmed) comment_ += ", trimmed";
  if (frame.rx.tos.is_congestion_experienced()) comment_ += ", marked";
  file_->write({.time_ns = time_of(now),
                .data = std::as_const(frame.rx.packet).bytes(),
                .direction = wire::PacketDirection::kOutbound,
                .comment = comment_});
}

}  // namespace uet::fabric
