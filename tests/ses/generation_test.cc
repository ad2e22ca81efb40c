// Resource index generations on ordered contexts. [SES 2.5]
#include <algorithm>
#include <functional>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig without_overflow(bool generations = true) {
  SesConfig c;
  c.overflow_msgs = 0;
  c.use_generations = generations;
  return c;
}

struct GenerationTest : PairTest {
  explicit GenerationTest(const SesConfig& c = without_overflow()) : PairTest(c) {}
  void open_ordered() {
    EndpointConfig c = standard_endpoint();
    c.sends_ordered = true;
    open(c);
  }
  RawRequest one_byte(std::uint8_t value, std::uint8_t generation) {
    RawRequest r;
    r.length = 1;
    r.payload = {value};
    r.generation = generation;
    return r;
  }
};

// Covers: SES-48, SES-49, SES-51
TEST_F(GenerationTest, rod_without_buffer__disables_until_one_is_posted) {
  open_ordered();
  EXPECT_EQ(code_of(one_byte(1, 0), pds::Mode::kRod), ReturnCode::kDisabledGen);
  EXPECT_EQ(code_of(one_byte(2, 0), pds::Mode::kRod), ReturnCode::kDisabledGen);
  EXPECT_EQ(code_of(one_byte(2, 0), pds::Mode::kRud), ReturnCode::kDisabledGen);
  Bytes into(1);
  post(into);
  const auto stale = inject(one_byte(3, 0), pds::Mode::kRod);
  EXPECT_EQ(view(stale).code, ReturnCode::kBadGeneration);
  EXPECT_EQ(view(stale).ri_generation, 1);
  EXPECT_TRUE(stale.guaranteed);
  EXPECT_EQ(code_of(one_byte(4, 1), pds::Mode::kRod), ReturnCode::kOk);
  EXPECT_EQ(into[0], 4);
}

// Covers: SES-48
TEST_F(GenerationTest, refusal_holds_up_what_another_receive_would_take) {
  open_ordered();
  Bytes into(1);
  tpost(into, 7);
  RawRequest refused = one_byte(1, 0), behind = one_byte(2, 0);
  refused.opcode = behind.opcode = SesOpcode::kTaggedSend;
  refused.key = 5;
  behind.key = 7;
  EXPECT_EQ(code_of(refused, pds::Mode::kRod), ReturnCode::kDisabledGen);
  EXPECT_EQ(code_of(behind, pds::Mode::kRod), ReturnCode::kDisabledGen);
  EXPECT_EQ(into[0], 0);
}

// The packet that ends the message early is answered last, and the initiator believes the last answer.
TEST_F(GenerationTest, refused_message_that_ends_early__is_told_the_present_generation_to_the_end) {
  open_ordered();
  EXPECT_EQ(code_of(one_byte(1, 0), pds::Mode::kRod), ReturnCode::kDisabledGen);
  Bytes into(3 * kM);
  post(into);
  RawRequest first;
  first.length = 3 * kM;
  first.payload = Bytes(kM);
  first.eom = false;
  const auto refusal = view(inject(first, pds::Mode::kRod));
  EXPECT_EQ(refusal.code, ReturnCode::kBadGeneration);
  EXPECT_EQ(refusal.ri_generation, 1);
  RawRequest end = first;
  end.opcode = SesOpcode::kMsgError;
  end.som = false;
  end.eom = true;
  end.offset = kM;
  end.payload = {};
  const auto last = view(inject(end, pds::Mode::kRod));
  EXPECT_EQ(last.code, ReturnCode::kBadGeneration);
  EXPECT_EQ(last.ri_generation, 1);
}

TEST_F(GenerationTest, spaces__have_their_own) {
  open_ordered();
  RawRequest tagged = one_byte(1, 0);
  tagged.opcode = SesOpcode::kTaggedSend;
  EXPECT_EQ(code_of(tagged, pds::Mode::kRod), ReturnCode::kDisabledGen);
  Bytes into(1);
  post(into);
  EXPECT_EQ(code_of(one_byte(9, 0), pds::Mode::kRod), ReturnCode::kOk);
}

