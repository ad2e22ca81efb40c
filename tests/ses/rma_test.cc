// WRITE and READ, header forms, memory keys. [SES 5, 6, 15]
#include <algorithm>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct RmaTest : PairTest {};

RawRequest write_of(std::uint64_t key, const Bytes& data) {
  RawRequest r;
  r.opcode = SesOpcode::kWrite;
  r.key = key;
  r.length = static_cast<std::uint32_t>(data.size());
  r.payload = data;
  return r;
}

/// A region that small requests reach by the index `key`.
MemoryRequest optimized(const iovec& memory, std::uint64_t key) {
  MemoryRequest m;
  m.iov = {&memory, 1};
  m.remote_read = m.remote_write = true;
  m.virtual_addressing = false;
  m.key = key;
  m.optimized = true;
  return m;
}

// [SES 15] A part of a region, with a key and restrictions of its own.
TEST_F(RmaTest, derived_region__reaches_its_part_and_ends_with_the_whole) {
  open();
  Bytes memory = pattern(4 * kM, 1), data = pattern(100, 2);
  const std::uint64_t whole = expose(memory, true, true), read_only = expose(memory, true, false);
  const auto derive = [&](const PartOfRegion& part, bool write = true,
                          std::optional<std::uint32_t> job = {}) {
    MemoryRequest m;
    m.remote_read = true;
    m.remote_write = write;
    m.virtual_addressing = false;
    m.job_id = job;
    m.part_of = part;
    return sb().register_memory(m);
  };
  EXPECT_FALSE(derive({.key = whole, .offset = 4 * kM - 10, .length = 11}));
  EXPECT_FALSE(derive({.key = whole, .offset = 5 * kM}));
  EXPECT_FALSE(derive({.key = whole + 1, .length = 10}));
  EXPECT_FALSE(derive({.key = read_only, .length = 10}));  // a right that the whole does not give
  EXPECT_TRUE(derive({.key = read_only, .length = 10}, false));
  const std::uint64_t part = *derive({.key = whole, .offset = kM, .length = 200});
  const std::uint64_t part_of_part = *derive({.key = part, .offset = 100, .length = 100});
  const std::uint64_t other_job = *derive({.key = whole, .length = 200}, true, 8);
  const auto write = [&](std::uint64_t key, std::uint64_t offset) {
    at_a.all.clear();
    rma(false, data, key, offset);
    fabric.run();
    return at_a.all.at(0).code;
  };
  EXPECT_EQ(write(part_of_part, 0), ReturnCode::kOk);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin() + kM + 100));
  EXPECT_EQ(write(part_of_part, 1), ReturnCode::kBadAddr);
  EXPECT_EQ(write(part, 100), ReturnCode::kOk);
  EXPECT_EQ(write(part, 101), ReturnCode::kBadAddr);
  EXPECT_EQ(write(other_job, 0), ReturnCode::kPermViolation);
  EXPECT_TRUE(sb().deregister_memory(part));
  EXPECT_EQ(write(part_of_part, 0), ReturnCode::kBadMkey);
  EXPECT_TRUE(sb().deregister_memory(whole));
  EXPECT_EQ(write(other_job, 0), ReturnCode::kBadMkey);
  for (const std::uint64_t key : {part_of_part, other_job})
    EXPECT_TRUE(sb().deregister_memory(key));
}

