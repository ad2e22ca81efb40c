/// The frame switch in virtual time: learning, flooding, paths, marks, trimming, faults.

#include <map>
#include <set>

#include "lib/base/rng.h"
#include "lib/wire/dissect_frame.h"
#include "tests/fabric/fixture.h"
#include "tests/fuzz/checking_visitor.h"

namespace uet::fabric {
namespace {

using base::Duration;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kSwitchStar = "[fabric]\nhost_rate = \"1Gb/s\"\ndelay = \"10us\"\n";
const std::string kFourPaths =
    "[fabric]\nleaves = 2\nspines = 4\nhost_rate = \"10Gb/s\"\nrate = \"1Gb/s\"\ndelay = "
    "\"10us\"\n";

TEST_F(FabricTest, unknown_destination_is_flooded_and_then_learned) {
  start(kSwitchStar, 3);
  inject({.from = 0, .to = 1});
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(1), SizeIs(1));
  EXPECT_THAT(sent(2), SizeIs(1));
  EXPECT_THAT(sent(0), IsEmpty());
  inject({.from = 1, .to = 0});
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(0), SizeIs(1));
  EXPECT_THAT(sent(2), SizeIs(1)) << "the sender of the first frame is known";
  EXPECT_EQ(fabric_->macs().size(), 2u);
}

TEST_F(FabricTest, frames_arrive_unchanged) {
  start(kSwitchStar, 2);
  introduce();
  for (const bool v6 : {false, true}) {
    for (const bool native : {false, true}) {
      const FrameSpec spec{.is_v6 = v6, .is_native = native, .vlan = 7};
      inject(spec);
      run_for(Duration::from_ms(1));
      ASSERT_THAT(sent(1), SizeIs(1));
      EXPECT_EQ(sent(1)[0], frame_of(spec));
      sent(1).clear();
    }
  }
}

TEST_F(FabricTest, broadcast_reaches_all_but_the_sender) {
  start(kFourPaths, 4);
  Bytes arp(60, 0);
  std::fill_n(arp.begin(), 6, 0xff);
  std::ranges::copy(mac_of(2), arp.begin() + 6);
  arp[12] = 0x08;
  arp[13] = 0x06;
  device(2).inject(arp);
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(2), IsEmpty());
  for (const std::size_t leg : {0, 1, 3}) EXPECT_THAT(sent(leg), testing::ElementsAre(arp));
}

TEST_F(FabricTest, address_that_moves_is_found_at_its_new_leg) {
  start(kSwitchStar, 3);
  introduce();
  Bytes moved = frame_of({.from = 1, .to = 0});
  device(2).inject(moved);
  run_for(Duration::from_ms(1));
  inject({.from = 0, .to = 1});
  sent(1).clear();
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(1), IsEmpty());
  EXPECT_THAT(sent(2), SizeIs(1));
  EXPECT_EQ(fabric_->macs().moved(), 1u);
}

TEST_F(FabricTest, reconnected_leg_forgets_who_was_there) {
  start(kSwitchStar, 3);
  introduce();
  ++device(1).generation;
  run_for(Duration::from_ms(1));
  inject({.from = 0, .to = 1});
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(2), SizeIs(1)) << "flooded again";
}

TEST_F(FabricTest, odd_frames_are_counted_and_dropped) {
  start(kSwitchStar, 2);
  device(0).inject(Bytes(13, 1));
  Bytes from_group = frame_of({});
  from_group[6] |= 1;
  device(0).inject(from_group);
  Bytes to_self = frame_of({.from = 0, .to = 0});
  device(0).inject(to_self);
  run_for(Duration::from_ms(1));
  const LegCounters& c = fabric_->legs()[0]->counters;
  EXPECT_EQ(c.rx_runt, 1u);
  EXPECT_EQ(c.rx_bad_source, 1u);
  EXPECT_EQ(c.rx_to_itself, 1u);
  EXPECT_THAT(sent(1), IsEmpty());
  EXPECT_EQ(fabric_->frames_held(), 0u);
}

TEST_F(FabricTest, entropy_values_spread_over_all_paths_and_each_keeps_its_own) {
  start(kFourPaths, 2);
  introduce();
  for (std::uint16_t ev = 0; ev < 64; ++ev) inject({.entropy = ev});
  run_for(Duration::from_ms(10));
  EXPECT_THAT(sent(1), SizeIs(64));
  for (const Json& path : paths_report(*fabric_))
    EXPECT_GT(path["data_packets"].get<int>(), 4) << path;
  const Json before = paths_report(*fabric_);
  for (int i = 0; i < 50; ++i) inject({.entropy = 5});
  run_for(Duration::from_ms(10));
  const Json after = paths_report(*fabric_);
  int changed = 0;
  for (std::size_t i = 0; i < 4; ++i)
    changed += before[i]["data_packets"] != after[i]["data_packets"];
  EXPECT_EQ(changed, 1);
}

