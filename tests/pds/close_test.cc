// How PDCs end, and what must not outlive them. [PDS 16, 21.9]
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "tests/pds/open_pdc.h"
#include "tests/pds/software_profile.h"

namespace uet::pds::test {
namespace {

wire::PdsControl close_command(const Open& x, Psn psn) {
  wire::PdsControl h;
  h.ctl_type = ControlType::kCloseCommand;
  h.ar = true;
  h.psn = psn;
  h.spdcid = x.id0;
  h.dpdcid = x.id1;
  return h;
}

// The Close Request needs a PSN, and read data that is not acknowledged has all that the window allows.
TEST(Close, a_request_that_finds_the_window_closed_leaves_when_it_opens) {
  World w(software_world([](auto& o) {
    o.cc.config_base_rtt = us(100);
    o.cc.timing_noise = us(50);
    o.pds.pdc_idle_time = Duration{};
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  for (int i = 0; i < 2; ++i) {
    w.send(0, 1);
    w.run_for(ms(1));
  }
  Host& target = w.host(1);
  target.ses.answer = [&](const RxRequest& request, auto&) {
    const TxMessage data = w.message(0, 2000);
    target.ses.messages[data.token] = data;
    EXPECT_EQ(target.pds->submit_return(w.now(), request.handle, data), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  w.send(0, 1);
  w.run_for(us(8));
  ASSERT_EQ(target.pds->gauges().outstanding_packets, 128u);
  target.pds->close_all(w.now());
  w.run_for(ms(500));
  EXPECT_EQ(w.host(0).ses.delivered.size(), 2000u);
  EXPECT_EQ(w.controls(1, ControlType::kCloseRequest).size(), 1u);
  EXPECT_EQ(target.pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-155, PDS-12
TEST(Close, idle_pdc_says_goodbye) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(10); }));
  w.send(0, 1);
  w.run_for(ms(30));
  const auto close = w.controls(0, ControlType::kCloseCommand);
  ASSERT_EQ(close.size(), 1u);
  EXPECT_EQ(close[0].psn, Psn(1001));
  EXPECT_TRUE(close[0].ar);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(w.host(1).pds->gauges().tombstones, 1u);
  EXPECT_TRUE(w.host(0).ses.gone.empty() && w.host(1).ses.gone.empty());
  // SES hears of it at both ends: what was never finished on this PDC need not be kept or waited for any longer.
  ASSERT_EQ(w.host(1).ses.closed.size(), 1u);
  EXPECT_EQ(w.host(1).ses.closed[0], w.host(0).address);
  ASSERT_EQ(w.host(0).ses.closed.size(), 1u);
  EXPECT_EQ(w.host(0).ses.closed[0], w.host(1).address);
}

// Covers: PDS-157, PDS-158
TEST(Close, lost_command_or_lost_ack_still_closes) {
  for (const bool lose_ack : {false, true}) {
    Open x;
    x.w.drop_nth(lose_ack ? 1 : 0, 1, [](const Seen& s) {
      return s.is_ack() || s.is_control(ControlType::kCloseCommand);
    });
    x.w.host(0).pds->close_all(x.w.now());
    x.w.run_for(ms(20));
    EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
    EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
    EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 2u);
    if (lose_ack) {
      EXPECT_EQ(x.w.nacks(1).at(0).code, NackCode::kInvDpdcid);
    }
    EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  }
}

// Covers: PDS-156, PDS-160
TEST(Close, waits_for_acks_and_new_messages_go_elsewhere) {
  Open x;
  x.w.drop_nth(0, 1, first_copy);
  x.w.send(0, 1, 2);
  x.w.pump();
  x.w.host(0).pds->close_all(x.w.now());
  x.w.send(0, 1);
  x.w.run_for(ms(30));
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 4u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPdcOpened), 2u);
  EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 1u);
}

// What a forged ACK acknowledged is missing at the target: both would wait for ever, since each NACK is a sign of life.
TEST(Close, a_target_that_misses_what_was_acknowledged_ends_the_pdc) {
  World w(software_world([](auto& o) { o.pds.forced_start_psn = 1000; }));
  w.send(0, 1, 2, 100, Mode::kRod);
  w.run_for(ms(1));
  const std::uint16_t id0 = w.requests(0).at(0).spdcid, id1 = w.acks(1).at(0).spdcid;
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_control(ControlType::kCloseCommand); });
  w.host(0).pds->close_all(w.now());
  w.run_for(ms(1));
  ASSERT_EQ(w.controls(0, ControlType::kCloseCommand).at(0).psn, Psn(1002));
  wire::PdsNack missing;
  missing.nack_code = NackCode::kRodOoo;
  missing.nack_psn = Psn(1002);
  missing.payload = 1001;
  missing.spdcid = id1;
  missing.dpdcid = id0;
  w.inject(0, w.host(1).address, missing);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
  ASSERT_EQ(w.host(0).ses.gone.size(), 1u);
  EXPECT_EQ(w.host(0).ses.gone[0], PdsError::kPeerFailed);
}

