// Windows, order, and a port that takes nothing. [PDS 7, 21.4]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

constexpr std::uint32_t kSmall = 8;  // payload: far from any congestion window

wire::PdsAckCcNscc window_ack(const Open& x, Psn cack, std::uint8_t mpr) {
  wire::PdsAckCcNscc a;
  a.cack_psn = cack;
  a.sack_psn_offset = 1;
  a.mpr = mpr;
  a.spdcid = x.id1;
  a.dpdcid = x.id0;
  return a;
}
std::int64_t highest_from(const std::vector<Seen>& packets, Psn base) {
  std::int64_t highest = INT64_MIN;
  for (const Seen& s : packets)
    highest = std::max<std::int64_t>(highest, s.psn.distance_from(base));
  return highest;
}

// Covers: PDS-52
TEST(Rud, window_wraps_with_a_loss) {
  World w(with([](auto& o) { o.pds.forced_start_psn = 0xfffffff0; }));
  w.drop_nth(0, 9, first_copy);
  w.send(0, 1, 64);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 64u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 64u);
  EXPECT_EQ(w.acks(1).back().cack, Psn(0xfffffff0) + 63);
}

// Covers: PDS-54
TEST(Rud, one_loss_is_one_retransmission) {
  World w;
  w.drop_nth(0, 17, first_copy);
  w.send(0, 1, 40);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 1u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 40u);
}

// Covers: PDS-55
TEST(Rud, periodic_losses_of_data_and_acks) {
  World w;
  int data = 0, acks = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (first_copy(s)) f.drop = ++data % 7 == 0;
    if (s.is_ack()) f.drop = ++acks % 11 == 0;
  });
  for (int i = 0; i < 40; ++i) w.send(0, 1, 5);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 200u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 200u);
  EXPECT_EQ(w.host(0).pds->gauges().outstanding_packets, 0u);
  EXPECT_EQ(w.host(0).count(EventId::kPdcClosed), 0u);
}

// A target that grants less than Default_MPR says so with its first ACK. What the first burst sent beyond that counts in the
// congestion window, and nothing but the packets below can open the window of the target.
TEST(Rud, a_lost_first_burst_beyond_the_window_of_the_target_does_not_keep_the_rest_from_leaving) {
  const WorldOptions o = software_world([](auto& c) {
    c.cc.link_rate = base::BitRate::from_gbps(10);
    c.cc.config_base_rtt = us(100);
  });
  World w(o);
  PdsConfig narrow = o.pds;
  narrow.local_mp_range = 128;
  w.host(1).restart(narrow, o.cc);
  const Instant start = w.now();
  std::optional<Psn> first;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (!s.is_request()) return;
    if (!first) first = s.psn;
    const auto i = s.psn.distance_from(*first);
    f.drop = w.now() < start + ms(50) && (w.now() > start || i < 126 || i >= 128);
  });
  const MessageToken m = w.send(0, 1, 400);
  w.run_for(Duration::from_seconds(1));
  EXPECT_EQ(w.host(0).ses.responses_of(m), 400u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 400u);
}

