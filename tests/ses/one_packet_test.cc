// RUDI and UUD, both ends: one packet, no PDC. [SES 6.5, 11.2, 17; PDS 3.1, 17.2, 17.3]
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct OnePacketTest : PairTest {
  /// A region of B that may be reached over RUDI.
  std::uint64_t safe_region(Bytes& bytes) {
    const iovec all = piece(bytes);
    MemoryRequest request;
    request.iov = {&all, 1};
    request.remote_read = request.remote_write = true;
    request.virtual_addressing = false;
    request.idempotent_safe = true;
    return *sb().register_memory(request);
  }
  RmaRequest rudi(bool read, Bytes& bytes, std::uint64_t key) {
    part_ = piece(bytes);
    RmaRequest request;
    request.peer = b_of_a;
    request.delivery = Delivery::kIdempotent;
    request.read = read;
    request.iov = {&part_, 1};
    request.key = key;
    request.context = 1;
    return request;
  }
  SendRequest datagram(Bytes& bytes) {
    part_ = piece(bytes);
    SendRequest request;
    request.peer = b_of_a;
    request.delivery = Delivery::kDatagram;
    request.iov = {&part_, 1};
    request.context = 1;
    return request;
  }
  /// A datagram to B, which has posted `into`.
  RawRequest for_a_receive(Bytes& into) {
    open();
    post(into);
    RawRequest r;
    r.opcode = SesOpcode::kDatagramSend;
    r.payload = {1};
    r.length = 1;
    return r;
  }
  PostResult<Posted> try_rma(const RmaRequest& r) { return sa().rma(fabric.now, ea, r); }
  PostResult<Posted> try_send(const SendRequest& r) { return sa().send(fabric.now, ea, r); }
  void expect_one_completion(ReturnCode code) {
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, code);
    EXPECT_EQ(sa().gauges().sends_active, 0u);
    at_a.all.clear();
  }

 private:
  iovec part_{};
};

// --- RUDI ---------------------------------------------------------------------------------------

TEST_F(OnePacketTest, rudi__write_and_read_move_the_bytes_without_a_completion_there) {
  open();
  Bytes memory(kM), from = pattern(kM), into(kM);
  const std::uint64_t key = safe_region(memory);
  ASSERT_TRUE(try_rma(rudi(false, from, key)));
  fabric.run();
  EXPECT_EQ(memory, from);
  expect_one_completion(ReturnCode::kOk);
  ASSERT_TRUE(try_rma(rudi(true, into, key)));
  fabric.run();
  EXPECT_EQ(into, from);
  expect_one_completion(ReturnCode::kOk);
  for (const Flight& f : fabric.sent_log) EXPECT_EQ(f.channel->mode, pds::Mode::kRudi);
  for (const Reply& r : fabric.reply_log) EXPECT_FALSE(r.guaranteed);
  EXPECT_EQ(a.locks, 0);
  EXPECT_TRUE(at_b.all.empty());
}

TEST_F(OnePacketTest, rudi__a_read_does_not_change_how_other_reads_are_answered) {
  open();
  Bytes memory(kM, 3), into(kM);
  const std::uint64_t key = expose(memory);
  ASSERT_TRUE(try_rma(rudi(true, into, safe_region(memory))));
  fabric.run();
  const std::size_t answers = fabric.reply_log.size();
  rma(true, into, key, 0, 2);
  fabric.run();
  EXPECT_EQ(at_a.all.size(), 2u);
  // Longer than max_ack_data, so it comes in the return direction: an answer to the request, one to the data.
  EXPECT_EQ(fabric.reply_log.size(), answers + 2);
  EXPECT_EQ(fabric.reply_log[answers].view().data.size(), 0u);
}

TEST_F(OnePacketTest, rudi__nothing_at_all_can_be_moved_too) {
  open();
  Bytes memory(8), nothing;
  const std::uint64_t key = safe_region(memory);
  for (const bool read : {false, true}) {
    ASSERT_TRUE(try_rma(rudi(read, nothing, key)));
    fabric.run();
    expect_one_completion(ReturnCode::kOk);
  }
}

TEST_F(OnePacketTest, rudi__a_request_that_comes_twice_is_executed_and_answered_twice) {
  open();
  Bytes memory(8), from = pattern(8);
  ASSERT_TRUE(try_rma(rudi(false, from, safe_region(memory))));
  fabric.cut_all();
  fabric.flights.push_back(fabric.flights[0]);
  fabric.deliver(0);
  memory.assign(8, 0);
  fabric.deliver(0);
  EXPECT_EQ(memory, from);
  EXPECT_EQ(fabric.reply_log.size(), 2u);
  while (fabric.reply(0)) {
  }
  expect_one_completion(ReturnCode::kOk);  // packet delivery drops the second answer, and so do we
}

