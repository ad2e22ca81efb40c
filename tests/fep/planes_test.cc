// Two endpoints with several planes each, whole: both planes carry, one dies and comes back.

#include "lib/net/plane_port.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "fep/report/path_log.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

/// One end of a MemoryLink as a port that can be owned, with a plug to pull.
class Plug final : public net::Port {
 public:
  explicit Plug(net::Port& end) : end_(end) {}

  const net::PortFacts& facts() const override { return end_.facts(); }
  net::PacketPool& pool() override { return end_.pool(); }
  std::size_t receive(Instant now, std::span<net::RxPacket> out) override {
    const std::size_t n = end_.receive(now, out);
    if (is_in) return n;
    for (std::size_t i = 0; i < n; ++i) out[i].packet.reset();
    return 0;
  }
  std::size_t send(Instant now, std::span<net::TxPacket> in) override {
    if (is_in) return end_.send(now, in);
    for (net::TxPacket& tx : in) tx.packet.reset();
    return in.size();
  }
  std::size_t send_room(Instant now) const override { return is_busy ? 0 : end_.send_room(now); }
  std::uint8_t planes_up(Instant) override { return is_in || !tells ? 1 : 0; }
  Instant next_deadline() const override { return end_.next_deadline(); }

  bool is_busy = false;
  bool is_in = true;
  bool tells = true;  ///< that the link is gone, when it is

 private:
  net::Port& end_;
};

class PlanesPairTest : public testing::Test {
 protected:
  static constexpr unsigned kPlanes = 2;
  static constexpr std::size_t kBytes = 256 * 1024;

  explicit PlanesPairTest(const char* load_balancing = "oblivious", const char* link_gbps = "0") {
    for (std::size_t i = 0; i < 2; ++i) {
      Side& s = sides_[i];
      std::vector<std::unique_ptr<net::Port>> planes;
      for (unsigned p = 0; p < kPlanes; ++p) {
        auto plug = std::make_unique<Plug>(links_[p].port(i));
        s.plugs[p] = plug.get();
        planes.push_back(std::move(plug));
      }
      s.port = std::make_unique<net::PlanePort>(std::move(planes), s.trace);
      s.fep = std::make_unique<fep::Fep>(
          provider_config(s.port->facts(),
                          {{"PATHS", "16"}, {"LB", load_balancing}, {"LINK_GBPS", link_gbps}}),
          *s.port, s.rng, s.trace, now_);
      s.endpoint = *s.fep->ses().open_endpoint(now_, ses::EndpointConfig{}, s.completions);
    }
    for (std::size_t i = 0; i < 2; ++i)
      sides_[i].peer = *sides_[i].fep->ses().add_peer(
          sides_[1 - i].fep->ses().address_of(sides_[1 - i].endpoint));
  }

  /// Messages from side 0 to side 1 until `end`, each compared.
  void exchange_until(Instant end) {
    while (now_ < end && !HasFailure()) {
      // Each message is the one before it, of which `in_` is full, moved by a byte: what it brings shows.
      const std::span out(out_.data() + ++message_ % kShifts, kBytes);
      const iovec out_iov{out.data(), kBytes}, in_iov = iov(in_);
      Side& from = sides_[0];
      Side& to = sides_[1];
      const std::size_t done = to.completions.count() + from.completions.count() + 2;
      ASSERT_TRUE(to.fep->ses().receive(now_, to.endpoint, {.iov = {&in_iov, 1}}));
      ASSERT_TRUE(
          from.fep->ses().send(now_, from.endpoint, {.peer = from.peer, .iov = {&out_iov, 1}}));
      ASSERT_TRUE(
          run_until([&] { return to.completions.count() + from.completions.count() >= done; }));
      ASSERT_TRUE(std::ranges::equal(in_, out)) << "message " << message_;
    }
    EXPECT_EQ(sides_[0].completions.errors() + sides_[1].completions.errors(), 0u);
  }
  void exchange_for(Duration time) { exchange_until(now_ + time); }

