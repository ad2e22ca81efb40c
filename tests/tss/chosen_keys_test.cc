// Members of a domain choose the addresses that they send from so that they collide.
#include <gtest/gtest.h>

#include "tests/net/colliding_addresses.h"
#include "tss/source_table.h"

namespace uet::tss {
namespace {

TEST(ChosenKeys, sources) {
  constexpr std::uint32_t kMany = 4096;
  const base::HashKey key{base::Rng(1)};
  SourceTable sources(kMany, 0, key);
  const auto never = [](const Source&) { return false; };
  for (std::uint32_t i = 0; i < kMany; ++i)
    ASSERT_NE(sources.add(net::test::colliding(i), 0, never), nullptr);
  EXPECT_LE(sources.longest_chain(), 64u) << "half of the places are taken, one after another";
}

}  // namespace
}  // namespace uet::tss
