// ROD packets behind a gap, held and named: the reorder buffer alone. [PDS 17.1, 20.1]
#include "pds/reorder_buffer.h"

#include <gtest/gtest.h>

#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

PdsConfig reorder_config() {
  PdsConfig config;
  config.rod_reorder = true;
  config.held_packets_max = 6;
  return config;
}

const Duration kRound = Duration::from_us(10);

struct Holding {
  explicit Holding(const PdsConfig& config = reorder_config())
      : env(config, {}, facts_of_port(), pool, rng, trace, ses),
        nacks(env),
        pdcs(8, Duration{}, 0, rng, env.hash_key),
        peers(8, env.hash_key),
        reorder(env, pdcs, peers, nacks, kRound),
        pdc(open()) {}
  ~Holding() { close(pdc); }
  void close(Pdc& of) {
    reorder.release(of);
    peers.leave(of.share, Role::kTarget);
    pdcs.release(kNow, of, Psn{});
  }
  Pdc& open(std::uint32_t peer = 2) {
    Pdc& opened = *pdcs.allocate(kNow);
    opened.mode = Mode::kRod;
    opened.peer = address_of(peer);
    opened.share = peers.join(opened.peer, Role::kTarget);
    opened.peer_id = 9;
    opened.is_proven = true;
    opened.rx.has_accepted = true;
    opened.rx.edge = opened.rx.cack = opened.rx.gaps_reported = Psn(999);
    return opened;
  }
  bool hold(std::uint32_t psn, Instant now = kNow) { return hold_on(pdc, psn, now); }
  bool hold_on(Pdc& of, std::uint32_t psn, Instant now = kNow) {
    net::Packet packet = pool.allocate();
    packet.append(8)[0] = static_cast<std::uint8_t>(psn);
    Arrival in;
    in.source = of.peer;
    in.mode = Mode::kRod;
    in.psn = Psn(psn);
    in.body = std::as_const(packet).bytes();
    in.packet = &packet;
    return reorder.hold(now, of, in);
  }
  /// PSNs that were named as missing since the last call.
  std::vector<std::uint32_t> reported() {
    std::vector<std::uint32_t> psns;
    net::TxPacket out;
    while (nacks.poll(kNow, out)) {
      const auto nack = wire::decode<wire::PdsNack>(std::as_const(out.packet).bytes().data());
      EXPECT_EQ(nack.nack_code, NackCode::kRcvrInferLoss);
      psns.push_back(nack.nack_psn.value());
    }
    return psns;
  }
  using Psns = std::vector<std::uint32_t>;

  net::HeapPacketPool pool{64, 4200};
  base::Rng rng{1};
  base::Trace trace;
  SilentSes ses;
  Environment env;
  NackQueue nacks;
  PdcTable pdcs;
  PeerShares peers;
  ReorderBuffer reorder;
  Pdc& pdc;
};

TEST(ReorderBuffer, hold__openings_that_may_be_forged_share_an_eighth) {
  PdsConfig config = reorder_config();
  config.held_packets_max = 16;
  Holding h(config);
  Pdc& forged = h.open();
  forged.is_proven = false;
  EXPECT_TRUE(h.hold_on(forged, 1005));
  EXPECT_TRUE(h.hold_on(forged, 1006));
  EXPECT_FALSE(h.hold_on(forged, 1007));
  EXPECT_TRUE(h.hold(1005));
  h.close(forged);
}

TEST(ReorderBuffer, hold__one_peer_leaves_a_quarter_to_others) {
  PdsConfig config = reorder_config();
  config.held_packets_max = 16;
  Holding h(config);
  Pdc& second = h.open();
  Pdc& honest = h.open(3);
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(h.hold(1002 + i));
  std::uint32_t more = 0;
  while (more < 8 && h.hold_on(second, 1002 + more)) ++more;
  EXPECT_EQ(more, 5u);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(h.hold_on(honest, 1002 + i));
  h.close(honest);
  h.close(second);
  EXPECT_TRUE(h.hold(1010));
}

TEST(ReorderBuffer, take_next__gives_what_is_next_in_order_with_its_bytes) {
  Holding t;
  ASSERT_TRUE(t.hold(1002));
  ASSERT_TRUE(t.hold(1001));
  EXPECT_FALSE(t.reorder.take_next(t.pdc));  // 1000 is missing
  t.pdc.rx.edge = Psn(1000);
  for (std::uint32_t psn : {1001u, 1002u}) {
    const auto next = t.reorder.take_next(t.pdc);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->arrival.psn, Psn(psn));
    EXPECT_EQ(next->arrival.body[0], static_cast<std::uint8_t>(psn));
    t.pdc.rx.edge = Psn(psn);
  }
  EXPECT_FALSE(t.reorder.take_next(t.pdc));
  EXPECT_EQ(t.pdc.rx.held, 0u);
}

