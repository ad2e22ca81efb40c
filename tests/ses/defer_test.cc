// Sends that the target puts off, and has sent again when it has a receive. [SES 8]
#include <algorithm>
#include <set>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

SesConfig deferring() {
  SesConfig c;
  c.sends_deferrable = c.defers = true;
  c.overflow_max = 0;
  c.retry_backoff_min = Duration::from_ms(1);
  c.message_idle = Duration::from_seconds(10);
  return c;
}

struct DeferTest : PairTest {
  explicit DeferTest(const SesConfig& config = deferring()) : PairTest(config) {}

  Bytes message = pattern(10 * kM, 1), into = Bytes(10 * kM);

  std::vector<RequestView> sent_by(const Node& from) const {
    std::vector<RequestView> views;
    for (const Flight& f : fabric.sent_log)
      if (f.channel->from == &from && !f.channel->is_return) views.push_back(f.view(kM));
    return views;
  }
  /// The message waits at A, and B has its header. Returns what A sent.
  std::vector<RequestView> put_off(std::optional<std::uint64_t> data = {}) {
    open();
    tsend(message, 5, 1, data);
    fabric.run();
    EXPECT_TRUE(at_a.all.empty());
    EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
    return sent_by(a);
  }
  /// As if `tokens` came in a request to restart from B, or from elsewhere.
  ReturnCode restart(std::uint64_t tokens, std::uint32_t job = 7, std::uint32_t host = 2) {
    const Bytes bytes =
        encode({.opcode = SesOpcode::kDeferrableRtr, .job = job, .initiator = 4, .key = tokens});
    pds::RxRequest r;
    r.handle = {raw_pdc, base::Psn(next_raw_psn++), false};
    r.mode = pds::Mode::kRud;
    r.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kRequestStd);
    r.source = net::FabricAddress::from_v4(0x0a000000 + host);
    r.is_proven = true;
    r.bytes = bytes;
    return view(sa().on_request(fabric.now, r)).code;
  }
  /// The message waits; the receive that B posts has it asked for, by a request whose header is changed by `change` on its way.
  template <typename Change>
  void restart_with(Change&& change) {
    put_off();
    tpost(into, 5);
    fabric.cut_all();
    ASSERT_EQ(fabric.flights.size(), 1u);
    Bytes& rtr = fabric.flights[0].bytes;
    auto h = wire::decode<wire::SesStandardFirst>(rtr.data());
    change(h);
    wire::emit(h, rtr.data());
    fabric.run();
  }
  void expect_one_completion_each() {
    EXPECT_EQ(into, message);
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    EXPECT_EQ(at_a.all[0].length, message.size());
    ASSERT_EQ(at_b.all.size(), 1u);
    EXPECT_EQ(at_b.all[0].code, ReturnCode::kOk);
    EXPECT_EQ(at_b.all[0].length, message.size());
    expect_nothing_left();
  }
  /// B throws the message away.
  void discard() {
    PeekRequest discard;
    discard.tag = 5;
    discard.action = PeekAction::kDiscard;
    ASSERT_TRUE(sb().peek(fabric.now, eb, discard));
  }
  /// So it does; its initiator hears that all is well.
  void discard_and_expect_ok() {
    discard();
    fabric.run();
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    expect_nothing_left();
  }
};

constexpr std::uint64_t tokens_of(const RequestView& r) {
  return std::uint64_t{r.initiator_token} << 32 | r.target_token;
}

