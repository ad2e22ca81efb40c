// Reads and the return direction. [PDS 12, 21.7]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-136, PDS-138
TEST(Return, read_data_comes_back_on_the_same_pdc_and_survives_loss) {
  Open x;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    TxMessage m = x.w.message(0, 3, 500);
    x.w.host(1).ses.messages[m.token] = m;
    EXPECT_EQ(x.w.host(1).pds->submit_return(x.w.now(), r.handle, m), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  x.w.drop_nth(1, 2, first_copy);
  x.w.send(0, 1);
  x.w.run_until_quiet();
  const auto back = x.w.requests(1);
  ASSERT_EQ(back.size(), 4u);
  EXPECT_EQ(back[0].dpdcid, x.id0);
  EXPECT_EQ(back[0].psn, Psn(1000));
  EXPECT_EQ(x.w.host(0).ses.delivered.size(), 3u);
  EXPECT_TRUE(x.w.host(0).ses.delivered[0].handle.return_direction);
}

// Covers: PDS-28
TEST(Return, return_request_teaches_the_target_id) {
  World w;
  w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 1; });
  w.send(0, 1);
  w.run_for(us(20));
  const Seen syn = w.requests(0).at(0);
  wire::PdsRequest h;
  h.next_hdr = NextHdr::kResponseData;
  h.psn = syn.psn;
  h.clear_psn_offset = -1;
  h.spdcid = 99;
  h.dpdcid = syn.spdcid;
  w.inject(0, w.host(1).address, h, w.segment_bytes(5, 0, 100));
  EXPECT_EQ(w.host(0).count(EventId::kPdcEstablished), 1u);
  EXPECT_EQ(w.host(0).ses.delivered.size(), 1u);
}

// Covers: PDS-135, PDS-140
TEST(Return, small_read_rides_on_the_ack_and_comes_again_from_the_store) {
  Open x;
  const std::vector<std::uint8_t> data = {1, 2, 3, 4, 5, 6, 7, 8};
  int executed = 0;
  x.w.host(1).ses.answer = [&](auto&, auto&) {
    ++executed;
    return ScriptedSes::respond(true, data);
  };
  x.w.drop_nth(1, 1, [](const Seen& s) { return s.is_ack(); });
  const auto token = x.w.send(0, 1);
  x.w.run_for(us(50));
  ASSERT_EQ(x.w.acks(1).size(), 1u);
  EXPECT_EQ(x.w.acks(1)[0].req, wire::AckReq::kClear);
  x.w.run_until_quiet();
  x.w.run_for(ms(5));
  EXPECT_EQ(executed, 1);
  ASSERT_EQ(x.w.host(0).ses.responses_of(token), 1u);
  const auto& bytes = x.w.host(0).ses.responses.back().bytes;
  ASSERT_GE(bytes.size(), data.size());
  EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes.end() - 8));
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 0u);
}

// Covers: PDS-141
TEST(Return, peer_without_a_store_gets_the_read_again) {
  Open x;
  silence(x.w, 1);
  x.w.send(0, 1);
  x.w.pump();
  x.w.log.clear();
  x.w.inject(0, x.w.host(1).address, x.nack(NackCode::kAckWithData, x.next));
  x.w.pump();
  ASSERT_EQ(x.w.requests(0).size(), 1u);
  EXPECT_EQ(x.w.requests(0)[0].psn, x.next);
  x.w.clear_rules();
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
}

// Covers: PDS-139
TEST(Return, directions_wrap_independently) {
  // The forward direction is 40 PSNs ahead of the return direction when the reads begin.
  Open x(with([](auto& o) { o.pds.forced_start_psn = 0xffffffd0; }));
  x.w.send(0, 1, 40, 8);
  x.w.run_until_quiet();
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    TxMessage m = x.w.message(0, 4, 500);
    x.w.host(1).ses.messages[m.token] = m;
    EXPECT_EQ(x.w.host(1).pds->submit_return(x.w.now(), r.handle, m), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  x.w.log.clear();
  x.w.drop_nth(1, 3, first_copy);
  for (int i = 0; i < 20; ++i) {
    x.w.send(0, 1);
    x.w.run_until_quiet();
  }
  EXPECT_EQ(x.w.requests(0).back().psn, Psn(0xffffffd0) + 60);  // wrapped
  EXPECT_EQ(x.w.host(0).ses.delivered.size(), 80u);
  std::vector<Psn> back;
  for (const Seen& s : x.w.requests(1))
    if (!s.retx) back.push_back(s.psn);
  ASSERT_EQ(back.size(), 80u);
  for (std::uint32_t i = 0; i < 80; ++i) EXPECT_EQ(back[i], Psn(0xffffffd0) + i);
}

// Peers whose reads wait for this endpoint may keep what its own requests wait for. See docs/decisions/0086.
TEST(Return, read_data_does_not_wait_behind_requests) {
  World w(with([](auto& o) {
    o.hosts = 3;
    o.pds.max_messages = 8;
    o.pds.max_nack_retx_cnt = 31;
  }));
  w.host(2).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(); };
  SubmitResult result = SubmitResult::kQueued;
  for (int i = 0; i < 6; ++i) {
    w.send(1, w.message(2), &result);
    EXPECT_EQ(result, SubmitResult::kQueued) << i;
  }
  w.send(1, w.message(2), &result);
  EXPECT_EQ(result, SubmitResult::kAgain);
  w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    const TxMessage m = w.message(0, 1, 500);
    w.host(1).ses.messages[m.token] = m;
    EXPECT_EQ(w.host(1).pds->submit_return(w.now(), r.handle, m), SubmitResult::kQueued);
    return ScriptedSes::respond();
  };
  w.send(0, 1, 2);
  w.run_for(ms(2));
  EXPECT_EQ(w.host(0).ses.delivered.size(), 2u);
}

TEST(Return, requests_do_not_wait_behind_read_data) {
  World w(with([](auto& o) {
    o.hosts = 3;
    o.pds.max_messages = 8;
  }));
  w.host(0).ses.answer = [](auto&, auto&) { return ScriptedSes::later(); };
  int refused = 0;
  w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    const TxMessage m = w.message(0, 1, 500);
    w.host(1).ses.messages[m.token] = m;
    if (w.host(1).pds->submit_return(w.now(), r.handle, m) != SubmitResult::kQueued) ++refused;
    return ScriptedSes::respond();
  };
  w.send(0, 1, 8);
  w.run_for(us(100));
  EXPECT_EQ(refused, 2);
  w.send(1, 2, 3);
  w.run_for(us(100));
  EXPECT_EQ(w.host(2).ses.delivered.size(), 3u);
}

}  // namespace
}  // namespace uet::pds::test
