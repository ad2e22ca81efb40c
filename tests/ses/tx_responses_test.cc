// What responses do to the state of a message, without queues. [SES 4.4, 6.3, 11]
#include "ses/tx_responses.h"

#include "tests/ses/tx_parts.h"

namespace uet::ses::testing {
namespace {

SesConfig ordered_pieces() {
  SesConfig c;
  c.sends_deferrable = true;
  return c;
}

struct ResponsesTest : TxPartsTest {
  ResponsesTest() : TxPartsTest(ordered_pieces()) {}

  ResponseFields about(const TxOp& op, ReturnCode code) {
    return {.opcode = ResponseOpcode::kResponse,
            .code = code,
            .message_id = op.message_id,
            .job_id = op.job_id};
  }
  void respond(TxOp& op, const ResponseFields& fields) {
    const pds::SesResponse r = make_response(fields);
    responses.read(now, op, r.next_hdr, {r.header.data(), r.header_bytes});
  }
  /// A piece of read data for the operation.
  ResponseView data_for(const TxOp& op, std::uint32_t offset, std::span<const std::uint8_t> bytes) {
    ResponseView view;
    view.has_data = true;
    view.opcode = ResponseOpcode::kResponseWData;
    view.code = ReturnCode::kOk;
    view.message_id = op.message_id;
    view.job_id = op.job_id;
    view.message_offset = offset;
    view.data = bytes;
    return view;
  }
  ReturnCode code_of(const pds::Answer& answer) {
    ResponseView view;
    EXPECT_TRUE(parse_response(answer.response.next_hdr,
                               {answer.response.header.data(), answer.response.header_bytes},
                               view));
    return view.code;
  }

