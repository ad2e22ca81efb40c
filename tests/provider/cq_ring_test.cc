#include "provider/cq_ring.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

namespace uet::provider {
namespace {

bool push(CqRing& ring, std::uint64_t data) {
  return ring.add([&](CqEntry& entry) { entry.data = data; });
}

TEST(CqRing, keeps_the_order_when_it_grows) {
  CqRing ring;
  ring.reserve(16);
  std::uint64_t in = 0, out = 0;
  // Not from the first place on, so that growing has to turn the entries.
  for (; in < 10; ++in) ASSERT_TRUE(push(ring, in));
  for (; out < 7; ++out, ring.pop()) ASSERT_EQ(ring.front().data, out);
  for (; in < 200; ++in) ASSERT_TRUE(push(ring, in));
  EXPECT_EQ(ring.size(), 193u);
  for (; out < 200; ++out, ring.pop()) ASSERT_EQ(ring.front().data, out);
  EXPECT_EQ(ring.size(), 0u);
}

TEST(CqRing, refuses_more_than_its_bound_and_goes_on_when_there_is_room) {
  CqRing ring;
  for (std::uint64_t i = 0; i < CqRing::kMostEntries; ++i) ASSERT_TRUE(push(ring, i));
  EXPECT_FALSE(push(ring, 0));
  ring.pop();
  EXPECT_TRUE(push(ring, 1));
  EXPECT_EQ(ring.front().data, 1u);
}

TEST(CqRing, readers_take_while_the_writer_writes_and_grows) {
  constexpr std::uint64_t kEntries = 20'000;
  CqRing ring;
  std::atomic<std::uint64_t> taken{0}, sum{0};
  const auto read = [&] {
    while (taken < kEntries) {
      const std::lock_guard guard(ring.readers());
      if (ring.size() == 0) continue;
      sum += ring.front().data;
      ring.pop();
      ++taken;
    }
  };
  std::thread first(read), second(read);
  for (std::uint64_t i = 0; i < kEntries; ++i) ASSERT_TRUE(push(ring, i));
  first.join();
  second.join();
  EXPECT_EQ(sum, kEntries * (kEntries - 1) / 2);
}

}  // namespace
}  // namespace uet::provider
