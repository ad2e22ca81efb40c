/// The gate between DPDK's interrupt thread and the bursts of devices, with a stand-in for that thread: DPDK itself does not run
/// under the thread sanitizer, which judges this test. Two seconds, or a minute with UET_TEST_DEPTH=long.
#include "lib/dpdk/interrupt_gate.h"

#include <gtest/gtest.h>
#include <rte_alarm.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <random>
#include <string_view>
#include <thread>

#include "lib/dpdk/eal.h"
#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

bool is_own_eal() {
  return true;
}
bool is_forked_child() {
  return false;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDevices = 3;

/// Serves alarms, and between them what drivers want of it: it works on the rings of all devices, which their bursts use too.
class InterruptThread {
 public:
  static InterruptThread& instance() {
    static InterruptThread thread;
    return thread;
  }
  ~InterruptThread() {
    is_over_ = true;
    thread_.join();
  }

  void set_alarm(std::uint64_t microseconds, void (*function)(void*), void* argument) {
    const std::lock_guard lock(mutex_);
    alarms_.push_back({Clock::now() + std::chrono::microseconds(microseconds), function, argument});
  }
  /// Not guarded by anything but the gate.
  std::array<std::uint64_t, kDevices> rings{};
  std::atomic<std::uint64_t> rounds{0};

 private:
  struct Alarm {
    Clock::time_point due;
    void (*function)(void*);
    void* argument;
  };
  InterruptThread() : thread_([this] { run(); }) {}
  void run() {
    while (!is_over_) {
      serve_alarm();
      for (std::uint64_t& ring : rings) ++ring;
      ++rounds;
      std::this_thread::yield();
    }
  }
  void serve_alarm() {
    Alarm due;
    {
      const std::lock_guard lock(mutex_);
      if (alarms_.empty() || alarms_.front().due > Clock::now()) return;
      due = alarms_.front();
      alarms_.pop_front();
    }
    due.function(due.argument);
  }

  std::mutex mutex_;
  std::deque<Alarm> alarms_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

std::chrono::seconds duration() {
  const char* const depth = std::getenv("UET_TEST_DEPTH");
  return std::chrono::seconds(depth != nullptr && std::string_view(depth) == "long" ? 60 : 2);
}

/// A device that moves packets, lets the thread through now and then, and comes and goes.
void work(std::size_t which, Clock::time_point end, std::atomic<std::uint64_t>& bursts) {
  std::mt19937 rng(static_cast<unsigned>(which) + 4793);
  InterruptGate::Member member;
  member.join();
  while (Clock::now() < end) {
    if (member.begin()) {
      ++InterruptThread::instance().rings[which];
      member.end();
      ++bursts;
    }
    const auto what = rng() % 1000;
    if (what < 20) InterruptGate::instance().let_through();
    if (what == 999) {
      member.leave();
      member.join();
    }
    if (what % 10 == 9) std::this_thread::yield();
  }
}

TEST(InterruptGate, keeps_the_thread_out_of_bursts_and_lets_it_through) {
  const auto end = Clock::now() + duration();
  std::atomic<std::uint64_t> bursts{0};
  std::vector<std::thread> devices;
  for (std::size_t i = 0; i < kDevices; ++i) devices.emplace_back([&, i] { work(i, end, bursts); });
  // The thread gets its turn again and again while devices are busy.
  std::uint64_t seen = 0;
  for (auto changed = Clock::now(); Clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::uint64_t rounds = InterruptThread::instance().rounds;
    if (rounds != seen) changed = Clock::now();
    seen = rounds;
    ASSERT_LT(Clock::now() - changed, std::chrono::seconds(60)) << "stuck at the gate";
  }
  for (std::thread& device : devices) device.join();
  std::printf("%llu bursts, %llu rounds of the thread\n",
              static_cast<unsigned long long>(bursts.load()),
              static_cast<unsigned long long>(InterruptThread::instance().rounds.load()));
  EXPECT_GT(bursts.load(), 1000u);
  EXPECT_GT(seen, 20u);
}

}  // namespace
}  // namespace uet::dpdk

extern "C" int rte_eal_alarm_set(std::uint64_t microseconds, rte_eal_alarm_callback function,
                                 void* argument) {
  uet::dpdk::InterruptThread::instance().set_alarm(microseconds, function, argument);
  return 0;
}