// Covers: PDS-162
TEST(Close, target_gives_up_on_an_initiator_that_does_not_react) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 1; });
  x.w.host(1).pds->close_all(x.w.now());
  x.w.run_for(ms(20));
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(x.w.host(1).ses.gone.size(), 1u);
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kClosingInErr);
}

// Covers: PDS-161
TEST(Close, target_asks_and_initiator_closes) {
  Open x;
  x.w.host(1).pds->close_all(x.w.now());
  x.w.run_for(ms(20));
  EXPECT_EQ(x.w.controls(1, ControlType::kCloseRequest).size(), 1u);
  EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 1u);
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open + x.w.host(1).pds->gauges().pdcs_open, 0u);
}

// What it sent has not told whether it hears us. It would use the PDC for the next process at our address.
TEST(Close, target_that_ends_asks_the_initiator_of_a_single_message) {
  World w(with([](auto& o) { o.pds = software_profile(); }));
  w.send(0, 1);
  w.run_for(ms(1));
  w.host(1).pds->close_all(w.now());
  w.run_for(ms(1));  // no timeout of twenty is waited for
  EXPECT_EQ(w.controls(1, ControlType::kCloseRequest).size(), 1u);
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open + w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_TRUE(w.host(0).ses.gone.empty() && w.host(1).ses.gone.empty());
}

// Its address may be forged. [decision 100]
TEST(Close, target_that_ends_sends_two_packets_to_an_initiator_that_has_proved_nothing) {
  World w(with([](auto& o) { o.pds = software_profile(); }));
  w.send(0, 1);
  w.run_for(ms(1));
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 0; });
  w.host(1).pds->close_all(w.now());
  w.run_for(ms(1000));
  EXPECT_EQ(w.controls(1, ControlType::kCloseRequest).size(), 2u);
  EXPECT_TRUE(w.controls(1, ControlType::kProbe).empty());
}

