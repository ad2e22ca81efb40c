// Atomics are executed exactly once, and old values come back. [SES 16.1]
#include <set>
#include <vector>

#include "tests/ses/atomic_fixture.h"

namespace uet::ses::testing {
namespace {

TEST_F(AtomicTest, fetching__of_32_bytes_returns_as_read_data_does) {
  open();
  const auto key = expose_aligned();
  const Bytes before(memory.begin() + static_cast<std::ptrdiff_t>(pad),
                     memory.begin() + static_cast<std::ptrdiff_t>(pad) + 32);
  Bytes operand(32, 7), old(32);
  ASSERT_TRUE(exchange(AmoDatatype::kLongDoubleComplex, key, operand, old));
  fabric.run();
  EXPECT_EQ(old, before);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(sb().gauges().reads_returning, 0u);
  EXPECT_EQ(sb().gauges().returns_open, 0u);
  EXPECT_EQ(a.locks, 0);
}

struct NoAckDataTest : AtomicTest {
  static SesConfig config() {
    SesConfig c;
    c.max_ack_data = 0;
    c.max_read_returns = 2;
    return c;
  }
  NoAckDataTest() : AtomicTest(config()) {}
};

// A request that is refused for want of room has changed nothing, or it would count twice when it comes again.
TEST_F(NoAckDataTest, fetching__is_executed_only_when_its_answer_has_room) {
  open();
  const auto key = expose_aligned();
  set_word(100);
  std::vector<Bytes> olds(4, Bytes(8));
  for (Bytes& old : olds) ASSERT_TRUE(post_atomic({.fetching = true, .value = 1}, key, &old));
  fabric.cut_all();
  fabric.return_limit = 0;
  for (int i = 0; i < 4; ++i) fabric.deliver(0);
  EXPECT_GT(fabric.refused, 0u);
  EXPECT_EQ(word(), 104u - fabric.refused);
  fabric.return_limit = 100;
  sb().on_resume(fabric.now);
  fabric.run_randomly();
  EXPECT_EQ(word(), 104u);
  EXPECT_EQ(at_a.all.size(), 4u);
  // A way back that is gone: told so, and not executed.
  const Bytes add = extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(1));
  EXPECT_EQ(code_of(raw(key, SesOpcode::kFetchingAtomic, add, 8)), ReturnCode::kUndeliverable);
  EXPECT_EQ(word(), 104u);
  EXPECT_EQ(sb().gauges().reads_returning, 0u);
}

TEST_F(NoAckDataTest, fetching__works_all_the_same) {
  open();
  const auto key = expose_aligned();
  set_word(100);
  std::vector<Bytes> olds(20, Bytes(8));
  for (Bytes& old : olds) ASSERT_TRUE(post_atomic({.fetching = true, .value = 1}, key, &old));
  fabric.run_randomly();
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(word(), 120u);
  std::set<std::uint64_t> seen;
  for (const Bytes& old : olds) seen.insert(value_of(old));
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(*seen.begin(), 100u);
}

// Covers: SES-77
TEST_F(AtomicTest, fetch_and_add__from_four_peers) {
  open();
  const auto key = expose_aligned();
  set_word(0);
  constexpr std::size_t kEach = 250;
  struct Peer {
    Node* node;
    Recorder sink;
    EndpointId endpoint;
    std::vector<Bytes> olds;
  };
  std::vector<Peer> peers(4);
  std::uint64_t context = 0;
  for (Peer& p : peers) {
    p.node = &fabric.add_node();
    EndpointConfig config = standard_endpoint();
    config.initiator_id = static_cast<std::uint32_t>(10 + (&p - peers.data()));
    p.endpoint = *p.node->ses.open_endpoint(fabric.now, config, p.sink);
    const PeerId target = *p.node->ses.add_peer(sb().address_of(eb));
    p.olds.assign(kEach, Bytes(8));
    for (Bytes& old : p.olds) {
      Bytes one = bytes_of(1);
      const iovec v = piece(one), o = piece(old);
      AtomicRequest r;
      r.peer = target;
      r.fetching = true;
      r.op = AmoOpcode::kSum;
      r.type = AmoDatatype::kUint64;
      r.operand = {&v, 1};
      r.result = {&o, 1};
      r.key = key;
      r.context = ++context;
      ASSERT_TRUE(p.node->ses.atomic(fabric.now, p.endpoint, r));
    }
  }
  fabric.run_randomly();
  fabric.run_for(Duration::from_seconds(5));
  EXPECT_EQ(word(), 4 * kEach);
  std::set<std::uint64_t> seen;
  for (const Peer& p : peers) {
    EXPECT_EQ(p.sink.all.size(), kEach);
    for (const Bytes& old : p.olds) seen.insert(value_of(old));
  }
  EXPECT_EQ(seen.size(), 4 * kEach);
  EXPECT_EQ(*seen.rbegin(), 4 * kEach - 1);
}

// The carrier cannot say whether the target has it: a write would be sent again, an atomic must not be.
TEST_F(AtomicTest, doubt__is_an_error_and_no_second_try) {
  open();
  const auto key = expose_aligned();
  set_word(0);
  ASSERT_TRUE(post_atomic({.value = 1}, key));
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 1u);
  fabric.deliver(0);  // executed, and its answer is lost with the PDC
  fabric.lose_pdc(*fabric.sent_log[0].channel, pds::PdsError::kInDoubt);
  fabric.fail_message(a, fabric.sent_log[0].token, pds::PdsError::kInDoubt);
  fabric.run_for(Duration::from_seconds(3));
  EXPECT_EQ(word(), 1u);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUndeliverable);
}

TEST_F(AtomicTest, certainty__that_nothing_arrived_allows_another_try) {
  open();
  const auto key = expose_aligned();
  set_word(0);
  ASSERT_TRUE(post_atomic({.value = 1}, key));
  fabric.cut_all();
  fabric.fail_message(a, fabric.sent_log[0].token, pds::PdsError::kPeerLost);
  fabric.run_for(Duration::from_seconds(3));
  EXPECT_EQ(word(), 1u);
  EXPECT_EQ(at_a.all.at(0).code, ReturnCode::kOk);
}

TEST_F(AtomicTest, fetching__whose_data_is_lost_with_the_pdc_fails) {
  open();
  const auto key = expose_aligned();
  set_word(0);
  Bytes operand(32), old(32);
  ASSERT_TRUE(exchange(AmoDatatype::kLongDoubleComplex, key, operand, old));
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);  // accepted; the old value is still to come
  fabric.lose_pdc(*fabric.sent_log[0].channel, pds::PdsError::kPeerLost);
  fabric.run_for(Duration::from_seconds(3));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kUndeliverable);
  EXPECT_EQ(at_b.count(OpKind::kRemoteFetchingAtomic), 1u);
}

}  // namespace
}  // namespace uet::ses::testing
