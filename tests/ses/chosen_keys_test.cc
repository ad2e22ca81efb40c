// Peers choose addresses and message ids so that they collide. Look-ups must stay as short as with keys drawn by chance.
#include <gtest/gtest.h>

#include <memory>

#include "ses/delivery_index.h"
#include "ses/sender_table.h"
#include "tests/net/colliding_addresses.h"

namespace uet::ses::testing {
namespace {

using net::test::colliding;
const base::HashKey kKey{base::Rng(1)};
/// With twice as many keys as buckets; drawn by chance, the longest has nine or ten.
constexpr std::size_t kLongest = 20;
constexpr std::uint32_t kMany = 8192;

TEST(ChosenKeys, senders) {
  SenderTable senders(kMany, 16, base::Duration::from_seconds(60), kKey);
  for (std::uint32_t i = 0; i < kMany; ++i)
    ASSERT_NE(senders.find_or_make(1, colliding(i), 0, true), nullptr);
  EXPECT_LE(senders.longest_chain(), kLongest);
}

// One message id on every PDC of one address; before, all of these had one bucket.
TEST(ChosenKeys, messages) {
  RxMessageTable messages(kMany, kKey);
  Sender sender;
  std::vector<RxMessage*> made;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const MessageKey key{.source = colliding(0), .pdc = {i}, .message_id = 7};
    made.push_back(messages.create(key, RequestView{}, 0, sender, true));
    ASSERT_NE(made.back(), nullptr);
    ASSERT_EQ(messages.find(key), made.back());
  }
  EXPECT_LE(messages.longest_chain(), kLongest);
  for (RxMessage* m : made) messages.release(*m);
}

TEST(ChosenKeys, awaited_deliveries) {
  DeliveryIndex index(kKey);
  const auto messages = std::make_unique<UnexpectedMessage[]>(kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    messages[i].header.source = colliding(i);
    messages[i].header.initiator_id = 1;
    messages[i].message_id = 7;
    index.add(messages[i]);
  }
  EXPECT_LE(index.longest_chain(), kLongest);
  for (std::uint32_t i = 0; i < kMany; ++i) index.remove(messages[i]);
}

// Where endpoints are addressed absolutely, a peer may name any job.
TEST(ChosenKeys, awaited_deliveries_of_one_source_in_many_jobs) {
  DeliveryIndex index(kKey);
  const auto messages = std::make_unique<UnexpectedMessage[]>(kMany);
  for (std::uint32_t i = 0; i < kMany; ++i) {
    messages[i].header.source = colliding(0);
    messages[i].header.job_id = i;
    messages[i].message_id = 7;
    index.add(messages[i]);
  }
  EXPECT_LE(index.longest_chain(), kLongest);
  for (std::uint32_t i = 0; i < kMany; ++i) index.remove(messages[i]);
}

}  // namespace
}  // namespace uet::ses::testing
