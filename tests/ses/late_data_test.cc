// What a target still sends for an operation that has ended meets no later one. [SES 4.1]
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

/// Two endpoints at A: the first leaves something that comes late, the second reads.
struct LateTest : PairTest {
  void open_both() {
    open();
    EndpointConfig config = standard_endpoint();
    config.resource_index = 6;
    config.initiator_id = 9;
    second = *sa().open_endpoint(fabric.now, config, at_second);
  }
  /// Requests and their answers arrive, and nothing in the return direction.
  void run_forward() {
    const auto take = [&](auto& list, auto&& arrive) {
      for (std::size_t i = 0; i < list.size(); ++i)
        if (!list[i].channel->is_return) return arrive(i);
      return false;
    };
    do fabric.cut_all();
    while (take(fabric.flights, [&](std::size_t i) { return fabric.deliver(i); }) ||
           take(fabric.replies, [&](std::size_t i) { return fabric.reply(i); }));
  }
  void read_at_second(Bytes& into, std::uint64_t key) {
    const iovec iov = piece(into);
    RmaRequest r;
    r.peer = b_of_a;
    r.read = true;
    r.iov = {&iov, 1};
    r.key = key;
    ASSERT_TRUE(sa().rma(fabric.now, second, r));
  }
  /// `late` arrives between the requests of a READ and its data, which is right all the same. The target hears `told`: its
  /// operation is still known.
  void expect_late(const std::vector<Flight>& late, ReturnCode told) {
    Bytes memory = pattern(3 * kM, 7), into(3 * kM);
    read_at_second(into, expose(memory));
    run_forward();
    fabric.flights.insert(fabric.flights.begin(), late.begin(), late.end());
    fabric.reply_log.clear();
    for (std::size_t i = 0; i < late.size(); ++i) {
      fabric.deliver(0);
      EXPECT_EQ(fabric.reply_log.back().view().code, told);
    }
    fabric.run();
    ASSERT_EQ(at_second.all.size(), 1u);
    EXPECT_EQ(at_second.all[0].code, ReturnCode::kOk);
    EXPECT_EQ(into, memory);
  }

  EndpointId second = 0;
  Recorder at_second;
};

// Covers: SES-20
TEST_F(LateTest, data_of_a_read_whose_endpoint_closed__is_no_data_of_a_later_read) {
  open_both();
  Bytes memory(16 * kM, 0xaa), into(16 * kM);
  const auto key = expose(memory);
  rma(true, into, key, 0);
  run_forward();
  sa().close_endpoint(fabric.now, ea);
  fabric.deliver(0);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  std::vector<Flight> late;
  late.swap(fabric.flights);
  ASSERT_EQ(late.size(), 15u);
  expect_late(late, ReturnCode::kCancelled);
  EXPECT_EQ(into, Bytes(16 * kM));
}

TEST_F(LateTest, data_of_a_read_whose_region_closed__is_no_data_of_a_later_read) {
  open_both();
  Bytes memory(16 * kM, 0xaa), into(16 * kM);
  const auto key = expose(memory);
  rma(true, into, key, 0);
  run_forward();
  fabric.cut_all();
  std::vector<Flight> late;
  late.swap(fabric.flights);
  ASSERT_EQ(late.size(), 16u);
  Flight error = late.back();  // what the target sends where it cannot read
  wire::SesResponseData h;
  h.opcode = ResponseOpcode::kResponseWData;
  h.return_code = wire::ReturnCode::kCancelled;
  h.job_id = 7;
  h.message_id = h.read_request_message_id = fabric.sent_log[0].view(kM).message_id;
  h.message_offset = 15 * kM;
  error.bytes.resize(wire::SesResponseData::kSize);
  wire::emit(h, error.bytes.data());
  late.pop_back();
  fabric.flights.push_back(std::move(error));
  fabric.deliver(0);
  ASSERT_EQ(at_a.all.size(), 1u);  // told at once
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kCancelled);
  expect_late(late, ReturnCode::kCancelled);
  EXPECT_EQ(into, Bytes(16 * kM));
}

TEST_F(LateTest, report_to_an_endpoint_that_closed__is_no_answer_to_a_later_read) {
  open_both();
  Bytes data = pattern(100), into(100);
  const iovec iov = piece(data);
  SendRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.delivery_complete = true;
  ASSERT_TRUE(sa().send(fabric.now, ea, r));
  fabric.run();
  sa().close_endpoint(fabric.now, ea);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  post(into);
  fabric.cut_all();
  std::vector<Flight> late;
  late.swap(fabric.flights);
  ASSERT_EQ(late.size(), 1u);
  expect_late(late, ReturnCode::kOk);
}

}  // namespace
}  // namespace uet::ses::testing
