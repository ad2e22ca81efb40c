// Rendezvous from the receive that takes one to its last byte, without the part that matches them. [SES 9, decision 142]
#include "ses/rx_rendezvous.h"

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

SesConfig that_fetches() {
  SesConfig c;
  c.rendezvous = true;
  return c;
}

struct RendezvousTargetTest : RxPartsTest {
  RendezvousTargetTest() : RxPartsTest(that_fetches()) {}
  /// A message of 4096 bytes of source `n`, of which 96 came with its header, in a receive with room for `limit`.
  UnexpectedMessage& taken(std::uint32_t n, std::uint64_t limit = 4096) {
    RequestContext c = send_of(n, 4096);
    UnexpectedMessage& u = *rendezvous.describe(c);
    u.is_rendezvous = true;
    u.rest.eager = 96;
    Receive& r = make_receive(limit, n);
    r.in_flight = 1;
    rendezvous.bind(u, r, 0, limit);
    return u;
  }
  void end(std::size_t i, ReturnCode code) {
    Fetch& fetch = *fetcher.asked[i].fetch;
    core.fetch_sink->on_fetched(now, fetch, code);
  }

  RendezvousTarget rendezvous{shared};
};

TEST_F(RendezvousTargetTest, describe__not_for_a_source_that_acknowledges_no_report) {
  RequestContext c = send_of(1, 4096);
  Sender& sender = *shared.senders.find_or_make(endpoint->id, c.packet.source, 0, true);
  sender.reports_open = core.config.overflow_msgs_total + 1;
  EXPECT_EQ(rendezvous.describe(c), nullptr);
  sender.reports_open = 0;
  UnexpectedMessage* const u = rendezvous.describe(c);
  ASSERT_NE(u, nullptr);
  shared.senders.unhold(sender);
  shared.store.recycle(*u);
}

TEST_F(RendezvousTargetTest, fetch_rest__the_receive_completes_with_the_last_byte) {
  rendezvous.fetch_rest(now, taken(1));
  std::uint64_t next = 96;
  for (std::size_t i = 0; i < fetcher.asked.size(); ++i) {
    EXPECT_TRUE(sink.all.empty());
    EXPECT_EQ(fetcher.asked[i].request.at, next);
    next += fetcher.asked[i].request.length;
    end(i, ReturnCode::kOk);
  }
  EXPECT_EQ(next, 4096u);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].length, 4096u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(rendezvous.messages(), 0u);
  EXPECT_EQ(shared.store.messages(), 0u);
}

TEST_F(RendezvousTargetTest, fetch_rest__nothing_is_read_that_does_not_fit) {
  rendezvous.fetch_rest(now, taken(1, 80));
  EXPECT_TRUE(fetcher.asked.empty());
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kTruncated);
  EXPECT_EQ(sink.all[0].length, 80u);
  EXPECT_EQ(sink.all[0].overflow_length, 4016u);
}

TEST_F(RendezvousTargetTest, on_fetched__a_rest_that_does_not_come_is_told) {
  rendezvous.fetch_rest(now, taken(1));
  end(0, ReturnCode::kUndeliverable);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kUndeliverable);
  EXPECT_EQ(sink.all[0].length, 96u);
}

TEST_F(RendezvousTargetTest, drop_idle__a_silent_source_gives_the_receive_back) {
  rendezvous.fetch_rest(now, taken(1));
  rendezvous.drop_idle(now);
  EXPECT_TRUE(sink.all.empty());
  wait(core.config.message_idle + Duration::from_seconds(1));
  rendezvous.drop_idle(now);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(fetcher.given_up.size(), 1u);
}

TEST_F(RendezvousTargetTest, close__the_receive_is_set_aside_without_a_word) {
  rendezvous.fetch_rest(now, taken(1));
  rendezvous.close(now, *endpoint);
  EXPECT_TRUE(sink.all.empty());
  EXPECT_NE(shared.receives.next_aside(), nullptr);
  EXPECT_EQ(rendezvous.messages(), 0u);
}

}  // namespace
}  // namespace uet::ses::testing