// Covers: SES-54
TEST_F(DeferTest, no_buffer__initiator_stops_closes_and_waits) {
  open();
  tsend(message, 5);
  for (int i = 0; i < 3; ++i) fabric.cut_one_each();
  fabric.deliver(0);
  const ResponseView answer = fabric.reply_log.at(0).view();
  EXPECT_EQ(answer.code, ReturnCode::kOk);
  EXPECT_EQ(answer.list, ResponseList::kOverflow);
  EXPECT_EQ(answer.modified_length, 0u);
  EXPECT_TRUE(fabric.reply_log[0].guaranteed);
  fabric.reply(0);
  fabric.advance(Duration());
  fabric.run();
  const auto sent = sent_by(a);
  ASSERT_EQ(sent.size(), 4u);
  const RequestView& closing = sent[3];
  EXPECT_EQ(closing.opcode, SesOpcode::kDeferrableTsend);
  EXPECT_EQ(closing.message_id, sent[0].message_id);
  EXPECT_TRUE(!closing.som && closing.eom && closing.payload.empty());
  EXPECT_EQ(closing.message_offset, 3 * kM);
  EXPECT_NE(sent[0].initiator_token, 0u);
  for (const RequestView& r : sent) {
    EXPECT_EQ(r.initiator_token, sent[0].initiator_token);
    EXPECT_EQ(r.target_token, 0u);
  }
  // No byte is kept, no message is under way, and nothing is sent while it waits.
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  EXPECT_EQ(sb().gauges().messages_receiving, 0u);
  EXPECT_TRUE(sa().next_deadline().is_never());
  fabric.run_for(Duration::from_seconds(5));
  EXPECT_EQ(sent_by(a).size(), 4u);
  EXPECT_TRUE(at_a.all.empty());
  PeekRequest peek;
  peek.tag = 5;
  ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
  EXPECT_EQ(at_b.all.back().length, message.size());
}

// What is put off comes no second time before it is asked for.
TEST_F(DeferTest, peek__has_the_data_of_a_message_whose_first_packet_came_late) {
  open();
  tsend(message, 5, 1, 77);
  fabric.cut_all();
  fabric.deliver(1);
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);  // longer than what is kept of such messages
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(sb().gauges().unexpected_bytes, 0u);
  PeekRequest peek;
  peek.tag = 5;
  ASSERT_TRUE(sb().peek(fabric.now, eb, peek));
  EXPECT_EQ(at_b.all.back().code, ReturnCode::kOk);
  EXPECT_EQ(at_b.all.back().data, 77u);
  tpost(into, 5);
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(at_b.all.back().data, 77u);
  EXPECT_EQ(into, message);
}

// Covers: SES-55
TEST_F(DeferTest, receive__has_the_whole_message_sent_again) {
  const auto first = put_off(77);
  const std::size_t before = first.size();
  tpost(into, 5);
  fabric.run();
  const auto asked = sent_by(b);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].opcode, SesOpcode::kDeferrableRtr);
  EXPECT_TRUE(asked[0].som && asked[0].eom);
  EXPECT_EQ(asked[0].request_length, 0u);
  EXPECT_EQ(asked[0].buffer_offset, 0u);
  EXPECT_EQ(asked[0].initiator, 4u);
  EXPECT_EQ(asked[0].mkey_match >> 32, first[0].initiator_token);
  EXPECT_NE(asked[0].target_token, 0u);
  const auto all = sent_by(a);
  ASSERT_EQ(all.size(), before + 10);
  EXPECT_TRUE(all[before].som);
  EXPECT_NE(all[before].message_id, first[0].message_id);
  EXPECT_EQ(tokens_of(all[before]), tokens_of(asked[0]));
  EXPECT_EQ(tokens_of(all.back()), tokens_of(asked[0]));
  ASSERT_FALSE(at_b.all.empty());
  EXPECT_EQ(at_b.all[0].data, 77u);
  EXPECT_EQ(at_b.all[0].tag, 5u);
  expect_one_completion_each();
}

// Covers: SES-56
TEST_F(DeferTest, restart__of_what_is_not_known_is_refused) {
  const auto first = put_off();
  const std::uint64_t right = std::uint64_t{first[0].initiator_token} << 32 | 99;
  const std::size_t sent = fabric.sent_log.size();
  EXPECT_EQ(restart(right + (std::uint64_t{1} << 48)), ReturnCode::kOpViolation);
  EXPECT_EQ(restart(right + (std::uint64_t{1} << 32)), ReturnCode::kOpViolation);
  EXPECT_EQ(restart(right, 7, 99), ReturnCode::kOpViolation);
  EXPECT_NE(restart(right, 8), ReturnCode::kOk);
  fabric.run();
  EXPECT_EQ(fabric.sent_log.size(), sent);
  tpost(into, 5);
  fabric.run();
  expect_one_completion_each();
  EXPECT_EQ(restart(right), ReturnCode::kOpViolation);
}

