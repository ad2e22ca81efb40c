/// What stands between the wire and packet delivery: transport security, the UET CRC, or nothing.
/// [WIRE 2.8, 3]
#pragma once

#include <cstdint>
#include <optional>

#include "fep/fep.h"
#include "lib/base/drop_reason.h"
#include "lib/net/port.h"
#include "tss/secure_domain.h"

namespace uet::fep {

inline constexpr std::uint32_t kCrcBytes = 4;

/// Bytes that sealing adds to each packet: the CRC behind it, or a security header in front and an ICV behind.
std::uint32_t seal_bytes(DataProtection protection, const tss::SecureDomain* domain);

/// Bytes that it takes to say where this address is reached.
std::uint32_t address_bytes(const net::FabricAddress& own);

/// Seals packets that leave and opens packets that arrive, in place. The first five bits of a packet
/// say whether it is secured; an endpoint takes only the kind that it sends.
class Integrity {
 public:
  /// `domain`, with kTss only, must outlive this.
  Integrity(DataProtection protection, const net::PortFacts& facts, net::TrimmedDscps trimmed,
            tss::SecureDomain* domain = nullptr);

  /// Bytes that seal() adds to each packet.
  std::uint32_t overhead() const { return seal_bytes(protection_, domain_); }

  /// `tx.entropy` must be what will be on the wire. A reason means that the packet must not be sent.
  std::optional<base::DropReason> seal(net::TxPacket& tx) const;
  /// The same, but the packet may be incomplete until seal_pending(), so that packets of a burst are sealed together. It must stay
  /// where it is, and not be looked at.
  std::optional<base::DropReason> seal_later(net::TxPacket& tx) const;
  void seal_pending() const;
  /// Checks and removes header and trailer, and the return port, which becomes a part of the source; a reason means that the packet must be dropped, without
  /// any answer. A trimmed packet has no trailer.
  std::optional<base::DropReason> open(net::RxPacket& rx) const;

 private:
  std::uint32_t crc_of(const net::FabricAddress& source, const net::FabricAddress& destination,
                       std::uint16_t entropy, std::uint16_t entropy_reserved,
                       std::span<const std::uint8_t> uet, std::span<const std::uint8_t> rest) const;
  bool is_trimmed(net::TosByte tos) const { return reports_tos_ && trimmed_.contains(tos); }

  DataProtection protection_;
  net::FabricAddress own_;
  bool is_udp_;
  bool reports_tos_;
  std::uint16_t udp_port_;
  net::TrimmedDscps trimmed_;
  tss::SecureDomain* domain_;
};

}  // namespace uet::fep