// Covers: SES-24
TEST_F(RmaTest, small_header__reaches_only_an_optimized_key) {
  open();
  Bytes memory(64);
  const iovec iov = piece(memory);
  const auto key = *sb().register_memory(optimized(iov, 0x123));
  EXPECT_EQ(key, (1ull << 62 | 0x123));
  RawRequest r = write_of(0, {1, 2, 3});
  r.ri = 0x123;
  r.buffer_offset = 5;
  EXPECT_EQ(view(inject_bytes(encode_small(r), wire::NextHdr::kRequestSmall)).code,
            ReturnCode::kOk);
  EXPECT_EQ(memory[7], 3);
  r.ri = 0x124;
  EXPECT_EQ(view(inject_bytes(encode_small(r), wire::NextHdr::kRequestSmall)).code,
            ReturnCode::kBadMkey);
  // A read in this form is matched by the PSN of its packet. [SES 5]
  r = RawRequest{};
  r.opcode = SesOpcode::kRead;
  r.ri = 0x123;
  r.buffer_offset = 5;
  r.length = 3;
  const std::uint32_t psn = next_raw_psn;
  const ResponseView v = view(inject_bytes(encode_small(r), wire::NextHdr::kRequestSmall));
  EXPECT_TRUE(v.is_small_data);
  EXPECT_EQ(v.request_psn.value(), psn);
  EXPECT_EQ(Bytes(v.data.begin(), v.data.end()), (Bytes{1, 2, 3}));
  // Our own initiator uses the form where the peer says that it takes it.
  Bytes data{4, 5};
  rma(false, data, key, 0);
  fabric.run();
  for (const Flight& f : fabric.sent_log)
    EXPECT_EQ(f.next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kRequestStd));
  EXPECT_EQ(memory[0], 4);
}

// It names no resource index, and reaches no more than an endpoint of the process does.
TEST_F(RmaTest, small_header__reaches_the_memory_of_its_process_alone) {
  open();
  Bytes memory(64);
  const iovec iov = piece(memory);
  MemoryRequest m = optimized(iov, 0x123);
  m.space = 9;
  ASSERT_TRUE(sb().register_memory(m));
  RawRequest r = write_of(0, {1, 2, 3});
  r.ri = 0x123;
  const auto write = [&] {
    return view(inject_bytes(encode_small(r), wire::NextHdr::kRequestSmall)).code;
  };
  EXPECT_EQ(write(), ReturnCode::kBadMkey);
  EXPECT_EQ(memory, Bytes(64));
  EndpointConfig other = standard_endpoint();
  other.resource_index = 6;
  other.memory_space = 9;
  ASSERT_TRUE(sb().open_endpoint(fabric.now, other, at_b));
  EXPECT_EQ(write(), ReturnCode::kOk);
  EXPECT_EQ(memory[2], 3);
}

TEST_F(RmaTest, optimized_key__is_unique_in_all_spaces) {
  open();
  Bytes memory(64);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.key = 0x123;
  m.optimized = true;
  const std::uint64_t key = *sb().register_memory(m);
  m.space = 9;
  m.check_unique = false;
  EXPECT_EQ(sb().register_memory(m).error(), PostError::kKeyInUse);
  m.idempotent_safe = true;
  EXPECT_EQ(sb().register_memory(m).error(), PostError::kKeyInUse);
  m.optimized = false;
  EXPECT_TRUE(sb().register_memory(m));
  m.optimized = true;
  EXPECT_TRUE(sb().deregister_memory(key));
  EXPECT_TRUE(sb().register_memory(m));
}

// The small form cannot say what part of the data a packet carries, so all of it must fit one packet of ours.
TEST_F(RmaTest, small_read__of_more_than_a_packet_holds_is_refused) {
  open();
  Bytes memory(16384);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.remote_read = true;
  m.key = 0x123;
  m.optimized = true;
  ASSERT_TRUE(sb().register_memory(m).has_value());
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.ri = 0x123;
  r.length = 8192;
  EXPECT_EQ(view(inject_bytes(encode_small(r), wire::NextHdr::kRequestSmall)).code,
            ReturnCode::kOpViolation);
  EXPECT_EQ(sb().gauges().returns_open, 0u);
}

struct MediumTest : PairTest {
  MediumTest() : PairTest(with_medium_headers()) {}
};

// Covers: SES-25
TEST_F(MediumTest, medium_header__not_with_header_data_and_offset) {
  open();
  Bytes memory(64), data{1, 2, 3}, into(3);
  const auto key = expose(memory);
  rma(false, data, key, 7);
  post(into);
  send(Bytes{9, 8, 7}, 2, 0xfeed);
  const iovec iov = piece(data);
  RmaRequest with_data;
  with_data.peer = b_of_a;
  with_data.iov = {&iov, 1};
  with_data.key = key;
  with_data.remote_offset = 7;
  with_data.data = 5;
  ASSERT_TRUE(sa().rma(fabric.now, ea, with_data));
  fabric.run();
  ASSERT_EQ(fabric.sent_log.size(), 3u);
  EXPECT_EQ(fabric.sent_log[0].next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kRequestMedium));
  EXPECT_EQ(fabric.sent_log[1].next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kRequestMedium));
  EXPECT_EQ(fabric.sent_log[2].next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kRequestStd));
  EXPECT_EQ(memory[9], 3);
  EXPECT_EQ(into, (Bytes{9, 8, 7}));
  EXPECT_EQ(at_b.find(OpKind::kReceive)->data, 0xfeedu);
  EXPECT_EQ(at_a.all.size(), 3u);
}