// The target has no buffer under the token that it names, and says so.
TEST_F(DeferTest, restarted_message__with_a_token_that_was_not_given) {
  const auto first = put_off();
  EXPECT_EQ(restart(std::uint64_t{first[0].initiator_token} << 32 | 99), ReturnCode::kOk);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOpViolation);
}

// [SES 22.2] An older draft has the tokens the other way round.
TEST_F(DeferTest, restart__tokens_in_the_old_order) {
  restart_with([](auto& h) { h.mkey_match = h.mkey_match << 32 | h.mkey_match >> 32; });
  expect_one_completion_each();
}

// [WIRE 5.8] Its length is to be ignored: one peer leaves it 0, another names that of the message.
TEST_F(DeferTest, restart__with_the_length_of_the_message) {
  restart_with([this](auto& h) { h.request_length = static_cast<std::uint32_t>(message.size()); });
  expect_one_completion_each();
}

// The target completes its receive with the error, and asks no second time: without an end of its own the send would wait for ever.
TEST_F(DeferTest, restart__that_is_refused_ends_the_send) {
  restart_with([](auto& h) { h.ie = true; });
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kInitiatorErr);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_NE(at_b.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// Covers: SES-57
TEST_F(DeferTest, restarted_message__is_not_put_off_again) {
  const auto first = put_off();
  tpost(into, 5);
  fabric.cut_all();
  fabric.deliver(0);
  fabric.reply(0);
  fabric.advance(Duration());
  fabric.cut_one_each();
  ASSERT_EQ(fabric.flights.size(), 1u);
  const RequestView again = fabric.flights[0].view(kM);
  ASSERT_NE(again.target_token, 0u);
  // A target that has no buffer for it after all breaks its word.
  const auto answer = answer_ok(again, ResponseList::kOverflow, 0).response;
  sa().on_response(fabric.now, fabric.flights[0].token, 0, answer.next_hdr,
                   {answer.header.data(), answer.header_bytes});
  fabric.flights.clear();
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOpViolation);
  // And ours refuses a message with a token that has been used or belongs to another.
  RawRequest r{.opcode = SesOpcode::kDeferrableTsend,
               .message_id = 9,
               .buffer_offset = tokens_of(again),
               .key = 5,
               .length = 10 * kM,
               .payload = pattern(kM)};
  r.eom = false;
  EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
}

// Covers: SES-59
TEST_F(DeferTest, receive__two_minutes_later) {
  put_off();
  fabric.run_for(Duration::from_seconds(120));
  tpost(into, 5);
  fabric.run();
  expect_one_completion_each();
}

struct LimitedDeferTest : DeferTest {
  static SesConfig limited() {
    SesConfig c = deferring();
    c.restart_limit = Duration::from_seconds(5);
    return c;
  }
  LimitedDeferTest() : DeferTest(limited()) {}
};

// Covers: SES-59
TEST_F(LimitedDeferTest, restart__comes_too_late) {
  const auto first = put_off();
  fabric.run_for(Duration::from_seconds(4));
  EXPECT_TRUE(at_a.all.empty());
  fabric.run_for(Duration::from_seconds(2));
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kMessageTimeout);
  EXPECT_EQ(restart(std::uint64_t{first[0].initiator_token} << 32 | 1), ReturnCode::kOpViolation);
  tpost(into, 5);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kOpViolation);
  expect_nothing_left();
}

