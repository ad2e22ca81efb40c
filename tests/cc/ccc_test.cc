/// The context's bookkeeping: every transmission is counted once, whatever order feedback comes in.
#include <utility>

#include "cc/prober.h"
#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

// Covers: CC-I2
TEST_F(CccTest, on_ack__rounding_of_the_counter_may_take_inflight_below_zero) {
  Transmission t[3];
  for (auto& one : t) send(one, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), 12'408);
  wait(12'500);
  for (auto& one : t) ccc_->on_first_ack(one, share_);
  ccc_->on_ack(now_, share_, ack_of(&t[2], 49));
  EXPECT_EQ(ccc_->inflight_bytes(), -136);
}

TEST_F(CccTest, on_ack__older_report_counts_nothing) {
  Transmission t[4];
  for (auto& one : t) send(one, share_);
  wait(12'500);
  ack(t[1], share_, 33);
  const auto inflight = ccc_->inflight_bytes();
  const auto window = ccc_->window_bytes();
  ccc_->on_ack(now_, share_, ack_of(nullptr, 17));
  EXPECT_EQ(ccc_->inflight_bytes(), inflight);
  EXPECT_EQ(ccc_->window_bytes(), window);
  EXPECT_EQ(share_.last_rcvd_units, 33u);
}

TEST_F(CccTest, on_ack__duplicate_is_ignored) {
  Transmission t;
  send(t, share_);
  wait(12'500);
  ack(t, share_, 17);
  const auto inflight = ccc_->inflight_bytes();
  const auto window = ccc_->window_bytes();
  ack(t, share_, 17);
  EXPECT_EQ(ccc_->inflight_bytes(), inflight);
  EXPECT_EQ(ccc_->window_bytes(), window);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
}

TEST_F(CccTest, on_ack__counter_wraps) {
  share_.last_rcvd_units = 0xff'fff0;
  Transmission t[2];
  for (auto& one : t) send(one, share_, 4096);
  for (auto& one : t) ccc_->on_first_ack(one, share_);
  ccc_->on_ack(now_, share_, ack_of(nullptr, 0x10));
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_EQ(share_.last_rcvd_units, 0x10u);
  ccc_->on_ack(now_, share_, ack_of(nullptr, 0xff'fff0));
  EXPECT_EQ(share_.last_rcvd_units, 0x10u);
}

TEST_F(CccTest, on_ack__plain_acks_close_what_they_acknowledge) {
  Transmission t[3];
  for (auto& one : t) send(one, share_);
  for (auto& one : t) {
    wait(12'500);
    ccc_->on_first_ack(one, share_);
    AckSignal plain;
    plain.arrived_at = now_;
    plain.trigger = &one;
    ccc_->on_ack(now_, share_, plain);
  }
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
}

TEST_F(CccTest, on_ack__mixed_plain_and_full_acks_count_bytes_once) {
  Transmission t[4];
  for (auto& one : t) send(one, share_);
  // The destination has all four; a plain ACK for the first comes, then a full one that
  // acknowledges the second, then plain ones for the rest, whose bytes the counter has reported
  // already.
  ccc_->on_first_ack(t[0], share_);
  AckSignal plain;
  plain.arrived_at = now_;
  ccc_->on_ack(now_, share_, plain);
  EXPECT_EQ(ccc_->inflight_bytes(), 3 * kPacket);
  ack(t[1], share_, 65);
  EXPECT_EQ(ccc_->inflight_bytes(), 4 * kPacket - 65 * 256);
  for (int i = 2; i < 4; ++i) {
    ccc_->on_first_ack(t[i], share_);
    ccc_->on_ack(now_, share_, plain);
  }
  EXPECT_EQ(ccc_->inflight_bytes(), 4 * kPacket - 65 * 256);
  EXPECT_GE(ccc_->inflight_bytes(), -255);
}

TEST_F(CccTest, on_ack__counter_that_never_moves_does_not_block_for_ever) {
  for (int i = 0; i < 1000; ++i) {
    Transmission t;
    send(t, share_);
    wait(12'500);
    ack(t, share_, 0);
    ASSERT_EQ(ccc_->inflight_bytes(), 0);
  }
}

TEST_F(CccTest, on_ack__counter_that_claims_too_much_is_not_believed) {
  Transmission t[2];
  send(t[0], share_);
  send(t[1], share_);
  ack(t[0], share_, 0x7f'ffff);
  EXPECT_EQ(ccc_->inflight_bytes(), -255);
  ccc_->on_first_ack(t[1], share_);
  ccc_->on_ack(now_, share_, ack_of(nullptr, 0x7f'ffff));
  EXPECT_EQ(ccc_->inflight_bytes(), -255);
}

TEST_F(CccTest, on_held__leaves_the_network_and_is_counted_once) {
  Transmission a, b;
  send(a, share_);
  send(b, share_);
  ccc_->on_held(now_, a, share_);
  ccc_->on_held(now_, a, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), kPacket);
  const std::uint32_t both = (2 * kPacket + 255) / 256;
  ack(b, share_, both);  // the counter speaks of `a` too
  const ByteCount rounding = both * 256 - 2 * kPacket;
  EXPECT_EQ(ccc_->inflight_bytes(), -rounding);
  ack(a, share_, both);
  EXPECT_EQ(ccc_->inflight_bytes(), -rounding);
}

TEST_F(CccTest, leave_out__takes_no_room_and_its_timeout_is_no_congestion) {
  Transmission t;
  const auto window = ccc_->window_bytes();
  send(t, share_);
  ccc_->leave_out(t, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_EQ(ccc_->state(), CccState::kPending);
  ASSERT_TRUE(ccc_->on_inferred_loss(now_, t, share_, true, false));
  EXPECT_EQ(ccc_->window_bytes(), window);
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_TRUE(t.waits_for_resend());
  resend(t, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), kPacket);
  ASSERT_TRUE(ccc_->on_inferred_loss(now_, t, share_, true, false));
  EXPECT_EQ(ccc_->window_bytes(), window - kPacket);
}

TEST_F(CccTest, leave_out__what_comes_of_it_is_counted_as_of_any_other) {
  Transmission acked, trimmed, abandoned;
  for (Transmission* t : {&acked, &trimmed, &abandoned}) {
    send(*t, share_);
    ccc_->leave_out(*t, share_);
  }
  wait(12'500);
  ack(acked, share_, 17);
  const ByteCount rounding = 17 * 256 - kPacket;
  EXPECT_EQ(ccc_->inflight_bytes(), -rounding);
  EXPECT_TRUE(trim(trimmed, share_));
  EXPECT_TRUE(trimmed.waits_for_resend());
  EXPECT_EQ(ccc_->inflight_bytes(), -rounding);
  ccc_->on_abandon(abandoned, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), -rounding);
  resend(trimmed, share_);
  ack(trimmed, share_, 33);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
  EXPECT_EQ(share_.unacked_bytes, 0);
  ccc_->on_pdc_closed(share_);
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
}

TEST_F(CccTest, on_excluded__leaves_the_network_without_a_reaction) {
  Transmission t;
  send(t, share_);
  const auto window = ccc_->window_bytes();
  EXPECT_TRUE(ccc_->on_excluded(now_, t, share_));
  EXPECT_TRUE(t.waits_for_resend());
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_EQ(ccc_->window_bytes(), window);
  EXPECT_FALSE(ccc_->on_excluded(now_, t, share_));
}

TEST_F(CccTest, on_nack__marks_once) {
  Transmission t;
  send(t, share_);
  wait(9000);
  EXPECT_TRUE(trim(t, share_));
  EXPECT_TRUE(t.waits_for_resend());
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_FALSE(trim(t, share_));
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_EQ(ccc_->state(), CccState::kReady);
}

TEST_F(CccTest, on_nack__after_the_ack_changes_nothing) {
  Transmission t;
  send(t, share_);
  wait(12'500);
  ack(t, share_, 17);
  const auto window = ccc_->window_bytes();
  const auto inflight = ccc_->inflight_bytes();
  EXPECT_FALSE(trim(t, share_));
  EXPECT_EQ(ccc_->window_bytes(), window);
  EXPECT_EQ(ccc_->inflight_bytes(), inflight);
}

TEST_F(CccTest, on_nack__without_echo_for_a_resent_packet_is_stale) {
  Transmission t;
  send(t, share_);
  trim(t, share_);
  resend(t, share_);
  EXPECT_FALSE(trim(t, share_, false));
  EXPECT_TRUE(t.is_in_flight());
  EXPECT_TRUE(trim(t, share_, true));
  EXPECT_TRUE(t.waits_for_resend());
}

// [CC 4.4] A NACK answers the copy it is about: after any number of trims only the latest copy can draw the ACK.
TEST_F(CccTest, on_ack__samples_the_rtt_of_a_packet_that_was_trimmed_twice) {
  Transmission t;
  send(t, share_);
  trim(t, share_);
  for (int copy = 0; copy < 2; ++copy) {
    wait(12'500);
    resend(t, share_);
    if (copy == 0) trim(t, share_, true);
  }
  wait(9'000);
  ccc_->on_first_ack(t, share_);
  auto answer = ack_of(&t, 17);
  answer.retx_echo = true;
  ccc_->on_ack(now_, share_, answer);
  EXPECT_EQ(ccc_->base_rtt(), Duration::from_ns(9'000));
}

// [CC 4.4] A copy that was given up without an answer may still draw one.
TEST_F(CccTest, on_ack__takes_no_sample_while_an_older_copy_may_answer) {
  const auto base_rtt = ccc_->base_rtt();
  Transmission t;
  send(t, share_);
  trim(t, share_);
  resend(t, share_);
  wait(12'500);
  ASSERT_TRUE(ccc_->on_inferred_loss(now_, t, share_, true));
  resend(t, share_);
  wait(9'000);
  ccc_->on_first_ack(t, share_);
  auto answer = ack_of(&t, 17);
  answer.retx_echo = true;
  ccc_->on_ack(now_, share_, answer);
  EXPECT_EQ(ccc_->base_rtt(), base_rtt);
}

// Covers: CC-I2, CC-I3
TEST_F(CccTest, on_first_ack__of_a_marked_packet_puts_its_bytes_back_once) {
  Transmission t;
  send(t, share_);
  ASSERT_TRUE(ccc_->on_inferred_loss(now_, t, share_, false));
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  wait(12'500);
  ack(t, share_, 17);
  EXPECT_FALSE(t.waits_for_resend());
  EXPECT_EQ(ccc_->inflight_bytes(), kPacket - 17 * 256);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
}

TEST_F(CccTest, on_first_ack__of_the_first_copy_after_the_second_left) {
  Transmission t;
  send(t, share_);
  ccc_->on_inferred_loss(now_, t, share_, true);
  resend(t, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), kPacket);
  wait(100);
  ack(t, share_, 17);
  EXPECT_EQ(ccc_->inflight_bytes(), kPacket - 17 * 256);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
}

TEST_F(CccTest, on_first_ack__two_pdcs_report_their_own_counters) {
  PdcShare other;
  Transmission a[2], b[2];
  for (int i = 0; i < 2; ++i) {
    send(a[i], share_);
    send(b[i], other);
  }
  wait(12'500);
  ack(a[0], share_, 17);
  ack(b[0], other, 17);
  ack(b[1], other, 33);
  ack(a[1], share_, 33);
  const auto each = 2 * kPacket - 33 * 256;
  EXPECT_EQ(share_.inflight, each);
  EXPECT_EQ(other.inflight, each);
  EXPECT_EQ(ccc_->inflight_bytes(), 2 * each);
}

TEST_F(CccTest, on_pdc_closed__rounding_goes_back) {
  PdcShare other;
  Transmission a, b;
  send(a, share_);
  send(b, other);
  wait(12'500);
  ack(a, share_, 17);
  ack(b, other, 17);
  ccc_->on_pdc_closed(share_);
  EXPECT_EQ(ccc_->inflight_bytes(), other.inflight);
  ccc_->on_pdc_closed(other);
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
}

TEST_F(CccTest, on_pdc_closed__takes_open_and_marked_packets_along) {
  Transmission open, marked, abandoned;
  send(open, share_);
  send(marked, share_);
  send(abandoned, share_);
  const auto window_before = ccc_->window_bytes();
  ccc_->on_abandon(abandoned, share_);
  EXPECT_EQ(ccc_->window_bytes(), window_before);
  ccc_->on_inferred_loss(now_, marked, share_, true);
  ccc_->on_pdc_closed(share_);
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
}

// Covers: PDS-129
TEST_F(CccTest, rtt__only_when_there_is_no_doubt_which_copy_is_answered) {
  struct Row {
    int resends;
    bool echo;
    bool valid;
  };
  const Row rows[] = {
      {0, false, true}, {1, true, true}, {0, true, false}, {1, false, false}, {2, true, false}};
  for (const auto& row : rows) {
    make(hand_config());
    PdcShare share;
    Transmission t;
    send(t, share);
    for (int i = 0; i < row.resends; ++i) {
      ccc_->on_inferred_loss(now_, t, share, true);
      resend(t, share);
    }
    wait(9000);
    ccc_->on_first_ack(t, share);
    auto signal = ack_of(&t, 17);
    signal.retx_echo = row.echo;
    ccc_->on_ack(now_, share, signal);
    EXPECT_EQ(ccc_->base_rtt(), Duration::from_ns(row.valid ? 9000 : 12'000))
        << row.resends << " resends, echo " << row.echo;
  }
}

TEST_F(CccTest, rtt__time_in_the_destination_is_taken_off) {
  Transmission t[2];
  send(t[0], share_);
  send(t[1], share_);
  wait(9000);
  ccc_->on_first_ack(t[0], share_);
  auto signal = ack_of(&t[0], 17);
  signal.service_time_units = 0xffff;  // overflow: no sample
  ccc_->on_ack(now_, share_, signal);
  EXPECT_EQ(ccc_->base_rtt(), Duration::from_ns(12'000));
  ccc_->on_first_ack(t[1], share_);
  signal = ack_of(&t[1], 33);
  signal.service_time_units = 10;
  ccc_->on_ack(now_, share_, signal);
  EXPECT_EQ(ccc_->base_rtt(), Duration::from_ns(9000 - 1280));
}

TEST_F(CccTest, rtt__service_time_longer_than_the_round_trip_is_no_sample) {
  Transmission t;
  send(t, share_);
  wait(1000);
  ccc_->on_first_ack(t, share_);
  auto signal = ack_of(&t, 17);
  signal.service_time_units = 1000;
  ccc_->on_ack(now_, share_, signal);
  EXPECT_EQ(ccc_->base_rtt(), Duration::from_ns(12'000));
}

TEST_F(CccTest, poll_probe__once_after_the_first_feedback_of_a_flow_that_goes_on) {
  Transmission t;
  ccc_->on_new_data(now_, 10 * kPacket);
  send(t, share_);
  EXPECT_FALSE(ccc_->poll_probe(now_));
  wait(20'000);
  ack(t, share_, 17);
  EXPECT_TRUE(ccc_->poll_probe(now_));
  EXPECT_FALSE(ccc_->poll_probe(now_));
}

// A full packet needs longer than the 64 bytes of a probe, at every link. How many there are follows from the time.
TEST_F(CccTest, poll_probe__its_answer_stands_for_a_full_packet) {
  const struct {
    std::int64_t probe_ns;
    int links;
  } rows[] = {{1000, 2}, {4000, 2}, {5000, 3}, {6500, 4}, {8000, 5}, {9500, 6}};
  for (const auto& row : rows) {
    make(hand_config());
    share_ = {};
    answer_base_probe(row.probe_ns);
    EXPECT_EQ(ccc_->base_rtt(), Duration::from_ns(row.probe_ns) +
                                    config_.link_rate.time_for(kPacket - 64) * row.links)
        << row.probe_ns;
  }
}

// Six links of eight slow planes may take longer than the longest way, which must not be divided by nothing.
TEST_F(CccTest, poll_probe__answer_over_many_planes_never_raises_the_base_rtt) {
  auto config = hand_config();
  config.planes = 6;
  const auto link = config.link_rate.time_for((config.mtu_bytes - 64) * config.planes);
  config.config_base_rtt = link * 6;
  make(config);
  const auto before = ccc_->base_rtt();
  answer_base_probe(1000);
  EXPECT_LE(ccc_->base_rtt(), before);
  EXPECT_GT(ccc_->base_rtt(), Duration::from_ns(1000));
}

TEST_F(CccTest, poll_probe__not_for_a_short_flow_nor_with_a_cached_rtt) {
  Transmission t;
  send(t, share_);
  wait(20'000);
  ack(t, share_, 17);
  EXPECT_FALSE(ccc_->poll_probe(now_));

  make(hand_config(), true, Duration::from_us(9));
  EXPECT_EQ(ccc_->base_rtt(), Duration::from_us(9));
  PdcShare share;
  Transmission u;
  ccc_->on_new_data(now_, 10 * kPacket);
  send(u, share);
  wait(20'000);
  ack(u, share, 17);
  EXPECT_FALSE(ccc_->poll_probe(now_));
}

TEST_F(CccTest, next_send__asks_for_an_ack_on_the_last_packet_and_on_resends) {
  Transmission t[2];
  ccc_->on_new_data(now_, 2 * kPacket);
  auto params = ccc_->next_send(now_, nullptr, kPacket);
  EXPECT_FALSE(params.ack_request);
  ccc_->on_send(now_, t[0], share_, kPacket, params, false);
  params = ccc_->next_send(now_, nullptr, kPacket);
  EXPECT_TRUE(params.ack_request);
  ccc_->on_send(now_, t[1], share_, kPacket, params, false);
  ccc_->on_new_data(now_, 9 * kPacket);
  trim(t[0], share_);
  EXPECT_TRUE(ccc_->next_send(now_, &t[0], kPacket).ack_request);
}

TEST_F(CccTest, on_send__again_while_open_or_after_the_ack_keeps_the_count) {
  Transmission t;
  send(t, share_);
  resend(t, share_);
  EXPECT_EQ(ccc_->inflight_bytes(), kPacket);
  ack(t, share_, 17);
  const auto inflight = ccc_->inflight_bytes();
  resend(t, share_);  // only to fetch its response again
  EXPECT_EQ(ccc_->inflight_bytes(), inflight);
  EXPECT_EQ(ccc_->state(), CccState::kIdle);
}

TEST_F(CccTest, may_send__needs_data_and_window) {
  EXPECT_FALSE(ccc_->may_send(kPacket));
  ccc_->on_new_data(now_, 100 * kPacket);
  EXPECT_TRUE(ccc_->may_send(kPacket));
  EXPECT_EQ(ccc_->state(), CccState::kReady);
  std::vector<Transmission> t(100);
  std::size_t sent = 0;
  while (ccc_->may_send(kPacket)) {
    const auto params = ccc_->next_send(now_, nullptr, kPacket);
    ccc_->on_send(now_, t[sent++], share_, kPacket, params, false);
  }
  EXPECT_EQ(sent, 225'000u / kPacket);
  EXPECT_EQ(ccc_->state(), CccState::kActive);
  ccc_->on_new_data(now_, -100 * kPacket);
  EXPECT_EQ(ccc_->state(), CccState::kPending);
}

// Covers: CC-I13
TEST_F(CccTest, next_send__after_a_timeout_takes_another_path) {
  for (const auto lb : {LoadBalancing::kOblivious, LoadBalancing::kBitmap, LoadBalancing::kReps,
                        LoadBalancing::kMixed, LoadBalancing::kRepsLegacy}) {
    auto config = hand_config();
    config.load_balancing = lb;
    config.paths = 2;
    make(config);
    PdcShare share;
    for (int i = 0; i < 200; ++i) {
      Transmission t;
      const auto lost = send(t, share).entropy;
      ASSERT_TRUE(ccc_->on_inferred_loss(now_, t, share, true));
      EXPECT_NE(resend(t, share).entropy, lost) << "load balancing " << static_cast<int>(lb);
      ccc_->on_first_ack(t, share);
      ccc_->on_ack(now_, share, AckSignal{.arrived_at = now_});
    }
  }
}

TEST_F(CccTest, on_inferred_loss__go_back_of_an_ordered_flow_is_no_congestion) {
  make(hand_config(), false);
  Transmission t[3];
  for (auto& one : t) send(one, share_);
  const auto window = ccc_->window_bytes();
  ccc_->on_nack(now_, t[0], share_, {.arrived_at = now_, .cause = NackCause::kOther});
  for (auto& one : {&t[1], &t[2]}) EXPECT_TRUE(ccc_->on_inferred_loss(now_, *one, share_, false));
  EXPECT_EQ(ccc_->window_bytes(), window);
  EXPECT_EQ(ccc_->inflight_bytes(), 0);
  const auto entropy = resend(t[0], share_).entropy;
  EXPECT_EQ(resend(t[1], share_).entropy, entropy);
  ccc_->on_inferred_loss(now_, t[0], share_, true);
  EXPECT_EQ(ccc_->window_bytes(), window - kPacket);
}

TEST_F(CccTest, poll_probe__not_where_the_base_rtt_has_a_floor) {
  auto config = hand_config();
  config.timing_noise = Duration::from_us(5);
  make(config);
  Transmission t;
  ccc_->on_new_data(now_, 10 * kPacket);
  send(t, share_);
  wait(20'000);
  ack(t, share_, 17);
  EXPECT_FALSE(ccc_->poll_probe(now_));
}

TEST_F(CccTest, none__sends_as_long_as_there_is_data) {
  make(hand_config(Algorithm::kNone));
  ccc_->on_new_data(now_, 1'000'000'000);
  std::vector<Transmission> t(1000);
  for (auto& one : t) {
    ASSERT_TRUE(ccc_->may_send(kPacket));
    ccc_->on_send(now_, one, share_, kPacket, ccc_->next_send(now_, nullptr, kPacket), false);
  }
  EXPECT_FALSE(ccc_->carries_credit());
}

// [CC 9] When the window shrinks below what is in flight, the packet that filled the old one asked for nothing, and the
// destination waits for more bytes: without a question all would wait for a timeout.
TEST_F(CccTest, poll_probe__asks_when_the_window_shrank_and_no_answer_is_due) {
  auto config = hand_config();
  config.probe_base_rtt = false;
  make(config);
  Transmission t[3];
  for (auto& one : t) send(one, share_);
  ccc_->on_new_data(now_, 10 * kPacket);
  Transmission more[3];
  for (auto& one : more) {
    const auto params = ccc_->next_send(now_, nullptr, kPacket);
    EXPECT_FALSE(params.ack_request);
    ccc_->on_send(now_, one, share_, kPacket, params, false);
    wait(300);
  }
  for (auto& one : t) ccc_->on_first_ack(one, share_);
  auto shrink = ack_of(nullptr, 49);
  shrink.penalty = 127;
  ccc_->on_ack(now_, share_, shrink);
  ASSERT_FALSE(ccc_->may_send(kPacket));
  EXPECT_TRUE(ccc_->poll_probe(now_));
  EXPECT_FALSE(ccc_->poll_probe(now_)) << "one at a time";
  EXPECT_TRUE(ccc_->next_deadline().is_never()) << "an answer is due";
  // The first probe overtakes the packets and shows no arrival. Nothing else will happen, so the next one is due by time.
  const auto asked = now_;
  wait(3000);
  auto answer = ack_of(nullptr, 49);
  answer.is_probe_answer = true;
  answer.probe_sent_at = asked;
  ccc_->on_ack(now_, share_, answer);
  EXPECT_FALSE(ccc_->poll_probe(now_)) << "one in a base RTT";
  EXPECT_EQ(ccc_->next_deadline(), asked + ccc_->base_rtt());
  EXPECT_EQ(ccc_->next_deadline(false), Instant::never()) << "without a PDC to carry it";
  now_ = ccc_->next_deadline();
  EXPECT_TRUE(ccc_->poll_probe(now_));
  // The answer tells what has arrived, and nothing of the base RTT.
  const auto base_rtt = ccc_->base_rtt();
  wait(3000);
  answer = ack_of(nullptr, 98);
  answer.is_probe_answer = true;
  answer.probe_sent_at = now_ - Duration::from_us(3);
  ccc_->on_ack(now_, share_, answer);
  EXPECT_EQ(ccc_->base_rtt(), base_rtt);
  EXPECT_TRUE(ccc_->may_send(kPacket));
}

// What the window is full of may belong to a PDC that gets no answer, and then no Probe changes anything: each waits twice as
// long as the one before, until a packet is closed.
TEST(ProberTest, poll__is_rarer_each_time_that_asking_changes_nothing) {
  const auto config = hand_config();
  Prober prober(config, Duration::from_us(12));
  const bool stuck = true;
  const Duration base_rtt = Duration::from_us(12);
  Instant now = Instant() + Duration::from_us(100);
  const auto probes_within = [&](int base_rtts) {
    int count = 0;
    for (const Instant end = now + base_rtt * base_rtts; now < end; now = now + base_rtt / 4) {
      if (!prober.poll(now, stuck, base_rtt)) continue;
      ++count;
      prober.on_answer(now, std::nullopt);
    }
    return count;
  };
  EXPECT_EQ(probes_within(1000), 10);
  EXPECT_EQ(probes_within(10'000), 10) << "and at least one in 1024 base RTTs";
  now = std::max(now, prober.due(stuck));
  prober.on_closed();
  EXPECT_EQ(probes_within(8), 4);
}

// [CC 4.9] The packet asks for an ACK, so another Probe would only take the place of data.
TEST(ProberTest, on_answer__leaves_a_question_that_was_asked_later) {
  auto config = hand_config();
  Prober prober(config, Duration::from_us(12));
  const bool stuck = true;
  const Duration base_rtt = Duration::from_us(12);
  const Instant probed = Instant() + Duration::from_us(100), asked = probed + Duration::from_us(5);
  ASSERT_TRUE(prober.poll(probed, stuck, base_rtt));
  prober.on_asked(asked);
  prober.on_answer(probed, std::nullopt);
  EXPECT_TRUE(prober.due(stuck).is_never());
  prober.on_settled(asked);
  EXPECT_EQ(prober.due(stuck), probed + base_rtt);
}

}  // namespace
}  // namespace uet::cc
