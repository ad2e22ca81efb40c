/// What a traced endpoint says when a signal comes.
#include "provider/last_words.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

namespace uet::provider {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends.data()), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  std::string read_all() {
    char bytes[8192];
    const ssize_t n = read(ends[0], bytes, sizeof bytes);
    return {bytes, static_cast<std::size_t>(n > 0 ? n : 0)};
  }
  std::array<int, 2> ends{};
};

extern "C" void end_with_seven(int) {
  _exit(7);
}
extern "C" void go_on(int) {}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ASSERT_EQ(sigaction(number, &action, nullptr), 0);
}

void crash_on_a_small_stack() {
  static char stack[8192];
  stack_t small{};
  small.ss_sp = stack;
  small.ss_size = sizeof stack;
  sigaltstack(&small, nullptr);
  handle(SIGSEGV, end_with_seven, SA_ONSTACK);
  const base::Trace trace;
  const LastWords words(STDERR_FILENO, trace);
  raise(SIGSEGV);
}

void be_interrupted_while_endpoints_come_and_go() {
  handle(SIGHUP, go_on, SA_RESTART);
  Pipe out;
  const base::Trace lasting;
  const LastWords first(out.ends[1], lasting);
  std::atomic<bool> stop{false};
  std::thread drain([&] {
    while (!out.read_all().empty() && !stop) {
    }
  });
  std::thread opener([&] {
    for (int i = 0; i < 3000; ++i) {
      const auto trace = std::make_unique<base::Trace>();
      const LastWords words(out.ends[1], *trace);
    }
    stop = true;
  });
  while (!stop) kill(getpid(), SIGHUP);
  opener.join();
  errno = 0;
  raise(SIGHUP);
  const bool has_kept_errno = errno == 0;
  drain.join();
  _exit(has_kept_errno ? 0 : 1);
}

/// Crash handlers have a stack of 8 KiB as a rule: what SIGSTKSZ was for decades.
TEST(LastWordsDeathTest, small_stack_of_a_handler__is_enough) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(crash_on_a_small_stack(), ::testing::ExitedWithCode(7), "\"signal\":11");
}

/// A signal that the application lives through.
TEST(LastWordsDeathTest, endpoints_that_end_meanwhile__are_not_spoken_of) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(be_interrupted_while_endpoints_come_and_go(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace uet::provider