struct PlainPairTest : PairTest {
  explicit PlainPairTest(bool ordered = false) : PairTest(SesConfig{}) {
    EndpointConfig c = standard_endpoint();
    c.sends_ordered = ordered;
    open(c);
  }
  /// B, as one that says of itself what `change` sets.
  template <typename Change>
  PeerId peer(Change change) {
    Address address = sb().address_of(eb);
    change(address);
    return *sa().add_peer(address);
  }
  PostResult<Posted> send_to(PeerId to, std::size_t bytes) {
    kept.push_back(std::make_unique<Bytes>(pattern(bytes)));
    const iovec iov = piece(*kept.back());
    SendRequest r;
    r.peer = to;
    r.iov = {&iov, 1};
    return sa().send(fabric.now, ea, r);
  }
};

void make_ai(Address& a) {
  a.fep_cap = kAiBase;
}
void make_one_packet(Address& a) {
  a.one_packet_messages = true;
}

// Covers: SES-83
TEST_F(PlainPairTest, sends__to_peers_that_take_one_packet_are_deferrable) {
  const auto opcodes_to = [&](PeerId to) {
    std::set<SesOpcode> opcodes;
    for (const std::size_t bytes : {kM, 3 * kM}) {
      fabric.sent_log.clear();
      EXPECT_TRUE(send_to(to, bytes));
      fabric.cut_all();
      for (const Flight& f : fabric.sent_log) opcodes.insert(f.view(kM).opcode);
      fabric.run();
    }
    return opcodes;
  };
  const std::set<SesOpcode> plain{SesOpcode::kSend};
  const std::set<SesOpcode> both{SesOpcode::kSend, SesOpcode::kDeferrableSend};
  EXPECT_EQ(opcodes_to(peer([](Address&) {})), plain);
  EXPECT_EQ(opcodes_to(peer([](Address& address) { address.fep_cap = kProfiles; })), plain);
  EXPECT_EQ(opcodes_to(peer(make_ai)), both);
  EXPECT_EQ(opcodes_to(peer(make_one_packet)), both);
}

struct OrderedPairTest : PlainPairTest {
  OrderedPairTest() : PlainPairTest(true) {}
};

// What is put off would come behind what was sent later.
TEST_F(OrderedPairTest, sends__of_several_packets_to_such_peers_are_refused) {
  EXPECT_TRUE(send_to(peer([](Address&) {}), kM + 1));
  for (const PeerId to : {peer(make_ai), peer(make_one_packet)}) {
    EXPECT_TRUE(send_to(to, kM));
    const auto refused = send_to(to, kM + 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), PostError::kTooLong);
  }
}

// Covers: SES-83
TEST_F(DeferTest, sends__of_more_than_one_packet_are_deferrable) {
  open();
  send(pattern(kM));
  send(pattern(kM + 1));
  tsend(pattern(kM), 1);
  tsend(pattern(kM + 1), 1);
  fabric.run();
  const auto sent = sent_by(a);
  const auto count = [&](SesOpcode opcode) {
    return std::count_if(sent.begin(), sent.end(),
                         [&](const RequestView& r) { return r.opcode == opcode && r.som; });
  };
  EXPECT_EQ(count(SesOpcode::kSend), 1);
  EXPECT_EQ(count(SesOpcode::kDeferrableSend), 1);
  EXPECT_EQ(count(SesOpcode::kTaggedSend), 1);
  EXPECT_EQ(count(SesOpcode::kDeferrableTsend), 1);
}

TEST_F(DeferTest, short_receive__is_filled_and_told) {
  put_off();
  Bytes small(3 * kM + 7);
  tpost(small, 5);
  fabric.run();
  EXPECT_TRUE(std::equal(small.begin(), small.end(), message.begin()));
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].code, ReturnCode::kTruncated);
  EXPECT_EQ(at_b.all[0].length, small.size());
  EXPECT_EQ(at_b.all[0].overflow_length, message.size() - small.size());
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// [SES 22.9] Its initiator shall not wait for ever.
TEST_F(DeferTest, discard__the_message_is_sent_to_be_discarded) {
  put_off();
  discard_and_expect_ok();
}

