// Atomics over the wire, both sides. [SES 6.6, 16]
#include <algorithm>
#include <array>
#include <numeric>

#include "tests/ses/atomic_fixture.h"

namespace uet::ses::testing {
namespace {

TEST_F(AtomicTest, atomic__changes_the_memory_and_completes_once) {
  open();
  const auto key = expose_aligned();
  set_word(40, 8);
  ASSERT_TRUE(post_atomic({.value = 2, .offset = 8}, key));
  fabric.run();
  EXPECT_EQ(word(8), 42u);
  EXPECT_EQ(word(0), 0x5a5a5a5a5a5a5a5au);
  EXPECT_EQ(word(16), 0x5a5a5a5a5a5a5a5au);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].kind, OpKind::kAtomic);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].kind, OpKind::kRemoteAtomic);
  EXPECT_EQ(at_b.all[0].length, 8u);
  EXPECT_EQ(at_b.all[0].mr_key, key);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(AtomicTest, fetching__returns_the_old_value) {
  open();
  const auto key = expose_aligned();
  set_word(40);
  Bytes old(8);
  ASSERT_TRUE(post_atomic({.fetching = true, .value = 2}, key, &old));
  fabric.run();
  EXPECT_EQ(word(), 42u);
  EXPECT_EQ(value_of(old), 40u);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].kind, OpKind::kFetchingAtomic);
  EXPECT_EQ(at_b.find(OpKind::kRemoteFetchingAtomic)->length, 8u);
  // The answer is kept by the layer below until the initiator has it. [SES 11.2]
  ASSERT_EQ(fabric.reply_log.size(), 1u);
  EXPECT_TRUE(fabric.reply_log[0].guaranteed);
  EXPECT_EQ(fabric.reply_log[0].view().modified_length, 8u);
  EXPECT_EQ(a.locks, 0);
}

// Covers: SES-74
TEST_F(AtomicTest, compare_and_swap__swaps_or_not_and_tells_the_old_value) {
  open();
  const auto key = expose_aligned();
  struct Case {
    AmoOpcode op;
    std::uint64_t compare, after;
  };
  // The target holds 5, the swap value is 9.
  for (const auto& [op, compare, after] :
       {Case{AmoOpcode::kCswap, 5, 9}, Case{AmoOpcode::kCswap, 6, 5},
        Case{AmoOpcode::kCswapNe, 5, 5}, Case{AmoOpcode::kCswapNe, 6, 9},
        Case{AmoOpcode::kCswapLe, 5, 9}, Case{AmoOpcode::kCswapLe, 6, 5},
        Case{AmoOpcode::kCswapLt, 4, 9}, Case{AmoOpcode::kCswapLt, 5, 5},
        Case{AmoOpcode::kCswapGe, 5, 9}, Case{AmoOpcode::kCswapGe, 4, 5},
        Case{AmoOpcode::kCswapGt, 6, 9}, Case{AmoOpcode::kCswapGt, 5, 5},
        Case{AmoOpcode::kMswap, 0xc, 9}, Case{AmoOpcode::kMswap, 0x8, 0xd}}) {
    set_word(5);
    Bytes old(8);
    ASSERT_TRUE(
        post_atomic({.op = op, .fetching = true, .value = 9, .compare = compare}, key, &old));
    fabric.run();
    EXPECT_EQ(word(), after) << wire::name_of(op);
    EXPECT_EQ(value_of(old), 5u) << wire::name_of(op);
  }
}

TEST_F(AtomicTest, packets__are_as_the_chapter_says) {
  open();
  const auto key = expose_aligned();
  Bytes old(8);
  ASSERT_TRUE(post_atomic({.value = 5}, key));
  ASSERT_TRUE(post_atomic({.op = AmoOpcode::kRead, .fetching = true}, key, &old));
  ASSERT_TRUE(post_atomic({.op = AmoOpcode::kCswap, .fetching = true, .value = 9, .compare = 7},
                          key, &old));
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 3u);
  const auto tail = [&](std::size_t i) {
    return Bytes(fabric.sent_log[i].bytes.begin() + 44, fabric.sent_log[i].bytes.end());
  };
  const auto coherent = [](Bytes extension_bytes) {
    extension_bytes[2] = 0x02;
    return extension_bytes;
  };
  EXPECT_EQ(tail(0), coherent(extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(5))));
  EXPECT_EQ(fabric.sent_log[0].view(kM).request_length, 8u);
  EXPECT_TRUE(fabric.sent_log[0].view(kM).is_single());
  EXPECT_EQ(tail(1), coherent(extension(AmoOpcode::kRead, AmoDatatype::kUint64)));
  EXPECT_EQ(fabric.sent_log[1].view(kM).request_length, 8u);
  EXPECT_EQ(tail(2), coherent(compare_extension(AmoOpcode::kCswap, AmoDatatype::kUint64, 7, 9)));
  EXPECT_EQ(fabric.sent_log[2].view(kM).request_length, 32u);
}

