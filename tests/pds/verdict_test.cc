// What becomes of a sequenced packet: a function of the PDC and the packet. No Pds is built here. [PDS 7.5, 9.2, 9.3]
#include "pds/verdict.h"

#include <gtest/gtest.h>

#include "pds/pool_sizes.h"

namespace uet::pds {
namespace {

using Action = Verdict::Action;

const net::FabricAddress kPeer = net::FabricAddress::from_v4(0x0a000002);
const net::FabricAddress kOther = net::FabricAddress::from_v4(0x0a000003);

/// A target PDC that has received 1000 to 1009 and, beyond a gap, 1012.
struct Target {
  Target() : pool(256, 1) {
    pdc.peer = kPeer;
    pdc.id = 7;
    pdc.peer_id = 9;
    pdc.state = PdcState::kEstablished;
    pdc.start = Psn(1000);
    RxHalf& rx = pdc.rx;
    rx.granted = 256;
    rx.edge = rx.cack = rx.answered = Psn(1009);
    rx.max_rcvd = Psn(1012);
    rx.tracker = pool.acquire();
    rx.tracker->set(RxTracker::kReceived, Psn(1012));
  }
  Arrival data(std::uint32_t psn) const {
    Arrival in;
    in.source = kPeer;
    in.psn = Psn(psn);
    in.spdcid = 9;
    in.dpdcid = 7;
    return in;
  }
  Arrival control(ControlType type, std::uint32_t psn) const {
    Arrival in = data(psn);
    in.is_control = true;
    in.control = type;
    return in;
  }
  RxTrackerPool pool;
  Pdc pdc;
};

testing::AssertionResult is(const Verdict& verdict, Action action) {
  if (verdict.action == action && verdict.shows_peer) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "action " << static_cast<int>(verdict.action);
}
testing::AssertionResult refuses(const Verdict& verdict, Refusal refusal, bool shows_peer) {
  if (verdict.action == Action::kRefuse && verdict.refusal == refusal &&
      verdict.shows_peer == shows_peer)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "action " << static_cast<int>(verdict.action) << " refusal "
                                     << static_cast<int>(verdict.refusal);
}

TEST(Verdict, new_packets_inside_the_window_are_delivered) {
  Target t;
  for (const std::uint32_t psn : {1010u, 1011u, 1013u, 1009u + 256})
    EXPECT_TRUE(is(judge(t.pdc, t.data(psn)), Action::kDeliver)) << psn;
}

// The packet that is waited for is judged at one look where nothing is known beyond it.
TEST(Verdict, a_bitmap_with_nothing_in_it_changes_nothing) {
  for (const Mode mode : {Mode::kRud, Mode::kRod})
    for (const auto state : {PdcState::kCreating, PdcState::kEstablished, PdcState::kCloseReq,
                             PdcState::kClosing, PdcState::kCloseAckWait})
      for (const bool has_close_psn : {false, true})
        for (const bool is_initiator : {false, true})
          for (const std::uint32_t granted : {0u, 1u, 256u})
            for (std::uint32_t psn = 998; psn < 1016; ++psn)
              for (const bool is_control : {false, true}) {
                Target t;
                t.pdc.rx.tracker->clear(RxTracker::kReceived, Psn(1012));
                t.pdc.rx.max_rcvd = t.pdc.rx.cack;
                t.pdc.mode = mode;
                t.pdc.state = state;
                t.pdc.is_initiator = is_initiator;
                t.pdc.has_close_psn = has_close_psn;
                t.pdc.close_psn = Psn(1011);
                t.pdc.rx.granted = granted;
                const Arrival in = is_control ? t.control(ControlType::kNoop, psn) : t.data(psn);
                const Verdict with_bitmap = judge(t.pdc, in);
                t.pdc.rx.tracker = nullptr;
                const Verdict without = judge(t.pdc, in);
                EXPECT_EQ(without.action, with_bitmap.action);
                EXPECT_EQ(without.refusal, with_bitmap.refusal);
                EXPECT_EQ(without.shows_peer, with_bitmap.shows_peer);
              }
}

TEST(Verdict, duplicates_are_told_apart_by_cack) {
  Target t;
  EXPECT_TRUE(is(judge(t.pdc, t.data(1000)), Action::kRepeatFinished));
  EXPECT_TRUE(is(judge(t.pdc, t.data(1009)), Action::kRepeatFinished));
  EXPECT_TRUE(is(judge(t.pdc, t.data(1012)), Action::kRepeatKnown));
}

TEST(Verdict, what_lies_outside_the_window_shows_no_peer) {
  Target t;
  EXPECT_TRUE(refuses(judge(t.pdc, t.data(1009 + 257)), Refusal::kBeyondWindow, false));
  EXPECT_TRUE(refuses(judge(t.pdc, t.data(999)), Refusal::kBelowStart, false));
  t.pdc.rx.is_past_half = true;  // then the start has no meaning any more
  EXPECT_TRUE(is(judge(t.pdc, t.data(999)), Action::kRepeatFinished));
  EXPECT_TRUE(refuses(judge(t.pdc, t.data(1009 - kMaxWindow)), Refusal::kTooOld, false));
  EXPECT_TRUE(is(judge(t.pdc, t.data(1010 - kMaxWindow)), Action::kRepeatFinished));
}

TEST(Verdict, rod_takes_only_the_next_psn) {
  Target t;
  t.pdc.mode = Mode::kRod;
  EXPECT_TRUE(is(judge(t.pdc, t.data(1010)), Action::kDeliver));
  EXPECT_TRUE(is(judge(t.pdc, t.data(1011)), Action::kGap));
  EXPECT_TRUE(is(judge(t.pdc, t.data(1012)), Action::kRepeatKnown));
}

TEST(Verdict, each_end_takes_only_the_control_packets_of_the_other) {
  Target t;
  EXPECT_TRUE(is(judge(t.pdc, t.control(ControlType::kCloseCommand, 1010)), Action::kDeliver));
  EXPECT_TRUE(refuses(judge(t.pdc, t.control(ControlType::kCloseRequest, 1010)),
                      Refusal::kWrongRole, false));
  t.pdc.is_initiator = true;
  EXPECT_TRUE(refuses(judge(t.pdc, t.control(ControlType::kCloseCommand, 1010)),
                      Refusal::kWrongRole, false));
  EXPECT_TRUE(is(judge(t.pdc, t.control(ControlType::kCloseRequest, 1010)), Action::kDeliver));
  EXPECT_TRUE(is(judge(t.pdc, t.control(ControlType::kNoop, 1010)), Action::kDeliver));
}

TEST(Verdict, a_target_takes_nothing_behind_the_close_command) {
  Target t;
  t.pdc.has_close_psn = true;
  t.pdc.close_psn = Psn(1011);
  EXPECT_TRUE(is(judge(t.pdc, t.data(1010)), Action::kDeliver));
  EXPECT_TRUE(refuses(judge(t.pdc, t.data(1013)), Refusal::kClosing, true));
}

TEST(Verdict, an_initiator_that_has_sent_the_close_command_takes_nothing_new) {
  Target t;
  t.pdc.is_initiator = true;
  t.pdc.state = PdcState::kCloseAckWait;
  EXPECT_TRUE(refuses(judge(t.pdc, t.data(1010)), Refusal::kClosing, true));
  EXPECT_TRUE(refuses(judge(t.pdc, t.control(ControlType::kCloseRequest, 1010)),
                      Refusal::kCrossedClose, true));
  EXPECT_TRUE(is(judge(t.pdc, t.data(1009)), Action::kRepeatFinished));
}

TEST(Misfit, the_first_difference_counts) {
  Target t;
  EXPECT_EQ(misfit(nullptr, t.data(1010)), Refusal::kUnknownPdc);
  EXPECT_EQ(misfit(&t.pdc, t.data(1010)), std::nullopt);
  Arrival in = t.data(1010);
  in.mode = Mode::kRod;
  EXPECT_EQ(misfit(&t.pdc, in), Refusal::kOtherMode);
  in.spdcid = 8;
  EXPECT_EQ(misfit(&t.pdc, in), Refusal::kOtherPeer);
  in.source = kOther;
  in.spdcid = 9;
  EXPECT_EQ(misfit(&t.pdc, in), Refusal::kOtherPeer);
  t.pdc.state = PdcState::kPending;
  EXPECT_EQ(misfit(&t.pdc, in), Refusal::kUnknownPdc);
}

TEST(Misfit, an_initiator_that_knows_no_target_yet_takes_any_identifier_but_0) {
  Target t;
  t.pdc.is_initiator = true;
  t.pdc.peer_id = 0;
  Arrival in = t.data(1010);
  in.spdcid = 44;
  EXPECT_EQ(misfit(&t.pdc, in), std::nullopt);
  in.spdcid = 0;
  EXPECT_EQ(misfit(&t.pdc, in), Refusal::kNoSource);
}

TEST(Verdict, a_trimmed_packet_is_asked_for_again_or_answered_again) {
  Target t;
  Arrival in = t.data(1010);
  EXPECT_TRUE(refuses(judge_trimmed(&t.pdc, in), Refusal::kTrimmed, false));
  EXPECT_TRUE(refuses(judge_trimmed(nullptr, in), Refusal::kTrimmed, false));
  in.last_hop = true;
  EXPECT_TRUE(refuses(judge_trimmed(&t.pdc, in), Refusal::kTrimmedLastHop, false));
  EXPECT_TRUE(refuses(judge_trimmed(&t.pdc, t.data(1009 + 257)), Refusal::kBeyondWindow, false));
  EXPECT_TRUE(refuses(judge_trimmed(&t.pdc, t.data(999)), Refusal::kBelowStart, false));
  EXPECT_EQ(judge_trimmed(&t.pdc, t.data(1009)).action, Action::kRepeatFinished);
  EXPECT_EQ(judge_trimmed(&t.pdc, t.data(1012)).action, Action::kRepeatKnown);
  EXPECT_FALSE(judge_trimmed(&t.pdc, t.data(1012)).shows_peer);  // its header may be forged
}

// The whole table: what is refused, why it is counted as dropped, and what the source is told. 0: nothing.
TEST(RuleOfRefusal, names_drop_reason_and_nack_code) {
  using base::DropReason;
  const struct {
    Refusal refusal;
    DropReason reason;
    NackCode nack;
  } rows[] = {
      {Refusal::kUnknownPdc, DropReason::kUnknownPdc, NackCode::kInvDpdcid},
      {Refusal::kOtherPeer, DropReason::kPeerMismatch, NackCode::kPdcHdrMismatch},
      {Refusal::kNoSource, DropReason::kPeerMismatch, NackCode{0}},
      {Refusal::kOtherMode, DropReason::kModeMismatch, NackCode::kPdcModeMismatch},
      {Refusal::kOtherStart, DropReason::kPsnBelowStart, NackCode::kInvalidSyn},
      {Refusal::kTombstone, DropReason::kStaleSyn, NackCode{0}},
      {Refusal::kEndedEarly, DropReason::kStaleSyn, NackCode::kClosingInErr},
      {Refusal::kNoPlace, DropReason::kNoPdc, NackCode::kNoPdcAvail},
      {Refusal::kNoCcc, DropReason::kNoPdc, NackCode::kNoCccAvail},
      {Refusal::kNoTracker, DropReason::kNoTracker, NackCode::kNoBitmap},
      {Refusal::kBeyondWindow, DropReason::kPsnBeyondWindow, NackCode::kPsnOorWindow},
      {Refusal::kOutOfOrder, DropReason::kRodOutOfOrder, NackCode::kRodOoo},
      {Refusal::kChallenged, DropReason::kStaleSyn, NackCode::kNewStartPsn},
      {Refusal::kWrongRole, DropReason::kRoleMismatch, NackCode{0}},
      {Refusal::kBelowStart, DropReason::kPsnBelowStart, NackCode{0}},
      {Refusal::kTooOld, DropReason::kPsnTooOld, NackCode{0}},
      {Refusal::kClosing, DropReason::kClosing, NackCode::kClosing},
      {Refusal::kCrossedClose, DropReason::kClosing, NackCode{0}},
      {Refusal::kNoRoomForAnswer, DropReason::kNoResource, NackCode::kNoGtdDelAvail},
      {Refusal::kNoRecord, DropReason::kNoResource, NackCode::kNoResource},
      {Refusal::kNoRoomInSes, DropReason::kNoResource, NackCode::kNoSesMsgAvail},
      {Refusal::kTrimmed, DropReason::kTrimmed, NackCode::kTrimmed},
      {Refusal::kTrimmedLastHop, DropReason::kTrimmed, NackCode::kTrimmedLasthop},
      {Refusal::kNoRoomForReply, DropReason::kAckQueueFull, NackCode::kNoResource},
      {Refusal::kNoBuffer, DropReason::kNoBuffer, NackCode::kNoPktBuffer},
  };
  EXPECT_EQ(std::size(rows), kRefusalCount);
  for (const auto& row : rows) {
    const RefusalRule rule = rule_of(row.refusal);
    EXPECT_EQ(rule.reason, row.reason) << static_cast<int>(row.refusal);
    EXPECT_EQ(rule.nack.value_or(NackCode{0}), row.nack) << static_cast<int>(row.refusal);
  }
}

}  // namespace
}  // namespace uet::pds
