/// How many packets in a row take one path. [decision 127]
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

struct PathRunsTest : CccTest {
  /// Paths are taken in turn, by runs of so many packets.
  static CcConfig in_turn(std::uint16_t run_packets) {
    auto config = hand_config();
    config.paths = 16;
    config.load_balancing = LoadBalancing::kOblivious;
    config.run_packets = run_packets;
    return config;
  }
};

/// How many packets of `bytes` in a row took one path, for each of some runs. Not of the first, which may have begun before.
std::set<int> run_lengths(Ccc& ccc, Instant now, ByteCount bytes) {
  std::set<int> lengths;
  int length = 0;
  bool is_whole = false;
  std::optional<std::uint16_t> path;
  for (int i = 0; i < 400; ++i) {
    const auto entropy = ccc.next_send(now, nullptr, bytes, 1).entropy;
    if (path && entropy != *path) {
      if (is_whole) lengths.insert(length);
      length = 0;
      is_whole = true;
    }
    path = entropy;
    ++length;
  }
  return lengths;
}

// A round ends with the path that the next one may begin with: such a run is twice as long.
TEST_F(PathRunsTest, small_packets_take_the_place_of_a_full_one_on_a_path) {
  auto config = in_turn(1);
  make(config);
  const ByteCount full = config.mtu_bytes;
  EXPECT_EQ(*run_lengths(*ccc_, now_, full).begin(), 1);
  EXPECT_EQ(*run_lengths(*ccc_, now_, full - 100).begin(), 1);
  EXPECT_EQ(*run_lengths(*ccc_, now_, full / 8).begin(), 8);
  config.run_packets = 4;
  make(config);
  EXPECT_EQ(*run_lengths(*ccc_, now_, full).begin(), 4);
  EXPECT_EQ(*run_lengths(*ccc_, now_, full / 8).begin(), 32);
}

TEST_F(PathRunsTest, runs_are_long_while_nothing_tells_of_congestion) {
  auto config = in_turn(4);
  config.calm_run_packets = 16;
  make(config);
  const auto shortest_run = [&] { return *run_lengths(*ccc_, now_, kPacket).begin(); };
  std::uint32_t arrived = 0;
  const auto exchange = [&](int times, bool marked) {
    for (int i = 0; i < times; ++i) {
      Transmission t;
      send(t, share_);
      wait(12'500);
      ccc_->on_first_ack(t, share_);
      AckSignal signal = ack_of(&t, arrived += 17);
      signal.ecn = marked;
      ccc_->on_ack(now_, share_, signal);
    }
  };
  exchange(63, false);
  EXPECT_EQ(shortest_run(), 4);
  exchange(1, false);
  EXPECT_EQ(shortest_run(), 16);
  exchange(1, true);
  EXPECT_EQ(shortest_run(), 4) << "marked";
  exchange(64, false);
  EXPECT_EQ(shortest_run(), 16);
  Transmission lost;
  send(lost, share_);
  ASSERT_TRUE(ccc_->on_inferred_loss(now_, lost, share_, false));
  EXPECT_EQ(shortest_run(), 4) << "lost";
  exchange(64, false);
  Transmission trimmed;
  send(trimmed, share_);
  ASSERT_TRUE(
      ccc_->on_nack(now_, trimmed, share_, {.arrived_at = now_, .cause = NackCause::kTrimmed}));
  EXPECT_EQ(shortest_run(), 4) << "trimmed";
}

// A run that went on would end in the middle of what the next turn sends.
TEST_F(PathRunsTest, a_run_ends_with_its_turn_where_the_port_merges_it) {
  auto config = in_turn(4);
  for (const bool ends : {false, true}) {
    config.runs_end_with_turn = ends;
    make(config);
    const auto send_two = [&] {
      const auto first = ccc_->next_send(now_, nullptr, kPacket, 1).entropy;
      EXPECT_EQ(ccc_->next_send(now_, nullptr, kPacket, 1).entropy, first);
      return first;
    };
    const auto before = send_two();
    wait(1);
    EXPECT_EQ(send_two() == before, !ends);
  }
}

// One ACK covers those that leave one by one, and they have the place of a full packet on their path.
TEST_F(PathRunsTest, small_packets_of_several_turns_share_a_path) {
  auto config = in_turn(4);
  config.runs_end_with_turn = true;
  make(config);
  std::vector<std::uint16_t> paths;
  for (int turn = 0; turn < 9; ++turn) {
    paths.push_back(ccc_->next_send(now_, nullptr, config.mtu_bytes / 8, 1).entropy);
    wait(1);
  }
  EXPECT_EQ(std::count(paths.begin(), paths.end(), paths.front()), 8);
  EXPECT_NE(paths.back(), paths.front());
  // A burst behind a small packet is not cut.
  wait(1);
  const auto first = ccc_->next_send(now_, nullptr, config.mtu_bytes, 1).entropy;
  EXPECT_NE(first, paths.back());
  EXPECT_EQ(ccc_->next_send(now_, nullptr, config.mtu_bytes, 1).entropy, first);
}

TEST_F(PathRunsTest, small_packets_of_one_turn_are_not_parted) {
  auto config = in_turn(4);
  config.runs_end_with_turn = true;
  make(config);
  std::set<std::uint16_t> paths;
  const auto turn = [&](int packets) {
    wait(1);
    for (int n = 0; n < packets; ++n)
      paths.insert(ccc_->next_send(now_, nullptr, config.mtu_bytes / 8, 1).entropy);
  };
  turn(6);
  turn(6);  // its first two would fill a packet
  EXPECT_EQ(paths.size(), 1u);
  turn(1);
  EXPECT_EQ(paths.size(), 2u);
}

// Each packet is to tell of its path.
TEST_F(PathRunsTest, where_paths_are_judged_every_packet_takes_the_next_one) {
  for (const auto lb : {LoadBalancing::kBitmap, LoadBalancing::kMixed}) {
    auto config = hand_config();
    config.paths = 16;
    config.load_balancing = lb;
    make(config);
    EXPECT_EQ(*run_lengths(*ccc_, now_, config.mtu_bytes / 8).begin(), 1);
  }
}

}  // namespace
}  // namespace uet::cc