  template <typename Done>
  bool run_until(Done&& done) {
    const Instant end = now_ + Duration::from_seconds(60);
    while (!done()) {
      bool did = false;
      for (Side& s : sides_) did |= s.fep->turn(now_);
      if (did) continue;
      const Instant next =
          std::min({links_[0].next_arrival(), links_[1].next_arrival(),
                    sides_[0].fep->next_deadline(), sides_[1].fep->next_deadline()});
      now_ = std::max(next, now_ + Duration::from_ns(100));
      if (now_ > end) return false;
    }
    return true;
  }

  std::uint64_t sent(unsigned plane) { return sides_[0].port->plane_counters(plane).sent; }
  /// Share of plane 1 in what side 0 sends during `time`.
  double share_of_plane_1(Duration time) {
    const std::uint64_t before[2] = {sent(0), sent(1)};
    exchange_for(time);
    const auto a = static_cast<double>(sent(0) - before[0]);
    const auto b = static_cast<double>(sent(1) - before[1]);
    return b / (a + b);
  }
  void pull(bool tells) {
    for (Side& s : sides_) {
      s.plugs[1]->is_in = false;
      s.plugs[1]->tells = tells;
    }
  }
  void plug_in() {
    for (Side& s : sides_) s.plugs[1]->is_in = true;
  }

  struct Side {
    base::Rng rng{7};
    base::Trace trace;
    std::array<Plug*, kPlanes> plugs{};
    std::unique_ptr<net::PlanePort> port;
    std::unique_ptr<fep::Fep> fep;
    Completions completions;
    ses::EndpointId endpoint = 0;
    ses::PeerId peer = 0;
  };

  Instant now_ = Instant::from_ns(1'000'000);
  std::array<MemoryLink, kPlanes> links_{MemoryLink{{.seed = 1}}, MemoryLink{{.seed = 2}}};
  std::array<Side, 2> sides_;
  std::uint64_t message_ = 0;
  static constexpr std::size_t kShifts = 4096;
  std::vector<std::uint8_t> out_ = pattern(kBytes + kShifts, 1),
                            in_{std::vector<std::uint8_t>(kBytes)};
};

TEST_F(PlanesPairTest, both_planes_carry) {
  const double share = share_of_plane_1(Duration::from_ms(20));
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.6);
  EXPECT_EQ(sides_[0].port->facts().link_rate, base::BitRate::from_gbps(50));
}

TEST_F(PlanesPairTest, lost_link__the_other_plane_carries_on_and_it_returns) {
  exchange_for(Duration::from_ms(5));
  pull(/*tells=*/true);
  exchange_for(Duration::from_ms(20));  // what was on its way is lost, and found out
  EXPECT_LT(share_of_plane_1(Duration::from_ms(20)), 0.001);
  EXPECT_FALSE(sides_[0].port->plane_counters(1).is_up);
  plug_in();
  exchange_for(Duration::from_ms(200));
  EXPECT_GT(share_of_plane_1(Duration::from_ms(20)), 0.3);
  EXPECT_EQ(sides_[0].port->plane_counters(1).times_down, 1u);
}

/// Spraying that leaves paths on which packets are lost.
class CarefulPlanesTest : public PlanesPairTest {
 protected:
  CarefulPlanesTest() : PlanesPairTest("mixed", "400") {}
};

TEST_F(CarefulPlanesTest, plane_that_loses_everything_in_silence__is_left_for_the_other) {
  exchange_for(Duration::from_ms(5));
  pull(/*tells=*/false);
  exchange_for(Duration::from_ms(100));
  EXPECT_LT(share_of_plane_1(Duration::from_ms(50)), 0.1);
  plug_in();
  exchange_for(Duration::from_ms(500));
  EXPECT_GT(share_of_plane_1(Duration::from_ms(50)), 0.3);
}