TEST_F(FabricTest, rate_and_delay_are_kept) {
  start("[fabric]\nhost_rate = \"8Mb/s\"\ndelay = \"1ms\"\n", 2);
  introduce();
  inject({.uet_bytes = 934});  // 976 bytes of frame and 24 around it: 1 ms on each of two links
  run_for(Duration::from_us(3900));
  EXPECT_THAT(sent(1), IsEmpty());
  run_for(Duration::from_us(200));
  EXPECT_THAT(sent(1), SizeIs(1));
}

TEST_F(FabricTest, what_a_host_sends_too_fast_stays_with_the_host) {
  start("[fabric]\nhost_rate = \"80Mb/s\"\nnic_queue = 10000\n", 2);
  introduce();
  for (int i = 0; i < 200; ++i) inject({});
  run_for(Duration::from_ms(1));
  EXPECT_LT(fabric_->legs()[0]->counters.rx_frames, 60u);
  EXPECT_GT(fabric_->legs()[0]->counters.rx_held, 0u);
  run_for(Duration::from_ms(30));
  EXPECT_THAT(sent(1), SizeIs(200));
}

/// Two senders at full speed towards one leg.
class CongestedTest : public FabricTest {
 protected:
  void congest(const std::string& more, const FrameSpec& spec) {
    start("[fabric]\nhost_rate = \"100Mb/s\"\ndelay = \"10us\"\nqueue = 20000\n" + more, 3);
    introduce();
    for (int i = 0; i < 60; ++i) {
      FrameSpec first = spec, second = spec;
      first.from = 0;
      second.from = 1;
      first.to = second.to = 2;
      inject(first);
      inject(second);
    }
    run_for(Duration::from_ms(50));
  }
};

TEST_F(CongestedTest, long_queue_marks_with_right_checksum) {
  congest("trimming = false\n", {.to = 2});
  const FrameSpec spec{.to = 2};
  std::size_t marked = 0;
  for (const Bytes& frame : sent(2)) {
    const auto parsed = received(frame, spec);
    ASSERT_TRUE(parsed) << "checksum or lengths are wrong";
    EXPECT_EQ(parsed->tos.dscp(), 18);
    marked += parsed->tos.is_congestion_experienced();
  }
  EXPECT_GT(marked, 10u);
  EXPECT_EQ(fabric_->legs()[2]->counters.tx_marked, marked);
  EXPECT_LT(sent(2).size(), 120u) << "the rest did not fit";
}

TEST_F(CongestedTest, senders_that_do_not_understand_marks_get_none) {
  congest("trimming = false\n", {.to = 2, .tos = net::TosByte::of(0, 0)});
  for (const Bytes& frame : sent(2)) EXPECT_EQ(received(frame, {.to = 2})->tos.ecn(), 0);
}

TEST_F(CongestedTest, marking_can_be_off) {
  congest("trimming = false\nmarking = false\n", {.to = 2});
  for (const Bytes& frame : sent(2))
    EXPECT_FALSE(received(frame, {.to = 2})->tos.is_congestion_experienced());
}

class TrimTest : public CongestedTest, public testing::WithParamInterface<FrameSpec> {};

TEST_P(TrimTest, full_queue_trims_and_lengths_say_so) {
  const FrameSpec spec = GetParam();
  congest("", spec);
  EXPECT_THAT(sent(2), SizeIs(120)) << "nothing is lost";
  std::size_t trimmed = 0;
  for (const Bytes& frame : sent(2)) {
    FrameSpec at = spec;
    at.from = received(frame, spec) && frame[11] == 2 ? 1 : 0;
    const auto parsed = received(frame, spec);
    ASSERT_TRUE(parsed) << "checksum or lengths are wrong";
    if (parsed->tos.dscp() != 28) {
      EXPECT_EQ(parsed->length, spec.uet_bytes);
      continue;
    }
    ++trimmed;
    EXPECT_EQ(parsed->length, sim::WireModel::kTrimmedBytes);
    EXPECT_EQ(frame.size(), parsed->offset + sim::WireModel::kTrimmedBytes);
    EXPECT_EQ(frame[parsed->offset + 9], 9) << "the front is what was sent";
    // The lengths are right, not only excused by the code point.
    const auto ip = spec.vlan != 0 ? 18u : 14u;
    const std::size_t length = spec.is_v6 ? base::load_be<std::uint16_t>(&frame[ip + 4]) + 40u
                                          : base::load_be<std::uint16_t>(&frame[ip + 2]);
    EXPECT_EQ(length, frame.size() - ip);
  }
  EXPECT_GT(trimmed, 20u);
  EXPECT_EQ(fabric_->legs()[2]->counters.tx_trimmed, trimmed);
}

