/// Where a file stands in the capture that it is part of: a comment in its section header, for people and for uet-dump.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace uet::wire {

struct CapturePart {
  std::uint64_t capture =
      0;                    ///< the same in all files of one capture: when it began, ns since 1970
  std::uint64_t part = 1;   ///< of this file, from 1
  std::uint64_t files = 1;  ///< that are kept
  std::uint64_t packets_before = 0;  ///< in all parts before this one

  std::string to_comment() const;
  /// Nothing when the comment is another program's.
  static std::optional<CapturePart> parse(std::string_view comment);
};

}  // namespace uet::wire