struct KeepingDeferTest : DeferTest {
  static SesConfig keeping() {
    SesConfig c = deferring();
    c.overflow_max = 1 << 20;
    return c;
  }
  KeepingDeferTest() : DeferTest(keeping()) {}
};

// Nor shall it take a message that was kept in part, and discarded then, for one that was put off.
TEST_F(KeepingDeferTest, discard__of_a_message_that_is_still_arriving) {
  open();
  tsend(message, 5);
  fabric.cut_one_each();
  fabric.deliver(0);
  discard_and_expect_ok();
}

TEST_F(DeferTest, claim__has_the_message_sent_again) {
  put_off();
  PeekRequest claim;
  claim.tag = 5;
  claim.action = PeekAction::kClaim;
  claim.context = 60;
  ASSERT_TRUE(sb().peek(fabric.now, eb, claim));
  at_b.all.clear();
  const iovec iov = piece(into);
  ReceiveRequest r;
  r.tagged = true;
  r.iov = {&iov, 1};
  r.context = 60;
  ASSERT_TRUE(sb().claim_receive(fabric.now, eb, r, false));
  fabric.run();
  expect_one_completion_each();
}

// What one peer may have put off is bounded; the rest is refused until there is a receive, as it is for all other peers.
TEST_F(DeferTest, bound__of_one_peer) {
  open();
  constexpr std::uint64_t kSends = 20;
  for (std::uint64_t i = 0; i < kSends; ++i) tsend(message, i, 1 + i);
  fabric.run_for(Duration::from_ms(5));
  EXPECT_EQ(at_a.all.size(), kSends - SesConfig{}.max_deferred_of_peer);  // kept whole
  std::vector<Bytes> buffers(kSends, Bytes(message.size()));
  for (std::uint64_t i = 0; i < kSends; ++i) tpost(buffers[i], i, 0, 100 + i);
  fabric.run_for(Duration::from_ms(50));
  for (const Bytes& buffer : buffers) EXPECT_EQ(buffer, message);
  EXPECT_EQ(at_a.all.size(), kSends);
  EXPECT_EQ(at_b.all.size(), kSends);
  expect_nothing_left();
}

// A stranger's message cannot be asked for: it is kept, or refused.
TEST_F(DeferTest, stranger__is_not_put_off) {
  open();
  RawRequest r{.opcode = SesOpcode::kDeferrableSend,
               .buffer_offset = std::uint64_t{9} << 32,
               .initiator = 99,
               .length = 2 * kM,
               .payload = pattern(kM)};
  r.eom = false;
  EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kNoResponse);
  EXPECT_GT(sb().gauges().unexpected_bytes, 0u);
}

