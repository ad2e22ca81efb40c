// Peers that fill the store of answers, and those that must not notice. [PDS 9.4, 11.2]
#include "pds/peer_shares.h"
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

TEST(AnswerShare, something_is_always_left_for_the_next_peer) {
  for (const std::uint32_t hogs : {1u, 2u, 10u, 100u, 127u}) {
    std::uint32_t kept = 0;
    for (std::uint32_t hog = 0; hog < hogs; ++hog) {  // one after the other, which leaves least
      for (std::uint32_t own = 0;; ++own, ++kept) {
        const AnswerShare s{
            .capacity = 4096, .kept = kept, .of_unproven = 0, .of_peer = own, .of_pdc = own / 4};
        if (!s.allows_proven()) break;
      }
    }
    const AnswerShare next{.capacity = 4096, .kept = kept};
    EXPECT_TRUE(next.allows_proven()) << hogs;
    EXPECT_GE(next.free(), 1024 - 8 * hogs) << hogs;
  }
}

TEST(AnswerShare, unproven_peers_share_a_quarter) {
  AnswerShare s{.capacity = 4096, .kept = 100, .of_unproven = 1023};
  EXPECT_TRUE(s.allows_unproven());
  s.of_unproven = 1024;
  EXPECT_FALSE(s.allows_unproven());
  s.of_unproven = 0;
  s.of_pdc = AnswerShare::kUnprovenPdc;
  EXPECT_FALSE(s.allows_unproven());
}

TEST(PeerShares, counts_by_address) {
  const base::HashKey key{base::Rng(1)};
  PeerShares shares(4, key);
  const auto a = net::FabricAddress::from_v4(1), b = net::FabricAddress::from_v4(2);
  const auto first = shares.join(a, Role::kTarget);
  EXPECT_EQ(shares.join(a, Role::kInitiator), first);
  EXPECT_NE(shares.join(b, Role::kTarget), first);
  EXPECT_EQ(shares.at(first).pdcs, 2u);
  EXPECT_EQ(shares.at(first).targets, 1u);  // what we open to a peer is not its doing
  shares.leave(first, Role::kInitiator);
  shares.leave(first, Role::kTarget);
  EXPECT_EQ(shares.find(a), nullptr);
  EXPECT_EQ(shares.size(), 1u);
}

/// Host 1 answers whatever is not from host 0 or 2 with something that must be kept.
struct Store {
  explicit Store(std::function<void(WorldOptions&)> change = [](auto&) {})
      : w(software_world([&](auto& o) {
          o.hosts = 3;
          change(o);
        })) {
    w.host(1).ses.answer = [](auto&, const Delivery& d) {
      return ScriptedSes::respond(d.token == 0 || d.token >= 1000);
    };
    talk(0);
  }
  /// A message of one that was there before, or of one that is new: how long it takes.
  Duration talk(int host) {
    const Instant begin = w.now();
    const std::size_t had = w.host(host).ses.responses.size();
    w.send(host, 1, 4);
    while (w.host(host).ses.responses.size() < had + 4 &&
           w.now() - begin < Duration::from_seconds(2))
      w.run_for(us(50));
    w.log.clear();
    return w.now() - begin;
  }
  /// Opens a PDC by hand and proves that it hears. Returns our PDCID.
  std::uint16_t open(const net::FabricAddress& from) {
    wire::PdsControlSyn syn;
    syn.ctl_type = ControlType::kNoop;
    syn.ar = true;
    syn.psn = Psn(5000);
    syn.spdcid = 9;
    w.inject(1, from, syn);
    w.pump();
    const std::uint16_t id = w.acks(1).back().spdcid;
    send_control(from, id, ControlType::kProbe);
    return id;
  }
  void send_control(const net::FabricAddress& from, std::uint16_t id, ControlType type,
                    std::uint32_t payload = 0) {
    wire::PdsControl h;
    h.ctl_type = type;
    h.payload = payload;
    h.spdcid = 9;
    h.dpdcid = id;
    w.inject(1, from, h);
    w.pump();
  }
  /// In order, and never cleared.
  void take_answers(const net::FabricAddress& from, std::uint16_t id, std::uint32_t first,
                    std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::PdsRequest h;
      h.next_hdr = NextHdr::kRequestStd;
      h.psn = Psn(first + i);
      h.clear_psn_offset = static_cast<std::int16_t>(5000 - static_cast<int>(first + i));
      h.spdcid = 9;
      h.dpdcid = id;
      w.inject(1, from, h, w.segment_bytes(1000, i, 1));
      w.pump();
    }
    w.log.clear();
  }
  World w;
};

