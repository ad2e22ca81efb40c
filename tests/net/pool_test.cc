#include <gtest/gtest.h>

#include <set>

#include "lib/net/heap_packet_pool.h"
#include "lib/net/waiting_room.h"

namespace uet::net {

TEST(HeapPacketPool, allocate__hands_out_every_buffer_once) {
  HeapPacketPool pool(200, 1000);
  std::vector<Packet> held;
  std::set<const std::uint8_t*> places;
  while (Packet p = pool.allocate()) {
    EXPECT_EQ(p.headroom(), PacketPool::kHeadroom);
    EXPECT_GE(p.tailroom(), 1000u);
    EXPECT_TRUE(places.insert(p.data()).second);
    held.push_back(std::move(p));
  }
  EXPECT_EQ(held.size(), 200u);
  EXPECT_EQ(pool.available(), 0u);
  held.clear();
  EXPECT_EQ(pool.available(), 200u);
}

TEST(HeapPacketPool, allocate__last_given_back_comes_first) {
  HeapPacketPool pool(500, 100);
  Packet p = pool.allocate();
  const std::uint8_t* place = p.data();
  p.reset();
  EXPECT_EQ(pool.allocate().data(), place);
}

TEST(HeapPacketPool, give_back__resets_offset_and_length) {
  HeapPacketPool pool(1, 100);
  {
    Packet p = pool.allocate();
    p.append(50);
    p.prepend(20);
  }
  Packet p = pool.allocate();
  EXPECT_EQ(p.size(), 0u);
  EXPECT_EQ(p.headroom(), PacketPool::kHeadroom);
}

TEST(WaitingRoom, push__queues_share_the_places) {
  HeapPacketPool pool(8, 100);
  WaitingRoom room(3);
  WaitingQueue a, b;
  for (WaitingQueue* q : {&a, &b, &a}) {
    TxPacket tx;
    tx.packet = pool.allocate();
    tx.entropy = static_cast<std::uint16_t>(room.occupied());
    EXPECT_TRUE(room.push(*q, tx));
  }
  TxPacket extra;
  extra.packet = pool.allocate();
  EXPECT_FALSE(room.push(b, extra));
  EXPECT_TRUE(extra.packet);
  EXPECT_EQ(room.pop(a).entropy, 0);
  EXPECT_EQ(room.pop(a).entropy, 2);
  EXPECT_EQ(room.pop(b).entropy, 1);
  EXPECT_EQ(room.occupied(), 0u);
}

}  // namespace uet::net