// Covers: SES-50
TEST_F(GenerationTest, recover__resends_what_failed_in_its_order_and_nothing_else) {
  open_ordered();
  std::vector<Bytes> into(5, Bytes(2 * kM));
  post(into[0]);
  std::vector<Bytes> data;
  for (std::uint32_t i = 0; i < 5; ++i) {
    data.push_back(pattern(2 * kM, i));
    send(data.back(), i + 1);
  }
  fabric.run();
  EXPECT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(into[0], data[0]);
  for (std::size_t i = 1; i < 5; ++i) post(into[i]);
  fabric.run_for(Duration::from_ms(100));
  ASSERT_EQ(at_a.all.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(into[i], data[i]) << i;
    EXPECT_EQ(at_a.all[i].context, i + 1);
    EXPECT_EQ(at_a.all[i].code, ReturnCode::kOk);
  }
  std::size_t first_message = 0;
  for (const Flight& f : fabric.sent_log)
    if (Bytes(f.bytes.begin() + 44, f.bytes.end()) == Bytes(data[0].begin(), data[0].begin() + kM))
      ++first_message;
  EXPECT_EQ(first_message, 1u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
}

TEST_F(GenerationTest, recover__holds_back_what_was_posted_later) {
  open_ordered();
  for (std::uint8_t i = 0; i < 3; ++i) send(Bytes{i}, i);
  fabric.run();
  send(Bytes{3}, 3);
  std::vector<Bytes> into(4, Bytes(1));
  for (auto& i : into) post(i);
  fabric.run_for(Duration::from_ms(100));
  for (std::uint8_t i = 0; i < 4; ++i) EXPECT_EQ(into[i][0], i);
}

struct OverflowGenerationTest : GenerationTest {
  static SesConfig one_message() {
    SesConfig c;
    c.overflow_msgs = 1;
    return c;
  }
  OverflowGenerationTest() : GenerationTest(one_message()) {}
};

TEST_F(OverflowGenerationTest, freed_overflow__enables_again) {
  open_ordered();
  EXPECT_EQ(code_of(one_byte(1, 0), pds::Mode::kRod), ReturnCode::kOk);
  EXPECT_EQ(code_of(one_byte(2, 0), pds::Mode::kRod), ReturnCode::kDisabledGen);
  Bytes into(1);
  post(into);
  EXPECT_EQ(code_of(one_byte(3, 1), pds::Mode::kRod), ReturnCode::kOk);
}

// What is refused holds up the source it came from, and no other one.
TEST_F(OverflowGenerationTest, refusal__is_of_its_source_alone) {
  open_ordered();
  EXPECT_EQ(code_of(one_byte(1, 0), pds::Mode::kRod), ReturnCode::kOk);
  EXPECT_EQ(code_of(one_byte(2, 0), pds::Mode::kRod), ReturnCode::kDisabledGen);
  Bytes into(1);
  PeerId from = a_of_b;
  const iovec iov = piece(into);
  ReceiveRequest r;
  r.source = from;
  r.iov = {&iov, 1};
  r.context = 9;
  ASSERT_TRUE(sb().receive(fabric.now, eb, r));
  // The other source is first, and there is still no room for it.
  EXPECT_EQ(code_of(one_byte(3, 1), pds::Mode::kRod), ReturnCode::kDisabledGen);
  send({42});
  fabric.run();
  ASSERT_NE(at_b.find(9), nullptr);
  EXPECT_EQ(into[0], 42);
}

/// `senders` nodes send to B, all messages ordered; the store of B holds one. The program of B wants those of one sender after
/// the other, so the others are refused again and again meanwhile.
class BacklogTest : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Senders, BacklogTest, ::testing::Values(1, 2, 3, 4, 5));

