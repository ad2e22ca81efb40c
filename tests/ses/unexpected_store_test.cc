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
  UnexpectedMessage* const early = store.admit_held(use, held, senders[n], 2048);
  ASSERT_NE(early, nullptr);
  store.end_hold(*early, held, use);
  ASSERT_GT(use.bytes, config.overflow_bytes);
  EXPECT_NE(store.admit(use, senders[n], 0), nullptr);
  EXPECT_EQ(store.admit(use, senders[n], UnexpectedMessage::kShort + 1), nullptr);
}

TEST(UnexpectedStore, capture__a_short_message_takes_no_bytes) {
  SesConfig config;
  config.overflow_bytes = 0;
  UnexpectedStore store(config);
  Sender sender;
  OverflowUse use;
  std::array<std::uint8_t, UnexpectedMessage::kShort> bytes{}, into{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i + 1);
  UnexpectedMessage* const message = store.admit(use, sender, bytes.size());
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(store.admit(use, sender, bytes.size() + 1), nullptr);
  ASSERT_TRUE(store.capture(*message, 0, bytes));
  EXPECT_FALSE(store.capture(*message, 0, bytes)) << "there is no room for bytes that come twice";
  EXPECT_EQ(store.bytes(), 0u);
  IovPool pool(1);
  const iovec iov{into.data(), into.size()};
  IovList list;
  ASSERT_TRUE(list.assign({&iov, 1}, pool));
  EXPECT_EQ(store.move_to(*message, use, list, 0, into.size()), into.size());
  EXPECT_EQ(into, bytes);
  store.release(*message, use);
  store.recycle(*message);
  EXPECT_EQ(use.messages, 0u);
  list.clear(pool);
}

// Messages without a receive must not keep those out that a receive takes.
TEST(UnexpectedStore, admit__leaves_descriptors_to_messages_that_a_receive_takes) {
  SesConfig config;
  config.overflow_msgs_total = 64;
  UnexpectedStore store(config);
  std::array<Sender, 2> senders;
  std::array<OverflowUse, 2> uses;
  OverflowUse held;
  std::size_t n = 0;
  while (store.admit(uses[n % 2], senders[n % 2], 0) != nullptr) ++n;
  EXPECT_EQ(n, 60u);
  EXPECT_FALSE(store.has_room_for(uses[0], senders[0], 0));
  EXPECT_FALSE(store.has_descriptor());
  EXPECT_EQ(store.fill(uses[0]), 1000u);
  EXPECT_EQ(store.admit_held(uses[0], held, senders[0], 0), nullptr);
  for (; n < 64; ++n) EXPECT_NE(store.note_header(senders[0], 1000), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
