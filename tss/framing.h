/// Where a sealed packet's parts are, its IV and its additional data. [TSS 4, 8, 9]
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "lib/net/fabric_address.h"
#include "lib/wire/net_headers.h"
#include "tss/cipher.h"

namespace uet::tss {

/// What a port knows of a packet beyond its UET bytes.
struct Route {
  const net::FabricAddress& source;
  const net::FabricAddress& destination;
  std::uint16_t entropy = 0;           ///< as on the wire
  std::uint16_t entropy_reserved = 0;  ///< the bits behind it, with native IP; as received
};

/// What carries UET packets at this port.
struct Carrier {
  bool is_udp = true;
  std::uint16_t udp_port = 4793;
};

/// The TSS header of either size, decoded.
struct Header {
  bool sp = false, an = false;
  std::uint32_t sdi = 0, ssi = 0;
  std::uint64_t tsc = 0;  ///< epoch and counter

  std::size_t size() const { return sp ? wire::TssHeaderSsi::kSize : wire::TssHeader::kSize; }
  std::uint16_t epoch() const { return static_cast<std::uint16_t>(tsc >> 48); }
};

inline constexpr std::size_t kMaxHeaderBytes = wire::TssHeaderSsi::kSize;

/// The header that `packet` begins with, whose type has been seen to be TSS; nothing when the packet
/// is shorter than it.
std::optional<Header> parse_header(std::span<const std::uint8_t> packet);
/// Writes header.size() bytes.
void emit_header(const Header& header, std::uint8_t* to);

/// The bytes authenticated in front of the cipher text: addresses, UDP or entropy header, TSS header
/// and what of the PDS header stays readable. The UDP checksum counts as zero. [TSS 9.1]
class AdditionalData {
 public:
  AdditionalData() = default;
  /// `packet` is the sealed packet, TSS header to ICV; its first `header_and_clear` bytes are taken.
  AdditionalData(const Carrier& carrier, bool from_tss, const Route& route,
                 std::span<const std::uint8_t> packet, std::size_t header_and_clear);
  std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }

 private:
  void put(std::span<const std::uint8_t> bytes);
  static constexpr std::size_t kMaxClear = 12;
  std::array<std::uint8_t, 16 + 16 + 8 + kMaxHeaderBytes + kMaxClear> bytes_;
  std::size_t size_ = 0;
};

/// The four bytes of an IV that tell senders of one key apart. [TSS 8]
std::uint32_t iv_prefix(const Header& header, const net::FabricAddress& source);
Iv make_iv(std::uint32_t prefix, std::uint64_t tsc, const Mask& mask);

}  // namespace uet::tss
