/// ACKs of an endpoint whose caller wants its completions first.
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using wire::PdsType;

class HeldAcksTest : public testing::Test {
 protected:
  HeldAcksTest() {
    pair.link.config().tap = [this](std::size_t from, const net::TxPacket& tx) {
      if (from == 1) sent.push_back(static_cast<PdsType>(tx.packet.data()[0] >> 3));
    };
    // The first message opens a PDC each way.
    ping();
    EXPECT_TRUE(pair.run_until([&] { return pair.completions(1).count() == 1; }));
    pong();
    EXPECT_TRUE(pair.run_until([&] { return pair.completions(0).count() == 2; }));
    EXPECT_TRUE(pair.run_until_idle());
    sent.clear();
  }

  void message(std::size_t from) {
    const iovec out = iov(bytes[from]), in = iov(bytes[2 + from]);
    ASSERT_TRUE(pair.ses(1 - from).receive(
        pair.now, pair.sides[1 - from].endpoint,
        ses::ReceiveRequest{.tagged = true, .tag = 1, .iov = {&in, 1}, .context = 2}));
    ASSERT_TRUE(pair.ses(from).send(
        pair.now, pair.sides[from].endpoint,
        ses::SendRequest{
            .peer = pair.sides[from].peer, .tagged = true, .tag = 1, .iov = {&out, 1}}));
  }
  void ping() { message(0); }
  void pong() { message(1); }
  fep::Fep& target() { return *pair.sides[1].fep; }
  /// Sends a message to the target, which takes it in.
  void let_arrive() {
    ping();
    pair.sides[0].fep->transmit(pair.now);
    pair.now = pair.link.next_arrival();
    const std::size_t before = pair.completions(1).count();
    EXPECT_TRUE(target().take_in(pair.now));
    EXPECT_EQ(pair.completions(1).count(), before + 1);
  }

  FepPair pair{LinkConfig{}, with_order(Order::kNone)};
  std::array<std::vector<std::uint8_t>, 4> bytes{pattern(64, 1), pattern(64, 2), pattern(64, 3),
                                                 pattern(64, 4)};
  std::vector<PdsType> sent;  ///< by the target
};

TEST_F(HeldAcksTest, leave_behind_the_request_that_was_posted_meanwhile) {
  let_arrive();
  EXPECT_TRUE(target().hold_acks());
  EXPECT_TRUE(sent.empty());
  pong();
  target().transmit(pair.now);
  EXPECT_EQ(sent, (std::vector{PdsType::kRudReq, PdsType::kAckCc}));
  EXPECT_TRUE(pair.run_until_idle());
  EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
}

TEST_F(HeldAcksTest, are_due_at_once_and_leave_with_the_next_turn) {
  let_arrive();
  EXPECT_TRUE(target().hold_acks());
  EXPECT_LE(target().next_deadline(), pair.now);
  EXPECT_TRUE(target().turn(pair.now));
  EXPECT_EQ(sent, std::vector{PdsType::kAckCc});
  EXPECT_GT(target().next_deadline(), pair.now);
}

TEST_F(HeldAcksTest, are_not_held_where_requests_wait_as_well) {
  let_arrive();
  pong();
  EXPECT_FALSE(target().hold_acks());
  target().transmit(pair.now);
  EXPECT_EQ(sent, (std::vector{PdsType::kAckCc, PdsType::kRudReq}));
}

TEST_F(HeldAcksTest, are_not_held_where_there_are_none) {
  EXPECT_FALSE(target().take_in(pair.now));
  EXPECT_FALSE(target().hold_acks());
}

}  // namespace
}  // namespace uet::test
