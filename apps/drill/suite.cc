#include "apps/drill/suite.h"

#include <fmt/format.h>

#include <algorithm>

namespace uet::drill {

namespace {

/// Why there is no sign of life, from what did arrive.
std::string silence(const SuiteReport& report, const LiveLink& link) {
  const LiveLink::Counters& wire = link.counters();
  const std::string refused = link.refused();
  std::string text = fmt::format("{} gives no answer: {} packets sent, {} received", report.peer,
                                 wire.sent, wire.received);
  if (wire.broken > 0)
    text += fmt::format("; {} more were no packets that we can take: {} (see --protect, --keys)",
                        wire.broken, refused);
  if (wire.strangers > 0) text += fmt::format("; {} came from other addresses", wire.strangers);
  return text;
}

class Suite {
 public:
  Suite(const SuiteOptions& options, LiveLink& link, LiveTestbed& testbed, SuiteReport& report,
        const std::function<void(const Result&)>& tell)
      : options_(options), link_(link), testbed_(testbed), report_(report), tell_(tell) {}

  void play(const Script& script) {
    Result result;
    result.script = script;
    std::string lacks = testbed_.lacks(script);
    if (lacks.empty() && is_alive())
      lacks = testbed_.lacks(script);  // now that its manner is known
    if (!lacks.empty()) {
      result.outcome = skipped(lacks);
    } else if (!is_alive() && !script.is_contact) {
      result.outcome = skipped("not played: " + report_.trouble);
    } else {
      run(result);
    }
    tell_(result);
    const bool failed = result.outcome.verdict == Verdict::kFail;
    report_.results.push_back(std::move(result));
    // Heard under both keys, of which it need not know the older one, an endpoint may challenge openings from now on.
    if ((failed || uses_both_keys(script)) && is_alive()) look_for_life(script.name);
  }

 private:
  static bool uses_both_keys(const Script& script) {
    return std::ranges::find(script.needs, "two-keys") != script.needs.end();
  }

  static Outcome skipped(const std::string& why) {
    Outcome outcome;
    outcome.verdict = Verdict::kSkip;
    outcome.why = why;
    return outcome;
  }

  /// Asked once, before the first script that is played.
  bool is_alive() {
    if (was_asked_) return report_.trouble.empty();
    was_asked_ = true;
    if (!reach_gladly(options_.timing.reach)) report_.trouble = silence(report_, link_);
    if (!testbed_.refusal().empty())
      report_.note = fmt::format(
          "it refuses a request that it should have no reason to refuse: {}; do --ri, --pid, "
          "--job, --absolute and --key name what is there?",
          testbed_.refusal());
    return report_.trouble.empty();
  }

  /// A program that has just begun refuses requests until its endpoint is enabled.
  bool reach_gladly(base::Duration patience) {
    constexpr base::Duration kPause = base::Duration::from_ms(250);
    const base::Instant end = clock_now() + patience;
    if (!testbed_.reach(patience)) return false;
    while (!testbed_.refusal().empty() && clock_now() + kPause < end) {
      testbed_.pass(kPause);
      testbed_.reach(end - clock_now());
    }
    return true;
  }

  void run(Result& result) {
    if (!options_.out.empty()) {
      result.capture = result.script.name + ".pcapng";
      const std::string error = link_.capture_to(options_.out + "/" + result.capture);
      if (!error.empty()) report_.trouble = error;
    }
    const base::Instant from = clock_now();
    const std::uint64_t broken = link_.counters().broken;
    result.outcome = run_script(result.script, testbed_);
    const std::uint64_t more = link_.counters().broken - broken;
    if (result.outcome.verdict == Verdict::kFail && more > 0)
      result.outcome.why += fmt::format(
          "; {} packets that we cannot take came meanwhile ({} in all)", more, link_.refused());
    if (result.outcome.verdict == Verdict::kFail && !testbed_.initiate_trouble().empty())
      result.outcome.why += "; " + testbed_.initiate_trouble();
    result.seconds = static_cast<double>((clock_now() - from).ns()) / 1e9;
    result.lines.assign(testbed_.lines().begin(), testbed_.lines().end());
    if (!options_.out.empty()) link_.capture_to("");
  }

  void look_for_life(const std::string& script) {
    if (testbed_.reach(options_.timing.reach)) return;
    report_.trouble = fmt::format("since {} {}", script, silence(report_, link_));
  }

  const SuiteOptions& options_;
  LiveLink& link_;
  LiveTestbed& testbed_;
  SuiteReport& report_;
  const std::function<void(const Result&)>& tell_;
  bool was_asked_ = false;
};

}  // namespace

std::size_t SuiteReport::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(),
                    [verdict](const Result& r) { return r.outcome.verdict == verdict; }));
}

void run_suite(const std::vector<Script>& scripts, const SuiteOptions& options, LiveLink& link,
               LiveTestbed& testbed, SuiteReport& report,
               const std::function<void(const Result&)>& tell) {
  Suite suite(options, link, testbed, report, tell);
  for (const Script& script : scripts) suite.play(script);
  report.wire = link.counters();
}

}  // namespace uet::drill
