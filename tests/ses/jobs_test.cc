// Endpoints of several jobs, and operations that choose one by the peer that they name. [SES 2.3, 3]
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig all_ways() {
  SesConfig c;
  c.spray_ordered = true;
  c.rendezvous = true;
  c.rendezvous_from = 4 * kM;
  c.rendezvous_eager = kM;
  return c;
}

/// A belongs to the jobs 7 and 9. At B the same PIDonFEP and RI are an endpoint of each.
struct JobsTest : PairTest {
  JobsTest() : PairTest(all_ways()) {}

  void open_jobs(bool ordered = false) {
    EndpointConfig of_b = standard_endpoint();
    of_b.sends_ordered = ordered;
    EndpointConfig of_a = of_b;
    of_a.further_jobs = {9};
    of_a.initiator_id = 3;
    of_b.initiator_id = 4;
    ea = *sa().open_endpoint(fabric.now, of_a, at_a);
    eb = *sb().open_endpoint(fabric.now, of_b, at_b);
    of_b.job_id = 9;
    eb9 = *sb().open_endpoint(fabric.now, of_b, at_b9);
    b_of_a = *sa().add_peer(sb().address_of(eb), 7);
    b9_of_a = *sa().add_peer(sb().address_of(eb9), 9);
    a_of_b = *sb().add_peer(sa().address_of(ea), 7);
    a9_of_b = *sb().add_peer(sa().address_of(ea), 9);
  }
  PostResult<Posted> send_to(PeerId peer, const Bytes& bytes, bool tagged = false) {
    sent.push_back(bytes);
    const iovec iov = piece(sent.back());
    SendRequest r;
    r.peer = peer;
    r.tagged = tagged;
    r.iov = {&iov, 1};
    r.context = 1;
    return sa().send(fabric.now, ea, r);
  }
  void post_at(EndpointId endpoint, Bytes& into, std::uint64_t context, PeerId source = kAnyPeer) {
    const iovec iov = piece(into);
    ReceiveRequest r;
    r.iov = {&iov, 1};
    r.context = context;
    r.source = source;
    ASSERT_TRUE(sb().receive(fabric.now, endpoint, r));
  }

  std::deque<Bytes> sent;
  EndpointId eb9 = 0;
  Recorder at_b9;
  PeerId b9_of_a = 0, a9_of_b = 0;
};

// Covers: SES-84
TEST_F(JobsTest, peer_of_a_job__reaches_the_endpoint_of_that_job) {
  open_jobs();
  EXPECT_NE(b_of_a, b9_of_a);
  Bytes into7(4), into9(4);
  post_at(eb, into7, 70);
  post_at(eb9, into9, 90);
  ASSERT_TRUE(send_to(b9_of_a, {9, 9, 9, 9}));
  ASSERT_TRUE(send_to(b_of_a, {7, 7, 7, 7}));
  fabric.run();
  EXPECT_EQ(into7, (Bytes{7, 7, 7, 7}));
  EXPECT_EQ(into9, (Bytes{9, 9, 9, 9}));
  ASSERT_EQ(at_b9.all.size(), 1u);
  EXPECT_EQ(at_b9.all[0].source.job_id, 9u);
  EXPECT_EQ(sb().find_source(at_b9.all[0].source), a9_of_b);
  EXPECT_EQ(sb().find_source(at_b.all[0].source), a_of_b);
}

// Covers: SES-84
TEST_F(JobsTest, job_of_which_the_endpoint_is_not__is_refused_at_the_post) {
  open_jobs();
  const PeerId in_8 = *sa().add_peer(sb().address_of(eb), 8);
  EXPECT_EQ(send_to(in_8, {1}).error(), PostError::kBadJob);
  RmaRequest write;
  write.peer = in_8;
  EXPECT_EQ(sa().rma(fabric.now, ea, write).error(), PostError::kBadJob);
  Bytes one(4);
  const iovec iov = piece(one);
  AtomicRequest add;
  add.peer = in_8;
  add.op = AmoOpcode::kSum;
  add.type = AmoDatatype::kUint32;
  add.operand = {&iov, 1};
  EXPECT_EQ(sa().atomic(fabric.now, ea, add).error(), PostError::kBadJob);
  EXPECT_EQ(sa().gauges().sends_active, 0u);
  EXPECT_FALSE(sa().add_peer(sb().address_of(eb), kLargestJob + 1));
}

/// What goes back and forth for such a message is addressed in its job too.
// Covers: SES-84
TEST_F(JobsTest, rendezvous__is_read_in_the_job_of_its_message) {
  open_jobs();
  Bytes into7(20 * kM), into9(20 * kM);
  post_at(eb, into7, 70);
  post_at(eb9, into9, 90);
  const Bytes message7 = pattern(20 * kM, 7), message9 = pattern(20 * kM, 9);
  ASSERT_TRUE(send_to(b9_of_a, message9));
  ASSERT_TRUE(send_to(b_of_a, message7));
  fabric.run();
  EXPECT_EQ(into7, message7);
  EXPECT_EQ(into9, message9);
  std::size_t reads = 0;
  for (const Flight& f : fabric.sent_log)
    if (!f.channel->is_return && f.view(kM).opcode == SesOpcode::kRead) ++reads;
  EXPECT_GT(reads, 30u);
}

