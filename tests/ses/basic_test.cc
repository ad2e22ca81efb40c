// The happy paths end to end.
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct BasicTest : PairTest {};

TEST_F(BasicTest, send__expected_message_arrives) {
  open();
  Bytes into(5000);
  post(into);
  const Bytes data = pattern(5000);
  send(data);
  fabric.run();
  EXPECT_EQ(into, data);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].length, 5000u);
  EXPECT_EQ(at_b.all[0].source.initiator_id, 3u);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(BasicTest, tagged_send__carries_tag_and_data) {
  open();
  Bytes into(16);
  tpost(into, 42);
  tsend(pattern(16), 42, 1, 0x1122334455667788);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].kind, OpKind::kTaggedReceive);
  EXPECT_EQ(at_b.all[0].tag, 42u);
  EXPECT_TRUE(at_b.all[0].has_data);
  EXPECT_EQ(at_b.all[0].data, 0x1122334455667788u);
}

TEST_F(BasicTest, write_and_read__move_bytes) {
  open();
  Bytes memory(10000);
  const auto key = expose(memory);
  Bytes data = pattern(7000);
  rma(false, data, key, 1000, 1);
  fabric.run();
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + 1000));
  Bytes back(7000);
  rma(true, back, key, 1000, 2);
  fabric.run();
  EXPECT_EQ(back, data);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(at_a.count(OpKind::kRead), 1u);
  EXPECT_EQ(at_b.count(OpKind::kRemoteWrite), 1u);
  EXPECT_EQ(at_b.count(OpKind::kRemoteRead), 1u);
}

TEST_F(BasicTest, inject__buffer_may_be_reused_at_once) {
  open();
  Bytes into(64);
  post(into);
  Bytes data = pattern(64);
  const Bytes copy = data;
  const iovec iov = piece(data);
  SendRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.inject = true;
  ASSERT_TRUE(sa().send(fabric.now, ea, r));
  std::fill(data.begin(), data.end(), std::uint8_t{0});
  fabric.run();
  EXPECT_EQ(into, copy);
}

TEST_F(BasicTest, send_to_self__works) {
  open();
  const PeerId self = *sa().add_peer(sa().address_of(ea));
  Bytes into(3000), data = pattern(3000);
  iovec iov = piece(into);
  ReceiveRequest rr;
  rr.iov = {&iov, 1};
  ASSERT_TRUE(sa().receive(fabric.now, ea, rr));
  iovec from = piece(data);
  SendRequest sr;
  sr.peer = self;
  sr.iov = {&from, 1};
  ASSERT_TRUE(sa().send(fabric.now, ea, sr));
  fabric.run();
  EXPECT_EQ(into, data);
  EXPECT_EQ(at_a.all.size(), 2u);
}

}  // namespace
}  // namespace uet::ses::testing
