// Ordered sends that come over all paths, without the part that checks requests. [decision 141]
#include "ses/rx_order.h"

#include <array>
#include <utility>

#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct OrderedStreamsTest : RxPartsTest {
  /// Message `number` of the one stream of source 1, as long as its number says.
  RequestContext numbered(std::uint32_t number, std::uint16_t behind = 0) {
    RequestContext c = send_of(1, 100 + number);
    c.request.is_sequenced = true;
    c.request.sequence = {9, number, behind};
    return c;
  }
  pds::Answer begin(RequestContext c) {
    return streams.begin(c, shared.senders.find(endpoint->id, c.packet.source));
  }
  std::vector<std::size_t> lengths() const {
    std::vector<std::size_t> all;
    for (const Completion& c : sink.all) all.push_back(c.length);
    return all;
  }

  ReadReturns returns{core, shared.senders, shared.shares};
  RendezvousTarget rendezvous{shared};
  Deferrals deferrals{shared, rendezvous};
  Failures failures{shared, rendezvous, returns};
  ReceivePosting posting{shared, rendezvous};
  SendTarget sends{shared, rendezvous, deferrals, failures};
  OrderedStreams streams{shared, posting, sends, failures};
};

TEST_F(OrderedStreamsTest, begin__a_message_before_its_turn_waits_for_it) {
  for (int i = 0; i < 3; ++i) post(1000);
  begin(numbered(2, 2));
  begin(numbered(1, 1));
  EXPECT_TRUE(sink.all.empty());
  EXPECT_EQ(streams.held(), 2u);
  begin(numbered(0));
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{100, 101, 102}));
  EXPECT_TRUE(streams.is_empty());
}

TEST_F(OrderedStreamsTest, begin__messages_wait_in_the_order_of_their_numbers) {
  for (int i = 0; i < 6; ++i) post(1000);
  for (const std::uint16_t number : {4, 1, 5, 2, 3}) begin(numbered(number, number));
  EXPECT_EQ(streams.held(), 5u);
  begin(numbered(0));
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{100, 101, 102, 103, 104, 105}));
}

// Numbers have 24 bits.
TEST(HeldMessages, numbers_go_on_at_0) {
  std::array<UnexpectedMessage, 4> messages;
  HeldMessages held;
  std::uint32_t number = kNumberMask - 1;
  for (UnexpectedMessage& m : messages) m.number = std::exchange(number, number_after(number));
  for (const std::size_t i : {2u, 0u, 3u, 1u}) held.insert(messages[i]);
  std::size_t at = 0;
  for (const UnexpectedMessage& m : held) EXPECT_EQ(&m, &messages[at++]);
  held.clear();
}

TEST_F(OrderedStreamsTest, begin__word_that_a_message_does_not_come_fills_its_place) {
  post(1000);
  begin(numbered(1, 1));
  RequestContext gap = numbered(0);
  gap.request.kind = OpcodeClass::kFillGap;
  EXPECT_EQ(view(begin(gap)).code, ReturnCode::kOk);
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{101}));
}

TEST_F(OrderedStreamsTest, begin__a_number_that_is_over_or_too_far_is_refused) {
  begin(numbered(0));
  EXPECT_EQ(view(begin(numbered(0))).code, ReturnCode::kOpViolation);
  RequestContext far = numbered(1);
  far.request.sequence = {9, kSequenceWindow + 1, kSequenceWindow};
  EXPECT_EQ(view(begin(far)).code, ReturnCode::kOpViolation);
  EXPECT_EQ(streams.held(), 0u);
}

TEST_F(OrderedStreamsTest, begin__a_twin_of_what_waits_is_refused) {
  begin(numbered(1, 1));
  EXPECT_EQ(view(begin(numbered(1, 1))).code, ReturnCode::kOpViolation);
  EXPECT_EQ(streams.held(), 1u);
}

TEST_F(OrderedStreamsTest, pass_idle_gaps__what_came_is_not_kept_for_ever) {
  post(1000);
  begin(numbered(1, 1));
  streams.pass_idle_gaps(now);
  EXPECT_TRUE(sink.all.empty());
  wait(core.config.message_idle);
  streams.pass_idle_gaps(now);
  EXPECT_EQ(lengths(), (std::vector<std::size_t>{101}));
}

TEST_F(OrderedStreamsTest, close__what_waits_is_dropped) {
  begin(numbered(1, 1));
  streams.close(now, *endpoint);
  EXPECT_TRUE(streams.is_empty());
  EXPECT_EQ(streams.held(), 0u);
  EXPECT_EQ(shared.store.messages(), 0u);
  EXPECT_EQ(endpoint->held.messages, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
