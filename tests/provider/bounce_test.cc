/// provider/bounce over a device whose copies happen when they are waited for.
#include "provider/bounce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace uet::provider {
namespace {

constexpr std::uint64_t kBase = 0x7000'0000;
constexpr std::size_t kPacket = 4096;

class FakeCopier final : public DeviceCopier {
 public:
  bool start_to_device(Address to, const std::uint8_t* from, std::size_t n) override {
    ++copies;
    begun_.push_back({memory.data() + (to - kBase), from, n});
    return !fails;
  }
  bool start_from_device(std::uint8_t* to, Address from, std::size_t n) override {
    ++copies;
    bytes_read += n;
    EXPECT_LE(from - kBase + n, memory.size()) << "read beyond the allocation";
    begun_.push_back({to, memory.data() + (from - kBase), n});
    return !fails;
  }
  bool finish() override {
    ++finishes;
    for (const Copy& c : begun_) std::memcpy(c.to, c.from, c.n);
    begun_.clear();
    return !fails;
  }

  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(8 * Bounce::kBytes);
  std::size_t copies = 0, finishes = 0, bytes_read = 0;
  bool fails = false;

 private:
  struct Copy {
    std::uint8_t* to;
    const std::uint8_t* from;
    std::size_t n;
  };
  std::vector<Copy> begun_;
};

class BounceTest : public ::testing::Test {
 protected:
  BounceTest() {
    for (std::size_t i = 0; i < device.memory.size(); ++i)
      device.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  }
  void expect_read(std::size_t offset, std::size_t n, bool is_steady = true) {
    std::vector<std::uint8_t> out(n);
    ASSERT_TRUE(bounce.read({.at = kBase + offset,
                             .n = n,
                             .room = device.memory.size() - offset,
                             .is_steady = is_steady},
                            out.data()));
    EXPECT_EQ(std::memcmp(out.data(), device.memory.data() + offset, n), 0) << "at " << offset;
  }
  void write(std::size_t offset, std::size_t n, std::uint8_t value) {
    const std::vector<std::uint8_t> in(n, value);
    ASSERT_TRUE(bounce.write(kBase + offset, in.data(), n));
  }

