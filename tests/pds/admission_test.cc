// Who gets a place when there is none, and what a peer may cost before it has proved that it hears us. No Pds. [PDS 5.2]
#include "pds/admission.h"

#include <gtest/gtest.h>

#include "tests/pds/life_parts.h"

namespace uet::pds::test {
namespace {

const Duration kGrace =
    Duration::from_ms(200);  // of an unproven PDC, with the default peer_timeout
const Instant kLater = kNow + kGrace;

PdsConfig sized(std::uint32_t pdcs) {
  PdsConfig config;
  config.max_pdc = pdcs;
  return config;
}

// 32 places, 8 of them for initiators: 24 targets, 12 of them unproven or under one address.
TEST(Admission, make_place_under__lets_one_address_have_half_of_the_places) {
  Life t(sized(32));
  for (std::uint16_t i = 0; i < 12; ++i) {
    EXPECT_TRUE(t.admission.make_place_under(kNow, address_of(2)));
    t.target(2, static_cast<std::uint16_t>(100 + i));
  }
  EXPECT_FALSE(t.admission.make_place_under(kNow, address_of(2)));  // none has had its chance
  EXPECT_TRUE(t.admission.make_place_under(kNow, address_of(3)));
  EXPECT_TRUE(t.admission.make_place_under(kLater, address_of(2)));
  EXPECT_EQ(t.admission.evicted(), 1u);
  EXPECT_EQ(t.pdcs.find_target(address_of(2), 100, Psn(500)), nullptr);  // the oldest
  EXPECT_EQ(t.pdcs.size(), 11u);
}

TEST(Admission, make_place_under__ends_no_pdc_that_has_proved_itself) {
  Life t(sized(32));
  for (std::uint16_t i = 0; i < 12; ++i) t.proven(2, static_cast<std::uint16_t>(100 + i));
  EXPECT_FALSE(t.admission.make_place_under(kLater, address_of(2)));
  EXPECT_EQ(t.pdcs.size(), 12u);
}

TEST(Admission, make_place__pushes_out_the_oldest_silent_one_when_the_share_is_used) {
  Life t(sized(32));
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_TRUE(t.admission.make_place(kNow));
    t.target(100 + i);
  }
  EXPECT_FALSE(t.admission.make_place(kNow));
  t.pdcs.find_target(address_of(100), 5, Psn(500))->heard_at = kLater;  // that one is not silent
  EXPECT_TRUE(t.admission.make_place(kLater));
  EXPECT_NE(t.pdcs.find_target(address_of(100), 5, Psn(500)), nullptr);
  EXPECT_EQ(t.pdcs.find_target(address_of(101), 5, Psn(500)), nullptr);
}

// What an unproven PDC delivered must be remembered, or a late SYN packet would deliver it again.
TEST(Admission, make_place__pushes_out_nothing_that_it_could_not_remember) {
  PdsConfig config = sized(32);
  config.max_openings_remembered = 1;
  Life t(config);
  for (std::uint32_t i = 0; i < 12; ++i) t.served(100 + i);
  EXPECT_TRUE(t.admission.make_place(kLater));
  t.served(200, 5, kLater);
  EXPECT_FALSE(t.admission.make_place(kLater));
  EXPECT_EQ(t.admission.evicted(), 1u);
  EXPECT_EQ(t.openings.ended_early().size(), 1u);
}

TEST(Admission, make_room__closes_the_pdc_that_has_been_idle_for_longest) {
  Life t(sized(32));
  Pdc& used = t.proven(2);
  Pdc& idle = t.proven(3);
  used.heard_at = used.active_at = kNow + Duration::from_ms(2);
  idle.heard_at = idle.active_at = kNow + Duration::from_ms(1);
  t.admission.make_room(kLater, Role::kTarget);
  EXPECT_EQ(idle.state, PdcState::kCloseReq);
  EXPECT_EQ(used.state, PdcState::kEstablished);
}

TEST(Admission, make_room__lets_the_oldest_drain_when_all_are_busy_and_none_is_on_its_way_out) {
  Life t(sized(32));
  Pdc& oldest = t.established(2);
  Pdc& other = t.established(3);
  t.send(oldest, 1);
  t.send(other, 2);
  t.admission.make_room(kLater, Role::kInitiator);
  EXPECT_EQ(oldest.state, PdcState::kAckWait);
  EXPECT_EQ(other.state, PdcState::kEstablished);
  t.admission.make_room(kLater, Role::kInitiator);
  EXPECT_EQ(other.state, PdcState::kEstablished);
}

// Its peer may be gone: the Close Command would be repeated for peer_timeout.
TEST(Admission, make_room__takes_the_place_of_an_unanswered_close_first) {
  Life t(sized(32));
  Pdc& idle = t.established(2);
  Pdc& closing = t.established(3);
  t.closing.begin(kNow, closing);
  TxRecord& command = t.send_control(closing);
  t.states.change(kNow, closing, PdcInput::kCloseSent);
  command.rto_cnt = 4;
  t.admission.make_room(kLater, Role::kInitiator);
  EXPECT_EQ(t.pdcs.size(), 2u);
  EXPECT_EQ(idle.state, PdcState::kAckWait);
  command.rto_cnt = 5;
  t.admission.make_room(kLater, Role::kInitiator);
  EXPECT_EQ(t.pdcs.size(), 1u);
  EXPECT_EQ(&t.pdcs.in_order().front(), &idle);
}

TEST(Admission, make_room__prefers_a_busy_pdc_to_one_with_a_lock) {
  Life t(sized(32));
  Pdc& reads = t.established(2);
  Pdc& busy = t.established(3);
  reads.locks = 1;
  t.send(busy, 1);
  t.admission.make_room(kLater, Role::kInitiator);
  EXPECT_EQ(reads.state, PdcState::kEstablished);
  EXPECT_EQ(busy.state, PdcState::kAckWait);
}

// Where all are locked, those that only wait for something give way to those that would end the wait.
TEST(Admission, make_room__takes_the_oldest_locked_one_when_there_is_no_other) {
  Life t(sized(32));
  Pdc& oldest = t.established(2);
  Pdc& other = t.established(3);
  oldest.locks = other.locks = 2;
  t.ses.yields = 2;
  t.admission.make_room(kLater, Role::kInitiator);
  EXPECT_EQ(oldest.locks, 0u);
  EXPECT_EQ(oldest.state, PdcState::kAckWait);
  EXPECT_EQ(other.state, PdcState::kEstablished);
}

TEST(Admission, make_room__strangers_have_a_quarter_of_the_table_on_its_way_out_at_most) {
  Life t(sized(16));
  std::vector<Pdc*> pdcs;
  for (std::uint32_t i = 0; i < 8; ++i) pdcs.push_back(&t.proven(2 + i));
  for (int i = 0; i < 8; ++i) t.admission.make_room(kLater, Role::kTarget);
  EXPECT_EQ(t.states.closing(), 4u);
}

TEST(Admission, has_room_for_answer__unproven_peers_push_out_each_other) {
  PdsConfig config = sized(32);
  config.gtd_store_max = 32;  // a quarter: 8
  Life t(config);
  std::vector<Pdc*> pdcs;
  for (std::uint32_t i = 0; i < 8; ++i) pdcs.push_back(&t.served(2 + i, 5, kNow, true));
  Pdc& newcomer = t.target(20, 5, kLater);
  ASSERT_TRUE(t.kept.is_share_of_unproven_used(newcomer));
  EXPECT_FALSE(t.admission.has_room_for_answer(kNow, newcomer, newcomer.start));
  EXPECT_TRUE(t.admission.has_room_for_answer(kLater, newcomer, newcomer.start));
  EXPECT_EQ(t.admission.evicted(), 1u);
  EXPECT_EQ(t.kept.of_unproven(), 7u);
}

// The same when thousands were opened before those that keep something.
TEST(Admission, has_room_for_answer__looks_at_those_alone_for_which_something_is_kept) {
  PdsConfig config = sized(1024);
  config.gtd_store_max = 32;
  Life t(config);
  for (std::uint32_t i = 0; i < 300; ++i) t.target(100 + i, 5, kNow);
  for (std::uint32_t i = 0; i < 8; ++i) t.served(2 + i, 5, kNow, true);
  Pdc& newcomer = t.target(20, 5, kLater);
  EXPECT_EQ(std::distance(t.kept.unproven_keepers().begin(), t.kept.unproven_keepers().end()), 8);
  EXPECT_TRUE(t.admission.has_room_for_answer(kLater, newcomer, newcomer.start));
  EXPECT_EQ(t.kept.of_unproven(), 7u);
  EXPECT_EQ(t.pdcs.find_target(address_of(2), 5, Psn(500)),
            nullptr);  // the first to keep something
  t.liveness.prove(kLater, *t.pdcs.find_target(address_of(3), 5, Psn(500)));
  EXPECT_EQ(&t.kept.unproven_keepers().front(), t.pdcs.find_target(address_of(4), 5, Psn(500)));
}

// However many are open: who sends under forged addresses has a few of them looked at with each packet.
TEST(Admission, to_evict_of__looks_at_some_and_goes_on_behind_them) {
  Life t(sized(1024));
  for (std::uint32_t i = 0; i < 200; ++i) t.target(1000 + i);
  UnprovenPdcs& unproven = t.openings.unproven();
  t.target(2);
  int calls = 1;
  while (unproven.to_evict_of(kLater, address_of(2)) == nullptr && calls < 100) ++calls;
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(unproven.to_evict_of(kLater, address_of(1000)), nullptr);  // from the last one on
  EXPECT_NE(unproven.to_evict_of(kLater, address_of(1000)), nullptr);  // and round
}

TEST(Admission, retire__ends_an_unproven_pdc_as_a_silent_peer) {
  Life t;
  t.admission.retire(kNow, t.served(2));
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kPeerSilent});
  EXPECT_EQ(t.openings.ended_early().size(), 1u);
  EXPECT_EQ(t.nacks.is_empty(), true);
}

}  // namespace
}  // namespace uet::pds::test