  const std::vector<std::uint8_t> twos = std::vector<std::uint8_t>(kMtu, 2);
};

TEST_F(ResponsesTest, read__an_acknowledgement_without_a_response_is_success) {
  TxOp& op = send(64);
  responses.read(now, op, 0, {});
  EXPECT_EQ(op.semantic, Semantic::kOk);
  EXPECT_TRUE(op.is_delivered);
}

// Another make answers a small READ with the form that has a message id, and has none to put there. [WIRE 10 row 39]
TEST_F(ResponsesTest, read__data_of_a_small_read_in_either_form) {
  for (const auto form : {wire::NextHdr::kResponseData, wire::NextHdr::kResponseDataSmall}) {
    TxOp& op = read(8, kKeyOptimized | 5);
    op.small = true;
    std::array<std::uint8_t, wire::SesResponseData::kSize + 8> bytes{};
    std::size_t size = 0;
    if (form == wire::NextHdr::kResponseData) {
      wire::SesResponseData h;
      h.opcode = ResponseOpcode::kResponseWData;
      h.return_code = wire::ReturnCode::kOk;
      h.job_id = op.job_id;
      h.payload_length = 8;
      h.modified_length = 8;
      wire::emit(h, bytes.data());
      size = wire::SesResponseData::kSize + 8;
    } else {
      wire::SesResponseDataSmall h;
      h.opcode = ResponseOpcode::kResponseWData;
      h.return_code = wire::ReturnCode::kOk;
      h.job_id = op.job_id;
      h.payload_length = 8;
      wire::emit(h, bytes.data());
      size = wire::SesResponseDataSmall::kSize + 8;
    }
    responses.read(now, op, static_cast<std::uint8_t>(form), {bytes.data(), size});
    EXPECT_EQ(op.semantic, Semantic::kOk);
    EXPECT_TRUE(op.returned.is_complete());
  }
}

TEST_F(ResponsesTest, read__the_first_error_wins_over_success_and_later_errors) {
  TxOp& op = send(2048);
  respond(op, about(op, ReturnCode::kOk));
  EXPECT_EQ(op.semantic, Semantic::kOk);
  respond(op, about(op, ReturnCode::kNoMatch));
  respond(op, about(op, ReturnCode::kBadIndex));
  respond(op, about(op, ReturnCode::kOk));
  EXPECT_EQ(op.semantic, Semantic::kError);
  EXPECT_EQ(op.code, ReturnCode::kNoMatch);
}

TEST_F(ResponsesTest, read__a_response_for_another_message_decides_nothing) {
  TxOp& op = send(64);
  ResponseFields fields = about(op, ReturnCode::kOk);
  ++fields.message_id;
  respond(op, fields);
  EXPECT_EQ(op.semantic, Semantic::kNone);
  EXPECT_TRUE(op.bad_response);
  TxOp& other_job = send(64);
  fields = about(other_job, ReturnCode::kOk);
  ++fields.job_id;
  respond(other_job, fields);
  EXPECT_TRUE(other_job.bad_response);
}

TEST_F(ResponsesTest, read__reserved_codes_are_uncorrectable) {
  TxOp& op = send(64);
  respond(op, about(op, static_cast<ReturnCode>(0x3e)));
  EXPECT_EQ(op.code, ReturnCode::kUncor);
}

TEST_F(ResponsesTest, read__a_wrong_generation_brings_the_right_one) {
  TxOp& op = send(64);
  ResponseFields fields = about(op, ReturnCode::kBadGeneration);
  fields.ri_generation = 5;
  respond(op, fields);
  EXPECT_EQ(op.peer->generation_of(Space::kUntagged), 5);
  EXPECT_EQ(op.peer->generation_of(Space::kTagged), 0);
}

TEST_F(ResponsesTest, read__a_deferrable_send_is_captured_or_put_off) {
  TxOp& op = send(2048);
  ASSERT_TRUE(op.is_deferrable);
  ResponseFields fields = about(op, ReturnCode::kOk);
  fields.list = ResponseList::kOverflow;
  fields.modified_length = 2048;
  respond(op, fields);
  EXPECT_TRUE(op.captured && !op.was_deferred);
  fields.modified_length = 0;
  respond(op, fields);
  EXPECT_TRUE(op.was_deferred);
  op.target_token = 1;  // what it asked for by a token of its own it may not put off again
  respond(op, fields);
  EXPECT_EQ(op.code, ReturnCode::kOpViolation);
}

TEST_F(ResponsesTest, take_data__in_any_order_each_byte_once) {
  TxOp& op = read(2 * kMtu);
  EXPECT_EQ(code_of(responses.take_data(op, data_for(op, kMtu, twos))), ReturnCode::kOk);
  EXPECT_FALSE(op.returned.is_complete());
  EXPECT_EQ(memory[kMtu], 2);
  EXPECT_EQ(memory[0], 1);
  responses.take_data(op, data_for(op, 0, twos));
  EXPECT_TRUE(op.returned.is_complete());
  EXPECT_EQ(op.semantic, Semantic::kNone);  // the verdict comes with the answers to its requests
  EXPECT_EQ(code_of(responses.take_data(op, data_for(op, 0, twos))), ReturnCode::kOpViolation);
  EXPECT_EQ(op.semantic, Semantic::kError);
}

TEST_F(ResponsesTest, take_data__beyond_what_was_asked_for_is_an_error) {
  TxOp& op = read(kMtu);
  EXPECT_EQ(code_of(responses.take_data(op, data_for(op, 1, twos))), ReturnCode::kOpViolation);
  EXPECT_EQ(memory[1], 1);
}

TEST_F(ResponsesTest, take_data__of_a_cancelled_read_touches_no_memory) {
  TxOp& op = read(kMtu);
  op.memory_gone = true;
  EXPECT_EQ(code_of(responses.take_data(op, data_for(op, 0, twos))), ReturnCode::kCancelled);
  EXPECT_EQ(memory[0], 1);
}

TEST_F(ResponsesTest, is_too_far__what_the_window_cannot_remember) {
  TxOp& op = read(4 * kMtu);
  op.length = std::uint64_t{200'000} * kMtu;
  responses.take_data(op, data_for(op, 0, twos));
  EXPECT_FALSE(responses.is_too_far(op, data_for(op, kMtu, twos)));
  EXPECT_FALSE(responses.is_too_far(op, data_for(op, 131'000 * kMtu, twos)));
  EXPECT_TRUE(responses.is_too_far(op, data_for(op, 132'100 * kMtu, twos)));
}

}  // namespace
}  // namespace uet::ses::testing
