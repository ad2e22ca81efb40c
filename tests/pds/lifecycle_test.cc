// PDCs come and go: what opening takes, what it refuses, and what the end gives back. No Pds. [PDS 5, 6, 16]
#include "pds/lifecycle.h"

#include <gtest/gtest.h>

#include "tests/pds/life_parts.h"

namespace uet::pds::test {
namespace {

PdsConfig sized(std::uint32_t pdcs, std::uint32_t cccs = 0) {
  PdsConfig config;
  config.max_pdc = pdcs;
  config.max_ccc = cccs;
  return config;
}

void end(Life& t, Pdc& pdc, Instant now = kNow) {
  t.states.change(now, pdc, PdcInput::kFailed);
  t.lifecycle.release(now, pdc);
}

// Covers: PDS-37, PDS-172
TEST(PdcTable, allocate__identifiers_that_were_freed_rest) {
  constexpr Duration kRest = Duration::from_seconds(2);
  constexpr std::uint32_t kAll = 65535;
  base::Rng rng(37);
  const base::HashKey key(rng);
  PdcTable table(kAll, kRest, 0, rng, key);
  std::vector<Pdc*> pdcs;
  for (std::uint32_t i = 0; i < kAll; ++i) pdcs.push_back(table.allocate(kNow));
  ASSERT_NE(pdcs.back(), nullptr);
  const std::uint16_t first = pdcs[0]->id, second = pdcs[1]->id;
  table.release(kNow, *pdcs[0], Psn(1));
  table.release(kNow + Duration::from_us(1), *pdcs[1], Psn(1));
  EXPECT_EQ(table.allocate(kNow + kRest - Duration::from_ns(1)), nullptr);
  pdcs[0] = table.allocate(kNow + kRest);
  ASSERT_NE(pdcs[0], nullptr);
  EXPECT_EQ(pdcs[0]->id, first);
  EXPECT_EQ(table.allocate(kNow + kRest), nullptr);
  EXPECT_EQ(table.next_free_id(), kNow + Duration::from_us(1) + kRest);
  pdcs[1] = table.allocate(table.next_free_id());
  ASSERT_NE(pdcs[1], nullptr);
  EXPECT_EQ(pdcs[1]->id, second);
  for (Pdc* pdc : pdcs) table.release(kNow, *pdc, Psn(1));
}

TEST(Lifecycle, open_initiator__begins_in_creating_with_a_ccc_and_an_empty_window) {
  Life t;
  Pdc* pdc = t.initiator(2);
  ASSERT_NE(pdc, nullptr);
  EXPECT_EQ(pdc->state, PdcState::kCreating);
  EXPECT_NE(pdc->tx.cc.if_any(), nullptr);
  EXPECT_EQ(pdc->tx.next, pdc->start);
  EXPECT_EQ(pdc->tx.cack, pdc->start - 1);
  EXPECT_EQ(pdc->tx.mp_range, t.env.config.default_mpr * 128u);
  EXPECT_EQ(t.kept.peers().at(pdc->share).pdcs, 1u);
  EXPECT_EQ(t.kept.peers().at(pdc->share).targets, 0u);
}

TEST(Lifecycle, release__gives_back_place_ccc_and_share_and_makes_room) {
  Life t;
  Pdc* pdc = t.initiator(2);
  t.submit(*pdc);
  pdc->tx.queue.clear();
  EXPECT_FALSE(t.shared.room.has_new_room());
  end(t, *pdc);
  EXPECT_EQ(t.pdcs.size(), 0u);
  EXPECT_EQ(t.congestions.size(), 0u);
  EXPECT_EQ(t.kept.peers().size(), 0u);
  EXPECT_EQ(t.states.half_open(), 0u);
  EXPECT_TRUE(t.shared.room.has_new_room());
  t.messages.forget(*t.messages.find(1));
}

TEST(Lifecycle, rud_pdcs_of_a_peer_share_a_ccc_which_the_last_one_takes_along) {
  Life t;
  Pdc* first = t.initiator(2);
  Pdc* second = t.initiator(2);
  EXPECT_EQ(first->tx.cc.if_any(), second->tx.cc.if_any());
  end(t, *first);
  EXPECT_EQ(t.congestions.size(), 1u);
  end(t, *second);
  EXPECT_EQ(t.congestions.size(), 0u);
}

TEST(Lifecycle, open_initiator__is_null_when_its_role_has_no_place) {
  Life t(sized(8));  // two of them are for targets
  for (std::uint32_t i = 0; i < 6; ++i) ASSERT_NE(t.initiator(2 + i), nullptr);
  EXPECT_EQ(t.initiator(20), nullptr);
  t.target(30);
  EXPECT_EQ(t.pdcs.size(), 7u);
}

// A target that later sends read data must find a CCC: nothing else may take it meanwhile.
TEST(Lifecycle, a_target_reserves_the_ccc_that_it_may_need) {
  Life t(sized(8, 2));
  Pdc& target = t.target(2);
  ASSERT_NE(t.initiator(3), nullptr);
  EXPECT_EQ(t.initiator(4), nullptr);
  EXPECT_FALSE(t.lifecycle.can_open_target(Life::packet_from(4, 1, Psn(1))));
  EXPECT_TRUE(t.lifecycle.attach_congestion(kNow, target));
  EXPECT_EQ(t.congestions.size(), 2u);
  EXPECT_TRUE(t.lifecycle.attach_congestion(kNow, target));  // it has one
  EXPECT_EQ(t.congestions.size(), 2u);
}

// Where the place is reserved, what is short is memory. Nothing else would tell SES when to submit again.
TEST(Lifecycle, attach_congestion__invites_ses_again_when_there_was_no_ccc) {
  Life t(sized(8, 1));
  Pdc& target = t.target(2);
  Congestion* const other = t.congestions.attach(kNow, address_of(9), 0, true);
  ASSERT_FALSE(t.lifecycle.attach_congestion(kNow, target));
  const Instant again = kNow + Duration::from_ms(1);
  EXPECT_EQ(t.lifecycle.next_deadline(), again);
  t.lifecycle.on_deadline(again);
  EXPECT_TRUE(t.shared.room.has_new_room());
  t.congestions.detach(*other);
  EXPECT_TRUE(t.lifecycle.attach_congestion(again, target));
}

TEST(Lifecycle, the_reservation_goes_with_its_target) {
  Life t(sized(8, 1));
  Pdc& target = t.target(2);
  EXPECT_EQ(t.initiator(3), nullptr);
  end(t, target);
  EXPECT_NE(t.initiator(3), nullptr);
}

TEST(Lifecycle, an_unproven_target_does_not_carry_the_questions_of_its_ccc) {
  Life t;
  Pdc& target = t.target(2);
  ASSERT_TRUE(t.lifecycle.attach_congestion(kNow, target));
  EXPECT_EQ(target.tx.cc.if_any()->carrier, nullptr);
  Pdc& proven = t.proven(3);
  ASSERT_TRUE(t.lifecycle.attach_congestion(kNow, proven));
  EXPECT_EQ(proven.tx.cc.if_any()->carrier, &proven);
  end(t, proven);
}

TEST(Lifecycle, release__of_a_proven_target_leaves_a_tombstone) {
  Life t;
  Pdc& pdc = t.proven(2, 5);
  const Psn start = pdc.start;
  end(t, pdc);
  EXPECT_TRUE(t.openings.tombstones().contains(kNow, address_of(2), 5, start));
  EXPECT_EQ(t.openings.unproven().size(), 0u);
}

TEST(Lifecycle, drop_unaccepted__leaves_nothing_of_a_target_whose_first_packet_was_refused) {
  Life t;
  Pdc& pdc = t.target(2);
  t.lifecycle.drop_unaccepted(kNow, pdc);
  EXPECT_EQ(t.pdcs.size(), 0u);
  EXPECT_EQ(t.openings.tombstones().size() + t.openings.ended_early().size(), 0u);
  EXPECT_EQ(t.openings.unproven().size(), 0u);
}

TEST(Lifecycle, drop_unaccepted__keeps_what_has_accepted_something) {
  Life t;
  Pdc& pdc = t.served(2);
  t.lifecycle.drop_unaccepted(kNow, pdc);
  EXPECT_EQ(t.pdcs.size(), 1u);
}

TEST(Lifecycle, on_deadline__tells_ses_nothing_while_none_waits_for_an_identifier) {
  Life t(sized(8));
  t.lifecycle.wait_for_identifier(kNow);  // none is in quarantine
  EXPECT_TRUE(t.lifecycle.next_deadline().is_never());
  t.lifecycle.on_deadline(kNow);
  EXPECT_FALSE(t.shared.room.has_new_room());
}

TEST(Lifecycle, its_own_end_gives_back_all_that_open_pdcs_hold) {
  Life t;
  {
    Lifecycle inner(t.shared, t.window, t.receiving);
    (void)inner.open_initiator(kNow, Life::message_to(2));
    Pdc& target =
        inner.open_target(kNow, Life::packet_from(3, 1, Psn(9)), Psn(9), PdcInput::kSynAccepted);
    t.deliver(target, Psn(9), kNow, true);
  }
  EXPECT_EQ(t.pdcs.size(), 0u);
  EXPECT_EQ(t.congestions.size(), 0u);
  EXPECT_EQ(t.kept.store().in_use(), 0u);
  EXPECT_EQ(t.pool.available(), t.pool.capacity());
}

}  // namespace
}  // namespace uet::pds::test
