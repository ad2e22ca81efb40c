/// One line per packet, in columns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "apps/dump/render.h"

namespace uet::dump {

enum class TimeForm : std::uint8_t { kRelative, kDelta, kDay };

struct LineStyle {
  TimeForm time =
      TimeForm::kRelative;     ///< since the first packet, since the one before, time of day
  bool absolute_psns = false;  ///< else counted from the first one of the PDC's direction
  bool colour = false;
};

/// What a packet says in a few words, without number, time and addresses. PSNs count from `psn_base` of the request's own
/// direction, and those that an answer names from `answered_base`.
std::string summary_of(const Report& report, std::uint32_t psn_base, std::uint32_t answered_base);

/// Keeps what lines refer to: the time of the first packet, and the first PSN of each direction of a PDC.
class LinePrinter {
 public:
  explicit LinePrinter(LineStyle style) : style_(style) {}

  /// Takes note of a packet that is not shown.
  void skip(const DecodedPacket& packet);
  std::string line(const DecodedPacket& packet);
  std::string summary(const DecodedPacket& packet);

  /// Directions whose first PSN is remembered; PSNs of further ones are absolute.
  static constexpr std::size_t kDirectionsMax = 65536;

 private:
  using Direction =
      std::tuple<std::string, std::string, std::uint32_t>;  ///< source, destination, spdcid

  void note(const DecodedPacket& packet);
  std::uint32_t base_of(const Direction& direction) const;
  std::string time_of(const DecodedPacket& packet) const;

  LineStyle style_;
  bool has_first_ = false;
  std::uint64_t first_ns_ = 0, before_ns_ = 0;
  std::size_t endpoints_width_ = 0;
  std::map<Direction, std::uint32_t> bases_;
};

}  // namespace uet::dump
