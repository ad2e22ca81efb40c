// Sends at the target, without the part that checks requests. [SES 7, 2.5]
#include "ses/rx_sends.h"

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct SendTargetTest : RxPartsTest {
  using RxPartsTest::RxPartsTest;

  pds::Answer take_in(RequestContext& c) {
    find_place(c);
    const pds::Answer answer =
        sends.take_in(c, space(), shared.senders.find(endpoint->id, c.packet.source));
    shared.shares.let_go(c);
    return answer;
  }
  pds::Answer proceed(RequestContext& c) {
    RxMessage& m = *shared.messages.find(c.key);
    shared.messages.count(m, c.request);
    return m.target == RxTarget::kReceive ? sends.proceed_receive(c, m)
                                          : sends.proceed_capture(c, m);
  }

  ReadReturns returns{core, shared.senders, shared.shares};
  RendezvousTarget rendezvous{shared};
  Deferrals deferrals{shared, rendezvous};
  Failures failures{shared, rendezvous, returns};
  SendTarget sends{shared, rendezvous, deferrals, failures};
};

TEST_F(SendTargetTest, take_in__a_posted_receive_has_it) {
  post(1000, 3);
  RequestContext c = send_of(1, 700);
  EXPECT_EQ(view(take_in(c)).code, ReturnCode::kOk);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].context, 3u);
  EXPECT_EQ(sink.all[0].length, 700u);
  EXPECT_TRUE(has_bytes(700));
  EXPECT_EQ(shared.receives.in_use(), 0u);
}

TEST_F(SendTargetTest, take_in__a_short_receive_is_cut_and_its_source_hears_the_length) {
  post(100);
  RequestContext c = send_of(1, 700);
  const pds::Answer answer = take_in(c);
  EXPECT_EQ(view(answer).modified_length, 100u);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kTruncated);
  EXPECT_EQ(sink.all[0].overflow_length, 600u);
  EXPECT_EQ(buffer[100], 0);
}

TEST_F(SendTargetTest, proceed_receive__the_last_packet_in_any_order_completes) {
  post(4096);
  RequestContext first = send_of(1, 3000);
  take_in(first);
  RequestContext last = more_of(first, 2048), middle = more_of(first, 1024);
  proceed(last);
  EXPECT_TRUE(sink.all.empty());
  proceed(middle);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_TRUE(has_bytes(3000));
  EXPECT_EQ(shared.messages.size(), 0u);
}

TEST_F(SendTargetTest, take_in__without_a_receive_it_is_kept_whole) {
  RequestContext first = send_of(1, 1500);
  take_in(first);
  RequestContext last = more_of(first, 1024);
  EXPECT_EQ(view(proceed(last)).list, ResponseList::kOverflow);
  ASSERT_NE(space().unexpected.front(), nullptr);
  EXPECT_EQ(space().unexpected.front()->captured, 1500u);
  EXPECT_EQ(shared.messages.size(), 0u);
  EXPECT_TRUE(sink.all.empty());
}

SesConfig without_room() {
  SesConfig c;
  c.overflow_bytes = 4096;
  return c;
}
struct NoRoomTest : SendTargetTest {
  NoRoomTest() : SendTargetTest(without_room()) {}
};

TEST_F(NoRoomTest, take_in__an_ordered_message_closes_the_gate_of_its_source) {
  RequestContext c = send_of(1, 8192, pds::Mode::kRod);
  EXPECT_EQ(view(take_in(c)).code, shared.gates.code_of_closed());
  EXPECT_FALSE(sender(1).gates[0].is_enabled);
  EXPECT_TRUE(sender(2).gates[0].is_enabled);
  EXPECT_FALSE(c.is_taken);
  EXPECT_EQ(shared.headers.size(), 1u);
}

TEST_F(NoRoomTest, take_in__an_unordered_one_comes_again_by_itself) {
  RequestContext c = send_of(1, 8192);
  EXPECT_EQ(view(take_in(c)).code, ReturnCode::kNoMatch);
  EXPECT_TRUE(sender(1).gates[0].is_enabled);
}

TEST_F(NoRoomTest, take_in__a_claimed_header_waits_for_its_own_message) {
  RequestContext c = send_of(1, 8192);
  take_in(c);
  UnexpectedMessage& header = *space().unexpected.front();
  space().unexpected.remove(header);
  header.claimed = true;
  header.receive = &make_receive(8192, 9);
  endpoint->claimed.push_back(header);
  post(8192, 1);
  RequestContext again = send_of(1, 8192);
  take_in(again);
  EXPECT_TRUE(again.is_taken);
  EXPECT_EQ(shared.messages.find(again.key)->receive->context, 9u);
  EXPECT_EQ(shared.headers.size(), 0u);
}

TEST_F(NoRoomTest, take_in__an_unwanted_header_lets_its_message_pass_and_keeps_nothing) {
  RequestContext c = send_of(1, 8192);
  take_in(c);
  UnexpectedMessage& header = *space().unexpected.front();
  space().unexpected.remove(header);
  header.claimed = header.is_unwanted = true;
  endpoint->claimed.push_back(header);
  RequestContext again = send_of(1, 8192);
  take_in(again);
  EXPECT_TRUE(again.is_taken);
  EXPECT_EQ(shared.messages.find(again.key)->target, RxTarget::kDiscard);
  EXPECT_EQ(shared.store.bytes(), 0u);
}

}  // namespace
}  // namespace uet::ses::testing
