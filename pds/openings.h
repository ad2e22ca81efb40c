/// What a target remembers so that late SYN packets open nothing: its unproven PDCs, the tombstones of closed ones, and the
/// openings of unproven PDCs that made place for others. [PDS 6.6] See docs/decisions/0048 and 0100.
#pragma once

#include <algorithm>

#include "pds/environment.h"
#include "pds/tombstones.h"
#include "pds/unproven.h"

namespace uet::pds {

class Openings : Part {
 public:
  /// `places`: target PDCs that the table can hold.
  Openings(Environment& env, std::uint32_t places);

  /// How long an initiator sends SYN packets again to a target that never answers.
  static Duration patience(const PdsConfig& config) {
    return config.peer_timeout > Duration{} ? std::min(config.peer_timeout, config.opening_patience)
                                            : config.opening_patience;
  }
  /// How long the opening of an unproven peer must be remembered, as a PDC or here: its initiator may still be in CREATING, with
  /// whatever peer_timeout it has, and copies of its SYN packets live for tombstone_time.
  Duration memory() const { return config_.opening_patience + config_.tombstone_time; }

  UnprovenPdcs& unproven() { return unproven_; }
  const UnprovenPdcs& unproven() const { return unproven_; }
  Tombstones& tombstones() { return tombstones_; }
  const Tombstones& tombstones() const { return tombstones_; }
  /// Openings of unproven PDCs that ended early.
  Tombstones& ended_early() { return ended_early_; }
  const Tombstones& ended_early() const { return ended_early_; }

  /// Leaves behind what a late SYN packet of this PDC must meet.
  void remember(Instant now, const Pdc& pdc);
  void expire(Instant now) {
    tombstones_.expire(now);
    ended_early_.expire(now);
  }

 private:
  Tombstones tombstones_;
  Tombstones ended_early_;
  UnprovenPdcs unproven_;
};

}  // namespace uet::pds
