// The operations of initiators and what they hold, without queues. [SES 4.2]
#include "ses/operations.h"

#include <set>

#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

SesConfig four_operations() {
  SesConfig c;
  c.max_sends = 4;
  c.rendezvous = true;
  c.max_fetches = 2;
  c.small_headers = true;
  return c;
}

struct OperationsTest : TxPartsTest {
  OperationsTest() : TxPartsTest(four_operations()) {}

  /// A READ of 2048 bytes that is over and is owed them.
  TxOp& ended_read(pds::PdcRef pdc = pds::PdcRef{5}) {
    TxOp& op = read(2048);
    op.pdc = pdc;
    op.owed = 2048;
    queues.end_asking(op, op.asked);
    queues.leave(op);
    operations.end(op);
    return op;
  }
};

TEST_F(OperationsTest, acquire__some_are_kept_for_fetches) {
  std::vector<TxOp*> users;
  while (TxOp* op = operations.acquire()) users.push_back(op);
  EXPECT_EQ(users.size(), 4u);
  TxOp* first = operations.acquire_for_fetch();
  TxOp* second = operations.acquire_for_fetch();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(operations.acquire_for_fetch(), nullptr);
  operations.give_back(*users[0]);
  EXPECT_EQ(operations.acquire_for_fetch(), nullptr);  // that one is a user's
  EXPECT_EQ(operations.free_for_users(), 1u);
  operations.give_back_for_fetch(*first);
  EXPECT_EQ(operations.free_for_users(), 1u);
  EXPECT_NE(operations.acquire_for_fetch(), nullptr);
  EXPECT_EQ(operations.acquire_for_fetch(), nullptr);
}

TEST_F(OperationsTest, find__only_the_present_attempt_while_it_is_out) {
  TxOp& op = send(64);
  const pds::MessageToken first = carrier.taken[0].token;
  EXPECT_EQ(operations.find(first), &op);
  op.state = OpState::kBackoff;
  EXPECT_EQ(operations.find(first), nullptr);
  op.state = OpState::kCarried;
  ++op.attempt;
  EXPECT_EQ(operations.find(first), nullptr);
  EXPECT_EQ(operations.find(op.token()), &op);
}

// Covers: SES-20
TEST_F(OperationsTest, name__no_two_that_are_out_have_the_same) {
  std::set<std::uint16_t> ids;
  for (int i = 0; i < 4; ++i) ids.insert(send(64).message_id);
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_FALSE(ids.contains(0));
  TxOp& op = operations.by_age().front();
  EXPECT_EQ(operations.find_carried(op.message_id), &op);
  const std::uint16_t before = op.message_id;
  operations.name(op);
  EXPECT_FALSE(ids.contains(op.message_id));
  EXPECT_EQ(operations.find_carried(op.message_id), &op);
  EXPECT_EQ(operations.find_carried(before), nullptr);
}

// Covers: SES-20
TEST_F(OperationsTest, name__ids_come_again_after_all_others_and_never_while_they_are_in_use) {
  TxOp& other = send(64);
  TxOp& op = send(64);
  const std::uint16_t first = op.message_id;
  std::set<std::uint16_t> seen{other.message_id, first};
  while (seen.size() < 0xffff) {
    operations.name(op);
    ASSERT_TRUE(seen.insert(op.message_id).second);
  }
  EXPECT_FALSE(seen.contains(0));
  operations.name(op);
  EXPECT_EQ(op.message_id, first);
  EXPECT_EQ(operations.find_carried(other.message_id), &other);
}

TEST_F(OperationsTest, find_returning__what_nothing_can_come_for_is_not_found) {
  EXPECT_EQ(operations.find_returning(send(64).message_id), nullptr);
  TxOp& op = read(64);
  EXPECT_EQ(operations.find_returning(op.message_id), &op);
}

// Covers: SES-20
TEST_F(OperationsTest, end__keeps_the_message_id_until_what_is_owed_has_come) {
  TxOp& op = ended_read();
  const std::uint16_t id = op.message_id;
  EXPECT_EQ(operations.in_use(), 0u);
  EXPECT_EQ(operations.find_returning(id), &op);
  EXPECT_EQ(operations.find_carried(id), nullptr);
  EXPECT_EQ(operations.find(op.token()), nullptr);
  operations.take_owed(op, 1024);
  EXPECT_EQ(operations.ended(), 1u);
  operations.take_owed(op, 1024);
  EXPECT_EQ(operations.ended(), 0u);
  EXPECT_EQ(operations.find_returning(id), nullptr);
}

TEST_F(OperationsTest, end__takes_nothing_from_users) {
  const std::uint16_t first = ended_read().message_id;
  for (int i = 0; i < 20; ++i) ended_read();
  EXPECT_EQ(operations.find_returning(first), nullptr);  // there was no other descriptor
  EXPECT_EQ(operations.free_for_users(), 4u);
  std::vector<TxOp*> users;
  while (TxOp* op = operations.acquire()) users.push_back(op);
  EXPECT_EQ(users.size(), 4u);
  EXPECT_NE(operations.acquire_for_fetch(), nullptr);
  EXPECT_NE(operations.acquire_for_fetch(), nullptr);
  EXPECT_EQ(operations.ended(), 6u);
  for (TxOp* op : users) operations.give_back(*op);
}

TEST_F(OperationsTest, forget_ended__of_one_pdc) {
  ended_read(pds::PdcRef{5});
  const TxOp& other = ended_read(pds::PdcRef{6});
  operations.forget_ended(pds::PdcRef{5});
  EXPECT_EQ(operations.ended(), 1u);
  EXPECT_EQ(operations.find_returning(other.message_id), &other);
}

TEST_F(OperationsTest, copy_in__the_user_may_change_its_buffer) {
  TxOp* op = operations.acquire();
  const iovec iov[] = {{memory.data(), 2}, {memory.data() + 100, 2}};
  ASSERT_TRUE(operations.copy_in(*op, iov, nullptr));
  std::fill(memory.begin(), memory.end(), std::uint8_t{9});
  std::array<std::uint8_t, 4> bytes;
  op->iov.gather(0, bytes.data(), bytes.size());
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 4>{1, 1, 1, 1}));
  operations.release_memory(*op);
  EXPECT_EQ(op->inject_block, nullptr);
  operations.give_back(*op);
}

TEST_F(OperationsTest, release_memory__ends_what_targets_may_read) {
  TxOp& op = send(4096);
  ASSERT_TRUE(sources.begin(op, 0));
  EXPECT_EQ(core.memory.size(), 1u);
  operations.release_memory(op);
  EXPECT_EQ(core.memory.size(), 0u);
  op.is_rendezvous = false;
}

TEST_F(OperationsTest, find_deferrable__by_its_own_token_alone) {
  TxOp& op = send(64);
  op.is_deferrable = true;
  op.own_token = 7u << 16 | op.pool_index;
  EXPECT_EQ(operations.find_deferrable(op.own_token), &op);
  EXPECT_EQ(operations.find_deferrable(8u << 16 | op.pool_index), nullptr);
  EXPECT_EQ(operations.find_deferrable(0), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