// Covers: PDS-168
TEST(Close, a_lock_keeps_the_pdc) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(5); }));
  TxMessage m = w.message(1);
  m.lock = true;
  w.send(0, m);
  w.run_for(ms(50));
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 1u);
  w.host(0).pds->unlock(w.now(), w.host(0).ses.sent_on.at(0));
  w.host(0).pds->unlock(w.now(), w.host(0).ses.sent_on.at(0));
  w.run_for(ms(50));
  EXPECT_EQ(w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-35
TEST(Close, stray_syn_copy_meets_a_tombstone) {
  World w(with([](auto& o) { o.pds.pdc_idle_time = ms(5); }));
  w.send(0, 1);
  w.run_for(ms(20));
  const Seen old = w.requests(0).at(0);
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = old.psn;
  h.spdcid = old.spdcid;
  w.inject(1, w.host(0).address, h, w.segment_bytes(1, 0, 1000));
  EXPECT_EQ(w.host(1).drops(DropReason::kStaleSyn), 1u);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  h.psn = old.psn + 100'000;
  w.inject(1, w.host(0).address, h, w.segment_bytes(2, 0, 1000));
  EXPECT_EQ(w.host(1).ses.delivered.size(), 2u);
}

/// Peers open PDCs no faster than closed ones can be remembered: who comes too early waits, and the first copy of all is still
/// known when the last message is through.
TEST(Close, tombstones_bound_the_rate_of_openings) {
  constexpr std::uint32_t kPlaces = 8;
  World w(with([](auto& o) {
    o.pds.max_pdc = o.pds.max_tombstones = kPlaces / 2;
    o.pds.tombstone_time = o.pds.pdcid_quarantine = ms(200);
    o.pds.max_nack_retx_cnt = 31;
    o.pds.max_rto_retx_cnt = 15;
  }));
  constexpr int kMessages = 40;
  std::vector<Seen> first_copies;
  const Instant begin = w.now();
  for (int i = 0; i < kMessages; ++i) {
    w.log.clear();
    w.send(0, 1);
    w.run_until_quiet();
    const Seen syn = w.requests(0).at(0);
    first_copies.push_back(syn);
    w.host(0).pds->close_all(w.now());
    w.run_for(ms(1));
    ASSERT_LE(w.host(1).pds->gauges().tombstones, kPlaces);
    // A late copy of each that was closed less than the lifetime ago.
    for (const Seen& first : first_copies) {
      if (w.now() - first.at > ms(200)) continue;
      wire::PdsRequestSyn h;
      h.next_hdr = NextHdr::kRequestStd;
      h.psn = first.psn;
      h.spdcid = first.spdcid;
      w.inject(1, w.host(0).address, h, w.segment_bytes(1, 0, 1000));
    }
    ASSERT_EQ(w.host(1).ses.delivered.size(), static_cast<std::size_t>(i + 1));
  }
  EXPECT_GT(w.host(1).drops(DropReason::kStaleSyn), 0u);
  EXPECT_GT(w.host(1).drops(DropReason::kNoPdc), 0u);
  EXPECT_GE(w.now() - begin, ms(200) * (kMessages / kPlaces - 1));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
}

// Covers: PDS-36
TEST(Close, waits_after_a_retransmitted_syn) {
  World w;
  w.drop_nth(0, 1, first_copy);
  w.send(0, 1);
  w.run_until_quiet();
  w.host(0).pds->close_all(w.now());
  w.run_for(ms(20));
  const Instant last_syn = w.requests(0).back().at;
  ASSERT_EQ(w.controls(0, ControlType::kCloseCommand).size(), 1u);
  EXPECT_GE(w.controls(0, ControlType::kCloseCommand)[0].at - last_syn, ms(5));
}

// Covers: PDS-169
TEST(Close, restarted_target_costs_exactly_the_unfinished_messages) {
  Open x;
  auto bad = x.request(x.next);
  bad.dpdcid = static_cast<std::uint16_t>(x.id1 ^ 0x5555);
  x.w.inject(1, x.w.host(0).address, bad, x.w.segment_bytes(5, 0, 1));
  x.w.pump();
  EXPECT_EQ(x.w.nacks(1).at(0).code, NackCode::kInvDpdcid);
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_request(); });
  x.w.send(0, 1);
  x.w.send(0, 1);
  x.w.run_for(us(10));
  auto n = x.nack(NackCode::kInvDpdcid, x.next);
  n.spdcid = 0;
  x.w.inject(0, x.w.host(1).address, n);
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 2u);
  EXPECT_TRUE(is_retryable(x.w.host(0).ses.failures[0].error));
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-171
TEST(Abort, unacknowledged_message_takes_the_pdc_with_it) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.is_ack(); });
  const auto a = x.w.send(0, 1, 2);
  const auto b = x.w.send(0, 1, 2);
  x.w.run_for(us(20));
  x.w.host(0).pds->abort(x.w.now(), a);
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].token, b);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kAborted);
}

