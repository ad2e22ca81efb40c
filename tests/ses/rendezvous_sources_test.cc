// What an initiator lets targets read, without an initiator. [SES 9, decision 142]
#include "ses/rendezvous_sources.h"

#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

SesConfig with_rendezvous() {
  SesConfig c;
  c.rendezvous = true;
  c.max_memory_regions = 2;
  return c;
}

struct RendezvousSourcesTest : TxPartsTest {
  RendezvousSourcesTest() : TxPartsTest(with_rendezvous()) {}
};

TEST_F(RendezvousSourcesTest, begin__a_region_for_one_reader) {
  TxOp& op = send(4096);
  ASSERT_TRUE(sources.begin(op, 96));
  const MemoryRegion* region = core.memory.find_source(op.source_key);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->reader, op.peer->address.fabric_address);
  EXPECT_EQ(region->iov.size(), 4096u);
  EXPECT_TRUE(region->remote_read);
  EXPECT_FALSE(region->remote_write);
  EXPECT_EQ(op.wanted, 4000u);
  sources.withdraw(op);
  EXPECT_EQ(core.memory.find_source(op.source_key), nullptr);
  op.is_rendezvous = false;
}

TEST_F(RendezvousSourcesTest, begin__not_for_a_target_that_cannot_fetch) {
  peer = add_peer(3, kRestoresOrder);
  EXPECT_FALSE(sources.begin(send(4096), 0));
  peer = add_peer(4, kFetchesRendezvous | 0b100);
  TxOp& op = send(4096);
  op.peer->refuses_rendezvous = true;
  EXPECT_FALSE(sources.begin(op, 0));
  EXPECT_FALSE(op.is_rendezvous);
  EXPECT_EQ(core.memory.size(), 0u);
}

TEST_F(RendezvousSourcesTest, begin__the_table_of_memory_is_full) {
  EXPECT_TRUE(sources.begin(send(4096), 0));
  EXPECT_TRUE(sources.begin(send(4096), 0));
  EXPECT_FALSE(sources.begin(send(4096), 0));
}

TEST_F(RendezvousSourcesTest, shrink__what_had_no_room_leaves_its_data_out) {
  TxOp& op = send(4096);
  op.code = ReturnCode::kTooLong;
  EXPECT_FALSE(sources.shrink(op));
  op.code = ReturnCode::kNoMatch;
  EXPECT_TRUE(sources.shrink(op));
  EXPECT_TRUE(op.is_rendezvous);
  EXPECT_TRUE(op.peer->lacks_room);
  EXPECT_FALSE(sources.shrink(op));  // there is nothing left to leave out
}

TEST_F(RendezvousSourcesTest, shrink__an_eager_part_goes_first) {
  TxOp& op = send(4096);
  ASSERT_TRUE(sources.begin(op, 96));
  op.code = ReturnCode::kNoMatch;
  EXPECT_TRUE(sources.shrink(op));
  EXPECT_EQ(op.eager, 0u);
  EXPECT_EQ(op.wanted, 4096u);
}

TEST_F(RendezvousSourcesTest, note_wanted__a_short_receive_wants_less) {
  TxOp& op = send(4096);
  ASSERT_TRUE(sources.begin(op, 96));
  op.peer->lacks_room = true;
  ResponseView r;
  r.opcode = ResponseOpcode::kResponse;
  r.modified_length = 1096;
  RendezvousSources::note_wanted(op, r);
  EXPECT_EQ(op.wanted, 1000u);
  EXPECT_FALSE(op.was_read);
  EXPECT_FALSE(op.peer->lacks_room);
  RendezvousSources::note_read(op, 999);
  EXPECT_FALSE(op.was_read);
  RendezvousSources::note_read(op, 1);
  EXPECT_TRUE(op.was_read);
}

// The target may have read all of it before its answer to the message came.
TEST_F(RendezvousSourcesTest, note_wanted__behind_the_last_read) {
  TxOp& op = send(4096);
  ASSERT_TRUE(sources.begin(op, 96));
  RendezvousSources::note_read(op, 1000);
  EXPECT_FALSE(op.was_read);
  ResponseView r;
  r.opcode = ResponseOpcode::kResponse;
  r.modified_length = 1096;
  RendezvousSources::note_wanted(op, r);
  EXPECT_TRUE(op.was_read);
}

}  // namespace
}  // namespace uet::ses::testing
