/// The one decision tree over a UET packet. [WIRE 6] It never reads past a bound, names what is
/// wrong instead of stopping, and hands every header it finds to a visitor. Used by uet-dump, the
/// tests and the fuzz targets; the data path decodes the two or three headers it needs with
/// codec.h.
#pragma once

#include <optional>

#include "lib/wire/header_type.h"
#include "lib/wire/problem.h"

namespace uet::wire {

/// Bytes that are not a declared header.
enum class BytesKind : std::uint8_t {
  kPayload,
  kCipher,       ///< sealed by TSS and not opened
  kIcv,          ///< TSS tag
  kCrc,          ///< UET CRC, or its first bytes when the capture was cut there
  kPadding,      ///< behind the IP packet
  kIpOptions,    ///< IPv4 options
  kIpExtension,  ///< one IPv6 extension header
  kUndecoded,    ///< what is left when a header cannot be read
};

/// What the layers below know about a UET packet.
struct UetContext {
  std::size_t offset = 0;  ///< of the first UET byte in the frame, for reports
  std::size_t wire_length =
      0;  ///< bytes of UET by the IP length; more than captured if the capture was cut
  bool is_trimmed = false;  ///< DSCP says that a switch cut the packet
  /// Set when four surplus bytes would be a wrong UET CRC: the value they should have.
  std::optional<std::uint32_t> crc_expected = {};
  /// Set when every packet with more to follow carries exactly this many bytes; 0 accepts any legal
  /// Payload MTU.
  std::uint32_t payload_mtu = 0;
  std::span<const std::uint8_t> source = {},
                                destination = {};    ///< IP addresses; empty when unknown
  std::span<const std::uint8_t> encapsulation = {};  ///< UDP or entropy header; empty when unknown
};

/// What a visitor may use to open a sealed packet.
struct SealedPacket {
  const UetContext& context;
  std::span<const std::uint8_t> tss_header;
  std::span<const std::uint8_t> sealed;  ///< cipher text and ICV
};

/// A visitor of what a packet holds. `offset` counts from the first byte of the frame.
class DissectVisitor {
 public:
  using Bytes = std::span<const std::uint8_t>;

  /// A header. `name` is the value's own name if it has one ("RUD_REQ"); `raw` are its type.size bytes.
  virtual void on_header(const HeaderType& type, std::string_view name, std::size_t offset,
                         Bytes raw) = 0;
  virtual void on_bytes(BytesKind kind, std::size_t offset, Bytes bytes) = 0;
  /// What is wrong; `a` and `b` are the numbers of its description.
  virtual void on_problem(Problem problem, std::size_t offset, std::uint64_t a,
                          std::uint64_t b) = 0;
  /// The clear text of a sealed packet, valid while it is visited; nothing: it stays sealed.
  virtual std::optional<Bytes> open(const SealedPacket&) { return std::nullopt; }

 protected:
  ~DissectVisitor() = default;
};

/// Walks one UET packet: the bytes behind the UDP or entropy header, without a UET CRC.
void dissect_uet(std::span<const std::uint8_t> bytes, const UetContext& context,
                 DissectVisitor& visitor);

}  // namespace uet::wire
