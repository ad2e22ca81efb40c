/// What uet-stat --explain and uet-events(7) tell of each drop reason and each event: what it means for an operator, and what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/trace.h"

namespace uet::stat {

/// How an operator should take a counter that grows.
enum class Concern : std::uint8_t {
  kHarmless,  ///< in normal operation
  kIfMany,    ///< a few are normal; many cost time
  kFault,     ///< never in normal operation
};
/// "harmless", "harmless while rare" or "a fault".
std::string_view name_of(Concern concern);

struct DropAdvice {
  Concern concern = Concern::kFault;
  std::string_view advice;  ///< sentences: why it is normal, or where to look and what to change
};

DropAdvice advice_on(base::DropReason reason);
/// Sentences: when it happens, and what a large count says.
std::string_view meaning_of(base::EventId event);

/// "drop bad-crc: UET CRC does not match. A fault. ..." and so on, a line for each that is called `name`; all when `name` is
/// empty, none when it is unknown.
std::vector<std::string> explain(std::string_view name);

}  // namespace uet::stat