// Covers: PDS-67
TEST(Abort, truncated_message_ends_and_the_next_goes_through) {
  World w(with([](auto& o) {
    o.pds.local_mp_range = 128;
    o.pds.default_mpr = 1;
  }));
  w.send(0, 1);
  w.run_until_quiet();
  w.add_rule([](const Seen& s, Fate& f) {
    if (s.is_ack()) f.extra_delay = us(200);
  });
  const auto a = w.send(0, 1, 500, 10);
  w.pump();
  const std::uint32_t sent = w.host(0).pds->truncate(w.now(), a, 1);
  EXPECT_LT(sent, 500u);
  w.host(0).ses.messages[a].payload_bytes = sent * 10;
  const auto b = w.send(0, 1);
  w.run_until_quiet();
  EXPECT_EQ(w.host(0).ses.responses_of(a), sent + 1);
  EXPECT_EQ(w.host(0).ses.responses_of(b), 1u);
}

// Covers: PDS-159
TEST(Close, late_ack_of_an_earlier_packet_frees_nothing) {
  Open x;
  silence(x.w, 1);
  x.w.host(0).pds->close_all(x.w.now());
  x.w.run_for(us(50));
  ASSERT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 1u);
  x.w.inject(0, x.w.host(1).address, x.ack(x.next - 1));
  x.w.pump();
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 1u);
  x.w.inject(0, x.w.host(1).address, x.ack(x.next));
  x.w.pump();
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-163
TEST(Close, target_does_not_give_up_on_a_busy_initiator) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) {
    f.drop = s.is_control(ControlType::kCloseRequest);
    if (s.is_ack())
      f.edit = [](std::vector<std::uint8_t>& b) { b[1] &= static_cast<std::uint8_t>(~6); };
  });
  x.w.host(1).pds->close_all(x.w.now());
  for (int i = 0; i < 40; ++i) {
    x.w.send(0, 1);
    x.w.run_for(us(300));
    ASSERT_EQ(x.w.host(1).pds->gauges().pdcs_open, 1u);
  }
  EXPECT_TRUE(x.w.nacks(1).empty());
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 41u);
  x.w.run_for(ms(5));
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-164
TEST(Close, request_beyond_the_close_command_is_refused) {
  Open x;
  RxHandle open;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    open = r.handle;
    return ScriptedSes::later();
  };
  x.arrive(x.request(x.next));
  x.w.inject(1, x.w.host(0).address, close_command(x, x.next + 1));
  x.w.pump();
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 1u);
  x.arrive(x.request(x.next + 2));
  ASSERT_EQ(x.w.nacks(1).size(), 1u);
  EXPECT_EQ(x.w.nacks(1)[0].code, NackCode::kClosing);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 2u);
  x.w.host(1).pds->respond(x.w.now(), open, ScriptedSes::respond().response, false);
  x.w.pump();
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(x.w.acks(1).back().ack_psn, x.next + 1);
}

// Covers: PDS-165
TEST(Close, return_packets_outstanding_make_it_an_error_on_both_sides) {
  Open x;
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 1 && s.is_request(); });
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    TxMessage m = x.w.message(0, 3, 500);
    x.w.host(1).ses.messages[m.token] = m;
    EXPECT_EQ(x.w.host(1).pds->submit_return(x.w.now(), r.handle, m), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  x.w.send(0, 1);
  x.w.run_for(us(50));
  ASSERT_EQ(x.w.requests(1).size(), 3u);
  // One that has not been acknowledged fails at the source.
  x.w.host(1).ses.answer = nullptr;
  x.w.host(0).pds->close_all(x.w.now());
  x.w.run_for(ms(2));
  ASSERT_FALSE(x.w.nacks(1).empty());
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kClosingInErr);
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(x.w.host(1).ses.gone.size(), 1u);
  EXPECT_EQ(x.w.host(1).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
  ASSERT_EQ(x.w.host(0).ses.gone.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.gone[0], PdsError::kPeerFailed);
}

