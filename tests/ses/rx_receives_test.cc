// Receives: which of them a message goes into, and how it ends there. [SES 7.1]
#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct ReceivesTest : RxPartsTest {
  Receive* match(std::uint64_t need) {
    return shared.receives.match(now, space(), {.source = source(1)}, need);
  }
};

TEST_F(ReceivesTest, match__a_buffer_whose_rest_is_too_small_is_given_back_on_the_way) {
  endpoint->config.min_multi_recv = 1;
  Receive& used_up = post(100, 1, true);
  Receive& next = post(100, 2);
  used_up.cursor = 96;
  EXPECT_EQ(match(50), &next);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].context, 1u);
  EXPECT_TRUE(sink.all[0].multi_recv_released);
  EXPECT_EQ(shared.receives.in_use(), 1u);
}

TEST_F(ReceivesTest, match__a_buffer_in_use_is_given_back_by_its_last_message) {
  Receive& used_up = post(100, 1, true);
  shared.receives.take(space(), used_up, place_in(used_up, 0, 96));
  EXPECT_EQ(match(50), nullptr);
  EXPECT_TRUE(sink.all.empty());
  Completion completion;
  shared.receives.complete(now, *endpoint, used_up, completion);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_TRUE(sink.all[0].multi_recv_released);
}

TEST_F(ReceivesTest, match__a_buffer_smaller_than_the_message_takes_what_fits) {
  Receive& small = post(100, 1, true);
  EXPECT_EQ(match(500), &small);
}

TEST_F(ReceivesTest, take__messages_lie_aligned_and_a_small_rest_takes_none) {
  endpoint->config.min_multi_recv = 64;
  Receive& r = post(100, 1, true);
  shared.receives.take(space(), r, place_in(r, 0, 13));
  EXPECT_EQ(r.cursor, 16u);
  EXPECT_TRUE(r.is_posted);
  shared.receives.take(space(), r, place_in(r, 0, 24));
  EXPECT_FALSE(r.is_posted);
  EXPECT_EQ(r.in_flight, 2u);
}

TEST_F(ReceivesTest, place_in__no_offset_leads_back_to_what_earlier_messages_have) {
  Receive& r = post(4096, 1, true);
  r.cursor = 1000;
  for (const std::uint64_t offset : {std::uint64_t{3096}, std::uint64_t{1} << 40, ~std::uint64_t{0},
                                     ~std::uint64_t{0} - 999, ~std::uint64_t{0} - 1999}) {
    for (const std::uint64_t length : {0u, 1u, 4096u, 0xffff'ffffu}) {
      const Place place = place_in(r, offset, length);
      EXPECT_EQ(place.limit, 0u) << offset;
      EXPECT_EQ(place.next, r.iov.size()) << offset;
    }
  }
  EXPECT_EQ(place_in(r, 8, 0).next, 1008u);
  EXPECT_EQ(place_in(r, 3095, 0xffff'ffff).limit, 1u);
}

TEST_F(ReceivesTest, completion_in__tells_what_fits_and_where_it_lies) {
  Receive& one = post(100, 1);
  Receive& buffer = post(100, 2, true);
  const PlacedMessage whole{.length = 40, .placed = 40, .begin = 8, .tag = 5, .has_data = true};
  const Completion fits = completion_in(one, whole);
  EXPECT_EQ(fits.code, ReturnCode::kOk);
  EXPECT_EQ(fits.length, 40u);
  EXPECT_EQ(fits.overflow_length, 0u);
  EXPECT_EQ(fits.tag, 5u);
  EXPECT_TRUE(fits.has_data);
  EXPECT_EQ(fits.buffer, nullptr);
  EXPECT_EQ(completion_in(buffer, whole).buffer, static_cast<std::uint8_t*>(buffer.iov.base()) + 8);
  const PlacedMessage cut{.length = 40, .placed = 30};
  EXPECT_EQ(completion_in(one, cut).code, ReturnCode::kTruncated);
  EXPECT_EQ(completion_in(one, cut).overflow_length, 10u);
  EXPECT_EQ(completion_in(one, cut, ReturnCode::kCancelled).code, ReturnCode::kCancelled);
}

TEST_F(ReceivesTest, end__it_completes_without_a_message) {
  Receive& r = make_receive(100, 7);
  Completion completion;
  completion.code = ReturnCode::kCancelled;
  shared.receives.end(now, r, completion);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].context, 7u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(shared.receives.in_use(), 0u);
  EXPECT_EQ(endpoint->receives, 0u);
}

TEST_F(ReceivesTest, source_filter__only_sources_whose_messages_can_be_told_apart) {
  Address nameless;
  nameless.fabric_address = source(2);
  nameless.resource_index = 1;
  nameless.has_initiator_id = false;
  EXPECT_TRUE(shared.receives.source_filter(kAnyPeer));
  EXPECT_TRUE(shared.receives.source_filter(add_peer(1)));
  EXPECT_EQ(shared.receives.source_filter(*core.peers.add(nameless)).error(),
            PostError::kBadArgument);
  EXPECT_EQ(shared.receives.source_filter(12345).error(), PostError::kBadPeer);
}

TEST_F(ReceivesTest, make__refuses_what_could_never_be_filled) {
  PostError error{};
  ReceiveRequest request;
  request.multi_recv = true;
  EXPECT_EQ(shared.receives.make(*endpoint, request, nullptr, error), nullptr);
  EXPECT_EQ(error, PostError::kBadArgument);
  EXPECT_EQ(shared.receives.in_use(), 0u);
}

}  // namespace
}  // namespace uet::ses::testing