// Covers: SES-72
TEST_F(OnePacketTest, rudi__only_with_keys_that_say_so) {
  open();
  Bytes memory(8), from(8, 1);
  const std::uint64_t unsafe = expose(memory);
  EXPECT_EQ(try_rma(rudi(false, from, unsafe)).error(), PostError::kBadKey);
  // The bit alone does not make it so: there is no region of that name.
  ASSERT_TRUE(try_rma(rudi(false, from, unsafe | 1ull << 63)));
  fabric.run();
  expect_one_completion(ReturnCode::kBadMkey);
  EXPECT_EQ(memory, Bytes(8));
}

TEST_F(OnePacketTest, rudi__refuses_what_cannot_come_twice) {
  open();
  Bytes memory(2 * kM), from(kM + 1);
  const std::uint64_t key = safe_region(memory);
  EXPECT_EQ(try_rma(rudi(false, from, key)).error(), PostError::kTooLong);
  from.resize(kM);
  RmaRequest r = rudi(false, from, key);
  r.data = 1;
  EXPECT_EQ(try_rma(r).error(), PostError::kModeForbids);
  r = rudi(false, from, key);
  r.delivery = Delivery::kDatagram;
  EXPECT_EQ(try_rma(r).error(), PostError::kModeForbids);
  SendRequest s = datagram(from);
  s.delivery = Delivery::kIdempotent;
  EXPECT_EQ(try_send(s).error(), PostError::kModeForbids);
  EXPECT_TRUE(fabric.sent_log.empty());
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

TEST_F(OnePacketTest, rudi__not_from_endpoints_that_promise_the_order_of_writes) {
  EndpointConfig c = standard_endpoint();
  c.sends_ordered = c.rma_ordered = true;
  open(c);
  Bytes memory(8), from(8);
  EXPECT_EQ(try_rma(rudi(false, from, safe_region(memory))).error(), PostError::kModeForbids);
}

TEST_F(OnePacketTest, rudi__only_to_peers_whose_profile_has_it) {
  open();
  Bytes memory(8), from(8);
  const std::uint64_t key = safe_region(memory);
  Address address = sb().address_of(eb);
  RmaRequest r = rudi(false, from, key);
  address.fep_cap = 0b011;  // AI
  r.peer = *sa().add_peer(address);
  EXPECT_EQ(try_rma(r).error(), PostError::kModeForbids);
  address.fep_cap = 0b100;  // HPC
  r.peer = *sa().add_peer(address);
  EXPECT_TRUE(try_rma(r));
  fabric.run();
  expect_one_completion(ReturnCode::kOk);
}

TEST_F(OnePacketTest, rudi__header_data_is_refused_by_the_target) {
  open();
  Bytes memory(8);
  RawRequest r;
  r.opcode = SesOpcode::kWrite;
  r.key = safe_region(memory);
  r.payload = {1};
  r.length = 1;
  EXPECT_EQ(code_of(r, pds::Mode::kRudi), ReturnCode::kOk);
  r.hd = true;
  EXPECT_EQ(code_of(r, pds::Mode::kRudi), ReturnCode::kOpViolation);
  EXPECT_TRUE(at_b.all.empty());
}

TEST_F(OnePacketTest, rudi__an_error_of_the_target_ends_the_operation) {
  open();
  Bytes memory(8), into(9);
  ASSERT_TRUE(try_rma(rudi(true, into, safe_region(memory))));
  fabric.run();
  expect_one_completion(ReturnCode::kBadAddr);
}

TEST_F(OnePacketTest, rudi__a_packet_that_is_given_up_ends_the_operation) {
  open();
  Bytes memory(8), from(8);
  ASSERT_TRUE(try_rma(rudi(false, from, safe_region(memory))));
  fabric.cut_all();
  fabric.fail_message(a, fabric.flights[0].token, pds::PdsError::kRtoExhausted);
  expect_one_completion(ReturnCode::kUndeliverable);
}

TEST_F(OnePacketTest, rudi__answers_that_promise_more_end_the_operation) {
  // Nothing can follow the answer to the only packet, whatever it says.
  open();
  Bytes memory(8), into(8);
  ASSERT_TRUE(try_rma(rudi(true, into, safe_region(memory))));
  fabric.cut_all();
  const pds::MessageToken read = fabric.flights[0].token;
  sa().on_response(fabric.now, read, 0, 0, {});  // a read that is "fine", without its data
  expect_one_completion(ReturnCode::kOpViolation);
  ASSERT_TRUE(try_rma(rudi(false, into, safe_region(memory))));
  fabric.cut_all();
  const Flight& f = fabric.flights.back();
  const pds::Answer pending = answer_pending(f.view(kM));
  sa().on_response(fabric.now, f.token, 0, pending.response.next_hdr,
                   {pending.response.header.data(), pending.response.header_bytes});
  expect_one_completion(ReturnCode::kUncor);
}

TEST_F(OnePacketTest, rudi__fence_waits_for_it) {
  open();
  Bytes memory(8), from(8), other(8);
  const std::uint64_t key = safe_region(memory);
  ASSERT_TRUE(try_rma(rudi(false, from, key)));
  RmaRequest behind = rudi(true, other, key);
  behind.fence = true;
  behind.context = 2;
  ASSERT_TRUE(try_rma(behind));
  fabric.cut_all();
  EXPECT_EQ(fabric.sent_log.size(), 1u);
  fabric.run();
  EXPECT_EQ(fabric.sent_log.size(), 2u);
  EXPECT_EQ(at_a.all.size(), 2u);
}

TEST_F(OnePacketTest, rudi__cancel_and_close_leave_nothing_behind) {
  open();
  Bytes memory(8), from(8, 7);
  const std::uint64_t key = safe_region(memory);
  ASSERT_TRUE(try_rma(rudi(false, from, key)));
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.run();
  expect_one_completion(ReturnCode::kCancelled);
  ASSERT_TRUE(try_rma(rudi(false, from, key)));
  fabric.cut_all();
  EXPECT_FALSE(sa().cancel(fabric.now, ea, 1));  // it is under way
  sa().close_endpoint(fabric.now, ea);
  fabric.run();
  EXPECT_EQ(sa().gauges().sends_active, 0u);
}

// --- UUD ----------------------------------------------------------------------------------------

// Covers: SES-79
TEST_F(OnePacketTest, datagram__is_complete_when_it_has_left) {
  open();
  Bytes into(4), from{1, 2, 3, 4};
  post(into);
  SendRequest r = datagram(from);
  r.data = 99;
  ASSERT_TRUE(try_send(r));
  EXPECT_TRUE(at_a.all.empty());
  fabric.cut_all();
  expect_one_completion(ReturnCode::kOk);
  ASSERT_EQ(fabric.sent_log.size(), 1u);
  EXPECT_EQ(fabric.sent_log[0].channel->mode, pds::Mode::kUud);
  EXPECT_EQ(fabric.sent_log[0].view(kM).message_id, 0);
  fabric.run();
  EXPECT_EQ(into, from);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].data, 99u);
  EXPECT_TRUE(fabric.reply_log.empty());
}

