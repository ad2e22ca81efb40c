#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using Clock = std::chrono::steady_clock;
using WaitTest = PairTest;

// Covers: FI-35
TEST_F(WaitTest, signal__ends_a_wait) {
  open();
  fi_cq_tagged_entry entry;
  constexpr int kLong = 60'000;
  const auto begin = Clock::now();
  ASSERT_EQ(fi_cq_signal(a.cq), 0);
  EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, kLong), -FI_EAGAIN);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fi_cq_signal(a.cq);
  });
  EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, kLong), -FI_EAGAIN);
  other.join();
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(kLong));
}

/// The shortest of a few: a busy machine makes some longer.
// Covers: FI-35
TEST_F(WaitTest, timeout__takes_its_time) {
  open();
  auto shortest = Clock::duration::max();
  for (int attempt = 0; attempt < 20 && shortest > std::chrono::milliseconds(550); ++attempt) {
    fi_cq_tagged_entry entry;
    const auto begin = Clock::now();
    EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, 500), -FI_EAGAIN);
    shortest = std::min(shortest, Clock::now() - begin);
  }
  EXPECT_GT(shortest, std::chrono::milliseconds(450));
  EXPECT_LT(shortest, std::chrono::milliseconds(550));
}

volatile sig_atomic_t signals_handled = 0;

/// Calls `wait` on a thread of its own, which gets signals until it returns.
template <typename Wait>
auto interrupted(Wait wait) {
  struct sigaction handler {
  }, before{};
  handler.sa_handler = [](int) { signals_handled = signals_handled + 1; };
  handler.sa_flags = SA_RESTART;
  EXPECT_EQ(sigaction(SIGUSR1, &handler, &before), 0);
  decltype(wait()) result{};
  std::atomic<bool> has_returned{false};
  std::thread waiter([&] {
    result = wait();
    has_returned = true;
  });
  while (!has_returned) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  waiter.join();
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  return result;
}

// A server that waits for ever is ended so.
TEST_F(WaitTest, signal_handler_that_runs__ends_the_wait_for_a_completion_or_an_event) {
  open();
  fi_cq_tagged_entry entry;
  EXPECT_EQ(interrupted([&] { return fi_cq_sread(a.cq, &entry, 1, nullptr, -1); }), -FI_EAGAIN);
  fid_eq* eq = nullptr;
  fi_eq_attr attr{.wait_obj = FI_WAIT_UNSPEC};
  ASSERT_EQ(fi_eq_open(a.fabric, &attr, &eq, nullptr), 0);
  std::uint32_t event = 0;
  std::uint64_t data = 0;
  EXPECT_EQ(interrupted([&] { return fi_eq_sread(eq, &event, &data, sizeof data, -1, 0); }),
            -FI_EAGAIN);
  EXPECT_EQ(fi_close(&eq->fid), 0);
  EXPECT_GT(signals_handled, 0);
  expect_message();
}

// Its page promises no such thing, and programs take any other answer than 0 for a failure.
TEST_F(WaitTest, signal_handler_that_runs__does_not_end_the_wait_for_a_counter) {
  open();
  fid_cntr* cntr = nullptr;
  fi_cntr_attr attr{.wait_obj = FI_WAIT_UNSPEC};
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  const auto begin = Clock::now();
  EXPECT_EQ(interrupted([&] { return fi_cntr_wait(cntr, 1, 200); }), -FI_ETIMEDOUT);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(200));
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

// Covers: FI-36
TEST_F(WaitTest, counter_wait__reached_timed_out_or_failed) {
  open();
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  ASSERT_EQ(fi_cntr_set(cntr, 3), 0);
  EXPECT_EQ(fi_cntr_wait(cntr, 3, 0), 0);
  EXPECT_EQ(fi_cntr_wait(cntr, 4, 50), -FI_ETIMEDOUT);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    fi_cntr_add(cntr, 1);
  });
  EXPECT_EQ(fi_cntr_wait(cntr, 4, 5000), 0);
  other.join();
  ASSERT_EQ(fi_cntr_adderr(cntr, 1), 0);
  EXPECT_EQ(fi_cntr_wait(cntr, 9, 5000), -FI_EAVAIL);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