TEST_P(BacklogTest, posted_receive__gets_its_message_whatever_else_comes_again) {
  constexpr std::uint32_t kMessages = 3;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Fabric fabric(seed, kM);
    SesConfig config;
    config.overflow_msgs = 1;
    Node& target = fabric.add_node(config);
    Recorder at_target;
    EndpointConfig e;
    e.job_id = 7;
    e.resource_index = 5;
    e.sends_ordered = true;
    const EndpointId endpoint = *target.ses.open_endpoint(fabric.now, e, at_target);
    struct Source {
      Node* node;
      Recorder sink;
      PeerId peer, known_as;
      Bytes data = pattern(100);
    };
    std::vector<std::unique_ptr<Source>> sources;
    for (std::uint32_t i = 0; i <= GetParam(); ++i) {
      auto s = std::make_unique<Source>();
      s->node = &fabric.add_node();
      e.initiator_id = 100 + i;
      const EndpointId own = *s->node->ses.open_endpoint(fabric.now, e, s->sink);
      s->peer = *s->node->ses.add_peer(target.ses.address_of(endpoint));
      s->known_as = *target.ses.add_peer(s->node->ses.address_of(own));
      for (std::uint32_t m = 0; m < kMessages; ++m) {
        const iovec iov = piece(s->data);
        SendRequest r;
        r.peer = s->peer;
        r.tagged = true;
        r.tag = m;
        r.iov = {&iov, 1};
        ASSERT_TRUE(s->node->ses.send(fabric.now, own, r));
      }
      sources.push_back(std::move(s));
    }
    fabric.run_for(Duration::from_ms(50));
    Bytes into(100);
    std::uint64_t context = 1;
    for (std::uint32_t i = 0; i <= GetParam(); ++i)
      for (std::uint32_t m = 0; m < kMessages; ++m) {
        const iovec iov = piece(into);
        ReceiveRequest r;
        r.tagged = true;
        r.tag = m;
        r.source = sources[GetParam() - i]->known_as;
        r.iov = {&iov, 1};
        r.context = context;
        ASSERT_TRUE(target.ses.receive(fabric.now, endpoint, r));
        fabric.run_for(Duration::from_seconds(5));
        ASSERT_NE(at_target.find(context), nullptr) << i << " " << m;
        ++context;
      }
  }
}

struct NoGenerationTest : GenerationTest {
  NoGenerationTest() : GenerationTest(without_overflow(false)) {}
};

// Covers: SES-52
TEST_F(NoGenerationTest, only_0_is_accepted) {
  open_ordered();
  Bytes into(1);
  post(into);
  EXPECT_EQ(code_of(one_byte(1, 1)), ReturnCode::kBadGeneration);
  EXPECT_EQ(code_of(one_byte(1, 0)), ReturnCode::kOk);
  EXPECT_EQ(code_of(one_byte(1, 0), pds::Mode::kRod), ReturnCode::kDisabled);
}

// Covers: SES-53
TEST_F(GenerationTest, generation__wraps_to_0_and_goes_on) {
  open_ordered();
  Bytes into(1);
  for (int i = 0; i < 256; ++i) {
    const auto g = static_cast<std::uint8_t>(i);
    ASSERT_EQ(code_of(one_byte(0, g), pds::Mode::kRod), ReturnCode::kDisabledGen) << i;
    post(into);
    ASSERT_EQ(code_of(one_byte(0, static_cast<std::uint8_t>(i + 1)), pds::Mode::kRod),
              ReturnCode::kOk);
  }
  post(into);
  EXPECT_EQ(code_of(one_byte(0, 0), pds::Mode::kRod), ReturnCode::kOk);
}

TEST_F(GenerationTest, rud_bad_generation__is_resent_at_once) {
  open();
  EXPECT_EQ(code_of(one_byte(1, 0), pds::Mode::kRod), ReturnCode::kDisabledGen);
  Bytes into(1);
  post(into);
  send({42});
  fabric.run();
  EXPECT_EQ(into[0], 42);
  EXPECT_EQ(at_a.all.size(), 1u);
}

// Covers: SES-80
TEST_F(GenerationTest, rod__messages_arrive_in_order_whatever_is_refused) {
  open_ordered();
  base::Rng rng(99);
  constexpr std::uint32_t kCount = 300;
  std::vector<Bytes> into(kCount, Bytes(3 * kM));
  std::uint32_t posted = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    send(pattern(rng.below(3 * kM), i), i);
    while (posted < kCount && rng.chance(0.5)) post(into[posted++]);
    fabric.run_randomly();
    if (rng.chance(0.2)) fabric.run_for(Duration::from_ms(3));
  }
  while (posted < kCount) post(into[posted++]);
  fabric.run_for(Duration::from_seconds(20));
  ASSERT_EQ(at_a.all.size(), kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    Bytes expected = pattern(at_b.all[i].length, i);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), into[i].begin())) << i;
  }
}

