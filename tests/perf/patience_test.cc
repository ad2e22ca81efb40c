#include "apps/perf/patience.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace uet::perf {
namespace {

using std::chrono::milliseconds;

/// Far longer than the watchdog needs, shorter than a test may take.
constexpr std::chrono::seconds kStuck{20};

TEST(Watchdog, ends_the_process__though_the_stuck_call_holds_streams) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto be_stuck = [] {
    std::FILE* const other = std::tmpfile();
    for (std::FILE* stream : {other, stdout, stderr}) flockfile(stream);
    const Patience patience(milliseconds(1));
    const Watchdog watchdog(patience, milliseconds(1));
    std::this_thread::sleep_for(kStuck);
  };
  EXPECT_EXIT(be_stuck(), testing::ExitedWithCode(1), "does not come back");
}

// The watchdog looks every half second: a thread that had not got on since it began would be stuck at its last look.
TEST(Watchdog, lets_a_thread_go_on_that_gets_on) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto get_on = [] {
    Patience patience(milliseconds(3000));
    const Watchdog watchdog(patience, milliseconds(1));
    const auto end = Patience::Clock::now() + milliseconds(3750);
    while (Patience::Clock::now() < end) {
      patience.progressed();
      std::this_thread::sleep_for(milliseconds(1));
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(get_on(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace uet::perf
