#include "fep/integrity.h"

#include "lib/base/byte_cursor.h"
#include "lib/wire/codec.h"
#include "lib/wire/net_headers.h"
#include "lib/wire/uet_crc.h"

namespace uet::fep {

std::uint32_t seal_bytes(DataProtection protection, const tss::SecureDomain* domain) {
  if (domain != nullptr) return static_cast<std::uint32_t>(domain->overhead());
  return protection == DataProtection::kCrc ? kCrcBytes : 0;
}

std::uint32_t address_bytes(const net::FabricAddress& own) {
  return own.udp_port() != 0 ? std::uint32_t{wire::ReturnPort::kSize} : 0;
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

/// A part of two functions, each of which every packet takes.
[[gnu::always_inline]] inline std::uint32_t Integrity::crc_of(
    const net::FabricAddress& source, const net::FabricAddress& destination, std::uint16_t entropy,
    std::uint16_t entropy_reserved, std::span<const std::uint8_t> uet,
    std::span<const std::uint8_t> rest) const {
  constexpr std::size_t kUdpHeader = 8;
  return wire::uet_crc(
      wire::CrcPseudoHeader{
          .source = source.bytes(),
          .destination = destination.bytes(),
          .is_v4 = destination.is_v4(),
          .is_udp = is_udp_,
          .entropy = entropy,
          .udp_destination_port = destination.udp_port_or(udp_port_),
          .udp_length =
              static_cast<std::uint16_t>(kUdpHeader + uet.size() + rest.size() + kCrcBytes),
          .entropy_reserved = entropy_reserved,
      },
      uet, rest);
}

std::optional<base::DropReason> Integrity::seal_later(net::TxPacket& tx) const {
  if (domain_ != nullptr) {
    tx.packet.keep_borrowed();  // sealed in place, and the user's memory stays as it is
    return domain_->seal_later(tx.packet, tx.destination, tx.entropy);
  }
  if (const std::uint16_t port = own_.udp_port(); port != 0) [[unlikely]]
    wire::emit(wire::ReturnPort{.udp_port = port}, tx.packet.prepend(wire::ReturnPort::kSize));
  if (protection_ == DataProtection::kNone) return std::nullopt;
  const std::uint32_t crc =
      crc_of(own_, tx.destination, tx.entropy, 0, tx.packet.front(), tx.packet.borrowed());
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

namespace {

constexpr std::uint8_t kTypeTss = 1;

std::optional<base::DropReason> look_at_type(std::span<const std::uint8_t> uet) {
  if (uet.size() < 2) return base::DropReason::kTruncated;
  if (uet[0] >> 3 == kTypeTss) return base::DropReason::kTssUnexpected;
  return std::nullopt;
}

/// Takes it off, where there is one: it belongs to the address of the sender. Answers go to no other ports than those that processes
/// share: who forges an address is not to choose what hears of it there.
std::optional<base::DropReason> take_return_port(net::RxPacket& rx) {
  const auto bytes = rx.packet.bytes();
  if (!wire::ReturnPort::is_here(bytes)) [[likely]]
    return std::nullopt;
  const std::uint16_t port = wire::decode<wire::ReturnPort>(bytes.data()).udp_port;
  if (!rx.source.is_v4() || !wire::ReturnPort::is_one(port)) return base::DropReason::kNotUet;
  rx.source = rx.source.with_udp_port(port);
  rx.packet.trim_front(wire::ReturnPort::kSize);
  return look_at_type(rx.packet.bytes());
}

}  // namespace

std::optional<base::DropReason> Integrity::open(net::RxPacket& rx) const {
  // No return port here: the sender of a packet that was recorded must not look like another.
  if (domain_ != nullptr) {
    const auto reason =
        domain_->open(rx.packet, {rx.source, rx.destination, rx.entropy, rx.entropy_reserved},
                      is_trimmed(rx.tos));
    rx.is_overtaken = !reason && !domain_->was_newest();
    return reason;
  }
  const auto bytes = rx.packet.bytes();
  if (const auto reason = look_at_type(bytes)) return reason;
  if (protection_ == DataProtection::kNone || is_trimmed(rx.tos)) return take_return_port(rx);

  if (bytes.size() < 2 + kCrcBytes) return base::DropReason::kTruncated;
  const auto covered = bytes.first(bytes.size() - kCrcBytes);
  const auto received = base::load_be<std::uint32_t>(bytes.data() + covered.size());
  if (crc_of(rx.source, rx.destination, rx.entropy, rx.entropy_reserved, covered, {}) != received)
    return base::DropReason::kBadCrc;
  rx.packet.trim_back(kCrcBytes);
  return take_return_port(rx);
}

}  // namespace uet::fep
