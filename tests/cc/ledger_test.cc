/// What is in the network, counted without a window, credit or paths. [CC 3.8]
#include "cc/ledger.h"

#include <gtest/gtest.h>

#include <array>

#include "lib/base/rng.h"

namespace uet::cc {
namespace {

using Acknowledged = Ledger::Acknowledged;

struct LedgerTest : testing::Test {
  static constexpr ByteCount kPacket = 1000;
  void send(Transmission& t, bool again = false) {
    ledger.attach(share);
    EXPECT_TRUE(ledger.on_send(t, share, kPacket, again));
  }
  AckSignal counter(std::uint32_t units) {
    AckSignal ack;
    ack.has_nscc_state = true;
    ack.rcvd_units = units;
    return ack;
  }
  Ledger ledger;
  PdcShare share;
};

TEST_F(LedgerTest, a_packet_is_backlog_then_in_flight_then_gone) {
  Transmission t;
  ledger.on_new_data(kPacket);
  EXPECT_TRUE(ledger.has_data());
  send(t);
  EXPECT_FALSE(ledger.has_data());
  EXPECT_FALSE(ledger.is_idle());
  EXPECT_EQ(share.inflight, kPacket);
  EXPECT_EQ(ledger.acknowledge(t, share), Acknowledged::kInFlight);
  EXPECT_EQ(ledger.take_newly_received(share, {}), kPacket);  // by its PSN, without a counter
  EXPECT_EQ(share.inflight, 0);
  EXPECT_TRUE(ledger.is_idle());
}

TEST_F(LedgerTest, a_lost_packet_that_had_arrived_leaves_inflight_once) {
  Transmission t;
  ledger.on_new_data(kPacket);
  send(t);
  ledger.close_for_resend(t, share);
  EXPECT_EQ(ledger.resend_bytes(), kPacket);
  EXPECT_EQ(share.inflight, 0);
  EXPECT_EQ(ledger.acknowledge(t, share), Acknowledged::kForResend);
  EXPECT_EQ(share.inflight, kPacket);  // back, so that it can leave with what was received
  EXPECT_EQ(ledger.take_newly_received(share, {}), kPacket);
  EXPECT_EQ(share.inflight, 0);
  EXPECT_FALSE(ledger.has_data());
}

TEST_F(LedgerTest, a_packet_that_was_acknowledged_is_not_counted_again) {
  Transmission t;
  send(t);
  ledger.acknowledge(t, share);
  EXPECT_FALSE(ledger.on_send(t, share, kPacket, true));
  EXPECT_TRUE(ledger.is_idle());
}

TEST_F(LedgerTest, what_is_held_leaves_at_once_and_its_counter_takes_nothing_more) {
  Transmission t;
  send(t);
  EXPECT_EQ(ledger.hold(t, share), kPacket);
  EXPECT_EQ(ledger.take_newly_received(share, counter(3)), 0);  // 768 bytes of the same packet
  EXPECT_EQ(share.inflight, 0);
}

TEST_F(LedgerTest, a_counter_beyond_what_was_sent_is_not_believed) {
  Transmission t;
  send(t);
  EXPECT_LT(ledger.take_newly_received(share, counter(4000)), kPacket + 256);
}

TEST_F(LedgerTest, detach__takes_what_is_left_and_names_the_last_pdc) {
  Transmission a, b, c;
  PdcShare other;
  send(a);
  send(b);
  ledger.close_for_resend(b, share);
  ledger.attach(other);
  ledger.on_send(c, other, kPacket, false);
  EXPECT_FALSE(ledger.detach(share));
  EXPECT_EQ(ledger.resend_bytes(), 0);
  EXPECT_EQ(ledger.open_packets(), 1u);
  EXPECT_TRUE(ledger.detach(other));
  EXPECT_TRUE(ledger.is_idle());
}

TEST_F(LedgerTest, detach__of_what_is_left_out_leaves_the_bytes_of_others) {
  Transmission a, b, c;
  PdcShare other;
  send(a);
  send(b);
  ledger.leave_out(a, share);
  ledger.close_for_resend(b, share);
  ledger.attach(other);
  ledger.on_send(c, other, kPacket, false);
  ledger.close_for_resend(c, other);
  ledger.detach(share);
  EXPECT_EQ(ledger.resend_bytes(), kPacket);
  EXPECT_EQ(ledger.open_packets(), 0u);
}

// After every event: inflight is what is in flight less what was counted ahead of its acknowledgement.
// Covers: CC-I3, CC-I4
TEST_F(LedgerTest, inflight_never_drifts) {
  base::Rng rng(11);
  std::array<Transmission, 16> ts;
  std::uint32_t units = 0;
  for (int step = 0; step < 20'000; ++step) {
    Transmission& t = ts[rng.below(ts.size())];
    const auto kind = rng.below(7);
    if (t.is_left_out() && kind != 2) ledger.take_in(t, share);  // as Ccc does
    switch (kind) {
      case 0:
        if (!t.is_counted()) t = {};
        ledger.on_send(t, share, 64 + rng.below(4000), t.is_counted());
        break;
      case 1:
        if (t.is_in_flight()) ledger.close_for_resend(t, share);
        break;
      case 2:
        if (t.is_counted()) ledger.acknowledge(t, share);
        break;
      case 3:
        if (t.counted == Transmission::Counted::kInFlight) ledger.hold(t, share);
        break;
      case 4:
        if (t.is_counted() && rng.chance(0.3)) ledger.abandon(t, share);
        break;
      case 5:
        if (t.counted == Transmission::Counted::kInFlight) ledger.leave_out(t, share);
        break;
      default:
        ledger.take_newly_received(share, rng.chance(0.5) ? counter(units += 4) : AckSignal{});
    }
    ByteCount in_flight = 0, left_out = 0, resend = 0, counted = 0;
    std::uint32_t open = 0;
    for (const Transmission& u : ts) {
      if (u.is_in_flight()) in_flight += u.nominal_bytes, ++open;
      if (u.is_left_out()) left_out += u.nominal_bytes, ++open;
      if (u.waits_for_resend()) resend += u.nominal_bytes;
      if (u.is_counted()) counted += u.nominal_bytes;
    }
    ASSERT_EQ(share.inflight, in_flight - share.counted_ahead) << step;
    ASSERT_EQ(share.left_out_bytes, left_out);
    ASSERT_EQ(ledger.resend_bytes(), resend);
    ASSERT_EQ(ledger.open_packets(), open);
    ASSERT_EQ(share.unacked_bytes, counted);
  }
}

}  // namespace
}  // namespace uet::cc