// Covers: SES-26
TEST_F(RmaTest, standard_header__serves_every_rma_request) {
  open();
  Bytes memory(64);
  const auto key = expose(memory);
  EXPECT_EQ(code_of(write_of(key, {1, 2, 3})), ReturnCode::kOk);
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.key = key;
  r.length = 3;
  const ResponseView v = view(inject(r));
  EXPECT_EQ(v.opcode, ResponseOpcode::kResponseWData);
  EXPECT_EQ(v.message_id, r.message_id);
  EXPECT_EQ(Bytes(v.data.begin(), v.data.end()), (Bytes{1, 2, 3}));
}

TEST_F(RmaTest, unsupported_opcodes__are_told_so) {
  open();
  for (const auto opcode :
       {SesOpcode::kRendezvousSend, SesOpcode::kRendezvousTsend, SesOpcode::kExtended,
        static_cast<SesOpcode>(0x10), static_cast<SesOpcode>(0x31)}) {
    RawRequest r;
    r.opcode = opcode;
    const auto answer = inject(r);
    EXPECT_EQ(view(answer).code, ReturnCode::kUnsupportedOp) << static_cast<int>(opcode);
    EXPECT_TRUE(answer.guaranteed);
  }
}

// Covers: SES-29
TEST_F(RmaTest, write__of_nothing_still_needs_a_good_key) {
  open();
  Bytes memory(8, 0xee);
  const auto key = expose(memory);
  EXPECT_EQ(code_of(write_of(key ^ 1ull << 30, {})), ReturnCode::kBadMkey);
  EXPECT_EQ(code_of(write_of(key, {})), ReturnCode::kOk);
  EXPECT_EQ(memory, Bytes(8, 0xee));
}

// Covers: SES-30
TEST_F(RmaTest, write_with_data__completes_once_after_all_bytes) {
  open();
  Bytes memory(5 * kM), into(4);
  const auto key = expose(memory);
  post(into);
  Bytes data = pattern(4 * kM + 3);
  const iovec iov = piece(data);
  RmaRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.key = key;
  r.data = 0x123456789abcdef0;
  ASSERT_TRUE(sa().rma(fabric.now, ea, r));
  fabric.cut_all();
  while (fabric.flights.size() > 1) {
    fabric.deliver(fabric.flights.size() - 1);
    EXPECT_TRUE(at_b.all.empty());
  }
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].kind, OpKind::kRemoteWrite);
  EXPECT_TRUE(at_b.all[0].has_data);
  EXPECT_EQ(at_b.all[0].data, 0x123456789abcdef0u);
  EXPECT_EQ(at_b.all[0].mr_key, key);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), memory.begin()));
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
}

TEST_F(RmaTest, write_with_data__endpoint_without_a_place_for_it_refuses) {
  EndpointConfig c = standard_endpoint();
  c.accept_remote_data = false;
  open(c);
  Bytes memory(8);
  RawRequest r = write_of(expose(memory), {1});
  r.hd = true;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
}

// Covers: SES-31, PDS-143
TEST_F(RmaTest, rights__are_those_of_the_registration) {
  open();
  Bytes memory(8);
  EXPECT_EQ(code_of(write_of(expose(memory, true, false), {1})), ReturnCode::kPermViolation);
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.key = expose(memory, false, true);
  r.length = 1;
  const auto refusal = inject(r);
  EXPECT_EQ(view(refusal).code, ReturnCode::kPermViolation);
  EXPECT_TRUE(refusal.guaranteed) << "on the ACK, which is all that a READ that fails gets";
  EXPECT_TRUE(fabric.flights.empty());
}