TEST(ReorderBuffer, hold__a_copy_is_counted_and_not_held_twice) {
  Holding t;
  ASSERT_TRUE(t.hold(1002));
  EXPECT_TRUE(t.hold(1002));
  EXPECT_EQ(t.pdc.rx.held, 1u);
  EXPECT_EQ(t.trace.drops(DropReason::kDuplicate), 1u);
}

TEST(ReorderBuffer, hold__is_false_when_all_places_are_taken_by_whatever_pdc) {
  Holding t;
  Pdc& other = t.open(3);
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(t.hold(1002 + i));
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(t.hold_on(other, 1002 + i));
  EXPECT_FALSE(t.hold(1010));
  t.reorder.release(other);
  EXPECT_TRUE(t.hold(1010));
  t.close(other);
}

TEST(ReorderBuffer, hold__leaves_half_of_the_packet_buffers_to_others) {
  Holding t;
  std::vector<net::Packet> taken;
  while (t.pool.available() > t.pool.capacity() / 2) taken.push_back(t.pool.allocate());
  EXPECT_FALSE(t.hold(1002));
  taken.clear();
  EXPECT_TRUE(t.hold(1002));
}

TEST(ReorderBuffer, hold__takes_no_control_packet_and_nothing_without_an_owner) {
  Holding t;
  Arrival in;
  in.psn = Psn(1002);
  EXPECT_FALSE(t.reorder.hold(kNow, t.pdc, in));
  net::Packet packet = t.pool.allocate();
  in.packet = &packet;
  in.is_control = true;
  EXPECT_FALSE(t.reorder.hold(kNow, t.pdc, in));
  EXPECT_TRUE(packet);
}

TEST(ReorderBuffer, a_gap_is_named_once_three_packets_have_overtaken_it) {
  Holding t;
  t.hold(1002);
  t.hold(1003);
  EXPECT_EQ(t.reported(), Holding::Psns{});
  t.hold(1004);
  EXPECT_EQ(t.reported(), (Holding::Psns{1000, 1001}));
  t.hold(1005);
  EXPECT_EQ(t.reported(), Holding::Psns{});
}

TEST(ReorderBuffer, a_gap_that_stays_is_named_again_in_the_next_round) {
  Holding t;
  for (std::uint32_t psn = 1001; psn < 1004; ++psn) t.hold(psn);
  EXPECT_EQ(t.reported(), Holding::Psns{1000});
  t.hold(1004, kNow + kRound - Duration::from_ns(1));
  EXPECT_EQ(t.reported(), Holding::Psns{});
  t.hold(1005, kNow + kRound);
  EXPECT_EQ(t.reported(), Holding::Psns{1000});
}

TEST(ReorderBuffer, report_all_gaps__names_also_what_few_have_overtaken) {
  Holding t;
  t.reorder.report_all_gaps(kNow, t.pdc, {});
  EXPECT_EQ(t.reported(), Holding::Psns{});  // nothing is held
  t.hold(1001);
  t.hold(1003);
  t.reorder.report_all_gaps(kNow, t.pdc, {});
  EXPECT_EQ(t.reported(), (Holding::Psns{1000, 1002}));
}

// Each Probe would have the receiver walk over all that it holds.
TEST(ReorderBuffer, report_all_gaps__names_a_gap_once_in_a_round) {
  Holding t;
  t.hold(1001);
  t.reorder.report_all_gaps(kNow, t.pdc, {});
  EXPECT_EQ(t.reported(), Holding::Psns{1000});
  t.reorder.report_all_gaps(kNow, t.pdc, {});
  t.reorder.report_all_gaps(kNow + kRound - Duration::from_ns(1), t.pdc, {});
  EXPECT_EQ(t.reported(), Holding::Psns{});
  t.hold(1004);
  t.reorder.report_all_gaps(kNow + kRound - Duration::from_ns(1), t.pdc, {});
  EXPECT_EQ(t.reported(), (Holding::Psns{1002, 1003}));
  t.reorder.report_all_gaps(kNow + kRound, t.pdc, {});
  EXPECT_EQ(t.reported(), (Holding::Psns{1000, 1002, 1003}));
}

TEST(ReorderBuffer, one_packet_draws_sixteen_reports_at_most_and_one_from_an_unproven_peer) {
  Holding t;
  t.hold(1100);
  t.reorder.report_all_gaps(kNow, t.pdc, {});
  EXPECT_EQ(t.reported().size(), 16u);
  t.pdc.is_proven = false;
  t.reorder.report_all_gaps(kNow, t.pdc, {});
  EXPECT_EQ(t.reported().size(), 1u);
}

TEST(ReorderBuffer, release__gives_every_packet_back) {
  Holding t;
  const std::size_t before = t.pool.available();
  for (std::uint32_t psn : {1002u, 1005u, 1009u}) ASSERT_TRUE(t.hold(psn));
  EXPECT_LT(t.pool.available(), before);
  t.reorder.release(t.pdc);
  EXPECT_EQ(t.pdc.rx.held, 0u);
  (void)t.reported();
  EXPECT_EQ(t.pool.available(), before);
}

}  // namespace
}  // namespace uet::pds::test
