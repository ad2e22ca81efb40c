// Which unexpected message a receive takes, whatever bits it ignores and however many wait. [SES 7.1]
#include "ses/unexpected_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>

#include "ses/sender_table.h"

namespace uet::ses::testing {
namespace {

struct UnexpectedQueueTest : ::testing::Test {
  UnexpectedMessage& arrives(std::uint64_t tag) {
    UnexpectedMessage& u = add(tag);
    queue.push_back(u);
    return u;
  }
  /// In none of the lists yet.
  UnexpectedMessage& add(std::uint64_t tag) {
    messages.emplace_back();
    messages.back().header.tag = tag;
    messages.back().som_seen = true;
    messages.back().sender = &senders[0];
    return messages.back();
  }
  /// With an endpoint (one of several of an address) as its source.
  UnexpectedMessage& arrives_from(std::size_t sender, std::uint32_t initiator, bool som_seen) {
    UnexpectedMessage& u = add(1);
    u.sender = &senders[sender];
    u.header.initiator_id = initiator;
    u.som_seen = som_seen;
    u.is_header_only = !som_seen;
    queue.push_back(u);
    return u;
  }
  UnexpectedMessage* find(std::uint64_t tag, std::uint64_t ignore = 0) {
    return queue.find({.tag = tag, .ignore = ignore, .source = nullptr, .job_id = {}});
  }
  UnexpectedMessage* peek(std::uint64_t tag) {
    return queue.find_for_peek({.tag = tag, .ignore = 0, .source = nullptr, .job_id = {}}, ++peeks);
  }

  std::array<Sender, 3> senders;
  std::uint64_t peeks = 0;
  std::deque<UnexpectedMessage> messages;
  UnexpectedQueue queue{true};
};

TEST_F(UnexpectedQueueTest, find__the_oldest_of_several_with_the_tag) {
  for (std::uint64_t tag = 0; tag < 40; ++tag) arrives(tag);
  UnexpectedMessage& first = arrives(100);
  arrives(100);
  EXPECT_EQ(find(100), &first);
  queue.remove(first);
  EXPECT_EQ(find(100), &messages.back());
  EXPECT_EQ(find(101), nullptr);
}

TEST_F(UnexpectedQueueTest, find__what_is_hashed_for_other_bits_is_found) {
  for (std::uint64_t tag = 0; tag < 40; ++tag) arrives(tag << 8 | 7);
  EXPECT_EQ(find(20 << 8 | 7), &messages[20]);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(find(21 << 8, 0xff), &messages[21]);
    EXPECT_EQ(find(7, ~std::uint64_t{0xff}), &messages[0]);
    EXPECT_EQ(find(22 << 8 | 7), &messages[22]);
  }
}

// A probe for any tag before each receive: filling the table anew each time would cost more than walks do.
TEST_F(UnexpectedQueueTest, find__two_filters_in_turn_leave_the_table_as_it_is) {
  for (std::uint64_t tag = 0; tag < 40; ++tag) arrives(tag);
  const std::uint64_t any = ~std::uint64_t{0};
  ASSERT_EQ(find(30), &messages[30]);
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_EQ(find(0, any), &messages[0]);
    EXPECT_EQ(find(31), &messages[31]);
    EXPECT_EQ(queue.indexed_ignore(), 0u);
  }
  find(0, any);
  find(0, any);
  EXPECT_EQ(queue.indexed_ignore(), any);
}

TEST_F(UnexpectedQueueTest, find__more_buckets_for_more_messages) {
  constexpr std::uint64_t kMany = 20'000;
  for (std::uint64_t tag = 0; tag < 40; ++tag) arrives(tag % 3);
  ASSERT_EQ(find(1), &messages[1]);
  const std::size_t few = queue.buckets();
  for (std::uint64_t tag = 40; tag < kMany; ++tag) arrives(tag);
  EXPECT_EQ(find(kMany - 1), &messages[kMany - 1]);
  EXPECT_GE(queue.buckets(), kMany / 8);
  EXPECT_GT(queue.buckets(), few);
  EXPECT_EQ(find(1), &messages[1]);
  queue.remove(messages[1]);
  EXPECT_EQ(find(1), &messages[4]);
  EXPECT_EQ(find(41), &messages[41]);
}

