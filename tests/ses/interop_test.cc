// What endpoints of other makes do within the text, or nearly. See docs/interop.md.
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct InteropTest : PairTest {
  RawRequest part(SesOpcode opcode, std::uint64_t key, std::uint32_t n, bool hd) {
    RawRequest r;
    r.opcode = opcode;
    r.message_id = opcode == SesOpcode::kWrite ? 7 : 8;
    r.key = key;
    r.length = 2 * kM + 10;
    r.som = n == 0;
    r.eom = n == 2;
    r.hd = hd;
    r.header_data = 99;
    r.offset = n * kM;
    r.payload = Bytes(n == 2 ? 10 : kM, static_cast<std::uint8_t>(n + 1));
    return r;
  }
};

// Some look a response up by `message_id`, others by `read_request_message_id`.
TEST_F(InteropTest, read_data__names_the_request_in_both_places) {
  open();
  Bytes memory = pattern(4 * kM), small(16), large(3 * kM);
  const auto key = expose(memory);
  for (Bytes* into : {&small, &large}) {
    rma(true, *into, key, 0);
    fabric.run();
  }
  std::size_t seen = 0;
  const auto check = [&](const Bytes& bytes) {
    const auto h = wire::decode<wire::SesResponseData>(bytes.data());
    EXPECT_NE(h.message_id, 0);
    EXPECT_EQ(h.message_id, h.read_request_message_id);
    ++seen;
  };
  for (const Reply& r : fabric.reply_log)
    if (r.next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kResponseData)) check(r.bytes);
  for (const Flight& f : fabric.sent_log)
    if (f.next_hdr == static_cast<std::uint8_t>(wire::NextHdr::kResponseData)) check(f.bytes);
  EXPECT_EQ(seen, 4u);
}

TEST_F(InteropTest, answer_to_read_data__tells_the_length_of_the_message) {
  open();
  Bytes memory = pattern(4 * kM), into(3 * kM + 1);
  rma(true, into, expose(memory), 0);
  fabric.run();
  std::size_t answers = 0;
  for (const Reply& r : fabric.reply_log)
    if (r.channel->is_return) {
      EXPECT_EQ(r.view().modified_length, into.size());
      ++answers;
    }
  EXPECT_EQ(answers, 4u);
}

TEST_F(InteropTest, message_of_one_packet__without_the_mark_of_its_end) {
  open();
  Bytes memory = pattern(4 * kM), into(8);
  RawRequest read;
  read.opcode = SesOpcode::kRead;
  read.key = expose(memory);
  read.length = 8;
  read.eom = false;
  const auto answer = inject(read);
  EXPECT_EQ(view(answer).code, ReturnCode::kOk);
  EXPECT_EQ(view(answer).data.size(), 8u);
  post(into);
  RawRequest send;
  send.length = 8;
  send.payload = pattern(8, 3);
  send.eom = false;
  EXPECT_EQ(code_of(send), ReturnCode::kOk);
  EXPECT_EQ(into, send.payload);
  // What it says of its length still has to be there, and no more than one packet goes without the mark.
  send.length = 9;
  EXPECT_EQ(code_of(send), ReturnCode::kOpViolation);
  read.length = kM + 1;
  inject(read);  // the first of two
  EXPECT_EQ(sb().gauges().messages_receiving, 1u);
}

TEST_F(InteropTest, header_data__is_what_the_first_packet_says_whenever_it_comes) {
  open();
  Bytes memory(3 * kM);
  const auto key = expose(memory);
  for (const std::uint32_t first_at : {0u, 1u, 2u}) {
    for (const bool captured : {false, true}) {
      at_b.all.clear();
      Bytes into(3 * kM);
      if (!captured) post(into);
      std::vector<std::uint32_t> order{1, 2};
      order.insert(order.begin() + first_at, 0);
      for (const std::uint32_t n : order) {
        EXPECT_EQ(code_of(part(SesOpcode::kWrite, key, n, n == 0)), ReturnCode::kOk);
        EXPECT_EQ(code_of(part(SesOpcode::kSend, 0, n, n == 0)), ReturnCode::kOk);
      }
      if (captured) post(into);
      ASSERT_EQ(at_b.all.size(), 2u);
      for (const Completion& c : at_b.all) {
        EXPECT_TRUE(c.has_data);
        EXPECT_EQ(c.data, 99u);
      }
    }
  }
  // The mark on other packets means nothing.
  at_b.all.clear();
  for (const std::uint32_t n : {2u, 0u, 1u})
    EXPECT_EQ(code_of(part(SesOpcode::kWrite, key, n, n != 0)), ReturnCode::kOk);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_FALSE(at_b.all[0].has_data);
}

// An endpoint without a place for header data refuses it also when it comes last.
TEST_F(InteropTest, header_data__refused_when_it_comes_late) {
  EndpointConfig config = standard_endpoint();
  config.accept_remote_data = false;
  open(config);
  Bytes memory(3 * kM);
  const auto key = expose(memory);
  EXPECT_EQ(code_of(part(SesOpcode::kWrite, key, 1, false)), ReturnCode::kOk);
  EXPECT_EQ(code_of(part(SesOpcode::kWrite, key, 0, true)), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(part(SesOpcode::kWrite, key, 2, false)), ReturnCode::kOpViolation);
  EXPECT_TRUE(at_b.all.empty());
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
