/// CRC-32C and the UET CRC built on it. [WIRE 2.8]
#pragma once

#include <cstdint>
#include <span>

namespace uet::wire {

/// CRC-32C (Castagnoli) of `bytes`. To go on over several pieces pass the result of the previous
/// piece: crc32c(b, crc32c(a)) is the CRC of a followed by b.
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t previous = 0);

/// What the UET CRC covers in front of the first UET byte.
struct CrcPseudoHeader {
  std::span<const std::uint8_t, 16> source;  ///< as FabricAddress::bytes(): IPv4 in the last four
  std::span<const std::uint8_t, 16> destination;
  bool is_v4 = true;
  bool is_udp = true;
  std::uint16_t entropy = 0;               ///< UDP source port, or the entropy field
  std::uint16_t udp_destination_port = 0;  ///< with UDP
  std::uint16_t udp_length = 0;            ///< with UDP: the final length, trailer included
  std::uint16_t entropy_reserved = 0;      ///< with native IP: the 16 reserved bits as received
};

/// The UET CRC of a packet. `uet` runs from the first UET byte to the last payload byte, trailer
/// excluded.
std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet);
/// The same of a packet whose bytes lie in two places.
std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet,
                      std::span<const std::uint8_t> rest);

}  // namespace uet::wire
