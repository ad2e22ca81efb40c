// Why packets do not reach a peer, as PeerFit tells it.
#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "lib/net/port_wrapper.h"
#include "provider/deaf_planes.h"
#include "provider/peer_fit.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using base::DropReason;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ReachTest : public testing::Test {
 protected:
  LinkConfig link_where(std::function<bool(std::size_t from, std::size_t bytes)> is_lost) {
    LinkConfig link{.ip_mtu = 9000, .seed = 11};
    link.drop = [is_lost = std::move(is_lost)](std::size_t from,
                                               std::span<const std::uint8_t> bytes) {
      return is_lost(from, bytes.size());
    };
    return link;
  }
  void post(FepPair& pair, std::size_t from, std::size_t bytes) {
    ASSERT_TRUE(pair.ses(1 - from).receive(pair.now, pair.sides[1 - from].endpoint,
                                           {.iov = {&in_iov_, 1}}));
    const iovec out = {out_.data(), bytes};
    ASSERT_TRUE(pair.ses(from).send(pair.now, pair.sides[from].endpoint,
                                    {.peer = pair.sides[from].peer, .iov = {&out, 1}}));
  }
  /// `each_second` comes before the look of side 0.
  template <typename EachSecond>
  void look(FepPair& pair, int seconds, EachSecond&& each_second) {
    for (int second = 0; second < seconds; ++second) {
      const Instant next = pair.now + Duration::from_seconds(1);
      pair.alarm = next;
      ASSERT_TRUE(pair.run_until([&] { return pair.now >= next; }));
      each_second();
      std::ranges::move(fit_.look(pair.now, *pair.sides[0].fep, settings_),
                        std::back_inserter(told_));
    }
  }
  void look(FepPair& pair, int seconds) {
    look(pair, seconds, [] {});
  }

  std::vector<std::uint8_t> out_ = pattern(100'000, 1), in_ = std::vector<std::uint8_t>(100'000);
  const iovec in_iov_ = {in_.data(), in_.size()};
  provider::PeerFit fit_;
  fep::Settings settings_;
  std::vector<std::string> told_;
};

