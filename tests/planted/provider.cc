/// A provider with a bug on purpose: UET_PLANTED_BUG names it. The files in which the bugs are planted are linked before those of the
/// libraries.

#include <cstdlib>

#include "lib/base/planted.h"

namespace uet::base {
namespace {

const bool is_planted = [] {
  const char* const wanted = std::getenv("UET_PLANTED_BUG");
  for (std::uint8_t i = 0; wanted != nullptr && i < static_cast<std::uint8_t>(PlantedBug::kCount);
       ++i)
    if (name_of(static_cast<PlantedBug>(i)) == wanted) planted_bug = static_cast<PlantedBug>(i);
  return planted_bug != PlantedBug::kNone;
}();

}  // namespace
}  // namespace uet::base

/// So that a test can tell that the bug is there.
extern "C" __attribute__((visibility("default"))) bool uet_has_planted_bug() {
  return uet::base::is_planted;
}
