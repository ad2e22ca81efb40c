// Atomics that are refused, by the target and before they leave. [SES 13, 16]
#include <array>

#include "ses/payload_sizes.h"
#include "tests/ses/atomic_fixture.h"

namespace uet::ses::testing {
namespace {

// INVAL carries no operands: only its length says how much memory it is about, and that must not be more work than a packet's worth.
TEST_F(AtomicTest, inval__of_more_than_a_packet_is_refused) {
  open();
  const auto key = expose_aligned(4 * kLargestPayload);
  const Bytes inval = extension(AmoOpcode::kInval, AmoDatatype::kUint8);
  EXPECT_EQ(code_of(raw(key, SesOpcode::kAtomic, inval, kLargestPayload)), ReturnCode::kOk);
  EXPECT_EQ(code_of(raw(key, SesOpcode::kAtomic, inval, kLargestPayload + 1)),
            ReturnCode::kAmoUnsupportedSize);
}

// Covers: SES-75
TEST_F(AtomicTest, target__refuses_what_does_not_exist_and_touches_nothing) {
  open();
  const auto key = expose_aligned();
  const Bytes before = memory;
  const auto code = [&](RawRequest r) { return code_of(r); };
  RawRequest r = raw_sum(key);
  r.buffer_offset = 4;
  EXPECT_EQ(code(r), ReturnCode::kAmoUnaligned);
  r = raw_sum(key);
  r.length = 7;
  EXPECT_EQ(code(r), ReturnCode::kAmoUnsupportedSize);
  r = raw_sum(key);
  r.length = 0;
  EXPECT_EQ(code(r), ReturnCode::kAmoUnsupportedSize);
  const Bytes two = extension(AmoOpcode::kSum, AmoDatatype::kUint64, Bytes(16, 1));
  EXPECT_EQ(code(raw(key, SesOpcode::kFetchingAtomic, two, 16)), ReturnCode::kAmoUnsupportedSize);
  const Bytes swap = compare_extension(AmoOpcode::kCswap, AmoDatatype::kUint64, 1, 2);
  EXPECT_EQ(code(raw(key, SesOpcode::kFetchingAtomic, swap, 16)), ReturnCode::kAmoUnsupportedSize);
  for (const unsigned op : {0x15u, 0xdfu, 0xe0u, 0xffu})
    EXPECT_EQ(code(raw(key, SesOpcode::kAtomic,
                       extension(static_cast<AmoOpcode>(op), AmoDatatype::kUint64, Bytes(8)), 8)),
              ReturnCode::kAmoUnsupportedOp);
  for (const unsigned type : {0x12u, 0xe0u, 0xffu})
    EXPECT_EQ(code(raw(key, SesOpcode::kAtomic,
                       extension(AmoOpcode::kSum, static_cast<AmoDatatype>(type), Bytes(8)), 8)),
              ReturnCode::kAmoUnsupportedDt);
  // Forms that do not exist: a compare-and-swap or a READ that returns nothing.
  EXPECT_EQ(code(raw(key, SesOpcode::kAtomic, swap, 32)), ReturnCode::kAmoUnsupportedOp);
  EXPECT_EQ(
      code(raw(key, SesOpcode::kAtomic, extension(AmoOpcode::kRead, AmoDatatype::kUint64), 8)),
      ReturnCode::kAmoUnsupportedOp);
  r = raw_sum(key);
  r.buffer_offset = 64;
  EXPECT_EQ(code(r), ReturnCode::kBadAddr);
  r.buffer_offset = ~std::uint64_t{0} - 3;
  EXPECT_EQ(code(r), ReturnCode::kBadAddr);
  EXPECT_EQ(code(raw_sum(key ^ 0x100)), ReturnCode::kBadMkey);
  EXPECT_EQ(refusals(), 17u);
  // Malformed: shorter than its extension, than its operands, not in one packet, or carried otherwise.
  EXPECT_EQ(code(raw(key, SesOpcode::kAtomic, {2, 7, 0}, 8)), ReturnCode::kOpViolation);
  r = raw_sum(key);
  r.payload.pop_back();
  EXPECT_EQ(code(r), ReturnCode::kOpViolation);
  Bytes short_swap = swap;
  short_swap.pop_back();
  EXPECT_EQ(code(raw(key, SesOpcode::kFetchingAtomic, short_swap, 32)), ReturnCode::kOpViolation);
  EXPECT_EQ(b.trace.drops(base::DropReason::kSesMalformed), 3u);
  r = raw_sum(key);
  r.som = false;
  EXPECT_EQ(code(r), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(raw_sum(key), pds::Mode::kRudi), ReturnCode::kOpViolation);
  r = raw_sum(key);
  r.ie = true;
  EXPECT_EQ(code(r), ReturnCode::kInitiatorErr);
  EXPECT_EQ(memory, before);
  EXPECT_TRUE(at_b.all.empty());
}

// Covers: SES-76
TEST_F(AtomicTest, atomic__needs_both_rights) {
  open();
  const auto writable = expose_aligned(64, false, true);
  const Bytes before = memory;
  EXPECT_EQ(code_of(raw_sum(writable)), ReturnCode::kPermViolation);
  const Bytes get = extension(AmoOpcode::kRead, AmoDatatype::kUint64);
  EXPECT_EQ(code_of(raw(writable, SesOpcode::kFetchingAtomic, get, 8)), ReturnCode::kPermViolation);
  // The rights come before what is wrong with the operator. [SES 13]
  EXPECT_EQ(
      code_of(raw(writable, SesOpcode::kAtomic,
                  extension(static_cast<AmoOpcode>(0x80), AmoDatatype::kUint64, Bytes(8)), 8)),
      ReturnCode::kPermViolation);
  EXPECT_EQ(memory, before);
  const auto readable = expose_aligned(64, true, false);
  EXPECT_EQ(code_of(raw_sum(readable)), ReturnCode::kPermViolation);
  EXPECT_EQ(code_of(raw(readable, SesOpcode::kFetchingAtomic, get, 8)), ReturnCode::kPermViolation);
}

TEST_F(AtomicTest, header_data__without_a_place_is_refused) {
  EndpointConfig config;
  config.accept_remote_data = false;
  open(config);
  const auto key = expose_aligned();
  set_word(1);
  RawRequest r = raw_sum(key);
  r.hd = true;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  EXPECT_EQ(word(), 1u);
}

TEST_F(AtomicTest, posting__refuses_what_cannot_be_asked_for) {
  open();
  const auto key = expose_aligned();
  Bytes many(kM - 24), old(8);
  const iovec iov = piece(many);
  iovec one = piece(old);
  AtomicRequest r;
  r.peer = b_of_a;
  r.op = AmoOpcode::kSum;
  r.type = AmoDatatype::kUint64;
  r.count = kM / 8 - 3;
  r.operand = {&iov, 1};
  r.key = key;
  const auto refusal = [&] { return sa().atomic(fabric.now, ea, r).error(); };
  EXPECT_EQ(refusal(), PostError::kTooLong);
  r.count = 0;
  EXPECT_EQ(refusal(), PostError::kBadArgument);
  r.count = 1;
  EXPECT_EQ(refusal(), PostError::kBadArgument) << "more operands than elements";
  r.operand = {&one, 1};
  r.type = static_cast<AmoDatatype>(0x40);
  EXPECT_EQ(refusal(), PostError::kBadArgument);
  r.type = AmoDatatype::kUint64;
  r.op = AmoOpcode::kCswap;
  r.compare = {&one, 1};
  EXPECT_EQ(refusal(), PostError::kBadArgument) << "fetching only";
  r.fetching = true;
  EXPECT_EQ(refusal(), PostError::kBadArgument) << "nowhere to put the old value";
  r.result = {&one, 1};
  r.data = 1;
  EXPECT_EQ(refusal(), PostError::kBadArgument);
  r.data.reset();
  r.peer = 99;
  EXPECT_EQ(refusal(), PostError::kBadPeer);
  r.peer = b_of_a;
  EXPECT_TRUE(sa().atomic(fabric.now, ea, r));
  EXPECT_EQ(sa().gauges().sends_active, 1u);
}

TEST_F(AtomicTest, answer__without_the_value_or_with_another_is_an_error) {
  open();
  const auto key = expose_aligned();
  Bytes old(8, 0x11);
  ASSERT_TRUE(post_atomic({.fetching = true, .value = 2}, key, &old));
  fabric.cut_all();
  wire::SesResponseData h;
  h.opcode = wire::ResponseOpcode::kResponseWData;
  h.return_code = wire::ReturnCode::kOk;
  h.job_id = 7;
  h.message_id = h.read_request_message_id = fabric.sent_log[0].view(kM).message_id;
  h.payload_length = h.modified_length = 4;
  Bytes bytes(wire::SesResponseData::kSize + 4, 0x22);
  wire::emit(h, bytes.data());
  sa().on_response(fabric.now, fabric.sent_log[0].token, 0,
                   static_cast<std::uint8_t>(wire::NextHdr::kResponseData), bytes);
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOpViolation);
  EXPECT_EQ(old, Bytes(8, 0x11));
}

// Any bytes of an enemy: an answer each, and nothing outside the region changes.
TEST_F(AtomicTest, hostile__extensions) {
  open();
  const auto key = expose_aligned(32);
  base::Rng rng(5);
  const std::array opcodes = {SesOpcode::kAtomic, SesOpcode::kFetchingAtomic,
                              SesOpcode::kTsendAtomic, SesOpcode::kTsendFetchAtomic};
  const std::array lengths = {0u, 1u, 2u, 4u, 8u, 16u, 32u, 33u, 40u, 0xffff'ffffu};
  for (int i = 0; i < 50'000; ++i) {
    Bytes payload(rng.below(48));
    for (auto& byte : payload) byte = static_cast<std::uint8_t>(rng.next_u32());
    if (payload.size() > 1 && !rng.chance(0.1)) {
      payload[0] = static_cast<std::uint8_t>(rng.below(0x17));
      payload[1] = static_cast<std::uint8_t>(rng.below(0x14));
    }
    RawRequest r = raw(key, opcodes[rng.below(4)], payload, lengths[rng.below(10)]);
    r.buffer_offset = rng.chance(0.1) ? rng.next_u64() : rng.below(40);
    r.message_id = static_cast<std::uint16_t>(i);
    const Bytes bytes = rng.chance(0.5) ? encode(r) : encode_medium(r);
    const auto form = bytes.size() == encode(r).size() ? wire::NextHdr::kRequestStd
                                                       : wire::NextHdr::kRequestMedium;
    const pds::Answer answer = inject_bytes(bytes, form);
    ASSERT_NE(answer.kind, pds::Answer::Kind::kNone);
  }
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const bool is_outside = i < pad || i >= pad + 32;
    ASSERT_TRUE(!is_outside || memory[i] == 0x5a);
  }
}

}  // namespace
}  // namespace uet::ses::testing
