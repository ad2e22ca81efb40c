// Peers that do not fit, as PeerFit names them.
#include "provider/peer_fit.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <vector>

#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The way carries packets up to 1500 bytes, and both devices up to 9000.
LinkConfig through_narrow_switch() {
  LinkConfig link{.ip_mtu = 9000, .seed = 11};
  link.drop = [](std::size_t, std::span<const std::uint8_t> bytes) { return bytes.size() > 1472; };
  return link;
}

class PeerFitTest : public testing::Test {
 protected:
  /// A message of `bytes` from side 0 to side 1, and a look of side 0 in each of the `seconds` from then on.
  void send(FepPair& pair, std::size_t bytes, int seconds) {
    auto& out = buffers_.emplace_back(pattern(bytes, 1));
    auto& in = buffers_.emplace_back(bytes);
    const iovec out_iov = iov(out), in_iov = iov(in);
    ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint, {.iov = {&in_iov, 1}}));
    ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                                 {.peer = pair.sides[0].peer, .iov = {&out_iov, 1}}));
    for (int second = 0; second < seconds; ++second) {
      const Instant next = pair.now + Duration::from_seconds(1);
      const auto is_idle = [&] {
        return pair.sides[0].fep->is_idle() && pair.sides[1].fep->is_idle() &&
               pair.link.next_arrival().is_never();
      };
      ASSERT_TRUE(pair.run_until([&] { return pair.now >= next || is_idle(); }));
      pair.now = std::max(pair.now, next);
      look(pair);
    }
  }

  /// A write of `bytes` from side 0 to side 1, of which no more is asked than that its packets leave.
  void write(FepPair& pair, std::size_t bytes) {
    auto& out = buffers_.emplace_back(pattern(bytes, 2));
    const iovec out_iov = iov(out);
    ASSERT_TRUE(pair.ses(0).rma(pair.now, pair.sides[0].endpoint,
                                {.peer = pair.sides[0].peer, .iov = {&out_iov, 1}, .key = 1}));
  }

  void look(FepPair& pair, std::size_t side = 0) {
    std::ranges::move(fit_.look(pair.now, *pair.sides[side].fep, settings_),
                      std::back_inserter(told));
  }

  std::vector<std::string> told;
  provider::PeerFit fit_;
  fep::Settings settings_;
  /// What is lost is sent again as long as a test runs.
  std::deque<std::vector<std::uint8_t>> buffers_;
};

TEST_F(PeerFitTest, look__a_peer_without_crc_is_named_with_our_setting_and_no_other_guess) {
  FepPair pair(LinkConfig{.seed = 11}, {}, false,
               std::map<std::string, std::string>{{"PROTECT", "none"}});
  ASSERT_TRUE(pair.ses(1).send(pair.now, pair.sides[1].endpoint, {.peer = pair.sides[1].peer}));
  send(pair, 100, 4);
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("wrong CRC, the last from 10.0.0.2"),
                                      HasSubstr("(here crc)"))));
}

TEST_F(PeerFitTest, look__large_packets_that_vanish_are_named_once_with_mtu_and_setting) {
  FepPair pair(through_narrow_switch());
  send(pair, 100, 1);
  EXPECT_THAT(told, IsEmpty());
  send(pair, 100'000, 3);
  EXPECT_THAT(
      told, ElementsAre(AllOf(HasSubstr("large packets to 10.0.0.2 are lost again and again"),
                              HasSubstr("MTU here, 9000"), HasSubstr("FI_UET_MAX_PAYLOAD=1024"))));
  send(pair, 100'000, 2);
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(PeerFitTest, look__a_first_packet_that_vanishes_may_be_too_large) {
  FepPair pair(through_narrow_switch());
  send(pair, 100'000, 2);
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("nothing is heard from 10.0.0.2"),
                                      HasSubstr("MTU here, 9000"))));
}

TEST_F(PeerFitTest, look__a_small_first_packet_that_vanishes_says_nothing_of_mtus) {
  LinkConfig dead{.ip_mtu = 9000, .seed = 11};
  dead.drop = [](std::size_t, std::span<const std::uint8_t>) { return true; };
  FepPair pair(dead);
  send(pair, 100, 2);
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("nothing is heard from 10.0.0.2"),
                                      testing::Not(HasSubstr("MTU")))));
}

