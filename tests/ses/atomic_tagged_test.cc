// Atomics on receives; their order and their end. [SES 6.7, 17]
#include <cstring>

#include "tests/ses/atomic_fixture.h"

namespace uet::ses::testing {
namespace {

TEST_F(AtomicTest, tagged__works_on_the_receive_that_matches) {
  open();
  Bytes other(8), into(16);
  tpost(other, 1, 0, 100);
  tpost(into, 2, 0, 200);
  std::memset(into.data(), 0, 16);
  into[8] = 40;
  ASSERT_TRUE(post_atomic({.value = 2, .offset = 8, .tagged = true}, 2));
  fabric.run();
  EXPECT_EQ(value_of(into, 8), 42u);
  EXPECT_EQ(at_a.all.at(0).code, ReturnCode::kOk);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].kind, OpKind::kTaggedReceive);
  EXPECT_EQ(at_b.all[0].context, 200u);
  EXPECT_EQ(at_b.all[0].tag, 2u);
}

TEST_F(AtomicTest, tagged__comes_again_until_there_is_a_receive) {
  for (const bool ordered : {false, true}) {
    EndpointConfig config = standard_endpoint();
    config.resource_index = ordered ? 6 : 5;
    config.sends_ordered = config.atomics_ordered = ordered;
    open(config);
    at_a.all.clear();
    at_b.all.clear();
    Bytes into(8), old(8);
    into[0] = 40;
    ASSERT_TRUE(post_atomic({.fetching = true, .value = 2, .tagged = true}, 3, &old));
    fabric.run_for(Duration::from_ms(20));
    EXPECT_TRUE(at_a.all.empty());
    tpost(into, 3);
    fabric.run_for(Duration::from_seconds(3));
    EXPECT_EQ(value_of(into), 42u);
    EXPECT_EQ(value_of(old), 40u);
    EXPECT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_b.all.size(), 1u);
  }
}

// An ordered atomic that is forged closes nothing for the host in whose name it comes.
TEST_F(AtomicTest, tagged__one_without_a_receive_closes_no_gate_before_its_source_is_proven) {
  open();
  const RawRequest atomic = raw(5, SesOpcode::kTsendAtomic,
                                extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(1)), 8);
  const pds::PdcRef own = raw_pdc;
  raw_pdc = pds::PdcRef{8888};
  raw_is_proven = false;
  EXPECT_NE(code_of(atomic, pds::Mode::kRod), ReturnCode::kOk);
  raw_is_proven = true;
  raw_pdc = own;
  RawRequest send;
  send.opcode = SesOpcode::kTaggedSend;
  send.key = 6;
  EXPECT_EQ(code_of(send), ReturnCode::kOk);
}

TEST_F(AtomicTest, tagged__one_that_is_refused_leaves_the_receive) {
  open();
  Bytes into(16);
  tpost(into, 2);
  const Bytes before = into;
  const Bytes add = extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(1));
  RawRequest r = raw(2, SesOpcode::kTsendAtomic, add, 8);
  r.buffer_offset = 12;
  EXPECT_EQ(code_of(r), ReturnCode::kBadAddr);
  r.buffer_offset = 1;
  EXPECT_EQ(code_of(r), ReturnCode::kAmoUnaligned);
  r.buffer_offset = 0;
  r.generation = 9;
  EXPECT_EQ(code_of(r), ReturnCode::kBadGeneration);
  r.generation = 0;
  r.payload[0] = 0x44;
  EXPECT_EQ(code_of(r), ReturnCode::kAmoUnsupportedOp);
  EXPECT_EQ(into, before);
  EXPECT_TRUE(at_b.all.empty());
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
}

TEST_F(AtomicTest, order__puts_atomics_on_rod) {
  EndpointConfig config = standard_endpoint();
  config.atomics_ordered = true;
  open(config);
  const auto key = expose_aligned();
  Bytes data(8);
  ASSERT_TRUE(post_atomic({.op = AmoOpcode::kWrite, .value = 1}, key));
  rma(false, data, key, 8, 2);
  fabric.cut_all();
  ASSERT_EQ(fabric.sent_log.size(), 2u);
  for (const Flight& f : fabric.sent_log)
    EXPECT_EQ(f.channel->mode,
              f.view(kM).opcode == SesOpcode::kAtomic ? pds::Mode::kRod : pds::Mode::kRud);
}

TEST_F(AtomicTest, close__before_it_left_executes_nothing) {
  open();
  const auto key = expose_aligned();
  set_word(1);
  Bytes old(8, 0x33);
  fabric.queue_limit = 0;
  ASSERT_TRUE(post_atomic({.fetching = true, .value = 2, .context = 8}, key, &old));
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 8));
  EXPECT_EQ(at_a.all.at(0).code, ReturnCode::kCancelled);
  ASSERT_TRUE(post_atomic({.fetching = true, .value = 2, .context = 9}, key, &old));
  sa().close_endpoint(fabric.now, ea);
  fabric.queue_limit = 100;
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(word(), 1u);
  EXPECT_EQ(old, Bytes(8, 0x33));
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(AtomicTest, close__on_the_way_drops_the_old_value) {
  open();
  const auto key = expose_aligned();
  set_word(1);
  Bytes old(8, 0x33);
  ASSERT_TRUE(post_atomic({.fetching = true, .value = 2}, key, &old));
  fabric.cut_all();
  sa().close_endpoint(fabric.now, ea);
  fabric.run_for(Duration::from_ms(10));
  EXPECT_EQ(word(), 3u);
  EXPECT_EQ(old, Bytes(8, 0x33));
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  EXPECT_EQ(a.locks, 0);
}

}  // namespace
}  // namespace uet::ses::testing
