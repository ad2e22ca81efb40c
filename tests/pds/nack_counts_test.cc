// NACKs by code, of the endpoint and of each PDC. No Pds.
#include "pds/nack_counts.h"

#include <gtest/gtest.h>

namespace uet::pds::test {
namespace {

using wire::NackCode;

const PdcRef kPdc{1u << 16 | 7}, kSuccessor{2u << 16 | 7};

TEST(NackCounts, each_kind_counts_for_its_pdc_and_for_the_endpoint) {
  NackCounts counts;
  counts.add(NackWay::kReceived, NackCode::kTrimmed, kPdc);
  counts.add(NackWay::kReceived, NackCode::kTrimmed, kPdc);
  counts.add(NackWay::kSent, NackCode::kTrimmed, kPdc);
  counts.add(NackWay::kSent, NackCode::kInvDpdcid, {});
  ASSERT_EQ(counts.of(kPdc).size(), 2u);
  EXPECT_EQ(counts.of(kPdc)[0].count, 2);
  EXPECT_EQ(counts.of(kPdc)[0].way, NackWay::kReceived);
  EXPECT_EQ(counts.of(kPdc)[1].count, 1);
  const auto sum = [&](NackWay way, NackCode code) {
    return counts.sum(way, static_cast<std::uint8_t>(code));
  };
  EXPECT_EQ(sum(NackWay::kReceived, NackCode::kTrimmed), 2u);
  EXPECT_EQ(sum(NackWay::kSent, NackCode::kTrimmed), 1u);
  EXPECT_EQ(sum(NackWay::kSent, NackCode::kInvDpdcid), 1u);
  EXPECT_EQ(sum(NackWay::kReceived, NackCode::kInvDpdcid), 0u);
}

TEST(NackCounts, a_pdc_with_the_identifier_of_another_begins_with_none) {
  NackCounts counts;
  counts.add(NackWay::kSent, NackCode::kNoResource, kPdc);
  EXPECT_TRUE(counts.of(kSuccessor).empty());
  counts.add(NackWay::kSent, NackCode::kTrimmed, kSuccessor);
  ASSERT_EQ(counts.of(kSuccessor).size(), 1u);
  EXPECT_EQ(counts.of(kSuccessor)[0].code, static_cast<std::uint8_t>(NackCode::kTrimmed));
  EXPECT_TRUE(counts.of(kPdc).empty());
}

// A peer chooses the codes and how many there are.
TEST(NackCounts, kinds_and_counts_of_a_pdc_are_bounded) {
  NackCounts counts;
  for (unsigned code = 0; code < 256; ++code)
    counts.add(NackWay::kReceived, static_cast<NackCode>(code), kPdc);
  ASSERT_EQ(counts.of(kPdc).size(), NackCounts::kKinds);
  EXPECT_EQ(counts.of(kPdc).back().count, 1);
  for (int i = 0; i < 70'000; ++i) counts.add(NackWay::kReceived, static_cast<NackCode>(0), kPdc);
  EXPECT_EQ(counts.of(kPdc).front().count, 65'535);
  EXPECT_EQ(counts.sum(NackWay::kReceived, 0), 70'001u);
  EXPECT_EQ(counts.sum(NackWay::kReceived, 255), 1u);
}

}  // namespace
}  // namespace uet::pds::test
