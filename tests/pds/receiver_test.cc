// The receiving half alone: when it acknowledges, what it keeps, and how CACK moves. No Pds. [PDS 7.3, 9.4, 10.2, 11.2]
#include "pds/receiver.h"

#include <gtest/gtest.h>

#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

PdsConfig small_config() {
  PdsConfig config;
  config.ack_gen_trigger = 10'000;
  config.ack_gen_min_pkt_add = 1000;
  config.gtd_store_max = 64;
  return config;
}

struct Receiving : Parts {
  explicit Receiving(Mode mode = Mode::kRud)
      : Parts(small_config()),
        pdcs(8, Duration{}, 0, rng, env.hash_key),
        kept(env, scheduler),
        nacks(env),
        proofs(window, scheduler),
        receiver(env, pdcs, kept, scheduler, nacks, proofs),
        at(*pdcs.allocate(kNow)) {
    establish(false, mode);
    pdc.tx.cc.if_any();
    at.peer = pdc.peer;
    at.peer_id = pdc.peer_id;
    at.mode = mode;
    at.is_proven = true;
    at.state = PdcState::kEstablished;
    at.start = pdc.start;
    at.tx.next = at.tx.left_edge = pdc.start;
    RxHalf& rx = at.rx;
    rx.edge = rx.cack = rx.cleared = rx.max_rcvd = rx.max_ar = rx.answered = rx.untold =
        rx.last_control = pdc.start - 1;
    rx.granted = env.limits.window;
    at.share = kept.peers().join(at.peer, Role::kTarget);
  }
  ~Receiving() {
    receiver.release(at);
    kept.peers().leave(at.share, Role::kTarget);
    scheduler.forget(at);
    pdcs.release(kNow, at, Psn{});
  }
  Arrival packet(std::uint32_t psn, std::uint32_t bytes = 1000) {
    Arrival in;
    in.source = at.peer;
    in.psn = Psn(psn);
    in.spdcid = at.peer_id;
    in.meta.bytes = bytes;
    return in;
  }
  static Answer now_with(bool guaranteed) {
    Answer answer;
    answer.guaranteed = guaranteed;
    answer.response.next_hdr = 4;
    return answer;
  }
  static Answer later() { return Answer{.kind = Answer::Kind::kLater, .response = {}}; }
  void accept(std::uint32_t psn, const Answer& answer = now_with(false)) {
    // What came in order up to here asked for nothing: only the newest packet may be the one that did.
    at.rx.max_ar = at.start - 1;
    receiver.accept(kNow, at, packet(psn), answer);
  }
  bool owes_ack() { return at.control_hook.is_linked(); }
  /// The PSN of the ACK that leaves next; it leaves.
  std::uint32_t take_ack() {
    RxRecord* record = kept.store().pop(at.rx.acks);
    if (record == nullptr) return 0;
    const std::uint32_t psn = record->psn.value();
    if (record->state == RxRecord::State::kAckOnly) kept.store().remove(*record);
    return psn;
  }

  PdcTable pdcs;
  KeptResponses kept;
  NackQueue nacks;
  ProofRequests proofs;
  Receiver receiver;
  Pdc& at;
};

// Covers: PDS-75
TEST(Receiver, acknowledges_by_bytes) {
  Receiving t;
  for (std::uint32_t psn = 1000; psn < 1009; ++psn) t.accept(psn);
  EXPECT_FALSE(t.owes_ack());
  EXPECT_EQ(t.at.rx.cack, Psn(1008));
  t.accept(1009);
  EXPECT_TRUE(t.owes_ack());
  EXPECT_EQ(t.take_ack(), 1009u);
  EXPECT_EQ(t.at.rx.ack_gen_count, 0u);
  t.accept(1010);
  EXPECT_EQ(t.take_ack(), 0u);
}

// Covers: PDS-76
TEST(Receiver, small_packets_count_for_more_than_they_carry) {
  Receiving t;
  for (std::uint32_t psn = 1000; psn < 1010; ++psn)
    t.receiver.accept(kNow, t.at, t.packet(psn, 10), Receiving::now_with(false));
  EXPECT_EQ(t.take_ack(), 1009u);
}

// Covers: PDS-77
TEST(Receiver, a_packet_that_asks_is_acknowledged_at_once) {
  Receiving t;
  t.accept(1000);
  EXPECT_FALSE(t.owes_ack());
  Arrival in = t.packet(1001);
  in.ar = in.meta.ack_now = true;
  t.receiver.accept(kNow, t.at, in, Receiving::now_with(false));
  EXPECT_EQ(t.take_ack(), 1001u);
}

TEST(Receiver, in_order_packets_need_no_bitmap) {
  Receiving t;
  t.accept(1000);
  EXPECT_EQ(t.at.rx.tracker, nullptr);
  t.accept(1002);
  ASSERT_NE(t.at.rx.tracker, nullptr);
  EXPECT_EQ(t.at.rx.cack, Psn(1000));
  EXPECT_EQ(t.at.rx.above_edge, 1u);
  t.accept(1001);
  EXPECT_EQ(t.at.rx.cack, Psn(1002));
  EXPECT_EQ(t.at.rx.tracker, nullptr);
}