/// RMA that its endpoint promises to come after the sends before it. [SES 17]
struct AfterSendsTest : GenerationTest {
  AfterSendsTest() {
    memory = pattern(8, 1);
    config.sends_ordered = config.rma_ordered = config.atomics_ordered = true;
    config.writes_follow_sends = config.reads_follow_sends = true;
  }
  void open_exposed() {
    open(config);
    key = expose(memory);
  }
  void atomic(bool tagged, bool fetching, std::uint64_t context) {
    iovec operand = piece(one), result = piece(old);
    AtomicRequest r;
    r.peer = b_of_a;
    r.tagged = tagged;
    r.fetching = fetching;
    r.op = AmoOpcode::kBor;
    r.type = AmoDatatype::kUint64;
    r.operand = {&operand, 1};
    if (fetching) r.result = {&result, 1};
    r.key = tagged ? 1 : key;
    r.context = context;
    ASSERT_TRUE(sa().atomic(fabric.now, ea, r));
  }
  /// What was posted behind context 1 waits until that has been taken.
  void expect_behind(std::uint64_t context, const std::function<void()>& post_first) {
    const Bytes before = memory;
    fabric.run_for(Duration::from_ms(50));
    EXPECT_EQ(at_a.find(context), nullptr);
    EXPECT_EQ(memory, before);
    post_first();
    fabric.run_for(Duration::from_seconds(3));
    ASSERT_EQ(at_a.all.size(), 2u);
    EXPECT_EQ(at_a.all[0].context, 1u);
    EXPECT_EQ(at_a.all[1].context, context);
    EXPECT_EQ(at_a.all[1].code, ReturnCode::kOk);
  }
  void expect_behind_send(std::uint64_t context) {
    expect_behind(context, [this] { post(into); });
  }

  EndpointConfig config = standard_endpoint();
  Bytes memory, one = Bytes(8, 0xff), old = Bytes(8), data = Bytes(8, 0xee), into = Bytes(1);
  std::uint64_t key = 0;
};

TEST_F(AfterSendsTest, write__waits_behind_a_send_that_is_refused) {
  open_exposed();
  send({42}, 1);
  rma(false, data, key, 0, 2);
  expect_behind_send(2);
  EXPECT_EQ(memory, data);
}

TEST_F(AfterSendsTest, read__waits_behind_a_send_that_is_refused) {
  open_exposed();
  send({42}, 1);
  rma(true, data, key, 0, 2);
  expect_behind_send(2);
  EXPECT_EQ(data, memory);
}

TEST_F(AfterSendsTest, atomic__waits_behind_a_send_that_is_refused) {
  open_exposed();
  send({42}, 1);
  atomic(false, false, 2);
  expect_behind_send(2);
  EXPECT_EQ(memory, one);
}

TEST_F(AfterSendsTest, fetching_atomic__waits_where_only_reads_follow_sends) {
  config.writes_follow_sends = false;
  open_exposed();
  send({42}, 1);
  atomic(false, true, 2);
  expect_behind_send(2);
}

TEST_F(AfterSendsTest, write__waits_behind_an_atomic_on_a_receive_that_is_refused) {
  open_exposed();
  into.resize(8);
  atomic(true, false, 1);
  rma(false, data, key, 0, 2);
  expect_behind(2, [this] { tpost(into, 1); });
}

// What was not asked for costs nothing.
TEST_F(AfterSendsTest, rma__goes_at_once_where_it_is_not_in_order_with_sends) {
  config.writes_follow_sends = config.reads_follow_sends = false;
  open_exposed();
  send({42}, 1);
  rma(false, data, key, 0, 2);
  fabric.cut_all();
  EXPECT_EQ(fabric.flights.size(), 2u);
}

TEST_F(AfterSendsTest, rma__does_not_wait_for_rma) {
  open_exposed();
  rma(false, data, key, 0, 1);
  rma(false, data, key, 0, 2);
  fabric.cut_all();
  EXPECT_EQ(fabric.flights.size(), 2u);
}

}  // namespace
}  // namespace uet::ses::testing