// Covers: PDS-56, PDS-8
TEST(Rud, small_window_is_never_exceeded) {
  World w(with([](auto& o) {
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  Psn cack(999);
  w.add_rule([&](const Seen& s, Fate& f) {
    if (first_copy(s)) {
      EXPECT_LE(s.psn.distance_from(cack), 128);
    }
    if (s.is_ack()) {
      EXPECT_EQ(s.mpr, 1);
      cack = s.cack;
    }
    f.extra_delay = us(3);
  });
  w.send(0, 1, 1024, 1024);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1024u);
}

// Covers: PDS-61, PDS-62
TEST(Rud, window_boundary) {
  Open x;
  const Psn cack = x.next - 1;
  x.arrive(x.request(cack + 1025));
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kPsnOorWindow);
  x.arrive(x.request(cack + 1024));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
}

// Covers: PDS-63
TEST(Rud, ancient_psn_is_dropped_and_recent_one_answered) {
  Open x(with([](auto& o) {
    o.pds.forced_start_psn = 0x7fff0000;
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  x.w.send(0, 1, 40000, 8);
  x.w.run_until_quiet(Duration::from_seconds(200));
  x.w.log.clear();
  const Psn cack = x.next - 1 + 40000;
  auto old = x.request(cack - 32640);
  old.retx = true;
  x.arrive(old);
  EXPECT_TRUE(x.w.acks(1).empty() && x.w.nacks(1).empty());
  EXPECT_EQ(x.w.host(1).drops(DropReason::kPsnTooOld), 1u);
  auto recent = x.request(cack - 129);
  recent.retx = true;
  x.arrive(recent);
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].ack_psn, cack - 129);
}

// Covers: PDS-66, SES-19
TEST(Rud, messages_do_not_interleave) {
  World w;
  const auto a = w.send(0, 1, 5);
  const auto b = w.send(0, 1, 5);
  w.run_until_quiet();
  const auto t = w.host(1).ses.tokens_delivered();
  EXPECT_EQ(t, (std::vector<MessageToken>{a, a, a, a, a, b, b, b, b, b}));
}

// Covers: PDS-71, PDS-72
TEST(Rud, other_mode_class_or_context_is_another_pdc) {
  World w;
  w.send(0, 1);
  w.send(0, 1, 1, 10, Mode::kRod);
  TxMessage m = w.message(1, 1, 10, Mode::kRod);
  m.rod_context = 5;
  w.send(0, m);
  m = w.message(1);
  m.traffic_class = 1;
  w.send(0, m);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 4u);
}

/// How many packets leave of a PDC before one of another, when three PDCs of one CCC have `messages` each.
std::vector<std::size_t> turns_of_three(std::size_t messages, std::uint32_t segments) {
  World w(software_world([](auto& o) {
    o.pds.pdc_spread_bytes = 1;
    o.pds.max_pdc_per_key = 3;
  }));
  for (int pdc = 0; pdc < 3; ++pdc) w.send(0, 1);
  w.run_until_quiet();
  w.log.clear();
  for (std::size_t i = 0; i < 3 * messages; ++i) w.send(0, 1, segments);
  w.run_until_quiet();

  std::vector<std::size_t> turns;
  std::uint16_t last = 0;
  for (const Seen& s : w.requests(0)) {
    if (s.spdcid != last) turns.push_back(0);
    last = s.spdcid;
    ++turns.back();
  }
  return turns;
}

TEST(Turns, of_pdcs_to_one_peer_have_a_few_packets_of_one_message) {
  EXPECT_EQ(turns_of_three(1, 20), (std::vector<std::size_t>{8, 8, 8, 8, 8, 8, 4, 4, 4}));
  EXPECT_EQ(turns_of_three(2, 3), std::vector<std::size_t>(6, 3));
  EXPECT_EQ(turns_of_three(4, 1), std::vector<std::size_t>(12, 1));
}

// Covers: PDS-51
TEST(Window, reordered_packets_are_delivered_once_in_order_of_arrival) {
  Open x;
  base::Rng rng(51);
  std::vector<std::pair<Instant, Psn>> arrivals;
  x.w.add_rule([&](const Seen& s, Fate& f) {
    if (!s.is_request()) return;
    f.extra_delay =
        Duration::from_ns(100 * rng.below(500) + static_cast<std::int64_t>(arrivals.size() % 100));
    arrivals.emplace_back(s.at + f.extra_delay, s.psn);
  });
  x.w.send(0, 1, 100, kSmall);
  x.w.run_until_quiet();
  std::sort(arrivals.begin(), arrivals.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto& delivered = x.w.host(1).ses.delivered;
  ASSERT_EQ(arrivals.size(), 100u);
  ASSERT_EQ(delivered.size(), 101u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(delivered[i + 1].handle.psn, arrivals[i].second);
}

// Covers: PDS-53
TEST(Window, duplicate_from_before_the_wrap_is_recognised_after_it) {
  Open x(with([](auto& o) { o.pds.forced_start_psn = 0xfffffff0; }));
  x.w.send(0, 1, 63, kSmall);
  x.w.run_until_quiet();
  ASSERT_EQ(x.w.host(1).ses.delivered.size(), 64u);
  x.w.log.clear();
  auto again = x.request(Psn(0xfffffffe));
  again.retx = true;
  x.arrive(again);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 64u);
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].cack, Psn(0xfffffff0) + 63);
}