// Covers: SES-32
TEST_F(RmaTest, bounds__checked_on_the_whole_message) {
  open();
  Bytes memory(3 * kM, 0xee);
  const auto key = expose(memory);
  Bytes fits = pattern(3 * kM - 100), too_long = pattern(3 * kM - 99);
  rma(false, fits, key, 100, 1);
  fabric.run();
  EXPECT_EQ(at_a.all.back().code, ReturnCode::kOk);
  const Bytes before = memory;
  RawRequest first = write_of(key, Bytes(too_long.begin(), too_long.begin() + kM));
  first.buffer_offset = 100;
  first.length = static_cast<std::uint32_t>(too_long.size());
  first.eom = false;
  EXPECT_EQ(code_of(first), ReturnCode::kBadAddr);
  EXPECT_EQ(memory, before);
  rma(false, too_long, key, 100, 2);
  fabric.run();
  EXPECT_EQ(at_a.find(2)->code, ReturnCode::kBadAddr);
  RawRequest wrap = write_of(key, {1});
  wrap.buffer_offset = ~0ull;
  EXPECT_EQ(code_of(wrap), ReturnCode::kBadAddr);
}

TEST_F(RmaTest, virtual_addresses__are_absolute) {
  open();
  Bytes memory(64);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.remote_write = true;
  const auto key = *sb().register_memory(m);
  Bytes data{7};
  rma(false, data, key, reinterpret_cast<std::uintptr_t>(memory.data()) + 63, 1);
  rma(false, data, key, reinterpret_cast<std::uintptr_t>(memory.data()) - 1, 2);
  rma(false, data, key, 0, 3);
  fabric.run();
  EXPECT_EQ(at_a.find(1)->code, ReturnCode::kOk);
  EXPECT_EQ(at_a.find(2)->code, ReturnCode::kBadAddr);
  EXPECT_EQ(at_a.find(3)->code, ReturnCode::kBadAddr);
  EXPECT_EQ(memory[63], 7);
}

// Covers: SES-33
TEST_F(RmaTest, read__asks_for_one_packet_at_a_time) {
  open();
  Bytes memory(4 * kM), into(3 * kM + 5);
  rma(true, into, expose(memory), 0);
  fabric.cut_all();
  ASSERT_EQ(fabric.sent_log.size(), 4u);
  const std::uint32_t asked[] = {kM, kM, kM, 5};
  for (std::size_t i = 0; i < 4; ++i) {
    const RequestView v = fabric.sent_log[i].view(kM);
    EXPECT_EQ(v.covered, asked[i]);
    EXPECT_TRUE(v.payload.empty());
    EXPECT_EQ(v.message_id, fabric.sent_log[0].view(kM).message_id);
  }
  fabric.run();
}

// Covers: SES-34
TEST_F(RmaTest, read_data__rides_on_the_ack_only_when_the_message_is_short) {
  open();
  Bytes memory = pattern(4 * kM);
  const auto key = expose(memory);
  Bytes at_limit(16), above(17), with_tail(kM + 3);
  rma(true, at_limit, key, 0, 1);
  fabric.run();
  ASSERT_EQ(fabric.reply_log.size(), 1u);
  EXPECT_EQ(fabric.reply_log[0].view().opcode, ResponseOpcode::kResponseWData);
  EXPECT_TRUE(fabric.reply_log[0].guaranteed);
  EXPECT_TRUE(std::equal(at_limit.begin(), at_limit.end(), memory.begin()));
  for (Bytes* into : {&above, &with_tail}) {
    fabric.reply_log.clear();
    fabric.sent_log.clear();
    rma(true, *into, key, 1, 2);
    fabric.run();
    std::size_t returned = 0;
    for (const Flight& f : fabric.sent_log) {
      if (!f.channel->is_return) continue;
      EXPECT_EQ(f.next_hdr, static_cast<std::uint8_t>(wire::NextHdr::kResponseData));
      EXPECT_EQ(f.channel->ref_at_to.value, fabric.sent_log[0].channel->ref_at_from.value);
      returned += f.bytes.size() - wire::SesResponseData::kSize;
    }
    EXPECT_EQ(returned, into->size());
    for (const Reply& r : fabric.reply_log)
      EXPECT_EQ(r.view().opcode, ResponseOpcode::kDefaultResponse);
    EXPECT_TRUE(std::equal(into->begin(), into->end(), memory.begin() + 1));
  }
}

