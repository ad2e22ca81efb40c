/// Ordered messages over four paths, each a quarter as fast as the hosts: rates, order, and a path that dies.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/sim/host.h"
#include "fep/settings/settings.h"
#include "sim/fabric.h"

namespace uet::sim {
namespace {

using base::Duration;

constexpr std::uint32_t kMtu = 4096;
constexpr HostId kFrom = 0, kTo = 4;  // on different leaves
constexpr std::size_t kInFlight = 32;
constexpr std::array kSpines = {"spine0", "spine1", "spine2", "spine3"};

FabricConfig fabric_config() {
  FabricConfig f;
  f.tree = FatTree{.tiers = 2, .radix = 8};
  f.hosts = 8;
  f.mtu_payload = kMtu;
  return f;
}

/// What a program has that sets nothing, but for the speed of this fabric.
fep::FepConfig fep_config(const FabricConfig& f, bool spray) {
  net::PortFacts facts;
  facts.address = address_of(0);
  facts.ip_mtu = kMtu + 256;
  fep::FepConfig c = fep::Settings::default_config(facts);
  c.payload_mtu = kMtu;
  c.ses.spray_ordered = spray;
  c.cc.link_rate = f.link_rate;
  c.cc.config_base_rtt = f.base_rtt().duration();
  c.cc.load_balancing = cc::LoadBalancing::kMixed;
  c.cc.trimming = c.pds.use_trimming = f.trimming;
  return c;
}

/// One host sends tagged messages, so many at a time, to wildcard receives of the other.
class Ordered {
 public:
  Ordered(bool spray, std::size_t bytes)
      : fabric_config_(fabric_config()),
        simulation_(1, 200'000, kMtu + 256),
        fabric_(simulation_, model_, fabric_config_, SimPortConfig{.ip_mtu = kMtu + 256}),
        out_(bytes, 0x11),
        in_(bytes) {
    for (const char* spine : kSpines)
      for (Link* link : fabric_.find_links(spine)) link->set_speed_factor(0.25);
    ses::EndpointConfig endpoint;
    endpoint.sends_ordered = true;
    for (const HostId h : {kFrom, kTo})
      hosts_.push_back(std::make_unique<Host>(
          simulation_, fabric_.port(h), fep_config(fabric_config_, spray), endpoint,
          [this](Host&, const ses::Completion& c) { on_completion(c); }));
    peer_ = *from().ses().add_peer(to().address());
    for (std::size_t i = 0; i < 2 * kInFlight; ++i) post();
    for (std::size_t i = 0; i < kInFlight; ++i) send();
  }

  void kill(const char* spine, Duration at) {
    simulation_.events.call_at(SimTime{} + SimSpan::from(at), [this, spine] {
      for (Link* link : fabric_.find_links(spine)) link->set_up(false);
    });
  }
  /// Gb/s of messages that arrived between two times.
  double rate(Duration begin, Duration end) {
    run_to(begin);
    const std::uint64_t before = received_;
    run_to(end);
    return static_cast<double>((received_ - before) * out_.size()) * 8 /
           static_cast<double>((end - begin).ns());
  }
  std::uint64_t held() { return to().count(base::EventId::kMessageHeld); }
  std::uint64_t received() const { return received_; }

 private:
  Host& from() { return *hosts_[0]; }
  Host& to() { return *hosts_[1]; }
  void run_to(Duration at) {
    const SimTime end = SimTime{} + SimSpan::from(at);
    while (simulation_.events.next_at() < end && simulation_.events.run_next()) {
    }
  }
  void post() {
    const iovec bytes{in_.data(), in_.size()};
    ses::ReceiveRequest r;
    r.tagged = true;
    r.ignore = ~0ull;
    r.iov = {&bytes, 1};
    r.context = posted_++;
    ASSERT_TRUE(to().ses().receive(to().now(), to().endpoint(), r).has_value());
  }
  void send() {
    const iovec bytes{out_.data(), out_.size()};
    ses::SendRequest r;
    r.peer = peer_;
    r.tagged = true;
    r.tag = sent_++;
    r.iov = {&bytes, 1};
    ASSERT_TRUE(from().ses().send(from().now(), from().endpoint(), r).has_value());
    from().node().poke();
  }
  void on_completion(const ses::Completion& c) {
    EXPECT_EQ(c.code, ses::ReturnCode::kOk);
    if (c.kind == ses::OpKind::kTaggedSend) return send();
    EXPECT_EQ(c.tag, c.context);  // in the order in which they were sent
    EXPECT_EQ(c.length, out_.size());
    ++received_;
    post();
  }

  FabricConfig fabric_config_;
  Simulation simulation_;
  WireModel model_;
  Fabric fabric_;
  std::vector<std::uint8_t> out_, in_;
  std::vector<std::unique_ptr<Host>> hosts_;
  ses::PeerId peer_ = 0;
  std::uint64_t posted_ = 0, sent_ = 0, received_ = 0;
};

constexpr Duration kSettled = Duration::from_ms(1), kEnd = Duration::from_ms(3);

class OrderedSpray : public ::testing::TestWithParam<std::size_t> {};

TEST_P(OrderedSpray, four_paths_carry_three_and_a_half_times_what_one_does) {
  const double one = Ordered(false, GetParam()).rate(kSettled, kEnd);
  Ordered sprayed(true, GetParam());
  const double four = sprayed.rate(kSettled, kEnd);
  std::printf(
      "%zu bytes: one path %.1f Gb/s, four %.1f Gb/s, %.2f times; %.1f %% of the messages came "
      "early\n",
      GetParam(), one, four, four / one,
      100.0 * static_cast<double>(sprayed.held()) / static_cast<double>(sprayed.received()));
  EXPECT_GE(four, 3.5 * one);
  EXPECT_GT(sprayed.held(), 0u);
}

/// No message fails, and what is left is used.
TEST_P(OrderedSpray, dead_path_costs_its_share) {
  Ordered sprayed(true, GetParam());
  sprayed.kill("spine2", kEnd);
  const double four = sprayed.rate(kSettled, kEnd);
  const double at_once = sprayed.rate(kEnd, kEnd + Duration::from_ms(2));
  const double three = sprayed.rate(kEnd + Duration::from_ms(2), kEnd + Duration::from_ms(8));
  std::printf("%zu bytes: four paths %.1f Gb/s, in 2 ms after one died %.1f, then %.1f\n",
              GetParam(), four, at_once, three);
  EXPECT_GE(three, 0.75 * four * 0.95);
}

INSTANTIATE_TEST_SUITE_P(Bytes, OrderedSpray, ::testing::Values(65536, 1048576));

}  // namespace
}  // namespace uet::sim
