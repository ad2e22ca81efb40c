/// A neighbor table under packets whose sources are made up: every answer to one asks for an address that no host has.

#include "lib/wire/codec.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::net {
namespace {

using base::DropReason;

constexpr std::size_t kPlaces = 16;

class NeighborFloodTest : public IpPortTest {
 protected:
  void open_small() {
    IpPortConfig a = config_of("10.0.0.1");
    a.prefix_length = 8;
    a.neighbors.max_neighbors = kPlaces;
    IpPortConfig b = config_of("10.0.0.2");
    b.prefix_length = 8;
    open(a, b);
    a_.device->is_cut = true;  // what A asks is answered below, or not at all
  }
  static FabricAddress peer(std::size_t i) {
    return FabricAddress::from_v4(0x0a000010 + static_cast<std::uint32_t>(i));
  }
  static FabricAddress stranger(std::size_t i) {
    return FabricAddress::from_v4(0x0a100000 + static_cast<std::uint32_t>(i));
  }
  /// The peer's answer to A's question, as a frame.
  void answer(std::size_t i) {
    ArpMessage arp{.operation = ArpMessage::kReply,
                   .sender_mac = {2, 1, 0, 0, 0, static_cast<std::uint8_t>(i)},
                   .sender_ip = peer(i).v4(),
                   .target_mac = {2, 0, 0, 0, 0, 0xa},
                   .target_ip = 0x0a000001};
    Bytes frame = {2, 0, 0, 0, 0, 0xa, 2, 1, 0, 0, 0, static_cast<std::uint8_t>(i), 0x08, 0x06};
    frame.resize(14 + ArpMessage::kSize);
    wire::emit(arp, frame.data() + 14);
    a_.device->inject(frame);
    receive(a_);
  }
  /// Sends to the peer and lets it answer; true when a packet for it leaves then.
  bool reaches(std::size_t i) {
    send(a_, peer(i), "hello");
    answer(i);
    return leaves_at_once(i);
  }
  /// A frame for the peer's own MAC leaves when a packet for it is sent.
  bool leaves_at_once(std::size_t i) {
    const std::size_t before = a_.device->sent.size();
    send(a_, peer(i), "hello");
    if (a_.device->sent.size() != before + 1) return false;
    const Bytes& frame = a_.device->sent.back();
    return frame[0] == 2 && frame[1] == 1 && frame[5] == i && frame[12] == 0x08 &&
           frame[13] == 0x00;
  }
  /// Answers to `count` strangers at a rate of one a millisecond; peers below `in_use` are talked to meanwhile.
  void flood(std::size_t count, std::size_t in_use) {
    for (std::size_t i = 0; i < count; ++i) {
      send(a_, stranger(next_stranger_++), "refused");
      advance(Duration::from_ms(1));
      if (i % 50 == 0)
        for (std::size_t n = 0; n < in_use; ++n) send(a_, peer(n), "data");
    }
  }

  std::size_t next_stranger_ = 0;
};

TEST_F(NeighborFloodTest, neighbors_in_use__all_stay) {
  open_small();
  for (std::size_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(reaches(i));
  flood(5000, kPlaces);
  for (std::size_t i = 0; i < kPlaces; ++i) EXPECT_TRUE(leaves_at_once(i)) << i;
  EXPECT_EQ(a_.port->neighbors().unanswered(), 0u);
  EXPECT_EQ(a_.trace.drops(DropReason::kNeighborTableFull), 5000u);
}

TEST_F(NeighborFloodTest, idle_neighbors__lose_half_of_the_table_at_most) {
  open_small();
  for (std::size_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(reaches(i));
  flood(5000, 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(leaves_at_once(i)) << i;
  EXPECT_LE(a_.port->neighbors().unanswered(), kPlaces / 2);
}

TEST_F(NeighborFloodTest, new_neighbor__is_found_while_it_goes_on) {
  open_small();
  for (std::size_t i = 0; i < 4; ++i) ASSERT_TRUE(reaches(i));
  flood(2000, 4);
  EXPECT_TRUE(reaches(7));
  flood(500, 4);
  EXPECT_TRUE(reaches(8));
}

TEST_F(NeighborFloodTest, waiting_packets_of_the_oldest_question__are_counted) {
  open_small();
  for (std::size_t i = 0; i < kPlaces + 3; ++i) send(a_, stranger(i), "refused");
  EXPECT_EQ(a_.trace.drops(DropReason::kNeighborTableFull), 3u);
  EXPECT_EQ(a_.port->waiting(), kPlaces);
}

// The hand goes around once per idle time, however often it is asked.
TEST_F(NeighborFloodTest, one_call__never_takes_marks_off_and_evicts) {
  open_small();
  for (std::size_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(reaches(i));
  advance(Duration::from_seconds(5));
  for (std::size_t i = 0; i < kPlaces; ++i) ASSERT_TRUE(leaves_at_once(i));
  for (std::size_t i = 0; i < 10; ++i) send(a_, stranger(i), "refused");
  for (std::size_t i = 0; i < kPlaces; ++i) EXPECT_TRUE(leaves_at_once(i)) << i;
}

}  // namespace
}  // namespace uet::net