// Covers: SES-35, SES-36, SES-37
TEST_F(RmaTest, read__completes_by_bytes_and_holds_the_pdc_open) {
  open();
  Bytes memory = pattern(8 * kM), into(8 * kM);
  rma(true, into, expose(memory), 0);
  EXPECT_EQ(a.locks, 1);
  fabric.cut_all();
  while (fabric.deliver(0) && !fabric.flights.empty()) {
  }
  while (fabric.reply(0)) {
  }
  EXPECT_TRUE(at_a.all.empty());
  EXPECT_EQ(a.locks, 1);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 8u);
  while (!fabric.flights.empty()) {
    EXPECT_TRUE(at_a.all.empty());
    EXPECT_EQ(at_b.count(OpKind::kRemoteRead), 0u);
    fabric.deliver(fabric.flights.size() / 2);
  }
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(into, memory);
  fabric.run();
  EXPECT_EQ(at_b.count(OpKind::kRemoteRead), 1u);
}

// Covers: SES-38
TEST_F(RmaTest, region_closed_during_a_read__is_an_error_and_no_crash) {
  open();
  auto memory = std::make_unique<Bytes>(pattern(4 * kM));
  Bytes into(4 * kM);
  const auto key = expose(*memory);
  rma(true, into, key, 0);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.deliver(0);
  EXPECT_TRUE(sb().deregister_memory(key));
  memory.reset();
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(at_b.count(OpKind::kRemoteRead), 0u);
  EXPECT_EQ(a.locks, 0);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(RmaTest, region_closed_during_a_write__later_packets_are_refused) {
  open();
  Bytes memory(4 * kM), data = pattern(4 * kM);
  const auto key = expose(memory);
  rma(false, data, key, 0);
  fabric.cut_all();
  fabric.deliver(0);
  sb().deregister_memory(key);
  fabric.run();
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(Bytes(memory.begin() + kM, memory.end()), Bytes(3 * kM));
}

// Covers: SES-71
TEST_F(RmaTest, keys__users_choose_48_bits_and_providers_set_bit_48) {
  open();
  Bytes memory(8);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  for (unsigned bit = 48; bit < 64; ++bit) {
    m.key = 1ull << bit;
    EXPECT_EQ(sb().register_memory(m).error(), PostError::kBadKey) << bit;
  }
  m.key = 0xffff'ffff'ffff;
  EXPECT_EQ(*sb().register_memory(m), 0xffff'ffff'ffffu);
  EXPECT_EQ(sb().register_memory(m).error(), PostError::kKeyInUse);
  m.key.reset();
  const auto key = *sb().register_memory(m);
  EXPECT_EQ(key >> 48, 1u);
  sb().deregister_memory(key);
  EXPECT_FALSE(sb().deregister_memory(key));
  EXPECT_NE(*sb().register_memory(m), key);
}

TEST_F(RmaTest, region_of_one_endpoint__is_unknown_to_others) {
  open();
  Recorder other;
  EndpointConfig c = standard_endpoint();
  c.resource_index = 6;
  ASSERT_TRUE(sb().open_endpoint(fabric.now, c, other));
  Bytes memory(8);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.remote_write = true;
  m.virtual_addressing = false;
  m.enabled = false;
  RawRequest r = write_of(*sb().register_memory(m), {1});
  EXPECT_EQ(code_of(r), ReturnCode::kBadMkey);
  sb().enable_memory(r.key, eb);
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  r.ri = 6;
  EXPECT_EQ(code_of(r), ReturnCode::kBadMkey);
}

// Covers: SES-72
TEST_F(RmaTest, rudi__reaches_only_regions_that_stand_repetition) {
  open();
  Bytes memory(8);
  RawRequest r = write_of(expose(memory), {1});
  const auto refused = inject(r, pds::Mode::kRudi);
  EXPECT_EQ(view(refused).code, ReturnCode::kOpViolation);
  EXPECT_FALSE(refused.guaranteed);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.remote_write = true;
  m.virtual_addressing = false;
  m.idempotent_safe = true;
  r.key = *sb().register_memory(m);
  EXPECT_NE(r.key & 1ull << 63, 0u);
  EXPECT_EQ(code_of(r, pds::Mode::kRudi), ReturnCode::kOk);
  EXPECT_EQ(code_of(r, pds::Mode::kRudi), ReturnCode::kOk);
}

TEST_F(RmaTest, read_data_for_no_read__is_refused) {
  open();
  wire::SesResponseData h;
  h.job_id = 7;
  h.read_request_message_id = 1234;
  h.payload_length = 4;
  h.return_code = wire::ReturnCode::kOk;
  Bytes bytes(wire::SesResponseData::kSize + 4);
  wire::emit(h, bytes.data());
  const auto answer = inject_bytes(bytes, wire::NextHdr::kResponseData);
  EXPECT_EQ(view(answer).code, ReturnCode::kOpViolation);
}

// The answer is one packet of ours, and a peer with longer ones may ask for more.
struct LongAckDataTest : PairTest {
  static SesConfig config() {
    SesConfig c;
    c.max_ack_data = kLargestPayload;
    return c;
  }
  LongAckDataTest() : PairTest(config()) {}
};

TEST_F(LongAckDataTest, a_packet_of_a_READ_that_is_longer_than_ours__is_refused) {
  open();
  Bytes memory(kLargestPayload);
  RawRequest r;
  r.opcode = SesOpcode::kRead;
  r.key = expose(memory);
  for (const std::uint32_t length : {kM, kM + 1, kLargestPayload}) {
    r.length = length;
    r.covered = static_cast<std::uint16_t>(length);
    const pds::Answer answer = inject(r);
    EXPECT_EQ(view(answer).code, length > kM ? ReturnCode::kOpViolation : ReturnCode::kOk);
    EXPECT_EQ(answer.response.data.size(), length > kM ? 0 : length);
  }
}

struct OrderedReadTest : PairTest {};

TEST_F(OrderedReadTest, rod__read_sees_memory_as_it_was_when_it_arrived) {
  EndpointConfig c = standard_endpoint();
  c.sends_ordered = c.rma_ordered = true;
  open(c);
  Bytes memory(2 * kM, 1), into(2 * kM), data(2 * kM, 2);
  const auto key = expose(memory);
  rma(true, into, key, 0, 1);
  rma(false, data, key, 0, 2);
  // All requests arrive before any data leaves.
  for (int i = 0; i < 4; ++i) fabric.cut_one_each();
  while (!fabric.flights.empty() && !fabric.flights[0].channel->is_return) fabric.deliver(0);
  fabric.run();
  EXPECT_EQ(into, Bytes(2 * kM, 1));
  EXPECT_EQ(memory, Bytes(2 * kM, 2));
}

SesConfig that_asks_for_three() {
  SesConfig c;
  c.asked_packets = 3;
  return c;
}
struct AskingTest : PairTest {
  AskingTest() : PairTest(that_asks_for_three()) {}
};

// What a target keeps for a reader is bounded by what the reader asks for ahead, however much it wants.
TEST_F(AskingTest, reads__go_on_as_data_comes) {
  open();
  constexpr std::size_t kReads = 20, kBytes = 4 * kM;
  Bytes memory = pattern(kReads * kBytes);
  const std::uint64_t key = expose(memory);
  std::vector<Bytes> parts(kReads, Bytes(kBytes));
  for (std::size_t n = 0; n < kReads; ++n) rma(true, parts[n], key, n * kBytes, n);
  std::size_t most = 0;
  for (bool moves = true; moves;) {
    fabric.cut_all();
    moves = fabric.deliver(0) || fabric.reply(0);
    most = std::max<std::size_t>(most, sb().gauges().returns_open);
  }
  fabric.run();
  EXPECT_GT(most, 3u);
  EXPECT_LE(most, 3u + 4u);
  ASSERT_EQ(at_a.all.size(), kReads);
  for (const Completion& completion : at_a.all) {
    const auto n = static_cast<std::size_t>(completion.context);
    EXPECT_EQ(completion.code, ReturnCode::kOk);
    EXPECT_TRUE(std::equal(parts[n].begin(), parts[n].end(), memory.begin() + n * kBytes)) << n;
  }
}

}  // namespace
}  // namespace uet::ses::testing
