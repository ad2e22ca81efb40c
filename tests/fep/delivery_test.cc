/// Delivery complete between two whole endpoints: what a send that meets no receive may cost, and what it may not.
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using ses::ReturnCode;

class DeliveryTest : public testing::TestWithParam<Order> {
 protected:
  DeliveryTest()
      : pair(LinkConfig{.loss = 0.01, .seed = 3}, with_order(GetParam()),
             GetParam() != Order::kNone) {}

  void send(std::vector<std::uint8_t>& bytes, std::uint64_t tag, bool delivery_complete) {
    const iovec at = iov(bytes);
    ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                                 ses::SendRequest{.peer = pair.sides[0].peer,
                                                  .tagged = true,
                                                  .tag = tag,
                                                  .iov = {&at, 1},
                                                  .delivery_complete = delivery_complete,
                                                  .context = tag}));
  }
  void receive(std::vector<std::uint8_t>& bytes, std::uint64_t tag) {
    const iovec at = iov(bytes);
    ASSERT_TRUE(pair.ses(1).receive(
        pair.now, pair.sides[1].endpoint,
        ses::ReceiveRequest{.tagged = true, .tag = tag, .iov = {&at, 1}, .context = tag}));
  }
  void run_for(Duration time) {
    const Instant end = pair.now + time;
    while (pair.now < end) {
      (void)pair.run_until([&] {
        return std::min({pair.link.next_arrival(), pair.sides[0].fep->next_deadline(),
                         pair.sides[1].fep->next_deadline()}) > end;
      });
      pair.now = end;
    }
  }

  FepPair pair;
};

INSTANTIATE_TEST_SUITE_P(Order, DeliveryTest, testing::ValuesIn(kOrders),
                         [](const auto& order) { return name_of(order.param); });

// MPI allows to receive the second of two messages first, whatever its length.
TEST_P(DeliveryTest, message_behind_it__needs_no_room_in_its_window) {
  const std::size_t size = 3000 * std::size_t{pair.sides[0].fep->payload_mtu()};
  auto first = pattern(100, 1), second = pattern(size, 2);
  std::vector<std::uint8_t> into_first(100), into_second(size);
  receive(into_second, 2);
  send(first, 1, true);
  send(second, 2, false);
  ASSERT_TRUE(
      pair.run_until([&] { return pair.completions(1).count() == 1; }, Duration::from_seconds(5)));
  EXPECT_EQ(into_second, second);
  receive(into_first, 1);
  ASSERT_TRUE(pair.run_until(
      [&] { return pair.completions(0).count() == 2 && pair.completions(1).count() == 2; },
      Duration::from_seconds(5)));
  EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
  EXPECT_EQ(into_first, first);
}

TEST_P(DeliveryTest, receive_posted_minutes_later__completes_the_send_and_not_before) {
  auto small = pattern(100, 1), large = pattern(100'000, 2);
  std::vector<std::uint8_t> into_small(100), into_large(100'000);
  send(small, 1, true);
  send(large, 2, true);
  run_for(Duration::from_seconds(300));
  EXPECT_EQ(pair.completions(0).count(), 0u);
  receive(into_large, 2);
  receive(into_small, 1);
  ASSERT_TRUE(
      pair.run_until([&] { return pair.completions(0).count() == 2; }, Duration::from_seconds(5)));
  EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
  EXPECT_EQ(into_small, small);
  EXPECT_EQ(into_large, large);
  ASSERT_TRUE(pair.run_until_idle());
}

TEST_P(DeliveryTest, target_that_dies_with_it__is_noticed) {
  auto small = pattern(100, 1);
  send(small, 1, true);
  run_for(Duration::from_seconds(10));
  EXPECT_EQ(pair.completions(0).count(), 0u);
  pair.link.config().drop = [](std::size_t, std::span<const std::uint8_t>) { return true; };
  ASSERT_TRUE(
      pair.run_until([&] { return pair.completions(0).count() == 1; }, Duration::from_seconds(70)));
  EXPECT_EQ(pair.completions(0).errors(), 1u);
  EXPECT_EQ(pair.completions(0).kept().front().code, ReturnCode::kPeerSilent);
}

// SES puts no more on an ACK than packet delivery has room for, and all that it has room for.
TEST(AckData, read__rides_on_the_ack_up_to_the_setting) {
  for (const std::uint32_t limit : {0u, 8u, 16u, 1000u, 4096u}) {
    SCOPED_TRACE(limit);
    FepPair pair(LinkConfig{.loss = 0.05, .seed = 5},
                 {{"PDS", "Max_ACK_Data_Size=" + std::to_string(limit)}, {"MAX_PAYLOAD", "1024"}});
    auto remote = pattern(4096, 3);
    const iovec remote_iov = iov(remote);
    const auto key = pair.ses(1).register_memory(ses::MemoryRequest{
        .iov = {&remote_iov, 1}, .remote_read = true, .virtual_addressing = false});
    ASSERT_TRUE(key);
    std::size_t done = 0;
    for (const std::size_t size : {1u, 8u, 9u, 16u, 17u, 1000u, 1024u, 4096u}) {
      std::vector<std::uint8_t> local(size);
      const iovec local_iov = iov(local);
      ASSERT_TRUE(pair.ses(0).rma(
          pair.now, pair.sides[0].endpoint,
          ses::RmaRequest{
              .peer = pair.sides[0].peer, .read = true, .iov = {&local_iov, 1}, .key = *key}));
      ++done;
      ASSERT_TRUE(pair.run_until([&] { return pair.completions(0).count() == done; }));
      EXPECT_TRUE(std::equal(local.begin(), local.end(), remote.begin())) << size;
    }
    EXPECT_EQ(pair.completions(0).errors(), 0u);
    // Return data takes PSNs of the other direction; what rides on ACKs does not.
    const bool all_in_acks = limit >= 1024;
    EXPECT_EQ(pair.count(0, base::EventId::kRequestDelivered) == 0, all_in_acks);
  }
}

}  // namespace
}  // namespace uet::test
