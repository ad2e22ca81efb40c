// Short sends and further packets of messages take ways of their own, in which nothing may come out otherwise.
#include <array>
#include <numeric>

#include "ses/tx_segments.h"
#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct PlainSendTest : TxPartsTest {
  PlainSendTest() { std::iota(memory.begin(), memory.end(), std::uint8_t{0}); }
  Bytes cut(const TxOp& op) {
    net::Packet packet = pool.allocate();
    EXPECT_EQ(cut_segment(op, 0, packet).next_hdr, static_cast<std::uint8_t>(NextHdr::kRequestStd));
    return {packet.data(), packet.data() + packet.size()};
  }
  using NextHdr = wire::NextHdr;
};

TEST_F(PlainSendTest, cut__leaves_the_bytes_of_any_other_send) {
  for (std::size_t length = 0; length <= kMtu; length += length < 70 ? 1 : 53) {
    TxOp& op = send(length);
    pds::TxMessage message;
    plan_segments(core, now, op, false, message);
    EXPECT_EQ(message.segments, 1u);
    EXPECT_EQ(message.payload_bytes, length);
    EXPECT_EQ(message.segment_payload, kMtu);
    EXPECT_EQ(message.ses_header_bytes, wire::SesStandardFirst::kSize);
    EXPECT_EQ(op.is_plain, length > 0 && length < kMtu) << length;
    const Bytes plain = cut(op);
    op.is_plain = false;
    EXPECT_EQ(cut(op), plain) << length;
  }
}

TEST_F(PlainSendTest, cut__ends_one_whose_memory_is_gone) {
  TxOp& op = send(100);
  pds::TxMessage message;
  plan_segments(core, now, op, false, message);
  op.memory_gone = true;
  RequestView view;
  const Bytes bytes = cut(op);
  EXPECT_FALSE(parse_plain_send(bytes, kMtu, view));
  ASSERT_TRUE(parse_request(static_cast<std::uint8_t>(NextHdr::kRequestStd), bytes, kMtu, view));
  EXPECT_TRUE(view.ie);
}

template <typename Header>
Bytes encoded(const Header& h, std::size_t payload) {
  Bytes out(Header::kSize + payload, 7);
  wire::emit(h, out.data());
  return out;
}

/// Each field with bits of its own.
template <typename Header>
Header some_request(SesOpcode opcode) {
  Header h;
  h.opcode = opcode;
  h.dc = true;
  h.rel = true;
  h.hd = true;
  h.message_id = 0xa1b2;
  h.ri_generation = 0x93;
  h.job_id = 0x8c4d5e;
  h.pid_on_fep = 0x9f1;
  h.resource_index = 0xe23;
  h.buffer_offset = 0x8877665544332211;
  h.initiator = 0x9abcdef0;
  h.mkey_match = 0xf0e1d2c3b4a59687;
  return h;
}

wire::SesStandardFirst some_send() {
  auto h = some_request<wire::SesStandardFirst>(SesOpcode::kTaggedSend);
  h.som = h.eom = true;
  h.header_data = 0x8182838485868788;
  h.request_length = 64;
  return h;
}

RequestView read_as_any(const Bytes& bytes) {
  RequestView view;
  EXPECT_TRUE(
      parse_request(static_cast<std::uint8_t>(wire::NextHdr::kRequestStd), bytes, 1024, view));
  EXPECT_TRUE(fit_payload(view));
  return view;
}

auto all(const RequestView& v) {
  return std::tuple(v.form, v.opcode, v.kind, v.version, v.dc, v.ie, v.rel, v.hd, v.eom, v.som,
                    v.message_id, v.ri_generation, v.job_id, v.pid_on_fep, v.resource_index,
                    v.buffer_offset, v.initiator, v.mkey_match, v.header_data, v.request_length,
                    v.carried_length, v.covered, v.message_offset, v.wide.packets, v.is_sequenced,
                    v.sequence.pack(), v.initiator_token, v.target_token, v.payload.data(),
                    v.payload.size());
}

