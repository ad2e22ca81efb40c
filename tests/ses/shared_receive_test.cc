// Receives that messages to several endpoints take. [FI 6.7]
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

/// B has two endpoints of one shared receive context, with RI 5 and 6. A sends to either.
class SharedReceiveTest : public PairTest {
 protected:
  explicit SharedReceiveTest(const SesConfig& config = {}) : PairTest(config) {}

  void open_both() {
    context = *sb().open_receive_context(64, at_context);
    EndpointConfig config;
    config.job_id = 7;
    config.resource_index = 5;
    config.receive_context = context;
    open(config);
    config.resource_index = 6;
    config.initiator_id = 5;
    second = *sb().open_endpoint(fabric.now, config, at_second);
    second_of_a = *sa().add_peer(sb().address_of(second));
  }
  /// A's own receives are not shared.
  void open(EndpointConfig config) {
    EndpointConfig plain = config;
    plain.receive_context = 0;
    plain.initiator_id = 3;
    ea = *sa().open_endpoint(fabric.now, plain, at_a);
    config.initiator_id = 4;
    eb = *sb().open_endpoint(fabric.now, config, at_b);
    b_of_a = *sa().add_peer(sb().address_of(eb));
    a_of_b = *sb().add_peer(sa().address_of(ea));
  }
  void send_to(PeerId peer, const Bytes& bytes, std::uint64_t tag) {
    kept.push_back(std::make_unique<Bytes>(bytes));
    const iovec iov = piece(*kept.back());
    SendRequest r;
    r.peer = peer;
    r.tagged = true;
    r.tag = tag;
    r.iov = {&iov, 1};
    ASSERT_TRUE(sa().send(fabric.now, ea, r));
  }
  PostResult<Posted> share(Bytes& bytes, std::uint64_t tag, std::uint64_t op, bool multi = false) {
    const iovec iov = piece(bytes);
    ReceiveRequest r;
    r.tagged = true;
    r.tag = tag;
    r.iov = {&iov, 1};
    r.context = op;
    r.multi_recv = multi;
    return sb().receive(fabric.now, context, r);
  }

  EndpointId context = 0, second = 0;
  PeerId second_of_a = 0;
  Recorder at_context, at_second;
};

// Covers: FI-80
TEST_F(SharedReceiveTest, messages_of_each_endpoint_take_what_was_posted_and_complete_at_home) {
  open_both();
  Bytes one(3 * kM), two(3 * kM), three(8);
  ASSERT_TRUE(share(one, 1, 1));
  ASSERT_TRUE(share(two, 1, 2));
  send_to(second_of_a, pattern(3 * kM, 1), 1);
  fabric.run();
  send_to(b_of_a, pattern(3 * kM, 2), 1);
  fabric.run();
  ASSERT_EQ(at_second.all.size(), 1u);
  EXPECT_EQ(at_second.all[0].context, 1u);
  EXPECT_EQ(one, pattern(3 * kM, 1));
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].context, 2u);
  EXPECT_EQ(two, pattern(3 * kM, 2));
  EXPECT_TRUE(at_context.all.empty());
  // What belongs to the context is posted there, and nothing is sent from it.
  const iovec iov = piece(three);
  ReceiveRequest r;
  r.iov = {&iov, 1};
  EXPECT_EQ(sb().receive(fabric.now, eb, r).error(), PostError::kBadArgument);
  SendRequest s;
  s.peer = a_of_b;
  EXPECT_EQ(sb().send(fabric.now, context, s).error(), PostError::kBadEndpoint);
  EXPECT_EQ(sb().gauges().endpoints, 2u);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

// Covers: FI-80
TEST_F(SharedReceiveTest, what_waits_is_taken_from_each_endpoint_in_turn) {
  open_both();
  for (std::uint8_t i = 0; i < 2; ++i) {
    send_to(b_of_a, {i}, 1);
    send_to(second_of_a, {i}, 1);
  }
  fabric.run();
  Bytes into(4);
  for (std::uint64_t op = 1; op <= 2; ++op) ASSERT_TRUE(share(into, 1, op));
  EXPECT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_second.all.size(), 1u);
  for (std::uint64_t op = 3; op <= 4; ++op) ASSERT_TRUE(share(into, 1, op));
  EXPECT_EQ(at_b.all.size(), 2u);
  EXPECT_EQ(at_second.all.size(), 2u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 0u);
}

struct NoStore : SesConfig {
  NoStore() { overflow_msgs = 0; }
};
struct SharedWithoutStoreTest : SharedReceiveTest {
  SharedWithoutStoreTest() : SharedReceiveTest(NoStore()) {}
};

// A receive of the context lets in what was refused at any of its endpoints.
TEST_F(SharedWithoutStoreTest, refused_messages_come_again_when_a_receive_is_shared) {
  open_both();
  send_to(b_of_a, pattern(100, 1), 1);
  send_to(second_of_a, pattern(100, 2), 2);
  fabric.run();
  EXPECT_TRUE(at_b.all.empty() && at_second.all.empty());
  Bytes one(100), two(100);
  ASSERT_TRUE(share(one, 1, 1));
  ASSERT_TRUE(share(two, 2, 2));
  fabric.run_for(Duration::from_seconds(5));
  ASSERT_EQ(at_b.all.size(), 1u);
  ASSERT_EQ(at_second.all.size(), 1u);
  EXPECT_EQ(one, pattern(100, 1));
  EXPECT_EQ(two, pattern(100, 2));
}

