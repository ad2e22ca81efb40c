// Receives that are posted, and those who look at unexpected messages, without the part that brings any. [SES 7.1, 7.3]
#include "ses/rx_post.h"

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct ReceivePostingTest : RxPartsTest {
  ReceiveRequest request(std::uint64_t context) {
    iov = {buffer.data(), buffer.size()};
    ReceiveRequest r;
    r.iov = {&iov, 1};
    r.context = context;
    return r;
  }
  void receive(std::uint64_t context) {
    ASSERT_TRUE(posting.receive(now, *endpoint, request(context)));
  }
  Completion peek(PeekAction action, std::uint64_t context) {
    PeekRequest r;
    r.tagged = false;
    r.action = action;
    r.context = context;
    EXPECT_TRUE(posting.peek(now, *endpoint, r));
    return sink.all.back();
  }

  iovec iov{};
  RendezvousTarget rendezvous{shared};
  ReceivePosting posting{shared, rendezvous};
};

TEST_F(ReceivePostingTest, receive__takes_the_oldest_message_that_waits) {
  keep(1, 100);
  keep(2, 200);
  receive(5);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].length, 100u);
  EXPECT_EQ(sink.all[0].source.fabric_address, source(1));
  EXPECT_TRUE(has_bytes(100));
  EXPECT_EQ(shared.store.messages(), 1u);
}

TEST_F(ReceivePostingTest, receive__waits_where_nothing_does) {
  receive(5);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(space().own.front()->context, 5u);
}

TEST_F(ReceivePostingTest, peek__a_claimed_message_is_for_its_claim_alone) {
  keep(1, 100);
  EXPECT_EQ(peek(PeekAction::kClaim, 7).length, 100u);
  EXPECT_EQ(peek(PeekAction::kPeek, 8).code, ReturnCode::kNoMessage);
  EXPECT_EQ(posting.claim_receive(now, *endpoint, request(8), false).error(), PostError::kNotFound);
  EXPECT_TRUE(posting.claim_receive(now, *endpoint, request(7), false));
  EXPECT_EQ(sink.all.back().kind, OpKind::kReceive);
  EXPECT_TRUE(has_bytes(100));
}

TEST_F(ReceivePostingTest, peek__a_discarded_message_leaves_nothing) {
  keep(1, 100);
  EXPECT_EQ(peek(PeekAction::kDiscard, 7).code, ReturnCode::kOk);
  EXPECT_EQ(shared.store.messages(), 0u);
  EXPECT_EQ(shared.store.bytes(), 0u);
}

TEST_F(ReceivePostingTest, cancel__a_claimed_header_is_for_all_again) {
  RequestContext c = send_of(1, 4096);
  ASSERT_NE(shared.headers.note(c, space(), sender(1)), nullptr);
  peek(PeekAction::kClaim, 7);
  ASSERT_TRUE(posting.claim_receive(now, *endpoint, request(7), false));
  EXPECT_TRUE(posting.cancel(now, *endpoint, 7));
  EXPECT_EQ(sink.all.back().code, ReturnCode::kCancelled);
  EXPECT_EQ(space().unexpected.arrivals().size(), 1u);
  EXPECT_TRUE(endpoint->claimed.empty());
  EXPECT_FALSE(posting.cancel(now, *endpoint, 7));
}

TEST_F(ReceivePostingTest, drop_idle_headers__a_receive_that_waits_is_told) {
  RequestContext c = send_of(1, 4096);
  shared.headers.note(c, space(), sender(1));
  peek(PeekAction::kClaim, 7);
  ASSERT_TRUE(posting.claim_receive(now, *endpoint, request(7), false));
  wait(core.config.message_idle);
  posting.drop_idle_headers(now);
  EXPECT_EQ(sink.all.back().context, 7u);
  EXPECT_EQ(sink.all.back().code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(shared.headers.size(), 0u);
}

TEST_F(ReceivePostingTest, close__drops_receives_and_messages_without_a_word) {
  receive(5);
  Receive& other = make_receive(10, 6);
  shared.receives.set_aside(other);
  posting.close(now, *endpoint);
  keep(1, 100);
  posting.close(now, *endpoint);
  posting.end_close(now, *endpoint);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(shared.receives.in_use(), 0u);
  EXPECT_EQ(shared.store.messages(), 0u);
}

}  // namespace
}  // namespace uet::ses::testing
