// Messages that leave in one go, and packets that arrive in one go, are acknowledged in one go. [PDS 8, 10.2]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

/// Messages of one packet each, handed over before anything leaves.
std::vector<MessageToken> queue_messages(Open& x, int count, std::uint32_t payload = 64) {
  std::vector<MessageToken> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(x.w.send(0, 1, 1, payload, x.mode));
  return tokens;
}

/// The next packet of host 0 leaves and is in front of host 1 at once.
Seen pass_one(World& w) {
  net::TxPacket tx;
  EXPECT_TRUE(w.host(0).pds->poll_transmit(w.now(), tx, 1));
  const Seen seen = decode(tx, w.now(), 0);
  const auto bytes = tx.packet.bytes();
  w.inject_bytes(1, w.host(0).address, {bytes.begin(), bytes.end()});
  return seen;
}

TEST(BatchedAck, the_last_of_several_messages_asks_for_all) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Open x(with([](auto&) {}), mode);
    const auto tokens = queue_messages(x, 8);
    x.w.pump();
    const auto out = x.w.requests(0);
    ASSERT_EQ(out.size(), 8u);
    for (const Seen& s : out) EXPECT_EQ(s.ar, &s == &out.back());
    x.w.run_for(us(50));
    EXPECT_EQ(x.w.acks(1).size(), 1u);
    for (const MessageToken token : tokens) EXPECT_EQ(x.w.host(0).ses.responses_of(token), 1u);
  }
}

// Covers: PDS-77
TEST(BatchedAck, a_message_alone_asks) {
  Open x;
  for (int i = 0; i < 3; ++i) {
    queue_messages(x, 1);
    x.w.pump();
    EXPECT_TRUE(x.w.requests(0).back().ar);
  }
}

// The PDC's next turn may be far away where many have something to send.
TEST(BatchedAck, a_message_waits_a_bounded_time_for_others_to_ask) {
  Open x;
  queue_messages(x, 4);
  EXPECT_FALSE(pass_one(x.w).ar);
  EXPECT_FALSE(pass_one(x.w).ar);
  net::TxPacket tx;
  ASSERT_TRUE(x.w.host(0).pds->poll_transmit(x.w.now() + us(10), tx, 1));
  EXPECT_TRUE(decode(tx, x.w.now(), 0).ar);
}

// What was to ask for the ACK is taken back: a Probe asks, long before the timeout.
TEST(BatchedAck, a_message_whose_follower_is_aborted_is_asked_about) {
  Open x;
  const auto tokens = queue_messages(x, 2);
  EXPECT_FALSE(pass_one(x.w).ar);
  x.w.host(0).pds->abort(x.w.now(), tokens[1]);
  x.w.pump();
  EXPECT_EQ(x.w.controls(0, ControlType::kProbe).size(), 1u);
  x.w.run_for(us(50));
  EXPECT_EQ(x.w.host(0).ses.responses_of(tokens[0]), 1u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
}

/// A packet that asks for its ACK, in front of host 1.
void arrive_asking(Open& x, std::uint32_t ahead, std::uint8_t tos = 0, bool retx = false) {
  auto h = x.request(x.next + ahead);
  h.ar = true;
  h.retx = retx;
  x.w.inject(1, x.w.host(0).address, h, x.w.segment_bytes(77, ahead, 100), tos);
}

TEST(BatchedAck, packets_of_one_turn_on_one_path_get_one_ack) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    Open x(with([](auto&) {}), mode);
    for (std::uint32_t i = 0; i < 5; ++i) {
      auto h = x.request(x.next + i);
      h.type = mode == Mode::kRod ? PdsType::kRodReq : PdsType::kRudReq;
      h.ar = true;
      x.w.inject(1, x.w.host(0).address, h, x.w.segment_bytes(77, i, 100));
    }
    x.w.pump();
    const auto acks = x.w.acks(1);
    ASSERT_EQ(acks.size(), 1u);
    EXPECT_EQ(acks[0].ack_psn, x.next + 4);
    EXPECT_EQ(acks[0].cack, x.next + 4);
  }
}

TEST(BatchedAck, marks_and_retransmissions_are_told_by_name) {
  Open x;
  arrive_asking(x, 0);
  arrive_asking(x, 1, 3);
  arrive_asking(x, 2);
  arrive_asking(x, 3, 0, true);
  arrive_asking(x, 4);
  x.w.pump();
  const auto acks = x.w.acks(1);
  ASSERT_EQ(acks.size(), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(acks[i].ack_psn, x.next + i);
  EXPECT_TRUE(acks[1].m);
  EXPECT_TRUE(acks[3].retx);
}

// What SES wants its peer to know is never left out, nor what stands beyond a gap.
TEST(BatchedAck, guaranteed_answers_and_packets_beyond_a_gap_keep_their_acks) {
  Open x;
  x.w.host(1).ses.answer = [&](const RxRequest& r, auto&) {
    return ScriptedSes::respond(r.handle.psn == x.next + 1);
  };
  for (const std::uint32_t i : {0u, 1u, 2u, 4u, 5u}) arrive_asking(x, i);
  x.w.pump();
  const auto acks = x.w.acks(1);
  ASSERT_EQ(acks.size(), 5u);
  const std::array<std::uint32_t, 5> named = {0, 1, 2, 4, 5};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(acks[i].ack_psn, x.next + named[i]);
}

}  // namespace
}  // namespace uet::pds::test
