#include "sim/faults.h"

namespace uet::sim {

std::string_view name_of(Fault fault) {
  constexpr std::array<std::string_view, kFaultCount> kNames = {
      "loss",    "burst-loss", "duplicate", "late-duplicate", "reorder",
      "corrupt", "truncate",   "trim",      "partition"};
  return kNames[static_cast<std::size_t>(fault)];
}

FaultInjector::Fate FaultInjector::decide(Frame& frame) {
  Fate fate;
  if (is_lost()) {
    fate.lost = true;
    return fate;
  }
  if (rng_.chance(profile_.reorder)) {
    count(Fault::kReorder);
    fate.extra_delay = SimSpan::from_ps(
        static_cast<std::int64_t>(rng_.unit() * static_cast<double>(profile_.reorder_delay.ps())));
  }
  if (rng_.chance(profile_.duplicate)) {
    count(Fault::kDuplicate);
    fate.copied = true;
  } else if (rng_.chance(profile_.late_duplicate)) {
    count(Fault::kLateDuplicate);
    fate.copied = true;
    fate.copy_delay = SimSpan::from_ps(
        static_cast<std::int64_t>(rng_.unit() * static_cast<double>(profile_.late_delay.ps())));
  }
  if (frame.trimmable && rng_.chance(profile_.trim)) {
    count(Fault::kTrim);
    fate.trimmed = true;
  }
  // Trimmed packets carry no checksum: what damages them in the real world is caught below Ethernet.
  if (!frame.trimmed && !fate.trimmed) damage(frame);
  return fate;
}

bool FaultInjector::is_lost() {
  if (rng_.chance(profile_.loss)) {
    count(Fault::kLoss);
    return true;
  }
  in_burst_ = in_burst_ ? !rng_.chance(profile_.burst_leave) : rng_.chance(profile_.burst_enter);
  if (in_burst_ && rng_.chance(profile_.burst_loss)) {
    count(Fault::kBurstLoss);
    return true;
  }
  return false;
}

void FaultInjector::damage(Frame& frame) {
  net::Packet& packet = frame.rx.packet;
  if (packet.size() <= frame.headers) return;
  // Headers below UET are protected below Ethernet, or by a checksum of their own.
  const auto size = static_cast<std::uint32_t>(packet.size() - frame.headers);
  if (rng_.chance(profile_.corrupt)) {
    count(Fault::kCorrupt);
    packet.data()[frame.headers + rng_.below(size)] ^=
        static_cast<std::uint8_t>(1u << rng_.below(8));
    frame.trimmable = false;
  }
  if (rng_.chance(profile_.truncate)) {
    count(Fault::kTruncate);
    packet.trim_back(1 + rng_.below(size));
    frame.trimmable = false;
  }
}

}  // namespace uet::sim
