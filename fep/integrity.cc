#include "fep/integrity.h"

#include "lib/base/byte_cursor.h"
#include "lib/wire/uet_crc.h"

namespace uet::fep {

std::uint32_t seal_bytes(DataProtection protection, const tss::SecureDomain* domain) {
  if (domain != nullptr) return static_cast<std::uint32_t>(domain->overhead());
  return protection == DataProtection::kCrc ? kCrcBytes : 0;
}

Integrity::Integrity(DataProtection protection, const net::PortFacts& facts,
                     net::TrimmedDscps trimmed, tss::SecureDomain* domain)
    : protection_(protection),
      own_(facts.address),
      is_udp_(facts.udp_encapsulation),
      reports_tos_(facts.reports_tos),
      udp_port_(facts.udp_port),
      trimmed_(trimmed),
      domain_(domain) {
  UET_CHECK((protection == DataProtection::kTss) == (domain != nullptr));
}

std::optional<base::DropReason> Integrity::seal_later(net::TxPacket& tx) const {
  if (domain_ != nullptr) {
    tx.packet.keep_borrowed();  // sealed in place, and the user's memory stays as it is
    return domain_->seal_later(tx.packet, tx.destination, tx.entropy);
  }
  if (protection_ == DataProtection::kNone) return std::nullopt;
  const std::uint32_t crc =
      crc_of(own_, tx.destination, tx.entropy, tx.packet.front(), tx.packet.borrowed());
  base::store_be(tx.packet.append(kCrcBytes), crc);
  return std::nullopt;
}

void Integrity::seal_pending() const {
  if (domain_ != nullptr) domain_->seal_pending();
}

std::optional<base::DropReason> Integrity::seal(net::TxPacket& tx) const {
  const auto reason = seal_later(tx);
  seal_pending();
  return reason;
}

std::optional<base::DropReason> Integrity::open(net::RxPacket& rx) const {
  if (domain_ != nullptr) {
    const auto reason =
        domain_->open(rx.packet, {rx.source, rx.destination, rx.entropy}, is_trimmed(rx.tos));
    rx.is_overtaken = !reason && !domain_->was_newest();
    return reason;
  }
  const auto bytes = rx.packet.bytes();
  if (bytes.size() < 2) return base::DropReason::kTruncated;
  if (bytes[0] >> 3 == kTypeTss) return base::DropReason::kTssUnexpected;
  if (protection_ == DataProtection::kNone || is_trimmed(rx.tos)) return std::nullopt;

  if (bytes.size() < 2 + kCrcBytes) return base::DropReason::kTruncated;
  const auto covered = bytes.first(bytes.size() - kCrcBytes);
  const auto received = base::load_be<std::uint32_t>(bytes.data() + covered.size());
  if (crc_of(rx.source, rx.destination, rx.entropy, covered, {}) != received)
    return base::DropReason::kBadCrc;
  rx.packet.trim_back(kCrcBytes);
  return std::nullopt;
}

std::uint32_t Integrity::crc_of(const net::FabricAddress& source,
                                const net::FabricAddress& destination, std::uint16_t entropy,
                                std::span<const std::uint8_t> uet,
                                std::span<const std::uint8_t> rest) const {
  constexpr std::size_t kUdpHeader = 8;
  return wire::uet_crc(
      wire::CrcPseudoHeader{
          .source = source.bytes(),
          .destination = destination.bytes(),
          .is_v4 = destination.is_v4(),
          .is_udp = is_udp_,
          .entropy = entropy,
          .udp_destination_port = udp_port_,
          .udp_length =
              static_cast<std::uint16_t>(kUdpHeader + uet.size() + rest.size() + kCrcBytes),
      },
      uet, rest);
}

}  // namespace uet::fep
