// Atomics at the target, without the part that finds their endpoint. [SES 16]
#include "ses/rx_atomics.h"

#include <cstring>
#include <deque>

#include "tests/ses/atomic_fixture.h"
#include "tests/ses/rx_parts.h"

namespace uet::ses::testing {
namespace {

struct AtomicTargetTest : RxPartsTest {
  AtomicTargetTest() {
    const iovec iov{words.data(), sizeof words};
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = m.remote_write = true;
    m.virtual_addressing = false;
    key = *core.memory.add(m, rng);
  }
  /// Adds `value` to the word at `offset` of the region.
  RequestContext sum(std::uint64_t value, std::uint64_t offset = 0, bool fetching = false) {
    payloads.push_back(extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(value)));
    RequestContext c = send_of(1, 8);
    c.request.opcode = fetching ? SesOpcode::kFetchingAtomic : SesOpcode::kAtomic;
    c.request.kind = OpcodeClass::kAtomic;
    c.request.mkey_match = key;
    c.request.buffer_offset = offset;
    c.request.payload = payloads.back();
    return c;
  }

  alignas(16) std::array<std::uint64_t, 8> words{100, 200};
  std::uint64_t key = 0;
  std::deque<Bytes> payloads;  // of the requests, which only view them
  ReadReturns returns{core, shared.senders, shared.shares};
  RmaTarget rma{core, shared.messages, shared.shares, returns};
  RendezvousTarget rendezvous{shared};
  Failures failures{shared, rendezvous, returns};
  AtomicTarget atomics{shared, rma, returns, failures};
};

TEST_F(AtomicTargetTest, begin__memory_changes_once_and_the_user_is_told) {
  RequestContext c = sum(5, 8);
  EXPECT_EQ(view(atomics.begin(c)).code, ReturnCode::kOk);
  EXPECT_EQ(words[0], 100u);
  EXPECT_EQ(words[1], 205u);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].kind, OpKind::kRemoteAtomic);
}

TEST_F(AtomicTargetTest, begin__the_old_value_rides_on_the_answer) {
  RequestContext c = sum(5, 0, true);
  const pds::Answer answer = atomics.begin(c);
  ASSERT_EQ(answer.response.data.size(), 8u);
  std::uint64_t old = 0;
  std::memcpy(&old, answer.response.data.data(), sizeof old);
  EXPECT_EQ(old, 100u);
  EXPECT_EQ(words[0], 105u);
}

TEST_F(AtomicTargetTest, begin__what_is_refused_changes_nothing) {
  RequestContext unaligned = sum(5, 4), outside = sum(5, sizeof words), cut = sum(5);
  EXPECT_EQ(view(atomics.begin(unaligned)).code, ReturnCode::kAmoUnaligned);
  EXPECT_NE(view(atomics.begin(outside)).code, ReturnCode::kOk);
  cut.request.payload = cut.request.payload.first(6);
  EXPECT_EQ(view(atomics.begin(cut)).code, ReturnCode::kOpViolation);
  EXPECT_EQ(words[0], 100u);
  EXPECT_TRUE(sink.all.empty());
}

TEST_F(AtomicTargetTest, begin__a_tagged_one_without_a_receive_comes_again) {
  RequestContext c = sum(5);
  c.request.opcode = SesOpcode::kTsendAtomic;
  EXPECT_EQ(view(atomics.begin(c)).code, ReturnCode::kNoMatch);
  EXPECT_EQ(shared.store.messages(), 0u);
}

}  // namespace
}  // namespace uet::ses::testing