/// Ping-pong between two sleepers: a million rounds where time allows (UET_TEST_DEPTH=long), else a thousand.
// Covers: FI-34
TEST_F(WaitTest, fd__becomes_readable_when_a_message_arrives) {
  a.cq_attr.wait_obj = b.cq_attr.wait_obj = FI_WAIT_FD;
  open();
  const char* depth = std::getenv("UET_TEST_DEPTH");
  const int rounds = depth != nullptr && std::string_view(depth) == "long" ? 1'000'000 : 1000;
  const auto sleep_until_message = [](Side& s, std::uint8_t* buffer) {
    int fd = -1;
    EXPECT_EQ(fi_control(&s.cq->fid, FI_GETWAIT, &fd), 0);
    fi_cq_tagged_entry entry;
    while (true) {
      const ssize_t n = fi_cq_read(s.cq, &entry, 1);
      if (n == 1) break;
      ASSERT_EQ(n, -FI_EAGAIN);
      fid_t fids[] = {&s.cq->fid};
      if (fi_trywait(s.fabric, fids, 1) != 0) continue;
      pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&p, 1, 10'000), 1) << "lost wake-up";
    }
    ASSERT_EQ(fi_recv(s.ep, buffer, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  };
  std::uint8_t at_a = 0, at_b = 0;
  ASSERT_EQ(fi_recv(a.ep, &at_a, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_recv(b.ep, &at_b, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  std::thread responder([&] {
    for (int i = 0; i < rounds; ++i) {
      sleep_until_message(b, &at_b);
      if (::testing::Test::HasFatalFailure()) return;
      EXPECT_EQ(fi_inject(b.ep, &at_b, 1, to_a), 0);
    }
  });
  for (int i = 0; i < rounds && !HasFatalFailure(); ++i) {
    EXPECT_EQ(fi_inject(a.ep, &at_a, 1, to_b), 0);
    sleep_until_message(a, &at_a);
  }
  responder.join();
}

TEST_F(WaitTest, trywait__refuses_to_sleep_on_a_full_queue) {
  a.cq_attr.wait_obj = FI_WAIT_FD;
  open();
  fid_t fids[] = {&a.cq->fid};
  EXPECT_EQ(fi_trywait(a.fabric, fids, 1), 0);
  std::uint8_t byte = 0;
  ASSERT_EQ(fi_recv(b.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, &byte, 1, nullptr, to_b, nullptr), 0);
  wait_for(b);
  EXPECT_TRUE(turn_until([&] { return fi_trywait(a.fabric, fids, 1) == -FI_EAGAIN; }));
}

TEST_F(WaitTest, fd__that_is_asked_for_after_trywait_tells_what_came_between) {
  a.cq_attr.wait_obj = FI_WAIT_POLLFD;
  open();
  fid_t fids[] = {&a.cq->fid};
  const auto is_readable = [&] {
    pollfd p{};
    fi_wait_pollfd wait{.change_index = 0, .nfds = 1, .fd = &p};
    EXPECT_EQ(fi_control(&a.cq->fid, FI_GETWAIT, &wait), 0);
    return ::poll(&p, 1, 0) == 1;
  };
  ASSERT_EQ(fi_trywait(a.fabric, fids, 1), 0);
  ASSERT_EQ(fi_cq_signal(a.cq), 0);
  EXPECT_TRUE(is_readable());
  ASSERT_EQ(fi_trywait(a.fabric, fids, 1), 0);
  EXPECT_FALSE(is_readable());
}

TEST_F(WaitTest, fd__that_is_asked_for_first_is_not_readable) {
  a.cq_attr.wait_obj = FI_WAIT_FD;
  open();
  ASSERT_EQ(fi_cq_signal(a.cq), 0);
  int fd = -1;
  ASSERT_EQ(fi_control(&a.cq->fid, FI_GETWAIT, &fd), 0);
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 0), 0);
}

/// A target that only computes: its watchdog answers.
TEST_F(WaitTest, silent_target__does_not_stop_its_peers) {
  open();
  std::uint8_t byte = 0;
  ASSERT_EQ(fi_recv(b.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, &byte, 1, nullptr, to_b, nullptr), 0);
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, 5000), 1);
}

}  // namespace
}  // namespace uet::provider::testing
