/// memif clients without copying: without hugepages only where EAL was started for them, so in a process of their own.

#include <array>
#include <chrono>
#include <thread>

#include "tests/net/dpdk_guest.h"

namespace uet::dpdk {
namespace {

class ZeroCopyTest : public DpdkGuestTest {
  void SetUp() override {
    if (!ensure_eal({.memory_bytes = 64 << 20, .single_file = true}, error_)) FAIL() << error_;
  }
};

// First, because it is the first closing of a connection that opens a file of ours: that must not get a number of DPDK's memory.
TEST_F(ZeroCopyTest, memif_client__closed_while_it_connects_connects_again) {
  auto server = open("net_memif34,role=server,socket=/uet/zc-early");
  ASSERT_TRUE(server) << error_;
  std::array<net::Packet, 8> burst;
  for (const int turns : {6, 9, 4, 12}) {
    auto client = open("net_memif35,role=client,socket=/uet/zc-early,zero-copy=yes");
    ASSERT_TRUE(client) << error_;
    for (int turn = 0; turn < turns; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      client->receive_frames(burst);
      server->receive_frames(burst);
    }
  }
  auto client = open("net_memif35,role=client,socket=/uet/zc-early,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  EXPECT_TRUE(passes(*client, *server));
}

// A connection that the server refuses or ends leaves the driver's lists of memory regions in disorder.
TEST_F(ZeroCopyTest, memif_client__finds_a_server_that_comes_later_and_comes_again) {
  auto client = open("net_memif35,role=client,socket=/uet/zc-later,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  std::array<net::Packet, 8> burst;
  const auto some_time = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < some_time) client->receive_frames(burst);
  for (int round = 0; round < 3; ++round) {
    auto server = open("net_memif34,role=server,socket=/uet/zc-later");
    ASSERT_TRUE(server) << error_;
    EXPECT_TRUE(passes(*client, *server)) << "round " << round;
    EXPECT_TRUE(passes(*server, *client)) << "round " << round;
  }
}

// The driver forgets what it held: a ring of packets to receive into, and what the server had not fetched.
TEST_F(ZeroCopyTest, memif_client__has_its_packets_back_when_its_server_is_gone) {
  auto client = open("net_memif35,role=client,socket=/uet/zc-packets,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  std::array<net::Packet, 8> burst;
  for (int round = 0; round < 2; ++round) {
    auto server = open("net_memif34,role=server,socket=/uet/zc-packets");
    ASSERT_TRUE(server) << error_;
    ASSERT_TRUE(passes(*client, *server)) << "round " << round;
    ASSERT_TRUE(passes(*server, *client)) << "round " << round;
    for (int i = 0; i < 300; ++i) {
      net::Packet frame = client->pool().allocate();
      ASSERT_TRUE(frame);
      frame.append(64);
      client->send_frames({&frame, 1});
    }
    EXPECT_LT(client->pool().available(), client->pool().capacity() - 300);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (client->pool().available() != client->pool().capacity() &&
         std::chrono::steady_clock::now() < end)
    for (std::size_t i = client->receive_frames(burst); i-- > 0;) burst[i].reset();
  EXPECT_EQ(client->pool().available(), client->pool().capacity());
}

TEST_F(ZeroCopyTest, memif_client__runs_without_copying) {
  auto server = open("net_memif34,role=server,socket=/uet/zc");
  ASSERT_TRUE(server) << error_;
  auto client = open("net_memif35,role=client,socket=/uet/zc,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  EXPECT_TRUE(passes(*client, *server));
}

}  // namespace
}  // namespace uet::dpdk
