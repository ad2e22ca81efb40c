// What a valid packet says of its peer, and what silence says. No Pds. [PDS 2.2, 6.3, 16.1]
#include "pds/liveness.h"

#include <gtest/gtest.h>

#include "tests/pds/life_parts.h"

namespace uet::pds::test {
namespace {

const Duration kSecond = Duration::from_seconds(1);

PdsConfig liveness_config() {
  PdsConfig config;
  config.peer_timeout = kSecond * 8;
  config.pdc_idle_time = kSecond;
  return config;
}

TEST(Liveness, learn_peer__establishes_and_names_the_voice_of_the_ccc) {
  Life t;
  Pdc& pdc = *t.initiator(2);
  t.liveness.learn_peer(kNow, pdc, 77);
  EXPECT_EQ(pdc.state, PdcState::kEstablished);
  EXPECT_EQ(pdc.peer_id, 77);
  EXPECT_EQ(pdc.tx.cc.if_any()->carrier, &pdc);
  EXPECT_FALSE(pdc.tx.has_credit_exemption);
}

// Nothing is under way that could bring credit: one packet leaves without.
TEST(Liveness, learn_peer__lets_one_packet_leave_when_all_that_is_out_waits_to_be_sent_again) {
  Life t;
  Pdc& pdc = *t.initiator(2);
  const Psn psn = t.send(pdc);
  SendWindow::move(pdc.tx, t.window.at(pdc, psn), TxEvent::kRefused);
  t.liveness.learn_peer(kNow, pdc, 77);
  EXPECT_TRUE(pdc.tx.has_credit_exemption);
}

// Grants are packets of our own accord, too; a source that sends much gets many. See docs/decisions/0100.
TEST(ProofRequests, on_timer__asks_on_for_data_that_waits_however_many_grants_there_were) {
  Life t;
  ProofRequests proofs(t.window, t.scheduler);
  Pdc& pdc = t.served(2, 5, kNow, true);
  pdc.rx.withholds_answers = true;
  pdc.rx.rcvd_bytes = 200 << 10;
  pdc.unasked = 30;
  proofs.ask(kNow, pdc);
  Duration last{};
  for (int i = 1; i < UnprovenPdcs::kQuestions; ++i) {
    const Instant now = pdc.deadline(PdcTimer::kProof);
    pdc.pending_control = 0;
    proofs.on_timer(now, pdc);
    EXPECT_EQ(pdc.pending_control, kSendProbe) << i;
    const Duration wait = pdc.deadline(PdcTimer::kProof) - now;
    if (i > 1) {
      EXPECT_EQ(wait.ns(), 2 * last.ns()) << i;
    }
    last = wait;
  }
  pdc.pending_control = 0;
  proofs.on_timer(pdc.deadline(PdcTimer::kProof), pdc);
  EXPECT_EQ(pdc.pending_control, 0u);
}

TEST(Liveness, prove__takes_the_pdc_out_of_the_unproven_and_sends_what_was_withheld) {
  Life t;
  Pdc& pdc = t.served(2, 5, kNow, true);
  EXPECT_EQ(t.kept.of_unproven(), 1u);
  pdc.rx.withholds_answers = true;
  t.liveness.prove(kNow, pdc);
  EXPECT_TRUE(pdc.is_proven);
  EXPECT_EQ(t.openings.unproven().size(), 0u);
  EXPECT_EQ(t.kept.of_unproven(), 0u);
  EXPECT_FALSE(pdc.rx.withholds_answers);
  EXPECT_EQ(t.pdcs.find_proven_target(address_of(2), 5), &pdc);
  t.liveness.prove(kNow, pdc);  // a second time says nothing
  EXPECT_EQ(t.openings.unproven().size(), 0u);
}

// Its initiator has started anew. See docs/decisions/0102.
TEST(Liveness, prove__ends_the_pdc_of_a_former_life_only_if_that_is_given_up) {
  for (const std::uint8_t unanswered : {4, 5}) {
    Life t;
    Pdc& former = t.proven(2);
    t.closing.begin(kNow, former);
    TxRecord& request = t.send_control(former);
    request.rto_cnt = unanswered;
    Pdc& fresh = t.target(2, 5, kNow, Psn(90'000));
    t.deliver(fresh, Psn(90'000));
    t.liveness.prove(kNow, fresh);
    EXPECT_EQ(t.ses.gone.size(), unanswered == 5 ? 1u : 0u);
    EXPECT_EQ(t.pdcs.size(), unanswered == 5 ? 1u : 2u);
  }
}

TEST(Liveness, look__closes_an_initiator_that_was_idle_for_its_time) {
  Life t(liveness_config());
  Pdc& pdc = t.established(2);
  t.liveness.look(kNow + kSecond - Duration::from_ns(1), pdc);
  EXPECT_EQ(pdc.state, PdcState::kEstablished);
  EXPECT_EQ(pdc.deadline(PdcTimer::kLiveness), kNow + kSecond);
  t.liveness.look(kNow + kSecond, pdc);
  EXPECT_EQ(pdc.state, PdcState::kAckWait);
}

TEST(Liveness, look__a_target_waits_twice_as_long) {
  Life t(liveness_config());
  Pdc& pdc = t.proven(2);
  t.liveness.look(kNow + kSecond, pdc);
  EXPECT_EQ(pdc.state, PdcState::kEstablished);
  t.liveness.look(kNow + kSecond * 2, pdc);
  EXPECT_EQ(pdc.state, PdcState::kCloseReq);
}

TEST(Liveness, look__ends_a_pdc_whose_peer_is_silent_while_something_is_out) {
  Life t(liveness_config());
  Pdc& pdc = t.established(2);
  t.send(pdc, 4);
  t.liveness.look(kNow + kSecond * 8 - Duration::from_ns(1), pdc);
  EXPECT_TRUE(t.ses.gone.empty());
  t.liveness.look(kNow + kSecond * 8, pdc);
  EXPECT_EQ(t.ses.gone, std::vector{PdsError::kPeerSilent});
  EXPECT_EQ(t.ses.failed.size(), 1u);
}

// This side was told to come back later: it is the silent one.
TEST(Liveness, look__does_not_count_the_time_of_a_pause) {
  Life t(liveness_config());
  Pdc& pdc = t.established(2);
  TxRecord& record = t.window.at(pdc, t.send(pdc, 4));
  for (const TxEvent event : {TxEvent::kRefused, TxEvent::kPaused})
    SendWindow::move(pdc.tx, record, event);
  t.liveness.look(kNow + kSecond * 8, pdc);
  EXPECT_TRUE(t.ses.gone.empty());
  SendWindow::move(pdc.tx, record, TxEvent::kResumed);
  t.liveness.look(kNow + kSecond * 16, pdc);
  EXPECT_EQ(t.ses.gone.size(), 1u);
}

TEST(Liveness, look__asks_a_target_whose_read_data_is_waited_for_less_and_less_often) {
  Life t(liveness_config());
  Pdc& pdc = t.established(2);
  pdc.locks = 1;
  const Duration rto = t.window.rto(pdc, 0);
  t.liveness.look(kNow + rto, pdc);
  EXPECT_EQ(pdc.pending_control & kSendProbe, kSendProbe);
  EXPECT_EQ(pdc.tx.times_asked, 1);
  pdc.pending_control = 0;
  t.liveness.look(kNow + rto * 2, pdc);
  EXPECT_EQ(pdc.pending_control & kSendProbe, 0);
  t.liveness.look(kNow + rto * 3, pdc);
  EXPECT_EQ(pdc.pending_control & kSendProbe, kSendProbe);
  Liveness::lives(kNow + rto * 3, pdc);
  EXPECT_EQ(pdc.tx.times_asked, 0);
}

TEST(Liveness, look__an_unproven_pdc_ends_when_its_syn_packets_can_no_longer_come) {
  Life t(liveness_config());
  Pdc& pdc = t.served(2);
  const Instant end = kNow + t.openings.memory();
  t.liveness.look(end - Duration::from_ns(1), pdc);
  EXPECT_EQ(pdc.deadline(PdcTimer::kLiveness), end);
  EXPECT_EQ(pdc.pending_control, 0);
  t.liveness.look(end, pdc);
  EXPECT_EQ(t.pdcs.size(), 0u);
}

TEST(Liveness, heard__starts_the_count_of_tail_probes_anew_and_lives_does_not) {
  Pdc pdc;
  pdc.tx.tail_probes = pdc.tx.times_asked = 3;
  Liveness::lives(kNow, pdc);
  EXPECT_EQ(pdc.heard_at, kNow);
  EXPECT_EQ(pdc.tx.times_asked, 0);
  EXPECT_EQ(pdc.tx.tail_probes, 3);
  Liveness::heard(kNow, pdc);
  EXPECT_EQ(pdc.tx.tail_probes, 0);
}

}  // namespace
}  // namespace uet::pds::test
