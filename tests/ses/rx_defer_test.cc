// What is put off, and sent again when it is asked for, without the part that matches messages. [SES 7.2, 8.3]
#include "ses/rx_defer.h"

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

SesConfig that_defers() {
  SesConfig c;
  c.defers = true;
  c.max_deferred_of_peer = 2;
  return c;
}

struct DeferralsTest : RxPartsTest {
  DeferralsTest() : RxPartsTest(that_defers()) { add_peer(1); }

  /// A deferrable send of 512 bytes.
  RequestContext deferrable_of(std::uint32_t n, std::uint32_t token = 77) {
    RequestContext c = send_of(n, 512);
    c.request.opcode = SesOpcode::kDeferrableSend;
    c.request.initiator_token = token;
    return c;
  }
  UnexpectedMessage& put_off(std::uint32_t token = 77) {
    RequestContext c = deferrable_of(1, token);
    EXPECT_TRUE(deferrals.defer(c, space(), sender(1), nullptr));
    return *space().unexpected.front();
  }
  /// A receive takes it, and its initiator is asked. Returns the token of the restart.
  std::uint32_t ask_for(UnexpectedMessage& u) {
    Receive& r = make_receive(512, 5);
    r.in_flight = 1;
    rendezvous.adopt(now, u, r, 0, 512, 0);
    return fetcher.asked.back().fetch->token;
  }

  RendezvousTarget rendezvous{shared};
  Deferrals deferrals{shared, rendezvous};
};

TEST_F(DeferralsTest, may_defer__only_what_a_known_peer_may_be_asked_for) {
  EXPECT_TRUE(deferrals.may_defer(deferrable_of(1), sender(1)));
  EXPECT_FALSE(deferrals.may_defer(deferrable_of(2), sender(2)));
  EXPECT_FALSE(deferrals.may_defer(send_of(1, 512), sender(1)));
  RequestContext restarted = deferrable_of(1);
  restarted.request.target_token = 3;
  EXPECT_FALSE(deferrals.may_defer(restarted, sender(1)));
}

TEST_F(DeferralsTest, defer__only_the_header_is_kept_and_a_peer_has_a_bound) {
  put_off(1);
  put_off(2);
  EXPECT_EQ(shared.store.bytes(), 0u);
  EXPECT_FALSE(deferrals.may_defer(deferrable_of(1), sender(1)));
}

TEST_F(DeferralsTest, find_restarted__only_the_message_that_was_asked_for) {
  const std::uint32_t token = ask_for(put_off(77));
  RequestContext right = deferrable_of(1, 77), of_another = deferrable_of(1, 78),
                 guessed = deferrable_of(1, 77);
  right.request.target_token = of_another.request.target_token = token;
  guessed.request.target_token = token + 1;
  EXPECT_NE(deferrals.find_restarted(right), nullptr);
  EXPECT_EQ(deferrals.find_restarted(of_another), nullptr);
  EXPECT_EQ(deferrals.find_restarted(guessed), nullptr);
}

TEST_F(DeferralsTest, end_restarted__the_receive_completes_and_the_token_is_used_up) {
  const std::uint32_t token = ask_for(put_off());
  RequestContext again = deferrable_of(1);
  again.request.target_token = token;
  UnexpectedMessage* u = deferrals.find_restarted(again);
  ASSERT_NE(u, nullptr);
  EXPECT_EQ(view(deferrals.end_restarted(again, *u)).code, ReturnCode::kOk);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].length, 512u);
  EXPECT_EQ(rendezvous.messages(), 0u);
}

TEST_F(DeferralsTest, fetch_unwanted__a_message_without_receive_is_asked_for_all_the_same) {
  rendezvous.fetch_unwanted(now, put_off());
  ASSERT_EQ(fetcher.asked.size(), 1u);
  EXPECT_NE(fetcher.asked[0].fetch->token, 0u);
  EXPECT_EQ(space().unexpected.front(), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