// [SES 22.13] Some count one element where we count both operands.
TEST_F(AtomicTest, compare_and_swap__may_name_one_element_as_its_length) {
  open();
  const auto key = expose_aligned();
  set_word(1);
  const Bytes swap = compare_extension(AmoOpcode::kCswap, AmoDatatype::kUint64, 1, 2);
  const ResponseView v = view(inject(raw(key, SesOpcode::kFetchingAtomic, swap, 8)));
  EXPECT_EQ(v.code, ReturnCode::kOk);
  EXPECT_EQ(Bytes(v.data.begin(), v.data.end()), bytes_of(1));
  EXPECT_EQ(word(), 2u);
}

TEST_F(AtomicTest, inval__does_nothing) {
  open();
  const auto key = expose_aligned();
  const Bytes before = memory;
  EXPECT_EQ(
      code_of(raw(key, SesOpcode::kAtomic, extension(AmoOpcode::kInval, AmoDatatype::kUint64), 16)),
      ReturnCode::kOk);
  AtomicRequest request;
  request.peer = b_of_a;
  request.op = AmoOpcode::kInval;
  request.type = AmoDatatype::kUint64;
  request.count = 4;
  request.key = key;
  ASSERT_TRUE(sa().atomic(fabric.now, ea, request));
  fabric.run();
  EXPECT_EQ(at_a.all.at(0).code, ReturnCode::kOk);
  EXPECT_EQ(memory, before);
}

TEST_F(AtomicTest, headers__medium_and_small_are_taken) {
  open();
  memory.assign(128, 0);
  pad = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  const iovec iov{memory.data() + pad, 64};
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.remote_read = m.remote_write = true;
  m.virtual_addressing = false;
  m.key = 0x123;
  m.optimized = true;
  const auto key = *sb().register_memory(m);
  const Bytes add = extension(AmoOpcode::kSum, AmoDatatype::kUint64, bytes_of(5));
  RawRequest r = raw(key, SesOpcode::kAtomic, add, 8);
  EXPECT_EQ(view(inject_bytes(encode_medium(r), wire::NextHdr::kRequestMedium)).code,
            ReturnCode::kOk);
  r.opcode = SesOpcode::kFetchingAtomic;
  r.ri = 0x123;
  const std::uint32_t psn = next_raw_psn;
  const ResponseView v = view(inject_bytes(encode_small(r), wire::NextHdr::kRequestSmall));
  EXPECT_TRUE(v.is_small_data);
  EXPECT_EQ(v.request_psn.value(), psn);
  EXPECT_EQ(Bytes(v.data.begin(), v.data.end()), bytes_of(5));
  EXPECT_EQ(word(), 10u);
}

struct MediumAtomicTest : AtomicTest {
  MediumAtomicTest() : AtomicTest(with_medium_headers()) {}
};

TEST_F(MediumAtomicTest, initiator__uses_the_medium_form_where_nothing_returns) {
  open();
  const auto key = expose_aligned();
  set_word(1);
  Bytes old(8);
  ASSERT_TRUE(post_atomic({.value = 5}, key));
  fabric.run();
  ASSERT_TRUE(post_atomic({.fetching = true, .value = 5}, key, &old));
  fabric.run();
  EXPECT_EQ(fabric.sent_log[0].next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kRequestMedium));
  EXPECT_EQ(fabric.sent_log[1].next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kRequestStd));
  EXPECT_EQ(word(), 11u);
  EXPECT_EQ(value_of(old), 6u);
}

