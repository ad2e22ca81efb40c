/// What an attacker may overhear, and the account of what is sent to addresses that do not exist.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/sim/attack_packets.h"
#include "sim/sim_port.h"

namespace uet::sim {

/// Watches the packets that reach one honest host.
class Wiretap final : public FrameObserver {
 public:
  /// A packet between two honest hosts.
  struct Heard {
    HostId from = 0, to = 0;
    bool is_rod = false, is_request = false;
    std::uint16_t from_id = 0, to_id = 0;  ///< PDCIDs; 0 where unknown
    base::Psn psn;                         ///< of a request or control packet; CACK of an ACK
    AttackBytes bytes;
    net::TosByte tos;
  };

  explicit Wiretap(std::uint32_t honest_hosts) : honest_hosts_(honest_hosts) {}

  void on_delivered(const Frame& frame) override;

  /// The last few, in no order.
  const std::vector<Heard>& heard() const { return heard_; }
  /// Whether an ACK with this CACK_PSN answers one of the last openings that were forged in the name of an honest host.
  bool has_forged_opening(base::Psn cack) const;
  /// What came from addresses that no host has.
  std::uint64_t ghost_packets() const { return ghost_packets_; }
  std::uint64_t ghost_bytes() const { return ghost_bytes_; }
  /// Of those packets: for which read data or a report may wait until the address has proved that it hears us.
  std::uint64_t ghost_questions() const { return ghost_questions_; }

 private:
  static constexpr std::size_t kKept = 16;
  static constexpr std::size_t kOpeningsKept = 64;
  void note_forged(std::span<const std::uint8_t> bytes);

  std::uint32_t honest_hosts_;
  std::vector<Heard> heard_;
  std::size_t next_ = 0;
  std::vector<base::Psn> forged_starts_;
  std::size_t next_start_ = 0;
  std::uint64_t ghost_packets_ = 0, ghost_bytes_ = 0, ghost_questions_ = 0;
};

}  // namespace uet::sim