INSTANTIATE_TEST_SUITE_P(All, TrimTest,
                         testing::Values(FrameSpec{.to = 2}, FrameSpec{.to = 2, .is_v6 = true},
                                         FrameSpec{.to = 2, .is_native = true},
                                         FrameSpec{.to = 2, .vlan = 9}));

TEST_F(CongestedTest, ordinary_traffic_is_dropped_never_trimmed) {
  congest("", {.to = 2, .udp_port = 9999});
  EXPECT_LT(sent(2).size(), 120u);
  for (const Bytes& frame : sent(2))
    EXPECT_EQ(
        frame,
        frame_of(
            {.from = frame[11] - 1u, .to = 2, .tos = net::TosByte{frame[15]}, .udp_port = 9999}));
  EXPECT_EQ(fabric_->legs()[2]->counters.tx_trimmed, 0u);
}

TEST_F(FabricTest, killed_path_loses_and_healed_path_carries) {
  start(kFourPaths, 2);
  introduce();
  command("kill spine2");
  for (std::uint16_t ev = 0; ev < 64; ++ev) inject({.entropy = ev});
  run_for(Duration::from_ms(10));
  const std::size_t arrived = sent(1).size();
  EXPECT_LT(arrived, 64u);
  const Json path = paths_report(*fabric_)[2];
  EXPECT_EQ(path["state"], "down");
  EXPECT_EQ(path["lost_while_down"].get<std::size_t>(), 64 - arrived);
  command("heal spine2");
  for (std::uint16_t ev = 0; ev < 64; ++ev) inject({.entropy = ev});
  run_for(Duration::from_ms(10));
  EXPECT_THAT(sent(1), SizeIs(arrived + 64));
}

TEST_F(FabricTest, dead_paths_take_no_address_with_them) {
  start(kFourPaths, 2);
  introduce();
  command("kill leaf0-spine0");
  command("kill spine1");
  command("kill spine2");
  command("kill spine3");
  Bytes arp(60, 0);
  std::fill_n(arp.begin(), 6, 0xff);
  std::ranges::copy(mac_of(0), arp.begin() + 6);
  arp[12] = 0x08;
  arp[13] = 0x06;
  device(0).inject(arp);
  inject({});
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(1), testing::ElementsAre(arp));
  command("kill host0");
  device(0).inject(arp);
  run_for(Duration::from_ms(1));
  EXPECT_THAT(sent(1), SizeIs(1)) << "a dead cable to the host does";
}

TEST_F(FabricTest, slow_path_is_slow) {
  start(kFourPaths, 2);
  introduce();
  command("rate all 10%");
  command("rate spine0 100Mb/s");
  EXPECT_NEAR(paths_report(*fabric_)[0]["rate_mbps"].get<double>(), 100, 0.1);
  EXPECT_NEAR(links_report(*fabric_)[0]["rate_mbps"].get<double>(), 1000, 0.1);
  for (int i = 0; i < 5; ++i) inject({.entropy = 3});
  run_for(Duration::from_us(300));
  EXPECT_LT(sent(1).size(), 5u);
  run_for(Duration::from_ms(5));
  EXPECT_THAT(sent(1), SizeIs(5)) << "a slow queue still has room for some packets";
}

TEST_F(FabricTest, faults_happen_at_the_named_link_only) {
  start(kSwitchStar, 3);
  introduce();
  command("loss leaf0>host1 1");
  command("duplicate leaf0>host2 100%");
  for (int i = 0; i < 10; ++i) {
    inject({.from = 0, .to = 1});
    inject({.from = 0, .to = 2});
  }
  run_for(Duration::from_ms(5));
  EXPECT_THAT(sent(1), IsEmpty());
  EXPECT_THAT(sent(2), SizeIs(20));
  command("perfect all");
  inject({.from = 0, .to = 1});
  run_for(Duration::from_ms(5));
  EXPECT_THAT(sent(1), SizeIs(1));
}

