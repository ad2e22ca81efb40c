// What senders hear of messages that met no receive, without the part that matches them. [SES 14.1, decision 105]
#include "ses/rx_delivery.h"

#include <gtest/gtest.h>

#include <deque>

#include "ses/sender_table.h"
#include "tests/ses/fabric.h"
#include "tests/ses/return_carrier.h"

namespace uet::ses::testing {
namespace {

struct DeliveryReportsTest : ::testing::Test {
  DeliveryReportsTest() : core({}, 1024, net::FabricAddress::from_v4(0x0a000002), rng, trace) {
    core.carrier = &carrier;
    endpoint = *core.endpoints.open(now, {}, sink);
  }
  static net::FabricAddress source(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a000001 + n);
  }
  /// A packet of the message `id` of source `n`, which has one PDC.
  RequestContext packet_of(std::uint16_t id, bool dc = true, std::uint32_t n = 0) {
    requests.push_back({.handle = {pds::PdcRef{5 + n}, base::Psn(id), false},
                        .source = source(n),
                        .is_proven = true});
    RequestContext c{now, requests.back(), {}, {}};
    c.request.opcode = SesOpcode::kSend;
    c.request.form = wire::NextHdr::kRequestStd;
    c.request.message_id = id;
    c.request.request_length = 64;
    c.request.dc = dc;
    c.endpoint = endpoint;
    return c;
  }
  /// It is unexpected.
  UnexpectedMessage& keep(std::uint16_t id, bool dc = true, std::uint32_t n = 0) {
    RequestContext c = packet_of(id, dc, n);
    Sender& sender = *senders.find_or_make(endpoint->id, source(n), 0, true);
    UnexpectedMessage& u = *store.admit(endpoint->overflow, sender, 64);
    u.endpoint = endpoint;
    u.header = c.incoming();
    reports.remember(c, u);
    return u;
  }
  ResponseView ask(std::uint16_t id, std::uint32_t n = 0) {
    RequestContext c = packet_of(id, true, n);
    const pds::Answer answer = reports.on_await(c);
    EXPECT_TRUE(answer.guaranteed);
    return view({answer.response.header.data(), answer.response.header_bytes},
                answer.response.next_hdr);
  }
  /// A receive has taken it, or none will.
  void end(UnexpectedMessage& u, ReturnCode code = ReturnCode::kOk) {
    store.drop_payload(u, endpoint->overflow);
    store.release(u, endpoint->overflow);
    reports.report(now, u, code);
  }
  /// One of source `n` that asked has been taken.
  void report(std::uint16_t id, std::uint32_t n = 0) {
    UnexpectedMessage& u = keep(id, true, n);
    ask(id, n);
    end(u);
  }
  ResponseView report_in(pds::MessageToken token) {
    net::Packet packet = pool.allocate();
    const pds::SegmentInfo info = reports.emit(token, packet);
    return view({packet.data(), packet.size()}, info.next_hdr);
  }
  static ResponseView view(std::span<const std::uint8_t> bytes, std::uint8_t next_hdr) {
    ResponseView v;
    EXPECT_TRUE(parse_response(next_hdr, bytes, v));
    return v;
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  HeapPool pool{4};
  ReturnCarrier carrier;
  Recorder sink;
  std::deque<pds::RxRequest> requests;
  Core core;
  Endpoint* endpoint = nullptr;
  UnexpectedStore store{core.config};
  SenderTable senders{64, 64, base::Duration::from_seconds(1), core.hash_key};
  LoopClock clock;
  Gates gates{core.config, senders, clock};
  DeliveryReports reports{core, store, senders, gates};
};

TEST_F(DeliveryReportsTest, report__to_a_sender_that_asked) {
  UnexpectedMessage& u = keep(7);
  const ResponseView answer = ask(7);
  EXPECT_EQ(answer.code, ReturnCode::kOk);
  EXPECT_EQ(answer.list, ResponseList::kOverflow);
  EXPECT_EQ(answer.modified_length, core.process_name);
  EXPECT_TRUE(carrier.taken.empty());
  end(u);
  ASSERT_EQ(carrier.taken.size(), 1u);
  EXPECT_EQ(carrier.taken[0].pdc, 5u);
  const ResponseView report = report_in(carrier.taken[0].token);
  EXPECT_EQ(report.message_id, 7);
  EXPECT_EQ(report.code, ReturnCode::kOk);
  EXPECT_EQ(store.messages(), 1u);  // until its sender has it
  reports.end(now, carrier.taken[0].token);
  EXPECT_EQ(store.messages(), 0u);
}

TEST_F(DeliveryReportsTest, report__nothing_to_a_sender_that_did_not_ask) {
  end(keep(7));
  EXPECT_TRUE(carrier.taken.empty());
  EXPECT_EQ(store.messages(), 0u);
}

TEST_F(DeliveryReportsTest, on_await__what_is_not_known_was_taken_before) {
  EXPECT_EQ(ask(7).code, ReturnCode::kNoMatch);
  end(keep(7));
  EXPECT_EQ(ask(7).code, ReturnCode::kNoMatch);
  keep(8, false);  // it did not say that it would ask
  EXPECT_EQ(ask(8).code, ReturnCode::kNoMatch);
}

TEST_F(DeliveryReportsTest, report__says_why_no_receive_took_it) {
  UnexpectedMessage& u = keep(7);
  ask(7);
  end(u, ReturnCode::kCancelled);
  EXPECT_EQ(report_in(carrier.taken[0].token).code, ReturnCode::kCancelled);
}

TEST_F(DeliveryReportsTest, submit__waits_for_room) {
  UnexpectedMessage& u = keep(7);
  ask(7);
  carrier.room = 0;
  end(u);
  EXPECT_TRUE(carrier.taken.empty());
  carrier.room = 1;
  reports.submit(now);
  EXPECT_EQ(carrier.taken.size(), 1u);
}

// Peers that ask about thousands of messages and acknowledge nothing leave the places of the carrier to read data.
TEST_F(DeliveryReportsTest, submit__reports_take_an_eighth_of_the_places_at_most) {
  const std::size_t most = core.config.max_returns_carried / 8;
  for (std::uint32_t n = 0; n < 20; ++n)
    for (std::uint16_t id = 1; id <= 40; ++id) report(id, n);
  EXPECT_EQ(carrier.taken.size(), most);
  reports.end(now, carrier.taken[0].token);
  EXPECT_EQ(carrier.taken.size(), most + 1);
}

// One that acknowledges nothing does not keep the reports of others waiting, and its own stay in their order.
TEST_F(DeliveryReportsTest, submit__one_source_leaves_half_of_the_places_to_others) {
  const std::size_t most = core.config.max_returns_carried / 8;
  for (std::uint16_t id = 1; id <= most + 2; ++id) report(id);
  EXPECT_EQ(carrier.taken.size(), most / 2);
  for (std::uint16_t id = 1; id <= 10; ++id) {
    report(id, 1);
    ASSERT_EQ(carrier.taken.size(), most / 2 + id);
    EXPECT_EQ(carrier.taken.back().pdc, 6u);
    EXPECT_EQ(report_in(carrier.taken.back().token).message_id, id);
  }
  for (std::size_t i = 0; i < 10; ++i) reports.end(now, carrier.taken[i].token);
  ASSERT_GT(carrier.taken.size(), most / 2 + 10);
  const auto next = carrier.taken[most / 2 + 10];
  EXPECT_EQ(next.pdc, 5u);
  EXPECT_EQ(report_in(next.token).message_id, most / 2 + 1);
}

TEST_F(DeliveryReportsTest, on_pdc_gone__ends_the_reports_that_it_would_carry) {
  UnexpectedMessage& u = keep(7);
  ask(7);
  carrier.room = 0;
  end(u);
  reports.on_pdc_gone(pds::PdcRef{6}, source(0));
  EXPECT_EQ(store.messages(), 1u);
  reports.on_pdc_gone(pds::PdcRef{5}, source(0));
  EXPECT_EQ(store.messages(), 0u);
}

// A peer that acknowledges no report would have all descriptors in the end, its messages being taken one after the other.
TEST_F(DeliveryReportsTest, reports_that_are_not_acknowledged__take_half_of_the_descriptors) {
  const std::uint32_t all = core.config.overflow_msgs_total;
  Sender& sender = *senders.find_or_make(endpoint->id, source(0), 0, true);
  for (std::uint32_t i = 0; i < all && store.has_room_for(endpoint->overflow, sender, 0); ++i)
    report(static_cast<std::uint16_t>(i % 0xffff + 1));
  EXPECT_NEAR(store.messages(), all / 2, 2);
  EXPECT_FALSE(store.may_ask_for_more(sender));
  EXPECT_EQ(store.admit(endpoint->overflow, sender, 0), nullptr);
  report(1, 1);  // another one has room
  while (!carrier.taken.empty()) {
    const auto token = carrier.taken.back().token;
    carrier.taken.pop_back();
    reports.end(now, token);
  }
  EXPECT_EQ(store.messages(), 0u);
  EXPECT_EQ(sender.reports_open, 0u);
}

TEST_F(DeliveryReportsTest, reports_of_a_closed_endpoint__end_as_all_do) {
  report(7);
  Sender& sender = *senders.find(endpoint->id, source(0));
  EXPECT_EQ(sender.reports_open, 1u);
  core.endpoints.close(now, *endpoint);
  endpoint = *core.endpoints.open(now, {}, sink);
  reports.end(now, carrier.taken[0].token);
  EXPECT_EQ(store.messages(), 0u);
  EXPECT_EQ(sender.reports_open, 0u);
}

TEST_F(DeliveryReportsTest, end__a_token_of_an_earlier_report_changes_nothing) {
  UnexpectedMessage& u = keep(7);
  ask(7);
  end(u);
  reports.end(now, carrier.taken[0].token + (std::uint64_t{1} << 32));
  EXPECT_EQ(store.messages(), 1u);
}

}  // namespace
}  // namespace uet::ses::testing