// An initiator that never sends again loses its receive to the clock; what was put off at a closed endpoint goes with it.
TEST_F(DeferTest, initiator__that_does_not_send_again) {
  put_off();
  sa().close_endpoint(fabric.now, ea);
  ASSERT_TRUE(at_a.all.empty());
  tpost(into, 5);
  fabric.run();
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_NE(at_b.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

/// A sends what it was asked for no more. B has been told that it comes, and does not keep its receive for it.
struct TakenBackTest : DeferTest {
  /// The message waits, and the request of B for it arrives at A when `before` was called.
  template <typename Before = void (*)()>
  void ask_for_it(Before&& before = [] {}) {
    put_off();
    tpost(into, 5);
    fabric.cut_all();
    ASSERT_EQ(fabric.flights.size(), 1u);
    tokens = fabric.flights[0].view(kM).mkey_match;
    std::forward<Before>(before)();
    fabric.deliver(0);
    EXPECT_EQ(fabric.reply_log.back().view().code, ReturnCode::kOk);
    sent = sent_by(a).size();
  }
  void expect_cancelled(const Recorder& at) {
    ASSERT_EQ(at.all.size(), 1u);
    EXPECT_EQ(at.all[0].code, ReturnCode::kCancelled);
  }
  /// Nothing of the message but the packet that closes it has gone under the token.
  void expect_closing_packet() {
    const auto all = sent_by(a);
    ASSERT_EQ(all.size(), sent + 1);
    const RequestView& closing = all.back();
    EXPECT_EQ(closing.opcode, SesOpcode::kDeferrableTsend);
    EXPECT_TRUE(!closing.som && closing.eom && !closing.ie && closing.payload.empty());
    EXPECT_EQ(closing.message_offset, 0u);
    EXPECT_EQ(closing.request_length, message.size());
    EXPECT_EQ(tokens_of(closing), tokens);
    for (std::size_t i = 0; i < sent; ++i) EXPECT_NE(closing.message_id, all[i].message_id);
  }
  void expect_both_cancelled() {
    expect_cancelled(at_a);
    fabric.run();
    expect_cancelled(at_b);
    expect_closing_packet();
    expect_nothing_left();
  }

  std::uint64_t tokens = 0;  ///< of the request
  std::size_t sent = 0;      ///< by A before it takes back what it promised
};

TEST_F(TakenBackTest, cancel__before_the_first_packet) {
  ask_for_it();
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  expect_both_cancelled();
}

TEST_F(TakenBackTest, cancel__while_packet_delivery_has_no_room) {
  ask_for_it([this] { fabric.full_towards = b.address; });
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  expect_cancelled(at_a);
  fabric.full_towards.reset();
  sa().on_resume(fabric.now);
  expect_both_cancelled();
}

TEST_F(TakenBackTest, close_endpoint__before_the_first_packet) {
  ask_for_it();
  sa().close_endpoint(fabric.now, ea);
  fabric.run();
  EXPECT_TRUE(at_a.all.empty());
  expect_cancelled(at_b);
  expect_closing_packet();
  expect_nothing_left();
}

// Two packets are out, of which one has told A that the message is put off, when B asks for it.
TEST_F(TakenBackTest, cancel__while_the_first_attempt_is_out) {
  open();
  tsend(message, 5);
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  fabric.deliver(0);
  tpost(into, 5);
  fabric.advance(Duration());
  fabric.cut_one_each();
  const auto request =
      std::ranges::find(fabric.flights, &b, [](const Flight& f) { return f.channel->from; });
  ASSERT_NE(request, fabric.flights.end());
  tokens = request->view(kM).mkey_match;
  fabric.deliver(static_cast<std::size_t>(request - fabric.flights.begin()));
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.run();
  expect_cancelled(at_a);
  expect_cancelled(at_b);
  EXPECT_EQ(tokens_of(sent_by(a).back()), tokens);
  expect_nothing_left();
}

// B asks for the message while packets of the first attempt are out; then their PDC is lost, and the user takes the message back.
TEST_F(TakenBackTest, cancel__and_the_first_attempt_fails) {
  open();
  tsend(message, 5);
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  fabric.deliver(0);
  tpost(into, 5);
  fabric.advance(Duration());
  fabric.cut_one_each();
  const auto request =
      std::ranges::find(fabric.flights, &b, [](const Flight& f) { return f.channel->from; });
  ASSERT_NE(request, fabric.flights.end());
  tokens = request->view(kM).mkey_match;
  const Flight& first = fabric.sent_log.front();
  const pds::MessageToken token = first.token;
  Channel* const channel = first.channel;
  fabric.deliver(static_cast<std::size_t>(request - fabric.flights.begin()));
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.fail_message(a, token, pds::PdsError::kPeerLost);
  fabric.lose_pdc(*channel, pds::PdsError::kPeerLost);
  fabric.run();
  expect_cancelled(at_a);
  expect_cancelled(at_b);
  EXPECT_EQ(tokens_of(sent_by(a).back()), tokens);
  expect_nothing_left();
}

// What is asked for in the place of those that were taken back is asked for at once, not with the next tick of the clock.
struct FewFetchesTest : DeferTest {
  static SesConfig config() {
    SesConfig c = deferring();
    c.max_fetches = 4;  // of one source: half
    return c;
  }
  FewFetchesTest() : DeferTest(config()) {}
};
TEST_F(FewFetchesTest, cancel__those_that_wait_for_a_place_are_asked_for) {
  constexpr std::uint32_t kSends = 6, kAskedFor = 2;
  std::vector<Bytes> buffers(kSends, Bytes(message.size()));
  open();
  for (std::uint32_t i = 0; i < kSends; ++i) tsend(message, i, 1 + i);
  fabric.run();
  for (std::uint32_t i = 0; i < kSends; ++i) tpost(buffers[i], i, 0, 100 + i);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), kAskedFor);
  for (std::uint32_t i = 0; i < kAskedFor; ++i) fabric.deliver(0);
  for (std::uint32_t i = 0; i < kAskedFor; ++i) fabric.reply(0);
  for (std::uint32_t i = 0; i < kAskedFor; ++i) EXPECT_TRUE(sa().cancel(fabric.now, ea, 1 + i));
  const Instant then = fabric.now;
  fabric.run();
  EXPECT_LT(fabric.now - then, Duration::from_ms(1));
  for (std::uint32_t i = 0; i < kSends; ++i) {
    const ReturnCode code = i < kAskedFor ? ReturnCode::kCancelled : ReturnCode::kOk;
    ASSERT_NE(at_a.find(1 + i), nullptr) << i;
    EXPECT_EQ(at_a.find(1 + i)->code, code) << i;
    ASSERT_NE(at_b.find(100 + i), nullptr) << i;
    EXPECT_EQ(at_b.find(100 + i)->code, code) << i;
  }
  expect_nothing_left();
}