// Covers: FI-80
TEST_F(SharedReceiveTest, multi_recv__is_filled_by_all_and_given_back_once) {
  open_both();
  sb().set_min_multi_recv(context, 50);
  Bytes buffer(200);
  ASSERT_TRUE(share(buffer, 1, 1, true));
  send_to(b_of_a, pattern(50, 1), 1);
  send_to(second_of_a, pattern(50, 2), 1);
  send_to(b_of_a, pattern(50, 3), 1);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 2u);
  ASSERT_EQ(at_second.all.size(), 1u);
  int released = 0;
  for (const Recorder* at : {&at_b, &at_second})
    for (const Completion& c : at->all) released += c.multi_recv_released ? 1 : 0;
  EXPECT_EQ(released, 1);
  // The next one does not fit: the buffer comes back by the context.
  ASSERT_TRUE(share(buffer, 1, 2, true));
  send_to(b_of_a, pattern(100, 4), 1);
  fabric.run();
  send_to(second_of_a, pattern(150, 5), 1);
  fabric.run();
  ASSERT_EQ(at_context.all.size(), 1u);
  EXPECT_TRUE(at_context.all[0].multi_recv_released);
  EXPECT_EQ(at_context.all[0].context, 2u);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
  EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
}

TEST_F(SharedReceiveTest, cancel__is_told_to_the_context) {
  open_both();
  Bytes into(8);
  ASSERT_TRUE(share(into, 1, 9));
  EXPECT_FALSE(sb().cancel(fabric.now, eb, 9));
  EXPECT_TRUE(sb().cancel(fabric.now, context, 9));
  ASSERT_EQ(at_context.all.size(), 1u);
  EXPECT_EQ(at_context.all[0].code, ReturnCode::kCancelled);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

// A receive that a closed endpoint's message had taken is no loss to the others.
TEST_F(SharedReceiveTest, close_endpoint__half_filled_receives_go_back) {
  open_both();
  Bytes into(3 * kM), multi(3 * kM);
  ASSERT_TRUE(share(into, 1, 1));
  ASSERT_TRUE(share(multi, 2, 2, true));
  send_to(b_of_a, pattern(3 * kM, 1), 1);
  send_to(b_of_a, pattern(3 * kM, 2), 2);
  send_to(second_of_a, pattern(2 * kM, 3), 1);
  fabric.cut_all();
  fabric.deliver(0);  // the first packets of both
  fabric.deliver(2);
  fabric.deliver(4);  // and the third message waits, whole
  fabric.deliver(4);
  EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
  sb().close_endpoint(fabric.now, eb);
  EXPECT_TRUE(at_b.all.empty());
  ASSERT_EQ(at_second.all.size(), 1u);
  EXPECT_EQ(at_second.all[0].context, 1u);
  EXPECT_TRUE(std::equal(into.begin(), into.begin() + 2 * kM, pattern(2 * kM, 3).begin()));
  ASSERT_EQ(at_context.all.size(), 1u);
  EXPECT_TRUE(at_context.all[0].multi_recv_released);
  EXPECT_EQ(at_context.all[0].context, 2u);
  fabric.run();
  EXPECT_TRUE(at_b.all.empty());
  sb().close_endpoint(fabric.now, second);
  ASSERT_TRUE(share(into, 1, 3));
  sb().close_endpoint(fabric.now, context);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
  EXPECT_EQ(share(into, 1, 4).error(), PostError::kBadEndpoint);
}

struct WithRendezvous : SesConfig {
  WithRendezvous() {
    rendezvous = true;
    rendezvous_from = 1;
    rendezvous_eager = 2 * kM;
  }
};
struct SharedRendezvousTest : SharedReceiveTest {
  SharedRendezvousTest() : SharedReceiveTest(WithRendezvous()) {}
};

TEST_F(SharedRendezvousTest, the_rest_is_fetched_into_the_shared_receive) {
  open_both();
  Bytes one(20 * kM), two(20 * kM);
  ASSERT_TRUE(share(one, 1, 1));
  send_to(second_of_a, pattern(20 * kM, 1), 1);
  send_to(b_of_a, pattern(20 * kM, 2), 2);
  fabric.run();
  ASSERT_TRUE(share(two, 2, 2));
  fabric.run();
  ASSERT_EQ(at_second.all.size(), 1u);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(one, pattern(20 * kM, 1));
  EXPECT_EQ(two, pattern(20 * kM, 2));
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

TEST_F(SharedRendezvousTest, close_endpoint__gives_back_what_was_being_fetched) {
  open_both();
  Bytes into(20 * kM);
  ASSERT_TRUE(share(into, 1, 1));
  send_to(b_of_a, pattern(20 * kM, 1), 1);
  fabric.cut_all();
  while (sb().gauges().messages_fetching == 0) {
    ASSERT_FALSE(fabric.flights.empty());
    fabric.deliver(0);
  }
  sb().close_endpoint(fabric.now, eb);
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
  fabric.run();
  send_to(second_of_a, pattern(100, 2), 1);
  fabric.run();
  ASSERT_EQ(at_second.all.size(), 1u);
  EXPECT_EQ(at_second.all[0].length, 100u);
  EXPECT_EQ(sb().gauges().receives_posted, 0u);
}

}  // namespace
}  // namespace uet::ses::testing
