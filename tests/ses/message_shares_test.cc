// The places for messages of several packets, and who gets them. [SES 4.3]
#include "ses/message_shares.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace uet::ses::testing {
namespace {

using base::Duration;

struct MessageSharesTest : ::testing::Test {
  static constexpr std::uint32_t kMessages = 64;

  static net::FabricAddress source(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a000100 + n);
  }
  /// The first packet of a message of two packets from source `n`, on the PDC of this number.
  RequestContext packet_of(std::uint32_t n, std::uint32_t pdc) {
    requests.push_back({.handle = {pds::PdcRef{pdc}, base::Psn(1), false},
                        .source = source(n),
                        .is_proven = true});
    RequestContext c{now, requests.back(), {}, {source(n), pds::PdcRef{pdc}, next_id++}};
    c.request.request_length = c.request.carried_length = 2048;
    c.request.covered = 1024;
    c.request.som = true;
    return c;
  }
  /// Null when it is refused.
  RxMessage* begin(std::uint32_t n, std::uint32_t pdc, RxTarget target = RxTarget::kRegion) {
    RequestContext c = packet_of(n, pdc);
    requests.back().is_proven = is_proven;
    RxMessage* m = shares.has_place(c) ? &shares.begin(c, target) : nullptr;
    shares.let_go(c);
    return m;
  }
  std::size_t begin_all(std::uint32_t n, std::uint32_t pdc, RxTarget target = RxTarget::kRegion) {
    std::size_t begun = 0;
    while (begin(n, pdc, target) != nullptr) ++begun;
    return begun;
  }
  void wait(Duration time) {
    now = now + time;
    clock.advance(now);
  }

  Instant now = Instant::from_ns(1'000'000);
  std::deque<pds::RxRequest> requests;
  std::uint16_t next_id = 1;
  bool is_proven = true;
  const base::HashKey key{base::Rng(1)};
  LoopClock clock;
  RxMessageTable messages{kMessages, key};
  SenderTable senders{4, 4, Duration::from_seconds(60), key};
  MessageShares shares{messages, senders, clock};
};

TEST_F(MessageSharesTest, has_place__one_pdc_gets_three_sevenths_and_others_some) {
  EXPECT_EQ(begin_all(1, 1), 28u);
  EXPECT_EQ(shares.refused(), 1u);
  EXPECT_EQ(begin_all(1, 2), 4u);
  EXPECT_GE(begin_all(2, 3), 10u);
}

// What is forged in the name of a source takes nothing of its share once it has proved itself.
TEST_F(MessageSharesTest, has_place__what_came_before_the_proof_is_counted_by_itself) {
  is_proven = false;
  const std::size_t forged = begin_all(1, 1) + begin_all(1, 2);
  EXPECT_EQ(forged, 32u);
  is_proven = true;
  EXPECT_GE(begin_all(1, 5), 12u);  // three sevenths of the rest
  EXPECT_GE(begin_all(2, 6), 4u);
}

TEST_F(MessageSharesTest, has_place__a_discarded_message_makes_room_once_it_has_rested) {
  EXPECT_EQ(begin_all(1, 1, RxTarget::kDiscard), 28u);
  wait(Duration::from_ms(1999));
  EXPECT_EQ(begin(1, 1), nullptr);
  wait(Duration::from_ms(1));
  EXPECT_NE(begin(2, 2), nullptr);
  EXPECT_EQ(messages.size(), 29u);  // none of another source went
  EXPECT_NE(begin(1, 1), nullptr);
  EXPECT_EQ(messages.size(), 29u);
}

TEST_F(MessageSharesTest, has_place__none_while_all_sources_of_the_table_hold_something) {
  std::vector<RequestContext> held;
  for (std::uint32_t n = 1; n <= 4; ++n) {
    held.push_back(packet_of(n, n));
    EXPECT_TRUE(shares.has_place(held.back()));
  }
  EXPECT_EQ(begin(5, 5), nullptr);
  shares.let_go(held[0]);
  EXPECT_NE(begin(5, 5), nullptr);
}

// Its source has a place in the table until the message goes, whatever it has ended before.
TEST_F(MessageSharesTest, begin__holds_the_source_until_release) {
  shares.release(*begin(1, 1));
  RxMessage* m = begin(1, 1);
  const Sender* owner = senders.find(0, source(1));
  for (std::uint32_t n = 2; n < 10; ++n) shares.release(*begin(n, n));
  EXPECT_EQ(senders.find(0, source(1)), owner);
  shares.release(*m);
  for (std::uint32_t n = 2; n < 10; ++n) shares.release(*begin(n, n));
  EXPECT_EQ(senders.find(0, source(1)), nullptr);
}

TEST_F(MessageSharesTest, begin__is_as_the_packet_says_and_known_by_its_key) {
  RequestContext c = packet_of(1, 7);
  ASSERT_TRUE(shares.has_place(c));
  RxMessage& m = shares.begin(c, RxTarget::kRegion);
  EXPECT_EQ(messages.find(c.key), &m);
  EXPECT_EQ(m.target, RxTarget::kRegion);
  EXPECT_EQ(m.carried_length, 2048u);
  EXPECT_EQ(messages.look(m, c.request), Coverage::Look::kNew);
  messages.count(m, c.request);
  EXPECT_EQ(messages.look(m, c.request), Coverage::Look::kKnown);
  EXPECT_FALSE(m.is_complete());
  shares.let_go(c);
  shares.release(m);
  EXPECT_EQ(messages.find(c.key), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