// Covers: PDS-167
TEST(Close, frees_guaranteed_responses_that_were_never_cleared) {
  Open x;
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  for (std::uint32_t i = 0; i < 5; ++i) {
    auto h = x.request(x.next + i);
    h.clear_psn_offset = static_cast<std::int16_t>(-1 - static_cast<int>(i));
    x.arrive(h);
  }
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 5u);
  x.w.inject(1, x.w.host(0).address, close_command(x, x.next + 5));
  x.w.pump();
  EXPECT_EQ(x.w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
  EXPECT_TRUE(x.w.host(1).ses.gone.empty());
}

// Covers: PDS-170
TEST(Close, error_is_told_to_both_sides) {
  Open x(with([](auto& o) {
    o.pds.pdc_idle_time = ms(50);
    o.pds.peer_timeout = ms(200);
  }));
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    TxMessage m = x.w.message(0, 3, 500);
    x.w.host(1).ses.messages[m.token] = m;
    EXPECT_EQ(x.w.host(1).pds->submit_return(x.w.now(), r.handle, m), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  x.w.send(0, 1, 2);
  x.w.run_for(us(6));  // both packets are there, half a message of return data is on its way
  silence(x.w, 0);
  silence(x.w, 1);
  const auto half = x.w.send(0, 1, 2);
  x.w.run_for(Duration::from_seconds(3));
  ASSERT_FALSE(x.w.host(0).ses.failures.empty());
  EXPECT_EQ(x.w.host(0).ses.failures.back().token, half);
  EXPECT_EQ(x.w.host(0).ses.gone.size(), 1u);
  EXPECT_EQ(x.w.host(1).ses.gone.size(), 1u);
  EXPECT_EQ(x.w.host(1).ses.failures.size(), 2u);  // the return data of both requests
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open + x.w.host(1).pds->gauges().pdcs_open, 0u);
}

// With no limit of retransmissions only peer_timeout ends the repetition of a Close Command.
TEST(Close, close_command_to_a_peer_that_died_ends_after_peer_timeout) {
  Open x(with([](auto& o) {
    o.pds.max_rto_retx_cnt = 15;
    o.pds.pdc_idle_time = ms(50);
    o.pds.peer_timeout = ms(200);
  }));
  silence(x.w, 1);
  x.w.run_for(Duration::from_seconds(3));
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  EXPECT_TRUE(x.w.host(0).pds->is_idle());
}

// Covers: PDS-175
TEST(Close, timers_of_a_freed_pdc_do_nothing) {
  Open x;
  silence(x.w, 1);
  const auto token = x.w.send(0, 1);
  x.w.run_for(us(20));
  x.w.host(0).pds->abort(x.w.now(), token);
  x.w.pump();
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
  x.w.log.clear();
  x.w.run_for(Duration::from_seconds(2));
  EXPECT_TRUE(x.w.requests(0).empty());
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  EXPECT_TRUE(x.w.host(0).pds->is_idle());
}

// Covers: PDS-142
TEST(Close, idle_time_does_not_end_a_pdc_that_waits_for_a_read) {
  Open x(with([](auto& o) { o.pds.pdc_idle_time = ms(10); }));
  RxHandle read;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    read = r.handle;
    return ScriptedSes::respond();
  };
  TxMessage m = x.w.message(1);
  m.lock = true;
  x.w.send(0, m);
  x.w.run_for(ms(200));
  EXPECT_TRUE(x.w.controls(0, ControlType::kCloseCommand).empty());
  TxMessage data = x.w.message(0, 3, 500);
  x.w.host(1).ses.messages[data.token] = data;
  ASSERT_EQ(x.w.host(1).pds->submit_return(x.w.now(), read, data), SubmitResult::kQueued);
  x.w.run_for(ms(1));
  EXPECT_EQ(x.w.host(0).ses.delivered.size(), 3u);
  x.w.host(0).pds->unlock(x.w.now(), x.w.host(0).ses.sent_on.back());
  x.w.run_for(ms(100));
  EXPECT_EQ(x.w.controls(0, ControlType::kCloseCommand).size(), 1u);
  EXPECT_EQ(x.w.host(0).pds->gauges().pdcs_open, 0u);
}

