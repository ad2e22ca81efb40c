// Silence at the tail that is answered with a question. [PDS 13.5]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

constexpr Duration kTailSilence = Duration::from_us(400);

WorldOptions asking() {
  return with([](auto& o) {
    o.pds.tail_loss_time = kTailSilence;
    o.pds.tail_loss_asks = true;
    o.pds.reorder_window = us(50);
    o.pds.rto_init_time = ms(20);
  });
}

TEST(Tail, peer_that_answers_late_is_asked_and_sent_nothing_twice) {
  Open x(asking());
  x.w.add_rule([](const Seen& s, Fate& f) { f.drop = s.from == 1; });
  x.w.send(0, 1, 8);
  x.w.run_for(ms(5));
  EXPECT_GE(x.w.controls(0, ControlType::kProbe).size(), 3u);
  x.w.clear_rules();
  x.w.run_for(ms(10));
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 9u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
  EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
}

TEST(Tail, questions_become_rarer_and_end) {
  const WorldOptions options = asking();
  Open x(options);
  x.w.add_rule([](const Seen&, Fate& f) { f.drop = true; });
  x.w.send(0, 1, 2);
  x.w.run_for(ms(19));
  const auto probes = x.w.controls(0, ControlType::kProbe);
  ASSERT_EQ(probes.size(), options.pds.max_tail_loss_retx);
  for (std::size_t i = 2; i < probes.size(); ++i)
    EXPECT_EQ(probes[i].at - probes[i - 1].at, (probes[i - 1].at - probes[i - 2].at) * 2);
  EXPECT_EQ(x.w.requests(0).size(), 2u) << "data waits for its timeout";
}

// The tail is repeated a little faster than its NACKs come back, so that each of them is about the copy before. They must not
// start the count of repetitions anew: it ends, the NACK of the last copy is no longer stale, and the pause is kept.
TEST(Tail, stale_nacks_do_not_keep_up_the_repetition) {
  const WorldOptions options = with([](auto& o) {
    o.pds.tail_loss_time = kTailSilence;
    o.pds.rto_init_time = ms(20);
    o.pds.nack_retx_time = ms(20);
  });
  Open x(options);
  x.w.delay = kTailSilence / 2 + us(1);
  x.w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::refuse(); };
  x.w.send(0, 1);
  x.w.run_for(ms(18));
  EXPECT_EQ(x.w.requests(0).size(), 1u + options.pds.max_tail_loss_retx);
  EXPECT_EQ(x.w.host(0).drops(DropReason::kStaleNack), options.pds.max_tail_loss_retx);
  x.w.host(1).ses.answer = nullptr;
  x.w.run_until_quiet();
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 2u);
}

// Covers: PDS-132
TEST(Tail, answer_shows_what_is_missing) {
  for (const Mode mode : {Mode::kRud, Mode::kRod}) {
    World w(asking());
    w.send(0, 1, 1, 100, mode);
    w.run_until_quiet();
    w.drop_nth(0, 3, first_copy);
    w.drop_nth(0, 4, first_copy);
    w.send(0, 1, 4, 100, mode);
    w.run_for(ms(1));
    EXPECT_EQ(w.host(1).ses.delivered.size(), 5u);
    EXPECT_EQ(w.host(0).ses.responses.size(), 5u);
    EXPECT_EQ(w.host(0).count(EventId::kPacketRetransmitted), 2u);
    EXPECT_EQ(w.host(0).count(EventId::kTimeout), 0u);
    EXPECT_EQ(w.controls(0, ControlType::kProbe).size(), 1u);
  }
}

// [PDS 10.3, 13.4] Any base is legal, and 0 is no information: what no bit speaks of has not been lost for that.
TEST(Tail, answer_whose_bitmap_begins_elsewhere_speaks_of_what_it_shows) {
  constexpr std::uint32_t kCount = 101;
  for (const std::uint8_t bits : {0xff, 0}) {
    Open x(asking());
    x.w.drop_nth(0, 1, first_copy);
    // All ACKs are lost but the answers to the questions. They show the last 64 PSNs, or were made by a peer without a bitmap.
    x.w.add_rule([&](const Seen& s, Fate& f) {
      if (s.from != 1 || !s.is_ack()) return;
      f.drop = !s.p;
      f.edit = [&x, bits, cack = s.cack](std::vector<std::uint8_t>& b) {
        const auto base = static_cast<std::int16_t>((x.next + kCount - 64).distance_from(cack));
        b[14] = static_cast<std::uint8_t>(base >> 8);
        b[15] = static_cast<std::uint8_t>(base);
        std::fill_n(b.begin() + 16, 8, bits);
      };
    });
    x.w.send(0, 1, kCount, 100);
    x.w.run_for(ms(2));
    EXPECT_GE(x.w.controls(0, ControlType::kProbe).size(), 2u);
    EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u) << int{bits};
    x.w.clear_rules();
    x.w.run_for(ms(15));
    EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 1u) << int{bits};
    EXPECT_EQ(x.w.host(0).count(EventId::kTimeout), 0u);
    EXPECT_EQ(x.w.host(0).ses.responses.size(), 1u + kCount);
  }
}

TEST(Tail, answer_that_overtook_the_data_repeats_nothing) {
  Open x(asking());
  // The last packet is slower than the question, but not by more than a path may be.
  x.w.add_rule([&](const Seen& s, Fate& f) {
    if (s.from == 0 && s.is_request() && s.psn == x.next + 3) f.extra_delay = kTailSilence + us(30);
  });
  x.w.send(0, 1, 4);
  x.w.run_for(ms(2));
  EXPECT_EQ(x.w.controls(0, ControlType::kProbe).size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.responses.size(), 5u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
}

TEST(Tail, answer_of_the_upper_layer_that_takes_long_is_no_silence) {
  Open x(asking());
  x.w.host(1).ses.answer = [](const RxRequest&, const Delivery&) { return ScriptedSes::later(); };
  x.w.send(0, 1, 1);
  x.w.run_for(ms(10));
  EXPECT_LE(x.w.controls(0, ControlType::kProbe).size(), 1u);
  EXPECT_EQ(x.w.host(0).count(EventId::kPacketRetransmitted), 0u);
}

}  // namespace
}  // namespace uet::pds::test
