/// What stands between the wire and packet delivery: the UET CRC, or nothing. [WIRE 2.8]
#pragma once

#include <cstdint>
#include <optional>

#include "fep/fep.h"
#include "lib/base/drop_reason.h"
#include "lib/net/port.h"

namespace uet::fep {

/// Seals packets that leave and opens packets that arrive, in place. Secured packets get their
/// place here too: the first five bits of a packet say which kind it is.
class Integrity {
 public:
  /// `trimmed` and `trimmed_last_hop` are the DSCP values that switches give to packets they cut.
  Integrity(DataProtection protection, const net::PortFacts& facts, std::uint8_t trimmed,
            std::uint8_t trimmed_last_hop);

  /// Bytes that seal() adds to each packet.
  std::uint32_t overhead() const { return protection_ == DataProtection::kCrc ? kCrcBytes : 0; }

  /// `tx.entropy` must be what will be on the wire.
  void seal(net::TxPacket& tx) const;
  /// Checks and removes the trailer; a reason means that the packet must be dropped. A trimmed
  /// packet has no trailer.
  std::optional<base::DropReason> open(net::RxPacket& rx) const;

 private:
  static constexpr std::uint32_t kCrcBytes = 4;
  static constexpr std::uint8_t kTypeTss = 1;

  std::uint32_t crc_of(const net::FabricAddress& source, const net::FabricAddress& destination,
                       std::uint16_t entropy, std::span<const std::uint8_t> uet,
                       std::span<const std::uint8_t> rest) const;
  bool is_trimmed(net::TosByte tos) const;

  DataProtection protection_;
  net::FabricAddress own_;
  bool is_udp_;
  bool reports_tos_;
  std::uint16_t udp_port_;
  std::uint8_t trimmed_, trimmed_last_hop_;
};

}  // namespace uet::fep
