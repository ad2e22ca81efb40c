// What is kept of messages that have no receive.
#include "ses/unexpected_store.h"

#include <gtest/gtest.h>

#include <array>

#include "ses/sender_table.h"

namespace uet::ses::testing {
namespace {

TEST(UnexpectedStore,
     header__has_room_where_messages_that_were_held_have_taken_more_than_all_bytes) {
  SesConfig config;
  config.overflow_bytes = 24'000;
  UnexpectedStore store(config);
  std::array<Sender, 32> senders;
  OverflowUse use, held;
  std::size_t n = 0;
  while (n < senders.size() && store.admit(use, senders[n], 1024) != nullptr) ++n;
  ASSERT_LT(n, senders.size());
  Unexpected* const early = store.admit_held(use, held, senders[n], 2048);
  ASSERT_NE(early, nullptr);
  store.end_hold(*early, held, use);
  ASSERT_GT(use.bytes, config.overflow_bytes);
  EXPECT_NE(store.admit(use, senders[n], 0), nullptr);
  EXPECT_EQ(store.admit(use, senders[n], 1), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
