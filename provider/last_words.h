/// The counters of a traced endpoint reach its FI_UET_TRACE file also when a signal ends the process.
#pragma once

#include "lib/base/trace.h"

namespace uet::provider {

/// From now until the object goes, a signal that may end the process (SIGTERM, SIGINT, SIGHUP, and those of a crash) first
/// writes the counters of `trace` to `descriptor`, a line of their own, and then does what it did before. Signals that are
/// ignored, and those for which the application sets a handler later, are left alone.
class LastWords {
 public:
  LastWords(int descriptor, const base::Trace& trace);
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  int slot_;
};

}  // namespace uet::provider
