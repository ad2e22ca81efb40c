/// The relay before memif servers, without their drivers.
#include "lib/dpdk/memif_relay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <barrier>
#include <thread>
#include <vector>

#include "lib/dpdk/memif_listener.h"

namespace uet::dpdk {
namespace {

DeviceSpec server_at(const std::string& place) {
  DeviceSpec spec;
  std::string error;
  const std::string socket = "uet-relay-test-" + std::to_string(getpid()) + "-" + place;
  EXPECT_TRUE(parse_device_spec("dpdk:net_memif0,role=server,socket=" + socket, spec, error))
      << error;
  return spec;
}

/// While one place is left the thread of the relay goes on, and each of those that stop waits until it is out of poll().
TEST(MemifRelay, stop__of_several_places_at_once_ends_for_all) {
  constexpr int kThreads = 8, kRounds = 500;
  std::string error;
  const DeviceSpec stays = server_at("stays");
  ASSERT_TRUE(start_relay(stays, error)) << error;
  std::barrier all_started(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&all_started, spec = server_at(std::to_string(i))] {
      for (int round = 0; round < kRounds; ++round) {
        std::string why;
        EXPECT_TRUE(start_relay(spec, why)) << why;
        all_started.arrive_and_wait();
        stop_relay(spec);
      }
    });
  for (std::thread& thread : threads) thread.join();
  stop_relay(stays);
}

/// Two servers may have one place.
TEST(MemifRelay, stop__leaves_the_place_to_a_server_that_starts_meanwhile) {
  constexpr int kRounds = 300;
  const DeviceSpec spec = server_at("shared");
  const auto serve = [&] {
    for (int round = 0; round < kRounds; ++round) {
      std::string error;
      ASSERT_TRUE(start_relay(spec, error)) << error;
      const int client = connect_to(SocketPlace::of(spec));
      EXPECT_GE(client, 0) << "nothing listens in round " << round;
      close(client);
      stop_relay(spec);
    }
  };
  std::thread other(serve);
  serve();
  other.join();
}

}  // namespace
}  // namespace uet::dpdk
