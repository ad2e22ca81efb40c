/// SES was told that there is no room, and hears when there is. [PDS 3.2]
#pragma once

#include "pds/pds.h"

namespace uet::pds {

class Backpressure {
 public:
  explicit Backpressure(Upper& upper) : upper_(upper) {}

  /// No room now: what submit() returns.
  SubmitResult again() {
    is_short_of_room_ = true;
    return SubmitResult::kAgain;
  }
  /// Something became free. SES is told at the end of the input, by settle().
  void on_room() { has_new_room_ = true; }
  bool has_new_room() const { return has_new_room_; }
  void settle(Instant now) {
    if (!has_new_room_) return;
    has_new_room_ = false;
    if (!is_short_of_room_) return;
    is_short_of_room_ = false;
    upper_.on_resume(now);
  }

 private:
  Upper& upper_;
  bool is_short_of_room_ = false;
  bool has_new_room_ = false;
};

}  // namespace uet::pds