// Covers: PDS-57
TEST(Window, lowered_window_holds_back_new_packets_and_resends) {
  Open x;
  silence(x.w, 1);
  x.w.send(0, 1, 400, kSmall);
  x.w.pump();
  ASSERT_EQ(x.w.requests(0).size(), 400u);
  const Psn cack = x.next + 9;
  x.w.inject(0, x.w.host(1).address, window_ack(x, cack, 1));
  x.w.log.clear();
  x.w.send(0, 1, 10, kSmall);
  x.w.run_for(ms(10));
  ASSERT_FALSE(x.w.requests(0).empty());
  EXPECT_EQ(highest_from(x.w.requests(0), cack), 128);
  x.w.inject(0, x.w.host(1).address, window_ack(x, cack + 100, 1));
  x.w.log.clear();
  x.w.run_for(ms(20));
  EXPECT_EQ(highest_from(x.w.requests(0), cack), 228);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// Covers: PDS-58
TEST(Window, window_of_an_older_ack_is_ignored) {
  Open x;
  silence(x.w, 1);
  x.w.send(0, 1, 300, kSmall);
  x.w.pump();
  x.w.inject(0, x.w.host(1).address, window_ack(x, x.next + 100, 8));
  x.w.inject(0, x.w.host(1).address, window_ack(x, x.next + 50, 1));
  x.w.send(0, 1, 500, kSmall);
  x.w.pump();
  EXPECT_EQ(highest_from(x.w.requests(0), x.next), 799);
}

// Covers: PDS-59
TEST(Window, mpr_zero_is_a_default_range_and_never_a_stall) {
  for (const std::uint8_t override_value : {0, 64}) {
    Open x(with([&](auto& o) { o.pds.override_mpr_zero_value = override_value; }));
    Psn cack = x.next - 1;
    x.w.inject(0, x.w.host(1).address, window_ack(x, cack, 0));
    x.w.add_rule([&](const Seen& s, Fate& f) {
      if (s.type == PdsType::kAckCc)
        f.edit = [](std::vector<std::uint8_t>& bytes) { bytes.at(13) = 0; };
      if (s.is_ack()) cack = serial_max(cack, s.cack);
      if (s.is_request()) {
        EXPECT_LE(s.psn.distance_from(cack), override_value == 0 ? 128 : 64);
      }
    });
    x.w.send(0, 1, 500, kSmall);
    x.w.pump();
    EXPECT_EQ(x.w.requests(0).size(), override_value == 0 ? 128u : 64u);
    x.w.run_until_quiet();
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 501u);
    EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  }
}

// Covers: PDS-60
TEST(Window, gap_at_the_left_edge_stalls_and_its_resend_goes_through) {
  Open x(with([](auto& o) {
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 300, kSmall);
  x.w.run_for(us(500));
  EXPECT_EQ(x.w.requests(0).size(), 128u);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 128u);  // the first message, and 127 behind the gap
  x.w.run_until_quiet();
  ASSERT_GT(x.w.requests(0).size(), 129u);
  EXPECT_EQ(x.w.requests(0)[128].psn, x.next);
  EXPECT_TRUE(x.w.requests(0)[128].retx);
  EXPECT_FALSE(x.w.requests(0)[129].retx);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 301u);
}