// RUD may deliver the closing packet before those that it comes behind.
TEST_F(TakenBackTest, cancel__the_closing_packet_overtakes_the_others) {
  ask_for_it();
  fabric.reply(0);
  fabric.advance(Duration());
  for (int i = 0; i < 2; ++i) fabric.cut_one_each();
  ASSERT_EQ(fabric.flights.size(), 2u);
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 3u);
  EXPECT_EQ(fabric.flights[2].view(kM).message_offset, 2 * kM);
  fabric.deliver(2);
  fabric.run();
  expect_cancelled(at_a);
  expect_cancelled(at_b);
  expect_nothing_left();
}

// The initiator could not read its buffer.
TEST_F(TakenBackTest, initiator_error__in_the_first_packet_ends_the_receive) {
  ask_for_it();
  fabric.reply(0);
  fabric.advance(Duration());
  fabric.cut_one_each();
  ASSERT_EQ(fabric.flights.size(), 1u);
  wire::set_initiator_error(fabric.flights[0].bytes.data());
  fabric.run();
  for (const Recorder* at : {&at_a, &at_b}) {
    ASSERT_EQ(at->all.size(), 1u);
    EXPECT_EQ(at->all[0].code, ReturnCode::kInitiatorErr);
  }
  expect_nothing_left();
}

// Thrown away by the user of B, and then asked for.
TEST_F(TakenBackTest, cancel__of_what_the_target_wants_to_discard) {
  put_off();
  discard();
  fabric.cut_all();
  fabric.deliver(0);
  EXPECT_TRUE(sa().cancel(fabric.now, ea, 1));
  expect_cancelled(at_a);
  fabric.run();
  expect_nothing_left();
}

// The target closes its endpoint while it asks, and while the message comes again.
TEST_F(DeferTest, close_of_the_target__in_the_middle) {
  put_off();
  tpost(into, 5);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 1u);
  fabric.deliver(0);
  fabric.cut_one_each();
  sb().close_endpoint(fabric.now, eb);
  fabric.run();
  ASSERT_EQ(at_a.all.size(), 1u);
  EXPECT_NE(at_a.all[0].code, ReturnCode::kOk);
  expect_nothing_left();
}