TEST_F(FabricTest, corruption_spares_the_headers) {
  start(kSwitchStar, 2);
  introduce();
  command("corrupt all 1");
  for (int i = 0; i < 200; ++i) inject({.uet_bytes = 100});
  run_for(Duration::from_ms(10));
  ASSERT_THAT(sent(1), SizeIs(200));
  for (const Bytes& frame : sent(1)) EXPECT_TRUE(received(frame, {}));
}

TEST_F(FabricTest, host_that_takes_nothing_costs_a_bounded_number_of_frames) {
  start(kSwitchStar, 2);
  introduce();
  device(1).room = 0;
  for (int i = 0; i < 1000; ++i) inject({.uet_bytes = 100});
  run_for(Duration::from_ms(20));
  EXPECT_GT(fabric_->legs()[1]->counters.tx_full, 400u);
  EXPECT_LE(fabric_->legs()[1]->waiting(), 512u);
  run_for(Duration::from_ms(1100));
  EXPECT_EQ(fabric_->legs()[1]->waiting(), 0u);
  EXPECT_GT(fabric_->legs()[1]->counters.tx_stalled, 0u);
  device(1).room = SIZE_MAX;
  inject({});
  run_for(Duration::from_ms(5));
  EXPECT_THAT(sent(1), SizeIs(1));
}

TEST_F(FabricTest, empty_pool_drops_and_recovers) {
  start(kSwitchStar + "packets = 64\nnic_queue = \"1MiB\"\n", 2);
  introduce();
  for (int i = 0; i < 300; ++i) inject({});
  run_for(Duration::from_ms(10));
  EXPECT_GT(fabric_->legs()[0]->counters.rx_no_packet, 0u);
  EXPECT_EQ(fabric_->frames_held(), 0u);
  EXPECT_EQ(fabric_->simulation().packets_pool.in_use(), 0u);
}

/// Frames of every kind, then bent at random: nothing may fall over, nothing may be kept, and what comes out must still
/// make sense to the decoder.
TEST_F(FabricTest, hostile_frames_are_only_frames) {
  start(kFourPaths + "queue = 30000\n", 4);
  command("corrupt all 5%");
  command("truncate all 5%");
  command("trim all 10%");
  command("reorder all 5%");
  command("late_duplicate all 2%");
  command("match type=rud_req count=0 skip=3 do=trim");
  command("match pdc=7 count=0 do=duplicate");
  constexpr std::uint64_t kSeed = 20261121;
  base::Rng rng(kSeed);
  RecordProperty("seed", std::to_string(kSeed));
  for (int i = 0; i < 20000; ++i) {
    FrameSpec spec{.from = rng.below(4),
                   .to = rng.below(4),
                   .uet_bytes = rng.below(300),
                   .entropy = static_cast<std::uint16_t>(rng.below(65536)),
                   .tos = net::TosByte{static_cast<std::uint8_t>(rng.below(256))},
                   .is_v6 = rng.chance(0.3),
                   .is_native = rng.chance(0.3),
                   .vlan = static_cast<std::uint16_t>(rng.chance(0.2) ? 5 : 0),
                   .front = {static_cast<std::uint8_t>(rng.below(256)),
                             static_cast<std::uint8_t>(rng.below(256))}};
    Bytes frame = frame_of(spec);
    for (std::uint32_t bend = rng.below(4); bend > 0; --bend)
      frame[rng.below(static_cast<std::uint32_t>(frame.size()))] ^=
          static_cast<std::uint8_t>(rng.below(256));
    if (rng.chance(0.2)) frame.resize(rng.below(static_cast<std::uint32_t>(frame.size())));
    device(spec.from).inject(std::move(frame));
    if (i % 16 == 0) run_for(Duration::from_us(40));
  }
  command("perfect all");
  run_for(Duration::from_ms(50));
  std::size_t seen = 0;
  for (auto* d : devices_) {
    seen += d->sent.size();
    for (const Bytes& frame : d->sent) {
      fuzz::CheckingVisitor visitor(frame);
      wire::dissect_frame(wire::LinkType::kEthernet, frame, frame.size(), {}, visitor);
    }
  }
  EXPECT_GT(seen, 10000u);
  EXPECT_EQ(fabric_->frames_held(), 0u);
  EXPECT_EQ(fabric_->simulation().packets_pool.in_use(), 0u);
}

}  // namespace
}  // namespace uet::fabric