TEST_F(OnePacketTest, datagram__without_a_receive_is_gone_and_a_copy_is_a_second_message) {
  open();
  Bytes from{1}, into(4), again(4);
  ASSERT_TRUE(try_send(datagram(from)));
  fabric.run();
  EXPECT_EQ(b.trace.drops(base::DropReason::kDatagramNoBuffer), 1u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
  post(into, 100);
  post(again, 101);
  ASSERT_TRUE(try_send(datagram(from)));
  fabric.cut_all();
  fabric.flights.push_back(fabric.flights[0]);
  fabric.run();
  EXPECT_EQ(at_b.all.size(), 2u);
  EXPECT_EQ(at_a.all.size(), 2u);
}

TEST_F(OnePacketTest, datagram__refuses_what_needs_an_answer_or_a_second_packet) {
  open();
  Bytes from(kM + 1);
  EXPECT_EQ(try_send(datagram(from)).error(), PostError::kTooLong);
  from.resize(kM);
  SendRequest r = datagram(from);
  r.tagged = true;
  EXPECT_EQ(try_send(r).error(), PostError::kModeForbids);
  r = datagram(from);
  r.delivery_complete = true;
  EXPECT_EQ(try_send(r).error(), PostError::kModeForbids);
  EXPECT_TRUE(try_send(datagram(from)));
}

TEST_F(OnePacketTest, datagram__not_from_endpoints_that_promise_order) {
  EndpointConfig c = standard_endpoint();
  c.sends_ordered = true;
  open(c);
  Bytes from(1);
  EXPECT_EQ(try_send(datagram(from)).error(), PostError::kModeForbids);
}

// [SES 2.5] Targets ignore it where no receive of a numbered index is meant.
TEST_F(OnePacketTest, datagram__with_a_generation_is_taken) {
  Bytes into(4);
  RawRequest r = for_a_receive(into);
  r.message_id = 0;
  r.generation = 3;
  inject(r, pds::Mode::kUud);
  EXPECT_EQ(at_b.all.size(), 1u);
}

// Covers: PDS-183
TEST_F(OnePacketTest, datagram__with_a_message_id_is_dropped) {
  Bytes into(4);
  RawRequest r = for_a_receive(into);
  EXPECT_EQ(inject(r, pds::Mode::kUud).kind, pds::Answer::Kind::kNone);
  EXPECT_EQ(b.trace.drops(base::DropReason::kDatagramNoBuffer), 1u);
  r.message_id = 0;
  inject(r, pds::Mode::kUud);
  EXPECT_EQ(at_b.all.size(), 1u);
}

}  // namespace
}  // namespace uet::ses::testing
