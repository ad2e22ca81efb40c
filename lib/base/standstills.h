/// Times in which a loop did not turn although something was due.
#pragma once

#include <algorithm>
#include <array>

#include "lib/base/units.h"

namespace uet::base {

/// A process was stopped (a suspended job, a paused machine, a debugger), or its program did not call. Those it waits for may have
/// been stopped for as long, so their silence in that time says nothing of them.
///
/// The latest kRemembered count. So what waits is put off by a bounded time where a program turns its loop only now and then.
class Standstills {
 public:
  static constexpr std::size_t kRemembered = 8;
  /// Shorter ones are delays such as any process meets.
  static constexpr Duration kShortest = Duration::from_ms(500);

  /// The loop turns at `now`; the first of what it has to do was due at `due`.
  void note_turn(Instant due, Instant now) {
    if (now - due < kShortest || now == last_end_) [[likely]]
      return;
    latest_[next_] = {std::max(due, last_end_), now};
    last_end_ = now;
    next_ = (next_ + 1) % kRemembered;
  }

  /// When `patience` that began at `since` is over, asked at `now`: standstills in between do not count, and behind each of them
  /// there is a quarter of it left. (A process is stopped before what it would have done next is due, and when it was is not known.)
  Instant end_of(Instant since, Duration patience, Instant now) const {
    Instant end = since + patience;
    if (end > now) return end;
    Instant woke;
    std::size_t count = 0;
    for (const Standstill& s : latest_) {
      if (s.end <= since) continue;
      end = end + (s.end - std::max(s.begin, since));
      woke = std::max(woke, s.end);
      ++count;
    }
    return count == 0 || count == kRemembered ? end : std::max(end, woke + patience / 4);
  }

 private:
  struct Standstill {
    Instant begin, end;
  };
  std::array<Standstill, kRemembered> latest_{};
  Instant last_end_;
  std::size_t next_ = 0;
};

}  // namespace uet::base