TEST_F(ReachTest, look__losses_one_way_are_no_narrow_way_though_the_peer_is_heard) {
  bool is_cut = false;
  FepPair pair(link_where([&](std::size_t from, std::size_t) { return is_cut && from == 0; }));
  post(pair, 0, 100);
  post(pair, 1, 100);
  look(pair, 1);
  is_cut = true;
  post(pair, 0, 100'000);
  post(pair, 1, 100'000);  // whose Probes and packets sent again go on coming
  look(pair, 6);
  EXPECT_THAT(told_, ElementsAre(AllOf(HasSubstr("packets to 10.0.0.2 do not arrive"),
                                       HasSubstr("10.0.0.2 is heard"), HasSubstr("firewalls"),
                                       Not(HasSubstr("MTU")))));
}

TEST_F(ReachTest, look__a_narrow_way_is_one_though_the_peer_sends_as_well) {
  FepPair pair(link_where([&](std::size_t, std::size_t bytes) { return bytes > 1472; }));
  post(pair, 0, 100);
  post(pair, 1, 100);
  look(pair, 1);
  post(pair, 0, 100'000);
  post(pair, 1, 100'000);
  look(pair, 6);
  EXPECT_THAT(told_, ElementsAre(AllOf(HasSubstr("large packets to 10.0.0.2 are lost"),
                                       HasSubstr("MTU here, 9000"))));
}

/// Side 1 answers nothing while `is_silent_`.
class SilenceTest : public ReachTest {
 protected:
  SilenceTest() : pair_(link_where([this](std::size_t, std::size_t) { return is_silent_; })) {}

  /// A message that is answered before the silence, and one that is not. Ends `seconds` after the second.
  void talk_and_fall_silent(int seconds) {
    post(pair_, 0, 100);
    const std::size_t before = pair_.completions(0).count();
    ASSERT_TRUE(pair_.run_until([&] { return pair_.completions(0).count() > before; }));
    is_silent_ = true;
    post(pair_, 0, 100);
    ASSERT_EQ(pair_.sides[0].fep->pds().gauges().pdcs_half_open, 0u);
    look(pair_, seconds);
  }

  bool is_silent_ = false;
  FepPair pair_;
};

TEST_F(SilenceTest, look__a_peer_that_falls_silent_is_told_within_seconds_and_once) {
  talk_and_fall_silent(4);
  EXPECT_THAT(told_, IsEmpty());
  look(pair_, 4);
  EXPECT_THAT(told_, ElementsAre(AllOf(HasSubstr("nothing is heard from 10.0.0.2 any more for "),
                                       HasSubstr(" s: "), HasSubstr("stopped"),
                                       HasSubstr("FI_UET_PROGRESS=thread"), HasSubstr("host"))));
  look(pair_, 80);  // the context has failed meanwhile
  post(pair_, 0, 100);
  look(pair_, 10);
  EXPECT_EQ(told_.size(), 1u);
}

// Its context is idle, and the close of that is all that waits for an answer.
TEST_F(SilenceTest, look__a_peer_that_goes_when_all_is_answered_is_not_told_of) {
  post(pair_, 0, 100);
  ASSERT_TRUE(pair_.run_until([&] { return pair_.completions(0).count() > 0; }));
  is_silent_ = true;
  look(pair_, 12);
  EXPECT_GT(pair_.sides[0].fep->trace().count(base::EventId::kPacketRetransmitted), 0u);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SilenceTest, look__a_peer_that_computes_for_a_few_seconds_is_not_told_of) {
  talk_and_fall_silent(4);
  is_silent_ = false;
  look(pair_, 10);
  EXPECT_EQ(pair_.completions(1).count(), 2u);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SilenceTest, look__a_loop_that_this_side_does_not_turn_is_no_silence_of_the_peer) {
  talk_and_fall_silent(2);
  for (int second = 0; second < 10; ++second) {
    pair_.now = pair_.now + Duration::from_seconds(1);
    std::ranges::move(fit_.look(pair_.now, *pair_.sides[0].fep, settings_),
                      std::back_inserter(told_));
  }
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SilenceTest, look__what_is_posted_after_a_long_rest_is_not_told_of_at_once) {
  post(pair_, 0, 100);
  look(pair_, 2);
  look(pair_, 30);
  is_silent_ = true;
  post(pair_, 0, 100);
  look(pair_, 4);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SilenceTest, look__another_outage_of_the_peer_is_told_again_with_its_number) {
  talk_and_fall_silent(8);
  is_silent_ = false;
  look(pair_, 60);
  talk_and_fall_silent(8);
  EXPECT_THAT(told_, ElementsAre(Not(HasSubstr("outage")), HasSubstr("outage 2 of this peer")));
}

TEST_F(SilenceTest, look__a_peer_whose_context_is_gone_was_heard_before) {
  post(pair_, 0, 100);
  look(pair_, 2);
  pair_.sides[0].fep->pds().close_all(pair_.now);
  look(pair_, 2);
  ASSERT_EQ(pair_.sides[0].fep->pds().gauges().pdcs_open, 0u);
  is_silent_ = true;
  post(pair_, 0, 100);
  look(pair_, 7);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("nothing is heard from 10.0.0.2 any more")));
}

/// The port drops what side 0 sends, and counts it.
class RefusalTest : public ReachTest {
 protected:
  LinkConfig refusing(DropReason reason, net::FabricAddress destination) {
    LinkConfig link = link_where([this, reason](std::size_t from, std::size_t bytes) {
      if (from != 0 || !refuses_ || trace_ == nullptr) return false;
      trace_->drop(Instant{}, reason, bytes);
      return true;
    });
    link.send_failure = {.destination = destination, .reason = reason};
    return link;
  }
  std::vector<std::string> told_of(DropReason reason,
                                   net::FabricAddress destination = MemoryLink::address(1)) {
    FepPair pair(refusing(reason, destination));
    trace_ = &pair.sides[0].trace;
    post(pair, 0, 100);
    look(pair, 6);
    trace_ = nullptr;
    return told_;
  }
  bool refuses_ = true;
  base::Trace* trace_ = nullptr;
};

TEST_F(RefusalTest, look__without_a_route_the_sentence_names_prefix_and_gateway_not_the_peer) {
  EXPECT_THAT(told_of(DropReason::kNoRoute),
              ElementsAre(AllOf(HasSubstr("packets to 10.0.0.2 do not leave this host"),
                                HasSubstr("no-route"), HasSubstr("FI_UET_GATEWAY"),
                                HasSubstr("FI_UET_PREFIX"))));
}

TEST_F(RefusalTest, look__a_next_hop_that_does_not_answer_is_named) {
  EXPECT_THAT(told_of(DropReason::kNoNeighbor),
              ElementsAre(AllOf(HasSubstr("packets to 10.0.0.2 do not leave this host"),
                                HasSubstr("no-neighbor"), HasSubstr("FI_UET_VLAN"))));
}

TEST_F(RefusalTest, look__what_the_kernel_refuses_is_asked_of_its_routes) {
  EXPECT_THAT(told_of(DropReason::kSendFailed),
              ElementsAre(AllOf(HasSubstr("packets to 10.0.0.2 do not leave this host"),
                                HasSubstr("send-failed"), HasSubstr("ip route get 10.0.0.2"))));
}

TEST_F(RefusalTest, look__packets_to_others_are_not_told_as_those_of_the_peer_that_is_waited_for) {
  EXPECT_THAT(told_of(DropReason::kNoNeighbor, net::FabricAddress::from_v4(0x0a000009)),
              ElementsAre(HasSubstr("nothing is heard from 10.0.0.2 yet")));
}

TEST_F(RefusalTest, look__a_refusal_that_is_over_is_not_told) {
  FepPair pair(refusing(DropReason::kSendFailed, MemoryLink::address(1)));
  trace_ = &pair.sides[0].trace;
  int second = 0;
  post(pair, 0, 100);
  look(pair, 6, [&] { refuses_ = ++second < 1; });
  EXPECT_THAT(told_, IsEmpty());
  trace_ = nullptr;
}

/// A port of two planes, of which only the counters count.
class CountedPlanes final : public net::PortWrapper {
 public:
  CountedPlanes() : net::PortWrapper(nullptr) {
    facts_.name = "udp:d0+udp:d1";
    facts_.planes = 2;
  }
  const net::PortFacts& facts() const override { return facts_; }
  net::PlaneCounters plane_counters(unsigned plane) const override { return counters[plane]; }

  std::array<net::PlaneCounters, 2> counters{};

 private:
  net::PortFacts facts_;
};

class DeafPlanesTest : public testing::Test {
 protected:
  std::vector<std::string> look() {
    std::vector<std::string> remarks;
    planes_.look(port_, remarks);
    return remarks;
  }
  CountedPlanes port_;
  provider::DeafPlanes planes_;
};

TEST_F(DeafPlanesTest, look__a_plane_that_brings_nothing_is_named_once_with_rp_filter_and_vlan) {
  port_.counters[0] = {.sent = 1'524'640, .received = 637'194};
  port_.counters[1] = {.sent = 427};
  EXPECT_THAT(look(), ElementsAre(AllOf(HasSubstr("plane 1 (udp:d1)"), HasSubstr("427 packets"),
                                        HasSubstr("received none"), HasSubstr("VLAN"),
                                        HasSubstr("rp_filter"))));
  port_.counters[0].received += 100'000;
  port_.counters[1].sent += 1'000;
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(DeafPlanesTest, look__a_plane_that_brings_a_packet_now_and_then_is_named_once_a_minute) {
  int told = 0;
  for (int second = 0; second < 59; ++second) {
    port_.counters[0].sent += 2'000;
    port_.counters[0].received += 2'000;
    port_.counters[1].sent += 200;
    if (second % 2 == 1) ++port_.counters[1].received;
    told += static_cast<int>(look().size());
  }
  EXPECT_EQ(told, 1);
}

TEST_F(DeafPlanesTest, look__a_plane_that_ends_to_bring_anything_is_named_from_there_on) {
  port_.counters[0] = {.sent = 2'000, .received = 2'000};
  port_.counters[1] = {.sent = 2'000, .received = 2'000};
  EXPECT_THAT(look(), IsEmpty());
  port_.counters[0] = {.sent = 9'000, .received = 9'000};
  port_.counters[1].sent += 150;
  EXPECT_THAT(look(), ElementsAre(AllOf(HasSubstr("sent 150 packets"), HasSubstr("7000"))));
}

TEST_F(DeafPlanesTest, look__neither_idleness_nor_a_plane_without_link_is_told) {
  port_.counters[0] = {.sent = 2'000, .received = 2'000};
  port_.counters[1] = {.sent = 20};
  EXPECT_THAT(look(), IsEmpty());
  port_.counters[1] = {.is_up = false, .sent = 400};
  EXPECT_THAT(look(), IsEmpty());
}

}  // namespace
}  // namespace uet::test