  FakeCopier device;
  std::vector<std::uint8_t> pool = std::vector<std::uint8_t>(Bounce::kPool);
  Bounce bounce{device, pool.data()};
};

TEST_F(BounceTest, read__of_packet_after_packet_fills_a_buffer_ahead) {
  const std::size_t packets = 2 * Bounce::kBytes / kPacket;
  for (std::size_t i = 0; i < packets; ++i) expect_read(i * kPacket, kPacket);
  EXPECT_LE(device.copies, 4u);  // the first packet alone, and then whole buffers
}

TEST_F(BounceTest, read__ahead_ends_with_the_allocation) {
  const std::size_t size = device.memory.size();
  expect_read(size - 3 * kPacket, kPacket);
  expect_read(size - 2 * kPacket, kPacket);
  expect_read(size - kPacket, kPacket);
  EXPECT_EQ(device.copies, 2u);
}

TEST_F(BounceTest, read__of_one_packet_copies_no_more) {
  expect_read(12345, 100);
  EXPECT_EQ(device.bytes_read, 100u);
}

TEST_F(BounceTest, read__of_memory_that_may_change_is_fresh) {
  for (int i = 0; i < 3; ++i) {
    device.memory[kPacket]++;
    expect_read(0, kPacket, false);
    expect_read(kPacket, kPacket, false);
  }
  EXPECT_EQ(device.copies, 6u);
}

TEST_F(BounceTest, forget__makes_the_next_read_fresh) {
  for (std::size_t i = 0; i < 4; ++i) expect_read(i * kPacket, kPacket);
  device.memory[5 * kPacket]++;
  bounce.forget(kBase + 4 * kPacket, kBase + 6 * kPacket);
  expect_read(4 * kPacket, 2 * kPacket);
}

/// With more readers than buffers each read is a copy, and only of what was asked for.
TEST_F(BounceTest, read__by_too_many_costs_what_it_asks_for) {
  const std::size_t readers = Bounce::kReaders + 1, rounds = 5;
  for (std::size_t round = 0; round < rounds; ++round)
    for (std::size_t r = 0; r < readers; ++r) expect_read(r * 100'000 + round * kPacket, kPacket);
  EXPECT_EQ(device.bytes_read, readers * rounds * kPacket);
}

TEST_F(BounceTest, write__gathers_what_is_contiguous) {
  for (std::size_t i = 0; i < 10; ++i) write(i * kPacket, kPacket, static_cast<std::uint8_t>(i));
  EXPECT_EQ(device.copies, 0u);
  EXPECT_TRUE(bounce.is_dirty());
  ASSERT_TRUE(bounce.drain());
  EXPECT_EQ(device.copies, 1u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(device.memory[i * kPacket + 17], i);
  EXPECT_FALSE(bounce.is_dirty());
  ASSERT_TRUE(bounce.drain());
  EXPECT_EQ(device.finishes, 1u);
}

/// Messages that arrive in turns, or one whose packets took several paths.
TEST_F(BounceTest, write__gathers_for_several_places_at_once) {
  constexpr std::size_t kPlaces = Bounce::kWriters, kPackets = 10, kApart = 100'000;
  for (std::size_t i = 0; i < kPackets; ++i)
    for (std::size_t place = 0; place < kPlaces; ++place)
      write(place * kApart + i * kPacket, kPacket, static_cast<std::uint8_t>(place + i));
  ASSERT_TRUE(bounce.drain());
  EXPECT_EQ(device.copies, kPlaces);
  EXPECT_EQ(device.finishes, 1u);
  for (std::size_t place = 0; place < kPlaces; ++place)
    for (std::size_t i = 0; i < kPackets; ++i)
      EXPECT_EQ(device.memory[place * kApart + i * kPacket + 4095], place + i);
}

/// A buffer whose copy is under way is not filled again before it is over: the fake reads it at the end.
TEST_F(BounceTest, write__waits_when_every_buffer_is_under_way) {
  const std::size_t n = 3 * Bounce::kWriters;
  for (std::size_t i = 0; i < n; ++i) write(i * 10'000, 1000, static_cast<std::uint8_t>(i + 1));
  ASSERT_TRUE(bounce.drain());
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(device.memory[i * 10'000 + 999], i + 1);
  EXPECT_EQ(device.finishes, 3u);
}

TEST_F(BounceTest, write__longer_than_a_buffer_goes_in_parts) {
  write(1000, 3 * Bounce::kBytes + 17, 0xa5);
  ASSERT_TRUE(bounce.drain());
  EXPECT_EQ(device.memory[1000 + 3 * Bounce::kBytes + 16], 0xa5);
  EXPECT_EQ(device.copies, 4u);
}

TEST_F(BounceTest, write__the_later_one_wins) {
  write(0, 8000, 1);
  write(4000, 8000, 2);
  write(2000, 100, 3);
  write(8000, 100, 4);  // where the first ends, and in the middle of the second
  ASSERT_TRUE(bounce.drain());
  EXPECT_EQ(device.memory[1999], 1);
  EXPECT_EQ(device.memory[8050], 4);
  EXPECT_EQ(device.memory[8150], 2);
  EXPECT_EQ(device.memory[2050], 3);
  EXPECT_EQ(device.memory[4000], 2);
}

TEST_F(BounceTest, read__sees_what_was_written_before) {
  for (std::size_t i = 0; i < 3; ++i) expect_read(i * kPacket, kPacket);
  write(3 * kPacket, kPacket, 0x77);
  std::vector<std::uint8_t> out(kPacket);
  ASSERT_TRUE(bounce.read(
      {.at = kBase + 3 * kPacket, .n = kPacket, .room = kPacket, .is_steady = true}, out.data()));
  EXPECT_EQ(out, std::vector<std::uint8_t>(kPacket, 0x77));
}

/// Any order of writes, reads and waits is as if each byte had been written at once.
TEST_F(BounceTest, random_calls__are_as_in_plain_memory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    std::vector<std::uint8_t> model = device.memory;
    std::uint64_t next = 0;
    for (int i = 0; i < 500; ++i) {
      const std::size_t n = 1 + below(below(8) == 0 ? 300'000 : 5'000);
      const std::uint64_t room = 400'000 - n;  // few places, so that writes meet
      const std::uint64_t at = below(2) == 0 && next <= room ? next : below(room);
      const std::uint64_t what = below(20);
      if (what == 0) {
        ASSERT_TRUE(bounce.drain());
        ASSERT_EQ(std::memcmp(device.memory.data(), model.data(), model.size()), 0);
      } else if (what < 4) {
        std::vector<std::uint8_t> out(std::min(n, Bounce::kBytes));
        ASSERT_TRUE(bounce.read({.at = kBase + at,
                                 .n = out.size(),
                                 .room = model.size() - at,
                                 .is_steady = below(2) == 0},
                                out.data()));
        ASSERT_EQ(std::memcmp(out.data(), model.data() + at, out.size()), 0);
      } else {
        const auto value = static_cast<std::uint8_t>(below(256));
        write(at, n, value);
        std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(at), n, value);
      }
      next = at + n;
    }
    ASSERT_TRUE(bounce.drain());
    ASSERT_EQ(std::memcmp(device.memory.data(), model.data(), model.size()), 0);
  }
}

TEST_F(BounceTest, refused_copy__is_told) {
  device.fails = true;
  std::uint8_t byte = 0;
  EXPECT_FALSE(bounce.read({.at = kBase, .n = 1, .room = 1, .is_steady = true}, &byte));
  write(0, 1, 1);
  EXPECT_FALSE(bounce.drain());
}

}  // namespace
}  // namespace uet::provider
