/// What the two sides of `uet-perf raw` say to each other, in the packets that they measure.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/byte_cursor.h"
#include "lib/net/packet.h"

namespace uet::perf {

enum class RawKind : std::uint8_t {
  kStart = 1,  ///< a run begins; answered by kReady
  kReady = 2,
  kData = 3,
  kPing = 4,  ///< answered by kPong with the same sequence
  kPong = 5,
  kEnd = 6,  ///< the run is over; answered by kReport
  kReport = 7,
  kBye = 8,  ///< the server may leave; answered by kGone
  kGone = 9,
};

/// Of these messages; both sides must have the same.
inline constexpr std::uint8_t kRawVersion = 3;

/// The first 8 bytes of every packet; a data packet or ping has no more that is looked at.
struct RawHeader {
  static constexpr std::size_t kSize = 8;
  RawKind kind{};
  std::uint8_t run = 0;  ///< number of the run, so that late packets of an earlier one do not count
  /// kStart, kReady: each side copies the payload of the run, from or to the next of 2^this bytes; 0: it is not copied.
  std::uint8_t copy_shift = 0;
  std::uint8_t version = kRawVersion;
  /// Of a ping, its number; of all others, the client's session: runs are numbered from 1 in each.
  std::uint32_t sequence = 0;

  void emit(std::uint8_t* out) const {
    out[0] = static_cast<std::uint8_t>(kind);
    out[1] = run;
    out[2] = copy_shift;
    out[3] = version;
    base::store_be(out + 4, sequence);
  }
  static std::optional<RawHeader> parse(const net::Packet& packet) {
    if (packet.size() < kSize) return std::nullopt;
    const std::uint8_t* p = packet.data();
    return RawHeader{static_cast<RawKind>(p[0]), p[1], p[2], p[3],
                     base::load_be<std::uint32_t>(p + 4)};
  }
};

/// Behind the header of kReport.
struct RawReport {
  static constexpr std::size_t kSize = 24;
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t elapsed_ns = 0;  ///< from the first to the last packet

  void emit(std::uint8_t* out) const {
    base::store_be(out, packets);
    base::store_be(out + 8, bytes);
    base::store_be(out + 16, elapsed_ns);
  }
  static std::optional<RawReport> parse(const net::Packet& packet) {
    if (packet.size() < RawHeader::kSize + kSize) return std::nullopt;
    const std::uint8_t* p = packet.data() + RawHeader::kSize;
    return RawReport{base::load_be<std::uint64_t>(p), base::load_be<std::uint64_t>(p + 8),
                     base::load_be<std::uint64_t>(p + 16)};
  }
};

}  // namespace uet::perf