// The good port is busy, and that the other has room helps nothing that waits. The time of a packet is 0.2 us, and the port is asked less
// and less often.
TEST_F(CarefulPlanesTest, busy_port__is_waited_for_without_turning) {
  exchange_for(Duration::from_ms(5));
  pull(/*tells=*/false);
  exchange_for(Duration::from_ms(100));
  sides_[0].plugs[0]->is_busy = true;
  auto out = pattern(kBytes, ++message_);
  const iovec out_iov = iov(out);
  ASSERT_TRUE(sides_[0].fep->ses().send(now_, sides_[0].endpoint,
                                        {.peer = sides_[0].peer, .iov = {&out_iov, 1}}));
  int turns = 0;
  for (const Instant end = now_ + Duration::from_ms(1); now_ < end; ++turns) {
    if (sides_[0].fep->turn(now_)) continue;
    now_ = std::max(sides_[0].fep->next_deadline(), now_ + Duration::from_ns(100));
  }
  EXPECT_GT(turns, 10);
  EXPECT_LT(turns, 200);
}

TEST_F(PlanesPairTest, all_links_lost__nothing_fails_and_all_goes_on) {
  exchange_for(Duration::from_ms(5));
  for (Side& s : sides_) s.plugs[0]->is_in = s.plugs[1]->is_in = false;
  const Instant end = now_ + Duration::from_seconds(2);
  auto out = pattern(kBytes, 1), in = std::vector<std::uint8_t>(kBytes);
  const iovec out_iov = iov(out), in_iov = iov(in);
  ASSERT_TRUE(sides_[1].fep->ses().receive(now_, sides_[1].endpoint, {.iov = {&in_iov, 1}}));
  ASSERT_TRUE(sides_[0].fep->ses().send(now_, sides_[0].endpoint,
                                        {.peer = sides_[0].peer, .iov = {&out_iov, 1}}));
  ASSERT_TRUE(run_until([&] { return now_ >= end; }));
  EXPECT_NE(in, out);
  for (Side& s : sides_) s.plugs[0]->is_in = s.plugs[1]->is_in = true;
  ASSERT_TRUE(run_until([&] { return in == out; }));
  exchange_for(Duration::from_ms(50));
}

// Nothing can leave before the next look at the links: a thread that could sleep does.
TEST_F(PlanesPairTest, all_links_lost__the_next_look_is_waited_for_without_turning) {
  Side& from = sides_[0];
  from.plugs[0]->is_in = from.plugs[1]->is_in = false;
  auto out = pattern(kBytes, 1), in = std::vector<std::uint8_t>(kBytes);
  const iovec out_iov = iov(out), in_iov = iov(in);
  ASSERT_TRUE(sides_[1].fep->ses().receive(now_, sides_[1].endpoint, {.iov = {&in_iov, 1}}));
  ASSERT_TRUE(from.fep->ses().send(now_, from.endpoint, {.peer = from.peer, .iov = {&out_iov, 1}}));
  int turns = 0;
  for (const Instant end = now_ + Duration::from_ms(100); now_ < end; ++turns) {
    if (from.fep->turn(now_)) continue;
    now_ = std::max(from.fep->next_deadline(), now_ + Duration::from_ns(100));
  }
  EXPECT_LT(turns, 50);
  from.plugs[0]->is_in = from.plugs[1]->is_in = true;
  EXPECT_TRUE(run_until([&] { return in == out; }));
}

TEST_F(PlanesPairTest, path_log__tells_the_state_of_each_plane) {
  exchange_for(Duration::from_ms(5));
  const auto line = nlohmann::json::parse(fep::planes_to_json(now_, *sides_[0].port));
  ASSERT_EQ(line["planes"].size(), 2u);
  for (const auto& plane : line["planes"]) {
    EXPECT_EQ(plane["up"], true);
    EXPECT_GT(plane["sent"], 0u);
    EXPECT_GT(plane["received"], 0u);
    EXPECT_EQ(plane["times_down"], 0u);
  }
}

}  // namespace
}  // namespace uet::test
