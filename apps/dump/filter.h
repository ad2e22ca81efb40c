/// Which packets to show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "apps/dump/report.h"

namespace uet::dump {

/// First and last. PSNs wrap, so the last one may be the smaller number.
using PsnRange = std::pair<std::uint32_t, std::uint32_t>;

/// "7" or "7..9". Nothing where it is neither, or is longer than half of all PSNs: its ends were given in the wrong order then.
std::optional<PsnRange> parse_psns(std::string_view text);

/// Everything set must hold.
struct Filter {
  std::string layer;  ///< "ses", "tss", ...: the packet has one
  std::string type;   ///< a header name, PDS type, control type or SES opcode, in any case
  std::optional<std::uint32_t> pdc;  ///< either PDC identifier
  std::optional<std::uint32_t> job;
  std::optional<std::uint32_t> message;  ///< message_id, or the one being answered
  std::optional<PsnRange> psn;           ///< of a request, or what an answer is about
  bool only_problems = false;
  bool only_retransmissions = false;

  bool matches(const Report& report) const;
};

}  // namespace uet::dump
