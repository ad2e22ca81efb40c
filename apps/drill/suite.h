/// Runs scripts against one live endpoint and says what came of each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/drill/interpreter.h"
#include "apps/drill/live_testbed.h"

namespace uet::drill {

struct Result {
  Script script;
  Outcome outcome;
  double seconds = 0;
  std::string capture;  ///< file; empty when there is none
  std::vector<WireLine> lines;
};

struct SuiteReport {
  std::string peer, port, address, version;
  std::vector<std::string> capabilities;
  std::string started;  ///< time of day
  std::string note;     ///< what is wrong with the way that requests are addressed, as it seems
  std::string trouble;  ///< why not every script was played; empty when all were
  LiveLink::Counters wire;
  std::vector<Result> results;

  std::size_t count(Verdict verdict) const;
  bool has_passed() const { return trouble.empty() && count(Verdict::kFail) == 0; }
};

struct SuiteOptions {
  std::string out;  ///< folder for captures; empty: none
  Timing timing;
};

/// Plays `scripts` in this order. An endpoint that gives no sign of life, or none any more after a script failed, is not asked
/// further. `tell` hears each result at once.
void run_suite(const std::vector<Script>& scripts, const SuiteOptions& options, LiveLink& link,
               LiveTestbed& testbed, SuiteReport& report,
               const std::function<void(const Result&)>& tell);

}  // namespace uet::drill