TEST_F(PeerFitTest, look__receives_behind_a_full_room_are_told_of_both_settings) {
  settings_.overflow_bytes = 1 << 20;
  for (const bool has_room : {true, false}) {
    settings_.overflow_msgs = has_room ? 64 : 16;
    FepPair pair(LinkConfig{.seed = 11}, {}, true,
                 std::map<std::string, std::string>{{"OVERFLOW_MSGS", has_room ? "64" : "16"}});
    for (std::uint64_t tag = 0; tag < 20; ++tag)
      ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                                   {.peer = pair.sides[0].peer, .tagged = true, .tag = tag}));
    ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                                    {.tagged = true, .tag = has_room ? 99u : 19u}));
    for (int second = 0; second < 5; ++second) {
      const Instant next = pair.now + Duration::from_seconds(1);
      pair.alarm = next;
      ASSERT_TRUE(pair.run_until([&] { return pair.now >= next; }));
      look(pair, 1);
    }
    if (has_room) {
      EXPECT_THAT(told, IsEmpty());
    }
  }
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("FI_UET_OVERFLOW_MSGS"),
                                      HasSubstr("FI_UET_OVERFLOW_BYTES"))));
}

TEST_F(PeerFitTest, look__a_message_longer_than_the_room_says_nothing_of_it) {
  FepPair pair(LinkConfig{.seed = 11}, {{"RENDEZVOUS", "0"}}, true,
               std::map<std::string, std::string>{{"OVERFLOW_BYTES", "65536"}});
  settings_.overflow_msgs = 1024;
  settings_.overflow_bytes = 65536;
  std::vector<std::uint8_t> data(100'000);
  const iovec iov{data.data(), data.size()};
  ASSERT_TRUE(
      pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                       {.peer = pair.sides[0].peer, .tagged = true, .tag = 1, .iov = {&iov, 1}}));
  ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint, {.tagged = true, .tag = 99}));
  for (int second = 0; second < 5; ++second) {
    const Instant next = pair.now + Duration::from_seconds(1);
    pair.alarm = next;
    ASSERT_TRUE(pair.run_until([&] { return pair.now >= next; }));
    look(pair, 1);
  }
  EXPECT_GT(pair.ses(1).gauges().header_only_messages, 0u);
  EXPECT_THAT(told, IsEmpty());
}

// Killed, stopped, or computing where only its calls turn the loop.
TEST_F(PeerFitTest, look__a_peer_that_stops_is_no_narrow_way_and_was_heard_before) {
  bool has_stopped = false;
  LinkConfig link{.ip_mtu = 9000, .seed = 11};
  link.drop = [&](std::size_t, std::span<const std::uint8_t>) { return has_stopped; };
  FepPair pair(link, {{"SPRAY_ORDERED", "0"}}, true);
  send(pair, 100, 1);
  has_stopped = true;
  send(pair, 100'000, 4);
  EXPECT_THAT(told, IsEmpty());
  write(pair, 100'000);  // in a context of its own, which is never answered
  send(pair, 100, 3);
  EXPECT_THAT(told, ElementsAre(HasSubstr("nothing is heard from 10.0.0.2 any more")));
}

TEST_F(PeerFitTest, look__a_large_first_packet_may_vanish_while_other_contexts_are_heard) {
  FepPair pair(through_narrow_switch(), {{"SPRAY_ORDERED", "0"}}, true);
  send(pair, 100, 1);
  write(pair, 100'000);
  for (int i = 0; i < 3; ++i) send(pair, 100, 1);
  EXPECT_THAT(told, ElementsAre(HasSubstr("large packets to 10.0.0.2 are lost")));
}

// Those of this version grant credit whatever they run, so this one's grants are lost.
TEST_F(PeerFitTest, look__a_peer_that_grants_no_credit_is_named) {
  LinkConfig link{.seed = 11};
  link.drop = [](std::size_t from, std::span<const std::uint8_t> bytes) {
    const auto header = wire::parse<wire::PdsControl>(bytes);
    return from == 1 && header && header->type == wire::PdsType::kControl &&
           header->ctl_type == wire::ControlType::kCredit;
  };
  settings_.cc = cc::Algorithm::kRccc;
  FepPair pair(link, {{"CC", "rccc"}}, false, std::map<std::string, std::string>{{"CC", "both"}});
  send(pair, 10'000'000, 6);
  EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("grants none"), HasSubstr("FI_UET_CC=nscc"))));
}

/// What is settled by a smaller payload, or lost by chance, is not complained of.
TEST_F(PeerFitTest, look__small_payload_or_chance_is_no_narrow_way) {
  FepPair small(through_narrow_switch(), {{"MAX_PAYLOAD", "1024"}});
  send(small, 1'000'000, 3);
  EXPECT_EQ(small.completions(1).count(), 1u);
  FepPair lossy(LinkConfig{.loss = 0.3, .ip_mtu = 9000, .seed = 12});
  send(lossy, 10'000'000, 20);
  EXPECT_THAT(told, IsEmpty());
}

}  // namespace
}  // namespace uet::test