TEST(ParsePlainSend, reads_what_parse_request_reads) {
  for (const SesOpcode opcode : {SesOpcode::kTaggedSend, SesOpcode::kSend}) {
    for (const std::size_t surplus : {0u, 5u}) {
      wire::SesStandardFirst h = some_send();
      h.opcode = opcode;
      const Bytes bytes = encoded(h, h.request_length + surplus);
      RequestView plain;
      ASSERT_TRUE(parse_plain_send(bytes, 1024, plain));
      EXPECT_EQ(all(plain), all(read_as_any(bytes)));
    }
  }
}

TEST(ParsePlainSend, leaves_all_else_to_parse_request) {
  const auto accepts = [](const wire::SesStandardFirst& h, std::size_t payload) {
    RequestView view;
    return parse_plain_send(encoded(h, payload), 1024, view);
  };
  ASSERT_TRUE(accepts(some_send(), 64));
  EXPECT_FALSE(accepts(some_send(), 63)) << "less than it says";
  for (int opcode = 0; opcode < 64; ++opcode) {
    wire::SesStandardFirst h = some_send();
    h.opcode = static_cast<SesOpcode>(opcode);
    EXPECT_EQ(accepts(h, 64), h.opcode == SesOpcode::kSend || h.opcode == SesOpcode::kTaggedSend);
  }
  const std::array<void (*)(wire::SesStandardFirst&), 5> changes = {
      [](auto& h) { h.version = 1; }, [](auto& h) { h.ie = true; }, [](auto& h) { h.eom = false; },
      [](auto& h) { h.som = false; }, [](auto& h) { h.request_length = 1025; }};
  for (const auto change : changes) {
    wire::SesStandardFirst h = some_send();
    change(h);
    EXPECT_FALSE(accepts(h, 2000));
  }
  const Bytes bytes = encoded(some_send(), 0);
  RequestView view;
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(parse_plain_send(std::span(bytes).first(n), 1024, view)) << n;
}

wire::SesStandardNext some_next() {
  auto h = some_request<wire::SesStandardNext>(SesOpcode::kWrite);
  h.payload_length = 1024;
  h.message_offset = 0x12345400;
  h.request_length = 0x82345678;
  return h;
}

bool is_write_or_send(SesOpcode opcode) {
  switch (opcode) {
    case SesOpcode::kWrite:
    case SesOpcode::kSend:
    case SesOpcode::kTaggedSend:
    case SesOpcode::kDeferrableSend:
    case SesOpcode::kDeferrableTsend:
    case SesOpcode::kSequencedSend:
    case SesOpcode::kSequencedTsend:
      return true;
    default:
      return false;
  }
}

TEST(ParsePlainNext, reads_what_parse_request_reads_of_writes_and_sends_alone) {
  for (int opcode = 0; opcode < 64; ++opcode) {
    for (const std::size_t surplus : {0u, 5u}) {
      for (const bool is_last : {false, true}) {
        wire::SesStandardNext h = some_next();
        h.opcode = static_cast<SesOpcode>(opcode);
        h.eom = is_last;
        const Bytes bytes = encoded(h, h.payload_length + surplus);
        RequestView plain;
        ASSERT_EQ(parse_plain_next(bytes, plain), is_write_or_send(h.opcode)) << opcode;
        if (!is_write_or_send(h.opcode)) continue;
        EXPECT_EQ(all(plain), all(read_as_any(bytes))) << opcode;
      }
    }
  }
}

TEST(ParsePlainNext, leaves_all_else_to_parse_request) {
  RequestView view;
  EXPECT_FALSE(parse_plain_next(encoded(some_next(), 1023), view)) << "less than it says";
  const std::array<void (*)(wire::SesStandardNext&), 3> changes = {
      [](auto& h) { h.version = 1; }, [](auto& h) { h.ie = true; }, [](auto& h) { h.som = true; }};
  for (const auto change : changes) {
    wire::SesStandardNext h = some_next();
    change(h);
    EXPECT_FALSE(parse_plain_next(encoded(h, 2000), view));
  }
  wire::SesStandardNext h = some_next();
  h.payload_length = 0;
  const Bytes bytes = encoded(h, 0);
  ASSERT_TRUE(parse_plain_next(bytes, view));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(parse_plain_next(std::span(bytes).first(n), view)) << n;
}

}  // namespace
}  // namespace uet::ses::testing
