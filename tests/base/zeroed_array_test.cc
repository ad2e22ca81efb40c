#include "lib/base/zeroed_array.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "tests/base/resident_memory.h"

namespace uet::base {
namespace {

constexpr std::size_t kLarge = std::size_t{16} << 20;

TEST(ZeroedArray, elements__begin_as_zero_where_memory_was_used_before) {
  for (const std::size_t size : {std::size_t{3}, std::size_t{1000}, kLarge / 8})
    for (int turn = 0; turn < 3; ++turn) {
      ZeroedArray<std::uint64_t> array(size);
      for (std::size_t i = 0; i < size; i += 1 + size / 500) {
        ASSERT_EQ(array[i], 0u) << i << " of " << size << " in turn " << turn;
        array[i] = ~std::uint64_t{0};
      }
    }
}

TEST(ZeroedArray, elements_never_written__cost_no_memory_where_memory_was_used_before) {
  // Freed, the first raises the size up to which malloc() keeps blocks; the second leaves a hole between others.
  std::vector<char>(kLarge + kLarge / 2, 1);
  auto hole = std::make_unique<std::vector<char>>(kLarge + 4096, 1);
  const std::vector<char> behind_it(4096, 1);
  hole.reset();
  malloc_trim(0);
  const std::size_t before = test::resident_bytes();
  ZeroedArray<char> array(kLarge);
  array[kLarge / 2] = 1;
  EXPECT_LT(test::resident_bytes(), before + (std::size_t{1} << 20));
}

TEST(ZeroedArray, more_than_there_is__throws) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_THROW(ZeroedArray<std::uint64_t>(kMost / 4), std::bad_alloc);
  EXPECT_THROW(ZeroedArray<char>(kMost / 4), std::bad_alloc);
}

}  // namespace
}  // namespace uet::base