// Any order of packets, answers, requests and receives.
TEST_F(DeferTest, random__everything_arrives_once) {
  open();
  constexpr std::uint32_t kSends = 60;
  base::Rng rng(5);
  std::vector<Bytes> messages, buffers;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    messages.push_back(pattern(rng.below(6 * kM), i));
    buffers.emplace_back(messages.back().size());
  }
  for (std::uint32_t i = 0; i < kSends; ++i) {
    tsend(messages[i], i, 1 + i);
    for (std::uint32_t steps = rng.below(20); steps > 0; --steps) {
      fabric.cut_one_each();
      if (!fabric.flights.empty())
        fabric.deliver(rng.below(static_cast<std::uint32_t>(fabric.flights.size())));
      if (!fabric.replies.empty())
        fabric.reply(rng.below(static_cast<std::uint32_t>(fabric.replies.size())));
      fabric.advance(Duration::from_us(1));
    }
    if (i >= 10) tpost(buffers[i - 10], i - 10, 0, 100 + i);
  }
  for (std::uint32_t i = kSends - 10; i < kSends; ++i) tpost(buffers[i], i, 0, 200 + i);
  fabric.run_randomly();
  fabric.run_for(Duration::from_ms(100));
  for (std::uint32_t i = 0; i < kSends; ++i) EXPECT_EQ(buffers[i], messages[i]) << i;
  EXPECT_EQ(at_a.all.size(), kSends);
  EXPECT_EQ(at_b.all.size(), kSends);
  expect_nothing_left();
}

/// Sends that are taken back at any moment, in any order of packets, answers, requests and receives.
struct RandomCancelTest : DeferTest {
  /// One of what waits at this moment.
  std::uint32_t any_of(std::size_t size) { return rng.below(static_cast<std::uint32_t>(size)); }
  void move_a_little() {
    for (std::uint32_t steps = rng.below(20); steps > 0; --steps) {
      fabric.cut_one_each();
      if (!fabric.flights.empty()) fabric.deliver(any_of(fabric.flights.size()));
      if (!fabric.replies.empty()) fabric.reply(any_of(fabric.replies.size()));
      fabric.advance(Duration::from_us(1));
    }
  }
  /// Sends `i`, with a receive sooner or later, of which one is taken back.
  void send_and_cancel(std::uint32_t i) {
    tsend(message, i, 1 + i);
    move_a_little();
    tpost(buffers[i], i, 0, 1000 + i);
    move_a_little();
    (void)sa().cancel(fabric.now, ea, 1 + i - any_of(std::min(i + 1, 8u)));
  }

  base::Rng rng{7};
  std::vector<Bytes> buffers;
};

// Every send ends, and so does every receive that a message has met: none of them by the clock. The others can be cancelled.
TEST_F(RandomCancelTest, random__what_is_taken_back_leaves_nothing) {
  open();
  constexpr std::uint32_t kSends = 300;
  buffers.resize(kSends, Bytes(message.size()));
  for (std::uint32_t i = 0; i < kSends; ++i) send_and_cancel(i);
  fabric.run_randomly();
  fabric.run_for(Duration::from_ms(100));
  EXPECT_EQ(at_a.all.size(), kSends);
  std::size_t cancelled = 0;
  for (std::uint32_t i = 0; i < kSends; ++i) {
    cancelled += at_a.find(1 + i)->code == ReturnCode::kCancelled ? 1 : 0;
    const Completion* const received = at_b.find(1000 + i);
    if (received == nullptr) {
      EXPECT_TRUE(sb().cancel(fabric.now, eb, 1000 + i)) << i;
      EXPECT_EQ(at_a.find(1 + i)->code, ReturnCode::kCancelled) << i;
    } else if (received->code == ReturnCode::kOk) {
      EXPECT_EQ(buffers[i], message) << i;
    }
  }
  EXPECT_GT(cancelled, kSends / 20);
  EXPECT_LT(cancelled, kSends * 9 / 10);
  // But for headers: a message whose first packet came late was refused, and its sender does not say that it is taken back.
  fabric.run_for(deferring().message_idle * 2);
  expect_nothing_left();
}

}  // namespace
}  // namespace uet::ses::testing