/// Numbers of one stream that went to two endpoints would leave gaps at both.
// Covers: SES-84
TEST_F(JobsTest, ordered_sends__are_numbered_for_each_job) {
  open_jobs(true);
  std::array<Bytes, 6> into;
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i].resize(2 * kM);
    post_at(i % 2 == 0 ? eb : eb9, into[i], i);
  }
  for (std::size_t i = 0; i < into.size(); ++i)
    ASSERT_TRUE(send_to(i % 2 == 0 ? b_of_a : b9_of_a, pattern(2 * kM, 1 + i)));
  fabric.run();
  for (std::size_t i = 0; i < into.size(); ++i) EXPECT_EQ(into[i], pattern(2 * kM, 1 + i)) << i;
  EXPECT_EQ(sb().gauges().messages_held, 0u);
}

// Covers: SES-84
TEST_F(JobsTest, receive_and_peek__of_a_peer_take_messages_of_its_job_alone) {
  EndpointConfig both = standard_endpoint();
  both.further_jobs = {9};
  both.initiator_id = 4;
  open(standard_endpoint());
  const PeerId a_in_7 = *sb().add_peer(sa().address_of(ea), 7);
  const PeerId a_in_9 = *sb().add_peer(sa().address_of(ea), 9);
  both.resource_index = 6;
  const EndpointId e6 = *sb().open_endpoint(fabric.now, both, at_b9);
  Bytes of9(4), of7(4), peeked(4);
  post_at(e6, of9, 9, a_in_9);
  post_at(e6, of7, 7, a_in_7);
  b_of_a = *sa().add_peer(sb().address_of(e6));
  send({7, 0, 0, 0});
  send({7, 1, 0, 0});
  fabric.run();
  ASSERT_NE(at_b9.find(7), nullptr);
  EXPECT_EQ(at_b9.find(9), nullptr);
  PeekRequest peek;
  peek.tagged = false;
  peek.source = a_in_9;
  peek.context = 20;
  ASSERT_TRUE(sb().peek(fabric.now, e6, peek));
  EXPECT_EQ(at_b9.find(20)->code, ReturnCode::kNoMessage);
  peek.source = kAnyPeer;
  peek.job_id = 9;
  peek.context = 21;
  ASSERT_TRUE(sb().peek(fabric.now, e6, peek));
  EXPECT_EQ(at_b9.find(21)->code, ReturnCode::kNoMessage);
  peek.job_id = 7;
  peek.context = 22;
  ASSERT_TRUE(sb().peek(fabric.now, e6, peek));
  EXPECT_EQ(at_b9.find(22)->code, ReturnCode::kOk);
}

// Covers: SES-85
TEST_F(JobsTest, endpoint_of_several_jobs__is_addressed_in_each_until_it_is_closed) {
  EndpointConfig c = standard_endpoint();
  c.further_jobs = {9, 11};
  open(c);
  for (const std::uint32_t job : {7u, 9u, 11u}) {
    RawRequest r;
    r.opcode = SesOpcode::kNoOp;
    r.job = job;
    EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kDefaultResponse) << job;
    r.pid = 1;
    EXPECT_EQ(code_of(r), ReturnCode::kBadPid) << job;
  }
  RawRequest foreign;
  foreign.opcode = SesOpcode::kNoOp;
  foreign.job = 8;
  EXPECT_EQ(code_of(foreign), ReturnCode::kBadJobId);

  Recorder other;
  EndpointConfig clash = standard_endpoint();
  clash.job_id = 11;
  EXPECT_EQ(sb().open_endpoint(fabric.now, clash, other).error(), PostError::kAddressInUse);
  clash.resource_index = 0;
  const auto chosen = sb().open_endpoint(fabric.now, clash, other);
  ASSERT_TRUE(chosen);
  EXPECT_NE(sb().address_of(*chosen).resource_index, c.resource_index);

  sb().close_endpoint(fabric.now, *chosen);
  sb().close_endpoint(fabric.now, eb);
  for (const std::uint32_t job : {7u, 9u, 11u}) {
    foreign.job = job;
    EXPECT_EQ(code_of(foreign), ReturnCode::kBadJobId) << job;
  }
}

// Covers: SES-85
TEST_F(JobsTest, absolute_mode__jobs_are_what_an_endpoint_accepts) {
  EndpointConfig c = standard_endpoint();
  c.relative = false;
  c.accept_any_job = false;
  c.further_jobs = {9};
  open(c);
  Bytes into(4);
  post(into);
  RawRequest r;
  r.rel = false;
  r.length = 1;
  r.payload = {5};
  r.job = 8;
  EXPECT_EQ(code_of(r), ReturnCode::kPermViolation);
  r.job = 9;
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  EXPECT_EQ(into[0], 5);
}

// Covers: SES-85
TEST_F(JobsTest, jobs_of_an_endpoint__are_bounded_and_named_once) {
  open();
  Recorder sink;
  EndpointConfig c = standard_endpoint();
  c.resource_index = 0;
  const auto error_with = [&](std::vector<std::uint32_t> jobs) {
    c.further_jobs = std::move(jobs);
    const auto opened = sb().open_endpoint(fabric.now, c, sink);
    return opened ? std::nullopt : std::optional(opened.error());
  };
  EXPECT_EQ(error_with({7}), PostError::kBadArgument);
  EXPECT_EQ(error_with({8, 8}), PostError::kBadArgument);
  EXPECT_EQ(error_with({kLargestJob + 1}), PostError::kBadArgument);
  std::vector<std::uint32_t> many(kMaxJobs);
  std::iota(many.begin(), many.end(), 100);
  EXPECT_EQ(error_with(many), PostError::kBadArgument);
  many.pop_back();
  EXPECT_EQ(error_with(many), std::nullopt);
}

}  // namespace
}  // namespace uet::ses::testing