// Five forged addresses, as many packets as the store has places and its reserve: 0.2 s were a minute of silence.
TEST(Store, forged_openings_silence_no_peer) {
  Store x;
  for (std::uint32_t i = 0; i < 4160; ++i) {
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(5000 + i / 5);
    h.psn_offset = static_cast<std::uint16_t>(i / 5);
    h.spdcid = 9;
    x.w.inject(1, net::FabricAddress::from_v4(0x0b000000 + i % 5), h);
    if (i % 20 == 0) x.w.run_for(ms(1));
    x.w.log.clear();
  }
  EXPECT_LE(x.w.host(1).pds->gauges().stored_unproven, 1024u);
  EXPECT_LE(x.talk(0), ms(1));
  EXPECT_LE(x.talk(2), Duration::from_seconds(1));
}

// The same with a new address for each.
TEST(Store, forged_openings_of_many_silence_no_peer) {
  Store x;
  for (std::uint32_t i = 0; i < 8000; ++i) {
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(5000 + i % 16);
    h.psn_offset = static_cast<std::uint16_t>(i % 16);
    h.spdcid = 9;
    x.w.inject(1, net::FabricAddress::from_v4(0x0b000000 + i / 16), h);
    if (i % 20 == 0) x.w.run_for(ms(1));
    x.w.log.clear();
  }
  EXPECT_LE(x.w.host(1).pds->gauges().stored_unproven, 1024u);
  EXPECT_LE(x.talk(0), ms(1));
  EXPECT_LE(x.talk(2), Duration::from_seconds(1));
}

// One address that proves itself as often as it can.
TEST(PeerShares, one_address_leaves_half_of_the_table) {
  Store x([](auto& o) { o.pds.max_pdc = 192; });  // 144 places for targets
  const auto hog = net::FabricAddress::from_v4(0x0b000000);
  for (std::uint16_t i = 0; i < 128; ++i) {
    wire::PdsControlSyn syn;
    syn.ctl_type = ControlType::kNoop;
    syn.ar = true;
    syn.psn = Psn(5000);
    syn.spdcid = static_cast<std::uint16_t>(100 + i);
    x.w.inject(1, hog, syn);
    x.w.pump();
    wire::PdsControl probe;
    probe.ctl_type = ControlType::kProbe;
    probe.spdcid = syn.spdcid;
    probe.dpdcid = x.w.acks(1).back().spdcid;
    x.w.inject(1, hog, probe);
    x.w.pump();
  }
  EXPECT_LE(x.w.host(1).pds->gauges().pdcs_open, 1u + 72u);
  EXPECT_LE(x.talk(2), ms(1));
}

// Peers that hear us, talk, and never clear.
TEST(Store, peers_that_never_clear_silence_no_peer) {
  Store x;
  for (std::uint32_t p = 0; p < 12; ++p) {
    const auto from = net::FabricAddress::from_v4(0x0b000000 + p);
    x.take_answers(from, x.open(from), 5001, 1000);
  }
  EXPECT_LT(x.w.host(1).pds->gauges().stored_responses, 4096u);
  EXPECT_LE(x.talk(0), ms(1));
  EXPECT_LE(x.talk(2), ms(1));
}

// The last place of the store is no place of its reserve: a source that took it again and again still has the reserve for the
// packet in its gap.
TEST(Store, a_gap_closes_after_the_store_was_full_many_times) {
  Store x([](auto& o) { o.pds.gtd_store_max = 8; });
  const auto gapped = net::FabricAddress::from_v4(0x0b000000);
  const auto other = net::FabricAddress::from_v4(0x0c000000);
  const std::uint16_t gapped_id = x.open(gapped), other_id = x.open(other);
  x.take_answers(gapped, gapped_id, 5002, 2);
  x.take_answers(other, other_id, 5001, 6);
  for (std::uint32_t i = 0; i < 6; ++i) {
    x.send_control(other, other_id, ControlType::kClearCommand, 5001 + i);
    x.take_answers(gapped, gapped_id, 5004 + i, 1);
    EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 8u);
  }
  x.take_answers(gapped, gapped_id, 5001, 1);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 9u);
}