// Covers: PDS-87
TEST(Receiver, a_guaranteed_response_holds_cack_until_it_is_cleared) {
  Receiving t;
  t.accept(1000, Receiving::now_with(true));
  t.accept(1001);
  EXPECT_EQ(t.take_ack(), 1000u);
  EXPECT_EQ(t.at.rx.cack, Psn(999));
  EXPECT_EQ(t.at.rx.stored, 1u);
  EXPECT_EQ(t.receiver.highest_stored(t.at), Psn(1000));
  t.receiver.accept_clear(kNow, t.at, Psn(1000));
  EXPECT_EQ(t.at.rx.cack, Psn(1001));
  EXPECT_EQ(t.kept.store().kept(), 0u);
  EXPECT_EQ(t.at.rx.kept, 0u);
}

// Otherwise its source could clear only one answer a round trip. What came before the second kept answer waits for the first to be cleared.
TEST(Receiver, what_is_between_kept_answers_is_told_by_name_from_the_second_on) {
  Receiving t;
  t.accept(1000, Receiving::now_with(true));
  t.accept(1001);
  t.accept(1002, Receiving::now_with(true));
  t.accept(1003);
  t.accept(1004, Receiving::now_with(true));
  t.accept(1005);
  for (const std::uint32_t psn : {1000u, 1002u, 1003u, 1004u, 1005u, 0u})
    EXPECT_EQ(t.take_ack(), psn);
  t.receiver.accept_clear(kNow, t.at, Psn(1005));
  EXPECT_EQ(t.at.rx.cack, Psn(1005));
  t.accept(1006);
  EXPECT_EQ(t.take_ack(), 1006u) << "tells of 1001";
  t.accept(1007, Receiving::now_with(true));
  t.accept(1008);
  EXPECT_EQ(t.take_ack(), 1007u);
  EXPECT_EQ(t.take_ack(), 0u);
}

TEST(Receiver, a_packet_whose_clear_lets_cack_pass_what_nothing_told_is_acknowledged) {
  Receiving t;
  t.accept(1001);
  t.accept(1002);
  t.accept(1000, Receiving::now_with(true));
  EXPECT_EQ(t.take_ack(), 1000u);
  EXPECT_EQ(t.take_ack(), 0u);
  t.receiver.accept_clear(kNow, t.at, Psn(1000));
  EXPECT_EQ(t.at.rx.cack, Psn(1002));
  t.accept(1003);
  EXPECT_EQ(t.take_ack(), 1003u);
}

TEST(Receiver, clear_never_goes_back_nor_beyond_what_has_arrived) {
  Receiving t;
  t.accept(1000, Receiving::now_with(true));
  t.receiver.accept_clear(kNow, t.at, Psn(1001));
  EXPECT_EQ(t.trace.drops(DropReason::kBadClear), 1u);
  EXPECT_EQ(t.at.rx.stored, 1u);
  t.receiver.accept_clear(kNow, t.at, Psn(1000));
  t.receiver.accept_clear(kNow, t.at, Psn(999));
  EXPECT_EQ(t.at.rx.cleared, Psn(1000));
}

TEST(Receiver, what_ses_answers_later_holds_cack_until_then) {
  Receiving t;
  t.accept(1000, Receiving::later());
  t.accept(1001);
  EXPECT_EQ(t.at.rx.cack, Psn(999));
  EXPECT_TRUE(t.receiver.respond(kNow, t.at, Psn(1000), {}, false));
  EXPECT_EQ(t.at.rx.cack, Psn(1001));
  EXPECT_FALSE(t.receiver.respond(kNow, t.at, Psn(1000), {}, false));
}

TEST(Receiver, rod_releases_acks_in_order) {
  Receiving t(Mode::kRod);
  t.accept(1000, Receiving::later());
  Arrival in = t.packet(1001);
  in.ar = in.meta.ack_now = true;
  t.receiver.accept(kNow, t.at, in, Receiving::now_with(false));
  EXPECT_EQ(t.at.rx.answered, Psn(999));
  EXPECT_TRUE(t.receiver.respond(kNow, t.at, Psn(1000), {}, true));
  EXPECT_EQ(t.at.rx.answered, Psn(1001));
  EXPECT_EQ(t.take_ack(), 1000u);
  EXPECT_EQ(t.take_ack(), 1001u);
}

TEST(Receiver, release__gives_everything_back) {
  Receiving t;
  t.accept(1000, Receiving::now_with(true));
  t.accept(1002, Receiving::later());
  t.accept(1004);
  t.receiver.release(t.at);
  EXPECT_EQ(t.kept.store().in_use(), 0u);
  EXPECT_EQ(t.at.rx.kept, 0u);
  EXPECT_EQ(t.at.rx.tracker, nullptr);
  EXPECT_TRUE(t.at.rx.acks.is_empty());
}

}  // namespace
}  // namespace uet::pds::test
