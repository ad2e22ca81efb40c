// Members of a domain choose the addresses that they send from so that they collide.
#include <gtest/gtest.h>

#include "tests/net/colliding_addresses.h"
#include "tss/source_table.h"

namespace uet::tss {
namespace {

constexpr std::uint32_t kMany = 4096;
/// Half of the places are taken, one after another.
constexpr std::size_t kLongest = 64;
constexpr auto kNever = [](const Source&) { return false; };

TEST(ChosenKeys, addresses_of_sources) {
  const base::HashKey key{base::Rng(1)};
  for (const bool has_one_ssi_each : {false, true}) {
    SourceTable sources(kMany, 0, has_one_ssi_each, key);
    for (std::uint32_t i = 0; i < kMany; ++i)
      ASSERT_NE(sources.add(net::test::colliding(i), 0, kNever), nullptr);
    EXPECT_LE(sources.longest_chain(), kLongest);
  }
}

/// Packets that come in the name of that address are looked up before they are verified.
TEST(ChosenKeys, ssis_of_sources_with_one_address) {
  const base::HashKey key{base::Rng(2)};
  SourceTable sources(kMany, 0, false, key);
  for (std::uint32_t i = 0; i < kMany; ++i)
    ASSERT_NE(sources.add(net::test::colliding(0), i, kNever), nullptr);
  EXPECT_LE(sources.longest_chain(), kLongest);
  EXPECT_EQ(sources.find(net::test::colliding(0), kMany - 1)->ssi, kMany - 1);
}

}  // namespace
}  // namespace uet::tss