// Answers beyond a gap cannot be cleared: a source that is heard and never sends the packet in the gap may not keep them for ever.
TEST(Store, a_source_that_leaves_a_gap_open_is_ended_while_room_is_short) {
  Store x([](auto& o) { o.pds.gtd_store_max = 8; });
  const auto hog = net::FabricAddress::from_v4(0x0b000000);
  const auto refused = net::FabricAddress::from_v4(0x0c000000);
  const std::uint16_t hog_id = x.open(hog);
  x.take_answers(hog, hog_id, 5002, 8);
  const Duration patience = software_profile().peer_timeout;
  const Instant begin = x.w.now();
  x.take_answers(refused, x.open(refused), 5001, 1);  // finds no room
  while (x.w.host(1).pds->gauges().clear_breaks == 0 && x.w.now() - begin < patience * 2) {
    x.send_control(hog, hog_id, ControlType::kProbe);
    x.w.run_for(ms(100));
    if (x.w.now() - begin < patience * 3 / 4) x.take_answers(hog, hog_id, 5010, 1);
  }
  EXPECT_EQ(x.w.host(1).pds->gauges().clear_breaks, 1u);
  EXPECT_GE(x.w.now() - begin, patience);
  EXPECT_LE(x.w.now() - begin, patience + Duration::from_seconds(1));
  EXPECT_LE(x.w.host(1).pds->gauges().stored_responses, 1u);  // of the one that found no room
  EXPECT_LE(x.talk(0), ms(1));
}

// The packet in the gap is refused for want of a receive: its source sends it again and again, and is not ended.
TEST(Store, a_source_whose_next_packet_is_refused_may_keep_what_is_beyond_it) {
  Store x([](auto& o) { o.pds.gtd_store_max = 8; });
  const auto source = net::FabricAddress::from_v4(0x0b000000);
  const std::uint16_t id = x.open(source);
  x.take_answers(source, id, 5002, 8);
  x.w.host(1).ses.answer = [](auto&, auto&) { return Answer{.kind = Answer::Kind::kRefuse}; };
  const Duration patience = software_profile().peer_timeout;
  for (const Instant begin = x.w.now(); x.w.now() - begin < patience * 2;) {
    x.take_answers(source, id, 5001, 1);
    x.w.run_for(ms(100));
  }
  EXPECT_EQ(x.w.host(1).pds->gauges().clear_breaks, 0u);
  EXPECT_EQ(x.w.host(1).pds->gauges().stored_responses, 8u);
}

// While room is short, who goes on talking without clearing is ended; who sleeps is not.
TEST(Store, a_source_that_does_not_clear_is_ended_while_room_is_short) {
  Store x([](auto& o) { o.pds.gtd_store_max = 64; });
  const auto hog = net::FabricAddress::from_v4(0x0b000000);
  const auto sleeper = net::FabricAddress::from_v4(0x0c000000);
  const std::uint16_t hog_id = x.open(hog), sleeper_id = x.open(sleeper);
  x.take_answers(sleeper, sleeper_id, 5001, 16);
  x.take_answers(hog, hog_id, 5001, 16);
  for (std::uint32_t p = 1; p < 8; ++p) {
    const auto from = net::FabricAddress::from_v4(0x0b000000 + p);
    x.take_answers(from, x.open(from), 5001, 16);
  }
  for (int i = 0; i < 3000 && x.w.host(1).pds->gauges().clear_breaks == 0; ++i) {
    x.send_control(hog, hog_id, ControlType::kProbe);
    x.take_answers(hog, hog_id, 5017, 1);
    x.w.run_for(ms(1));
  }
  EXPECT_EQ(x.w.host(1).pds->gauges().clear_breaks, 1u);
  x.send_control(sleeper, sleeper_id, ControlType::kProbe);
  EXPECT_TRUE(x.w.acks(1).back().p);  // it is still known
}

}  // namespace
}  // namespace uet::pds::test
