/// How often a port that cannot wake a sleeper is looked at.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::base {

/// A sleep that nothing ends is short where something happened just now, and doubles while nothing does: what a caller waits for comes
/// soon as a rule, and a wait that lasts must not keep a core busy.
class IdlePoll {
 public:
  static constexpr Duration kShortest = Duration::from_us(20);
  static constexpr Duration kLongest = Duration::from_ms(1);

  /// Something happened, or was begun.
  void reset() { next_ = kShortest; }
  /// The length of the sleep that begins.
  Duration next() {
    const Duration now = next_;
    next_ = std::min(next_ * 2, kLongest);
    return now;
  }

 private:
  Duration next_ = kShortest;
};

}  // namespace uet::base
