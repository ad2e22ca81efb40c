/// The invariants, on random histories. A failure prints its seed; the seed and the commit
/// reproduce it.
#include <gtest/gtest.h>

#include <cstdio>

#include "cc/nscc.h"
#include "cc/rccc_source.h"
#include "tests/cc/network_model.h"

namespace uet::cc {
namespace {

model::Scenario random_scenario(std::uint64_t seed) {
  base::Rng rng(seed);
  model::Scenario s;
  s.seed = seed;
  s.config.algorithm = std::array{Algorithm::kNscc, Algorithm::kRccc, Algorithm::kBoth,
                                  Algorithm::kNone}[rng.below(4)];
  s.config.load_balancing = static_cast<LoadBalancing>(rng.below(6));
  s.config.paths = static_cast<std::uint16_t>(1u << rng.below(7));
  s.config.trimming = rng.chance(0.5);
  s.config.config_base_rtt = Duration::from_us(10 + rng.below(30));
  s.config.link_rate = base::BitRate::from_gbps(1 + rng.below(100));
  s.config.mtu_bytes = 1000 + rng.below(8000);
  s.config.htsim_compat = rng.chance(0.1);
  s.config.average_mode = rng.chance(0.5) ? AverageMode::kPerSample : AverageMode::kTimeWeighted;
  s.config.evict_time = Duration::from_us(300);
  s.config = derived(s.config);
  s.sprayed = rng.chance(0.8);
  s.pdcs = static_cast<int>(1 + rng.below(5));
  const auto some = [&rng](double most) { return rng.chance(0.5) ? rng.unit() * most : 0.0; };
  s.faults = {.data_loss = some(0.6),
              .ack_loss = some(0.6),
              .credit_loss = some(0.6),
              .trim = some(0.5),
              .last_hop = some(1.0),
              .mark = some(0.8),
              .duplicate = some(0.3),
              .plain_ack = rng.chance(0.2) ? 1.0 : some(0.7),
              .spurious_loss = some(0.2),
              .abort = some(0.01),
              .penalty = some(0.3)};
  return s;
}

// Covers: CC-I1, CC-I2, CC-I3, CC-I4, CC-I5, CC-I6, CC-I13, CC-I15
TEST(CccProperty, books_agree_and_every_flow_ends) {
  std::uint64_t events = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto outcome = model::Run(random_scenario(seed)).play();
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(outcome.finished) << "no end after " << outcome.events << " events";
    events += outcome.events;
  }
  std::printf("%llu events\n", static_cast<unsigned long long>(events));
}

// Covers: CC-I14
TEST(CccProperty, same_seed_same_history) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto first = model::Run(random_scenario(seed)).play();
    const auto second = model::Run(random_scenario(seed)).play();
    ASSERT_EQ(first.digest, second.digest) << "seed " << seed;
    ASSERT_EQ(first.events, second.events) << "seed " << seed;
  }
}

// Covers: CC-I1, CC-I6, CC-I7, CC-I8
TEST(NsccProperty, window_moves_only_as_the_rules_allow) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    base::Rng rng(seed);
    CcConfig config;
    config.trimming = rng.chance(0.5);
    config.link_rate = base::BitRate::from_gbps(1 + rng.below(400));
    config.config_base_rtt = Duration::from_ns(5000 + rng.below(20'000));
    config = derived(config);
    Instant now = Instant::from_ns(1'000'000);
    Nscc nscc(config, Duration(), now);
    const auto& s = nscc.state();
    Instant last_cut = Instant::from_ns(-1'000'000'000'000);
    for (int i = 0; i < 20'000; ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " step " + std::to_string(i));
      now = now + Duration::from_ns(rng.below(2000));
      if (nscc.may_send(config.mtu_bytes)) nscc.on_send(config.mtu_bytes);
      const auto before = s;
      const auto bytes =
          std::min<ByteCount>(config.mtu_bytes * rng.below(4), std::max<ByteCount>(s.inflight, 0));
      const auto action = rng.below(20);
      if (action == 0) {
        nscc.on_nack(now, config.mtu_bytes,
                     rng.chance(0.5) ? Nscc::Trim::kInFabric : Nscc::Trim::kLastHop, std::nullopt,
                     rng.chance(0.5));
      } else if (action == 1) {
        nscc.on_inferred_loss(config.mtu_bytes);
      } else {
        Nscc::Ack ack{.newly_received = bytes, .ecn = rng.chance(0.4), .rtt = std::nullopt};
        if (rng.chance(0.9)) ack.rtt = Duration::from_ns(3000 + rng.below(60'000));
        if (rng.chance(0.1)) ack.penalty = static_cast<std::uint8_t>(1 + rng.below(127));
        nscc.on_ack(now, ack);
        if (ack.ecn || ack.penalty > 0) {
          // Settling what earlier ACKs earned may raise the window; its divisor is at least one
          // packet. So may quick adapt, after a row of trims took more off than was lost: it sets
          // what really arrived.
          double earned = 0;
          if (s.received_bytes == 0)
            earned = before.inc_bytes / static_cast<double>(config.mtu_bytes) + config.eta + 1;
          if (s.qa_end != before.qa_end)
            earned += static_cast<double>(before.achieved_bytes + bytes);
          ASSERT_LE(static_cast<double>(s.window), static_cast<double>(before.window) + earned);
        }
      }
      ASSERT_GE(s.window, config.mtu_bytes);
      ASSERT_LE(s.window, s.window_max);
      ASSERT_LE(s.window_max, config.max_window);
      ASSERT_LE(s.base_rtt, before.base_rtt);
      if (s.last_decrease != before.last_decrease) {
        ASSERT_GT(s.last_decrease - before.last_decrease, s.base_rtt);
      }
      const bool cut = s.qa_end != before.qa_end && s.bytes_ignored == 0 &&
                       s.window < before.window && s.bytes_to_ignore == s.inflight &&
                       before.achieved_bytes != s.achieved_bytes;
      if (cut) {
        ASSERT_GE(now - last_cut, s.base_rtt + config.target_qdelay);
        last_cut = now;
      }
      ASSERT_GE(s.average_delay_ns, 0);
      ASSERT_LE(s.average_delay_ns, 63'000);
    }
  }
}

// Covers: CC-I9
TEST(RcccProperty, never_sends_more_than_was_granted_and_a_packet) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    base::Rng rng(seed);
    CcConfig config;
    config.algorithm = Algorithm::kRccc;
    config = derived(config);
    Instant now;
    RcccSource source(config, now);
    ByteCount sent = 0, granted = 0;
    std::uint32_t counter = 0, newest = 0;
    for (int i = 0; i < 20'000; ++i) {
      now = now + Duration::from_ns(rng.below(3000));
      const ByteCount bytes = 64 + rng.below(config.mtu_bytes - 64);
      if (rng.chance(0.7) && source.may_send()) {
        source.on_send(now, bytes);
        sent += bytes;
      }
      if (rng.chance(0.3)) {
        const auto step = rng.below(60);
        counter = (counter + step) & 0xff'ffff;
        granted += step * 256;
        if (rng.chance(0.8)) source.on_credit(now, newest = counter);
        if (rng.chance(0.2)) source.on_credit(now, (newest - rng.below(1000)) & 0xff'ffff);
      }
      ASSERT_LE(sent, config.spec_window + granted + config.mtu_bytes) << "seed " << seed;
      ASSERT_LE(source.credit(), config.credit_cap);
      ASSERT_GT(source.credit(), -ByteCount{config.mtu_bytes});
    }
    EXPECT_GT(sent, 1'000'000);
  }
}

}  // namespace
}  // namespace uet::cc
