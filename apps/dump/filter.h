/// Which packets to show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "apps/dump/report.h"

namespace uet::dump {

/// Everything set must hold.
struct Filter {
  std::string layer;  ///< "ses", "tss", ...: the packet has one
  std::string type;   ///< a header name, PDS type, control type or SES opcode, in any case
  std::optional<std::uint32_t> pdc;  ///< either PDC identifier
  std::optional<std::uint32_t> job;
  std::optional<std::uint32_t> message;  ///< message_id, or the one being answered
  std::optional<std::pair<std::uint32_t, std::uint32_t>>
      psn;  ///< first and last: of a request, or what an answer is about
  bool only_problems = false;
  bool only_retransmissions = false;

  bool matches(const Report& report) const;
};

}  // namespace uet::dump
