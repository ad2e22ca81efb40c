/// Whether putting things off pays.
#pragma once

#include <algorithm>

#include "lib/base/units.h"

namespace uet::provider {

/// Time that others have lost by what was put off, and that was not saved since. While some is left nothing is put off, but what
/// would have been saved counts. What is long past is forgiven: there is never more of it than `most`.
class Debt {
 public:
  using Duration = base::Duration;

  constexpr Debt(Duration at_first, Duration most) : left_(at_first), most_(most) {}

  bool is_paid() const { return left_ == Duration(); }
  void add(Duration lost) { left_ = std::min(left_ + lost, most_); }
  void pay(Duration saved) { left_ = std::max(left_ - saved, Duration()); }

 private:
  Duration left_;
  Duration most_;
};

}  // namespace uet::provider
