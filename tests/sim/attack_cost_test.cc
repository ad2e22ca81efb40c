/// What one attacker costs twenty-four honest endpoints: goodput among themselves with and without it.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/sim/attacker.h"
#include "apps/sim/host.h"
#include "apps/sim/wiretap.h"
#include "fep/settings/settings.h"
#include "sim/fabric.h"

namespace uet::sim {
namespace {

using base::Duration;

constexpr HostId kHonest = 24;
constexpr std::uint32_t kMtu = 4096;
constexpr std::uint64_t kKey = 3;
constexpr std::size_t kWriteBytes = 2'000'000;
constexpr std::uint32_t kWrites = 12;  ///< of each host, one behind the other

FabricConfig fabric_config() {
  FabricConfig f;
  f.hosts = kHonest + 1;
  f.tree = FatTree::for_hosts(f.hosts, 2);
  f.mtu_payload = kMtu;
  return f;
}

/// What a program has that sets nothing, but for the speed of this fabric.
fep::FepConfig fep_config(const FabricConfig& f) {
  net::PortFacts facts;
  facts.address = address_of(0);
  facts.ip_mtu = kMtu + 256;
  fep::FepConfig c = fep::Settings::default_config(facts);
  c.payload_mtu = kMtu;
  c.cc.link_rate = f.link_rate;
  c.cc.config_base_rtt = f.base_rtt().duration();
  c.cc.trimming = c.pds.use_trimming = f.trimming;
  return c;
}

/// Each honest host writes to the next one; the last host of the fabric attacks them all, or does nothing.
class Ring {
 public:
  explicit Ring(const AttackPlan* attack)
      : fabric_config_(fabric_config()),
        simulation_(1, 700'000, kMtu + 256),
        fabric_(simulation_, model_, fabric_config_, SimPortConfig{.ip_mtu = kMtu + 256}),
        source_(kWriteBytes, 0x11),
        sink_(kWriteBytes) {
    for (HostId h = 0; h < kHonest; ++h) add_host(h);
    if (attack != nullptr)
      attacker_ = std::make_unique<Attacker>(simulation_, fabric_.port(kHonest), *attack, 0, kMtu,
                                             taps_, 99);
    for (HostId h = 0; h < kHonest; ++h)
      for (std::uint32_t i = 0; i < kWrites; ++i) write(h);
  }

  /// Bytes a microsecond of one host, on average.
  double goodput() {
    const SimTime limit = SimTime{} + SimSpan::from(Duration::from_seconds(2));
    while (done_ < kHonest * kWrites && simulation_.events.next_at() < limit &&
           simulation_.events.run_next()) {
    }
    EXPECT_EQ(done_, kHonest * kWrites);
    double sum = 0;
    for (const SimTime ended : ended_) sum += kWrites * kWriteBytes / ended.us();
    return sum / kHonest;
  }
  std::uint64_t attack_packets() const { return attacker_ ? attacker_->packets_sent() : 0; }

 private:
  void add_host(HostId h) {
    taps_.push_back(std::make_unique<Wiretap>(kHonest));
    fabric_.port(h).set_observer(taps_.back().get());
    hosts_.push_back(std::make_unique<Host>(
        simulation_, fabric_.port(h), fep_config(fabric_config_), ses::EndpointConfig{},
        [this](Host& host, const ses::Completion& c) { on_completion(host, c); }));
    const iovec memory{sink_.data(), sink_.size()};
    ses::MemoryRequest request;
    request.iov = {&memory, 1};
    request.remote_write = true;
    request.virtual_addressing = false;
    request.key = kKey;
    ASSERT_TRUE(hosts_.back()->ses().register_memory(request).has_value());
  }
  void write(HostId h) {
    Host& from = *hosts_[h];
    const iovec bytes{source_.data(), source_.size()};
    ses::RmaRequest rma;
    const auto peer = from.ses().add_peer(hosts_[(h + 1) % kHonest]->address());
    ASSERT_TRUE(peer.has_value());
    rma.peer = *peer;
    rma.iov = {&bytes, 1};
    rma.key = kKey;
    ASSERT_TRUE(from.ses().rma(from.now(), from.endpoint(), rma).has_value());
    from.node().poke();
  }
  void on_completion(Host& host, const ses::Completion& c) {
    if (c.kind != ses::OpKind::kWrite) return;
    EXPECT_EQ(c.code, ses::ReturnCode::kOk);
    ++done_;
    ended_[host.id()] = simulation_.now();
  }

  FabricConfig fabric_config_;
  Simulation simulation_;
  WireModel model_;
  Fabric fabric_;
  std::vector<std::uint8_t> source_, sink_;
  std::vector<std::unique_ptr<Wiretap>> taps_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::unique_ptr<Attacker> attacker_;
  std::uint32_t done_ = 0;
  std::array<SimTime, kHonest> ended_;  ///< of each host's last write
};

/// Every kind at every host, all the time: 1.4 packets a microsecond in all. Their bytes are half a percent of what the honest
/// hosts send, and cost as much.
AttackPlan attack_on_all() {
  AttackPlan plan;
  plan.attackers = 1;
  plan.end = SimTime{} + SimSpan::from(Duration::from_seconds(1));
  constexpr std::array kKinds = {AttackKind::kConverse,        AttackKind::kHalfOpen,
                                 AttackKind::kFloodRequests,   AttackKind::kFloodReads,
                                 AttackKind::kFloodUnexpected, AttackKind::kForge,
                                 AttackKind::kGarble};
  for (HostId h = 0; h < kHonest; ++h) {
    for (const AttackKind kind : kKinds) {
      AttackEpisode e;
      e.id = static_cast<std::uint32_t>(plan.episodes.size()) + 1;
      e.kind = kind;
      e.victim = h;
      e.packets = 1'000'000;
      e.gap = SimSpan::from(Duration::from_us(120));
      e.seed = e.id * 0x9e3779b97f4a7c15ULL;
      plan.episodes.push_back(e);
    }
  }
  return plan;
}

TEST(AttackCost, one_attacker_costs_twenty_four_endpoints_two_percent_at_most) {
  constexpr double kMostLost = 0.02;
  const double calm = Ring(nullptr).goodput();
  const AttackPlan plan = attack_on_all();
  Ring attacked(&plan);
  const double goodput = attacked.goodput();
  std::printf(
      "goodput of a host: calm %.1f Gb/s, attacked %.1f Gb/s (%.2f %% less), %llu packets of the "
      "attacker\n",
      calm * 8e-3, goodput * 8e-3, 100 * (1 - goodput / calm),
      static_cast<unsigned long long>(attacked.attack_packets()));
  EXPECT_GT(attacked.attack_packets(), 2000u);
  EXPECT_GE(goodput, calm * (1 - kMostLost));
}

}  // namespace
}  // namespace uet::sim
