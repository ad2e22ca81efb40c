#include "lib/dpdk/xdp_left_overs.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace uet::dpdk {
namespace {

using Clock = std::chrono::steady_clock;

TEST(XdpLeftOvers, opened_at_once_by_two_threads__belongs_to_the_one_that_opened_it) {
  const int probe = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (probe < 0) GTEST_SKIP() << "no AF_XDP sockets here";
  close(probe);
  int of_first = -1;
  std::atomic<int> of_second{-1};
  XdpDescriptors second;
  std::thread other;
  const XdpDescriptors first = xdp_descriptors_opened_by([&] {
    other = std::thread([&] {
      second = xdp_descriptors_opened_by(
          [&] { of_second = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0); });
    });
    of_first = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    // It does not get in as long as this thread is at work.
    for (const auto end = Clock::now() + std::chrono::milliseconds(100);
         of_second < 0 && Clock::now() < end;)
      std::this_thread::yield();
  });
  other.join();
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_TRUE(close_xdp_descriptors(first));
  EXPECT_FALSE(close_xdp_descriptors(first)) << "closed already";
  EXPECT_EQ(close(of_second), 0) << "the other's is open";
  EXPECT_NE(close(of_first), 0);
}

}  // namespace
}  // namespace uet::dpdk