// Covers: PDS-26, PDS-34
TEST(Close, reused_identifiers_are_never_0_and_start_far_from_their_last_psn) {
  WorldOptions o;
  o.pds.max_pdc = 4;
  o.pds.pdcid_quarantine = Duration{};
  o.pds.max_tombstones = 0;  // more closes than it would allow
  World w(o);
  std::map<std::uint16_t, Psn> last;
  int reused = 0;
  for (int i = 0; i < 170'000; ++i) {
    w.log.clear();
    w.host(1).ses.delivered.clear();
    w.host(0).ses.responses.clear();
    w.host(0).ses.sent_on.clear();
    w.host(0).ses.messages.clear();
    w.send(0, 1, 1, 8);
    w.host(0).pds->close_all(w.now());
    w.run_until_quiet();
    const auto r = w.requests(0);
    ASSERT_FALSE(r.empty());
    ASSERT_NE(r[0].spdcid, 0);
    const auto before = last.find(r[0].spdcid);
    if (before != last.end()) {
      const std::int64_t distance = r[0].psn.distance_from(before->second);
      ASSERT_GE(std::abs(distance), 1 << 16) << "opening " << i;
      ++reused;
    }
    const auto close = w.controls(0, ControlType::kCloseCommand);
    ASSERT_EQ(close.size(), 1u);
    last[r[0].spdcid] = close[0].psn;
  }
  EXPECT_GE(reused, 100'000);
}

// Covers: PDS-172
TEST(Close, identifiers_come_back_and_stray_packets_reach_no_pdc) {
  const char* depth = std::getenv("UET_TEST_DEPTH");
  const int opens = depth != nullptr && std::string_view(depth) == "long" ? 1'000'000 : 100'000;
  WorldOptions o;
  o.pds.max_pdc = 64;
  o.pds.pdcid_quarantine = Duration::from_seconds(2);
  o.pds.max_tombstones = 65536;  // 20,000 closes a second, each remembered for two
  World w(o);
  base::Rng rng(172);
  w.add_rule([&](const Seen&, Fate& f) {
    if (!rng.chance(0.02)) return;
    f.copies = 2;
    f.copy_delay = Duration::from_us(rng.below(1'000'000));
  });
  std::set<std::uint16_t> ids;
  std::uint64_t sent = 0, delivered = 0;
  MessageToken last = 0;
  for (int i = 0; i < opens; ++i) {
    w.log.clear();
    for (int h : {0, 1}) {
      w.host(h).ses.delivered.clear();
      w.host(h).ses.responses.clear();
      w.host(h).ses.sent_on.clear();
    }
    SubmitResult r{};
    const MessageToken token = w.send(0, w.message(1, 1, 8), &r);
    if (r == SubmitResult::kQueued) ++sent;
    w.run_for(us(25));
    w.host(0).pds->close_all(w.now());
    w.run_for(us(25));
    for (const Seen& s : w.log)
      if (s.is_request() && s.from == 0) ids.insert(s.spdcid);
    for (const Delivery& d : w.host(1).ses.delivered) {
      ++delivered;
      ASSERT_GT(d.token, last) << "delivered again";
      last = d.token;
      ASSERT_LE(d.token, token);
    }
    w.host(0).ses.messages.clear();
  }
  w.run_until_quiet();
  EXPECT_EQ(delivered, sent);
  EXPECT_GT(sent, static_cast<std::uint64_t>(opens) * 9 / 10);
  EXPECT_LT(ids.size(), sent);  // some were used again
  EXPECT_TRUE(w.host(0).ses.failures.empty());
}

}  // namespace
}  // namespace uet::pds::test