TEST_F(AtomicTest, header_data__is_announced) {
  open();
  const auto key = expose_aligned();
  set_word(1);
  Bytes value = bytes_of(4);
  const iovec iov = piece(value);
  AtomicRequest request;
  request.peer = b_of_a;
  request.op = AmoOpcode::kSum;
  request.type = AmoDatatype::kUint64;
  request.operand = {&iov, 1};
  request.key = key;
  request.data = 0xfeed;
  ASSERT_TRUE(sa().atomic(fabric.now, ea, request));
  fabric.run();
  EXPECT_EQ(word(), 5u);
  EXPECT_TRUE(at_b.all.at(0).has_data);
  EXPECT_EQ(at_b.all.at(0).data, 0xfeedu);
}

// Many elements in one packet, from memory in pieces to memory in pieces.
TEST_F(AtomicTest, atomic__of_many_elements) {
  open();
  std::array<std::uint32_t, 248> target{};
  std::array<std::uint32_t, 248> operand;
  std::iota(operand.begin(), operand.end(), 1u);
  const std::array<iovec, 2> pieces = {iovec{target.data(), 400}, iovec{target.data() + 100, 592}};
  MemoryRequest m;
  m.iov = pieces;
  m.remote_read = m.remote_write = true;
  m.virtual_addressing = false;
  const auto key = *sb().register_memory(m);
  const std::array<iovec, 2> from = {
      iovec{operand.data(), 10}, iovec{reinterpret_cast<std::uint8_t*>(operand.data()) + 10, 982}};
  AtomicRequest request;
  request.peer = b_of_a;
  request.op = AmoOpcode::kMax;
  request.type = AmoDatatype::kUint32;
  request.count = 248;
  request.operand = from;
  request.key = key;
  ASSERT_TRUE(sa().atomic(fabric.now, ea, request));
  fabric.run();
  EXPECT_EQ(target, operand);
  ASSERT_EQ(fabric.sent_log.size(), 1u);
  EXPECT_LE(fabric.sent_log[0].bytes.size(),
            44u + kM);  // the extension takes its place from the payload
  // An element that is torn between two pieces cannot be changed in one step.
  const std::array<iovec, 2> torn = {
      iovec{target.data(), 402}, iovec{reinterpret_cast<std::uint8_t*>(target.data()) + 402, 590}};
  m.iov = torn;
  request.key = *sb().register_memory(m);
  ASSERT_TRUE(sa().atomic(fabric.now, ea, request));
  fabric.run();
  EXPECT_EQ(at_a.all.back().code, ReturnCode::kAmoUnaligned);
  EXPECT_EQ(target, operand);
}

/// Says that the way carries less than the endpoint's own packets hold.
class NarrowWays final : public Ways {
 public:
  std::uint32_t payload_towards(Instant, const net::FabricAddress&) override { return 1024; }
};

struct WideTest : AtomicTest {
  WideTest() {
    fabric.payload_mtu = 2048;
    wide = &fabric.add_node();
    wide->ses.set_ways(ways);
  }
  NarrowWays ways;
  Node* wide;
};

// What fits a packet of ours and not the way goes in several, each a request of its own.
TEST_F(WideTest, narrow_way__takes_several_packets) {
  open();
  const auto key = expose_aligned(2048);
  std::fill(memory.begin(), memory.end(), std::uint8_t{0});
  Recorder sink;
  EndpointConfig config = standard_endpoint();
  config.initiator_id = 9;
  const EndpointId e = *wide->ses.open_endpoint(fabric.now, config, sink);
  Bytes operand(1984, 1);
  const iovec iov = piece(operand);
  AtomicRequest r;
  r.peer = *wide->ses.add_peer(sb().address_of(eb));
  r.op = AmoOpcode::kSum;
  r.type = AmoDatatype::kUint64;
  r.count = 248;
  r.operand = {&iov, 1};
  r.key = key;
  ASSERT_TRUE(wide->ses.atomic(fabric.now, e, r));
  fabric.run();
  EXPECT_EQ(fabric.sent_log.size(), 2u);
  ASSERT_EQ(sink.all.size(), 1u);
  EXPECT_EQ(sink.all[0].code, ReturnCode::kOk);
  for (std::size_t i = 0; i < 1984; ++i) ASSERT_EQ(memory[pad + i], 1) << i;
  // Data is announced once, so with data it must be one packet.
  r.data = 1;
  EXPECT_EQ(wide->ses.atomic(fabric.now, e, r).error(), PostError::kTooLong);
}

}  // namespace
}  // namespace uet::ses::testing