TEST_F(UnexpectedQueueTest, find__a_header_alone_is_for_peeks) {
  for (std::uint64_t tag = 0; tag < 20; ++tag) arrives(tag);
  messages[5].is_header_only = true;
  EXPECT_EQ(find(5), nullptr);
  EXPECT_EQ(peek(5), &messages[5]);
}

// Covers: SES-47
TEST_F(UnexpectedQueueTest, find_for_peek__a_missing_first_packet_hides_later_ones_of_its_source) {
  UnexpectedMessage& older = arrives_from(0, 7, true);
  arrives_from(0, 7, false);
  arrives_from(0, 7, true);
  UnexpectedMessage& of_another_endpoint = arrives_from(0, 8, true);
  arrives_from(1, 7, false);
  UnexpectedMessage& of_another_address = arrives_from(2, 7, true);
  EXPECT_EQ(peek(1), &older);
  queue.remove(older);
  EXPECT_EQ(peek(1), &of_another_endpoint);
  queue.remove(of_another_endpoint);
  EXPECT_EQ(peek(1), &of_another_address);
  queue.remove(of_another_address);
  EXPECT_EQ(peek(1), nullptr);
}

TEST_F(UnexpectedQueueTest, find_for_peek__several_endpoints_of_an_address_hide_all_of_it) {
  for (const std::uint32_t initiator : {7, 8, 7}) arrives_from(0, initiator, false);
  for (const std::uint32_t initiator : {7, 8, 9}) arrives_from(0, initiator, true);
  UnexpectedMessage& of_another_address = arrives_from(1, 7, true);
  EXPECT_EQ(peek(1), &of_another_address);
}

TEST_F(UnexpectedQueueTest, insert_before__is_older_than_what_came_after_that_place) {
  for (std::uint64_t tag = 0; tag < 20; ++tag) arrives(tag % 4);
  ASSERT_EQ(find(1), &messages[1]);
  UnexpectedMessage& again = add(1);
  queue.insert_before(messages[5], again);
  EXPECT_EQ(find(1), &messages[1]);
  queue.remove(messages[1]);
  EXPECT_EQ(find(1), &again);
  queue.remove(again);
  EXPECT_EQ(find(1), &messages[5]);
}

TEST(UnexpectedQueue, find__takes_what_a_walk_in_order_of_arrival_takes) {
  const unsigned seed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::deque<UnexpectedMessage> messages;
  std::deque<UnexpectedMessage*> model;
  Sender sender;
  UnexpectedQueue queue(true);
  constexpr std::array<std::uint64_t, 3> kIgnored{0, 0x30, 0xff};
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 2 == 0) {
      UnexpectedMessage& u = messages.emplace_back();
      u.header.tag = random() % 256;
      u.is_header_only = random() % 8 == 0;
      u.som_seen = true;
      u.sender = &sender;
      queue.push_back(u);
      model.push_back(&u);
      continue;
    }
    const Filter filter{.tag = random() % 256,
                        .ignore = kIgnored[random() % 16 == 0 ? random() % 3 : step / 500 % 3],
                        .source = nullptr,
                        .job_id = {}};
    const bool is_peek = random() % 4 == 0;
    const auto expected = std::find_if(model.begin(), model.end(), [&](const UnexpectedMessage* u) {
      return (is_peek || !u->is_header_only) && filter.accepts(u->header);
    });
    UnexpectedMessage* found =
        is_peek ? queue.find_for_peek(filter, static_cast<std::uint64_t>(step) + 1)
                : queue.find(filter);
    ASSERT_EQ(found, expected == model.end() ? nullptr : *expected) << "step " << step;
    if (found == nullptr) continue;
    queue.remove(*found);
    model.erase(expected);
  }
  EXPECT_GT(model.size(), 8U);
}

}  // namespace
}  // namespace uet::ses::testing
