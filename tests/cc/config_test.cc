/// Derived parameters against the constants that the UEC's simulator prints.
#include "cc/cc_config.h"

#include <gtest/gtest.h>

namespace uet::cc {
namespace {

using base::BitRate;
using base::Duration;

struct Printed {
  const char* topology;
  std::uint64_t gbps;
  std::int64_t base_rtt_ns;
  double bdp, max_window, target_ns, scaling_a, scaling_b, alpha_per_ps, fi, eta, fi_scale;
};

constexpr Printed kPrinted[] = {
    {"three tiers, 100 G", 100, 14'023, 175'284, 262'926, 10'517.0, 1.16856, 0.87642, 0.0015916,
     23'873.7, 716.2, 0.2921},
    {"two tiers, 100 G", 100, 9'348, 116'856, 175'284, 7'011.4, 0.77904, 0.58428, 0.0010611,
     15'915.8, 477.5, 0.1948},
    {"two tiers, 400 G", 400, 8'337, 416'856, 625'284, 6'252.8, 2.77904, 0.52107, 0.0037851,
     56'775.8, 1'703.3, 0.6948},
};

TEST(CcConfig, derived__matches_what_the_public_simulator_prints) {
  for (const auto& row : kPrinted) {
    SCOPED_TRACE(row.topology);
    CcConfig c;
    c.link_rate = BitRate::from_gbps(row.gbps);
    c.config_base_rtt = Duration::from_ns(row.base_rtt_ns);
    c.trimming = true;
    c.mtu_bytes = 4150;
    c.gain_mtu_bytes = 4086;
    c = derived(c);
    const auto close = [](double value, double expected) {
      EXPECT_NEAR(value, expected, expected * 3e-4);
    };
    close(static_cast<double>(c.bdp()), row.bdp);
    close(static_cast<double>(c.max_window), row.max_window);
    close(static_cast<double>(c.target_qdelay.ns()), row.target_ns);
    close(c.scaling_a, row.scaling_a);
    close(c.scaling_b, row.scaling_b);
    close(c.alpha / 1000, row.alpha_per_ps);
    close(c.fi, row.fi);
    close(c.eta, row.eta);
    close(c.fi_scale, row.fi_scale);
    EXPECT_EQ(c.adjust_bytes_threshold, 33'200);
    EXPECT_EQ(c.grant_bytes, 64 * 256);
  }
}

TEST(CcConfig, derived__constants_of_the_vectors) {
  CcConfig c;
  c.link_rate = BitRate::from_gbps(100);
  c.config_base_rtt = Duration::from_us(12);
  c.trimming = true;
  c.mtu_bytes = 4096;
  c = derived(c);
  EXPECT_EQ(c.bdp(), 150'000);
  EXPECT_EQ(c.max_window, 225'000);
  EXPECT_EQ(c.target_qdelay, Duration::from_us(9));
  EXPECT_DOUBLE_EQ(c.alpha, 4 * 0.75 * 4096 / 9000);
  EXPECT_DOUBLE_EQ(c.fi, 20'480);
  EXPECT_DOUBLE_EQ(c.eta, 614.4);
}

TEST(CcConfig, derived__quick_adapt_on_delay_only_without_trimming_and_noise) {
  CcConfig c;
  c.config_base_rtt = Duration::from_us(10);
  EXPECT_EQ(derived(c).target_qdelay, Duration::from_us(10));
  EXPECT_EQ(derived(c).qa_threshold, Duration::from_us(40));
  auto noisy = c;
  noisy.timing_noise = Duration::from_us(20);
  EXPECT_GE(derived(noisy).qa_threshold, Duration::from_seconds(1));
  EXPECT_EQ(derived(noisy).fast_clear_delay, Duration::from_us(20));
  EXPECT_EQ(derived(noisy).base_rtt_floor, Duration::from_us(10));
  auto trimming = c;
  trimming.trimming = true;
  EXPECT_GE(derived(trimming).qa_threshold, Duration::from_seconds(1));
}

TEST(CcConfig, derived__unknown_port_gets_usable_numbers) {
  CcConfig c;
  c.config_base_rtt = {};
  c = derived(c);
  EXPECT_EQ(c.config_base_rtt, Duration::from_us(100));
  EXPECT_EQ(c.link_rate, BitRate::from_gbps(25));
  EXPECT_EQ(c.max_window, 468'750);
}

TEST(CcConfig, derived__slower_destination_sets_the_bdp) {
  CcConfig c;
  c.link_rate = BitRate::from_gbps(100);
  c.destination_rate = BitRate::from_gbps(25);
  c.config_base_rtt = Duration::from_us(12);
  EXPECT_EQ(derived(c).bdp(), 37'500);
}

TEST(CcConfig, derived__what_is_set_stays_and_nonsense_is_clamped) {
  CcConfig c;
  c.max_window = 1;  // less than one packet: nothing could ever leave
  c.alpha = 7;
  c.paths = 100;
  c.planes = 0;
  c.pacer_share = 3;
  const auto d = derived(c);
  EXPECT_EQ(d.max_window, d.mtu_bytes);
  EXPECT_EQ(d.alpha, 7);
  EXPECT_EQ(d.paths, 64);
  EXPECT_EQ(d.planes, 1);
  EXPECT_EQ(d.pacer_share, 1.0);
  EXPECT_EQ(describe(derived(d)), describe(d));
}

TEST(CcConfig, describe__names_every_gain) {
  const auto text = describe(derived(CcConfig{}));
  for (const char* name :
       {"alpha ", "fi ", "eta ", "max_window ", "target_qdelay ", "qa_threshold "}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace uet::cc