// Covers: PDS-64, PDS-65
TEST(Window, refused_packets_leave_no_hole_and_no_state_behind) {
  for (const std::uint32_t room : {1u, 4u, 9u}) {  // the last packet is refused in the last round
    Open x;
    auto held = hold_all(x.w.host(0).pool);
    for (std::uint32_t i = 0; i < room; ++i) held.pop_back();
    x.w.send(0, 1, 10, 100);
    std::vector<net::TxPacket> left(room);
    for (net::TxPacket& out : left) ASSERT_TRUE(x.w.host(0).pds->poll_transmit(x.w.now(), out));
    net::TxPacket refused;
    EXPECT_FALSE(x.w.host(0).pds->poll_transmit(x.w.now(), refused));
    left.clear();  // these are lost on the way
    held.clear();
    x.w.run_until_quiet();
    std::vector<Psn> fresh;
    for (const Seen& s : x.w.requests(0))
      if (!s.retx) fresh.push_back(s.psn);
    ASSERT_EQ(fresh.size(), 10u - room);
    for (std::uint32_t i = 0; i < fresh.size(); ++i) EXPECT_EQ(fresh[i], x.next + room + i);
    std::vector<std::uint32_t> segments;
    for (const Delivery& d : x.w.host(1).ses.delivered) segments.push_back(d.segment);
    std::sort(segments.begin() + 1, segments.end());
    ASSERT_EQ(segments.size(), 11u);
    for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(segments[i + 1], i);
    EXPECT_EQ(x.w.host(0).ses.responses.size(), 11u);
  }
}

// Covers: PDS-65
TEST(Window, refused_close_command_is_sent_later) {
  Open x;
  auto held = hold_all(x.w.host(0).pool);
  x.w.host(0).pds->close_all(x.w.now());
  x.w.pump();
  EXPECT_TRUE(x.w.log.empty());
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 1u);
  held.clear();
  x.w.run_until_quiet();
  const auto close = x.w.controls(0, ControlType::kCloseCommand);
  ASSERT_EQ(close.size(), 1u);
  EXPECT_EQ(close[0].psn, x.next);
  EXPECT_FALSE(close[0].retx);
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open + x.w.host(1).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-68
TEST(Window, first_arrival_need_not_begin_a_message) {
  Open x;
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 2);
  x.w.run_for(us(50));
  ASSERT_EQ(x.w.host(1).ses.delivered.size(), 2u);
  EXPECT_EQ(x.w.host(1).ses.delivered[1].segment, 1u);
  EXPECT_TRUE(x.w.nacks(1).empty());
}

// Covers: PDS-70
TEST(Window, loss_on_one_pdc_does_not_touch_another) {
  Open x;
  x.w.add_rule(
      [&](const Seen& s, Fate& f) { f.drop = s.is_request() && s.spdcid == x.id0 && !s.retx; });
  const auto lost = x.w.send(0, 1, 5);
  TxMessage other = x.w.message(1, 20);
  other.traffic_class = 1;
  const auto fine = x.w.send(0, other);
  x.w.run_for(us(500));
  EXPECT_EQ(x.w.host(0).ses.responses_of(fine), 20u);
  EXPECT_EQ(x.w.host(0).ses.responses_of(lost), 0u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(0).ses.responses_of(lost), 5u);
}

// Covers: PDS-78
TEST(Window, window_smaller_than_the_ack_trigger_does_not_stall) {
  Open x(with([](auto& o) { o.pds.override_mpr_zero_value = 2; }));
  x.w.inject(0, x.w.host(1).address, window_ack(x, x.next - 1, 0));
  x.w.add_rule([](const Seen& s, Fate& f) {
    if (s.type == PdsType::kAckCc)
      f.edit = [](std::vector<std::uint8_t>& bytes) { bytes.at(13) = 0; };
  });
  x.w.send(0, 1, 20, 100);
  x.w.run_for(us(500));
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 21u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
}

// Covers: PDS-22
TEST(Window, peer_that_keeps_syn_is_understood) {
  Open x;
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = x.next;
  h.psn_offset = 1;
  h.clear_psn_offset = -1;
  h.spdcid = x.id0;
  h.retx = true;
  for (int copy = 0; copy < 2; ++copy) {
    x.w.inject(1, x.w.host(0).address, h, x.w.segment_bytes(77, 0, 100));
    x.w.pump();
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
    EXPECT_EQ(x.w.acks(1).size(), static_cast<std::size_t>(copy) + 1);
  }
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 1u);
  EXPECT_TRUE(x.w.nacks(1).empty());
}

}  // namespace
}  // namespace uet::pds::test
