#include "cc/cc_config.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace uet::cc {
namespace {

using base::ByteCount;
using base::Duration;

// The network on which the constants of NSCC were tuned: 100 Gb/s x 12 us. [CC 4.2]
constexpr double kReferenceBdp = 150'000;
constexpr double kReferenceRttNs = 12'000;

constexpr Duration kFastClearDelay = Duration::from_us(1);
constexpr Duration kNeverReached = Duration::from_seconds(3600);
constexpr std::uint16_t kMaxPaths = 4096;

template <typename T>
void fill(T& value, T computed) {
  if (value == T{}) value = computed;
}

ByteCount one_and_a_half(ByteCount bytes) {
  return bytes + bytes / 2;
}

void clamp_choices(CcConfig& c) {
  c.mtu_bytes = std::max<std::uint32_t>(c.mtu_bytes, 64);
  c.paths = std::bit_floor(std::clamp<std::uint16_t>(c.paths, 1, kMaxPaths));
  c.planes = std::clamp<std::uint8_t>(c.planes, 1, 8);
  c.run_packets = std::max<std::uint16_t>(c.run_packets, 1);
  c.calm_run_packets = std::max(c.calm_run_packets, c.run_packets);
  c.reps_slots = std::clamp<std::uint8_t>(c.reps_slots, 1, 16);
  c.qa_gate = std::min<std::uint8_t>(c.qa_gate, 62);
  c.pacer_share = std::clamp(c.pacer_share, 0.01, 1.0);
  c.oversubscription = std::clamp(c.oversubscription, 1.0, 90.0);
  c.saturated_fraction = std::clamp(c.saturated_fraction, 0.0, 1.0);
  c.max_md_jump = std::clamp(c.max_md_jump, 0.0, 1.0);
  c.average_gain = std::clamp(c.average_gain, 0.0, 1.0);
}

void derive_network(CcConfig& c) {
  if (c.link_rate.bps() == 0) c.link_rate = kUnknownLinkRate;
  if (c.destination_rate.bps() == 0) c.destination_rate = c.link_rate;
  if (c.config_base_rtt <= Duration()) c.config_base_rtt = kUnknownBaseRtt;
  if (c.timing_noise > Duration()) fill(c.base_rtt_floor, c.config_base_rtt);
}

void derive_nscc(CcConfig& c) {
  const auto base_rtt = c.config_base_rtt;
  const auto bdp = c.bdp();
  fill(c.max_window, one_and_a_half(bdp));
  c.max_window =
      std::max<ByteCount>(c.max_window, c.mtu_bytes);  // or not one packet could ever leave
  fill(c.target_qdelay, c.trimming ? base_rtt * 3 / 4 : base_rtt);
  fill(c.gain_mtu_bytes, c.mtu_bytes);
  const double mtu = c.gain_mtu_bytes;
  const auto target_ns = static_cast<double>(c.target_qdelay.ns());
  fill(c.scaling_a, static_cast<double>(bdp) / kReferenceBdp);
  fill(c.scaling_b, target_ns / kReferenceRttNs);
  fill(c.alpha, 4.0 * c.scaling_a * c.scaling_b * mtu / target_ns);
  fill(c.fi, 5.0 * mtu * c.scaling_a);
  fill(c.eta, 0.15 * mtu * c.scaling_a);
  fill(c.fi_scale, 0.25 * c.scaling_a);
  const bool delay_tells_of_drops = !c.trimming && c.timing_noise == Duration();
  fill(c.qa_threshold, delay_tells_of_drops ? c.target_qdelay * 4 : kNeverReached);
  fill(c.adjust_bytes_threshold, ByteCount{8} * c.mtu_bytes);
  fill(c.adjust_period_threshold, base_rtt);
  fill(c.fast_clear_delay, std::max(kFastClearDelay, c.timing_noise));
}

void derive_rccc(CcConfig& c) {
  const auto bdp = std::max<ByteCount>(c.bdp(), c.mtu_bytes);
  fill(c.grant_bytes, ByteCount{4} * c.mtu_bytes);
  c.grant_bytes = std::max(c.grant_bytes / kWireUnitBytes, ByteCount{1}) * kWireUnitBytes;
  fill(c.spec_window, c.htsim_compat ? one_and_a_half(bdp) : bdp);
  // A cap below one grant would throw away credit that the destination has paid for with time.
  fill(c.credit_cap, std::max(one_and_a_half(bdp), c.grant_bytes));
  fill(c.idle_cap, one_and_a_half(bdp));
  fill(c.credit_request_timeout, std::max(c.config_base_rtt * 4, c.rto_min / 2));
}

}  // namespace

ByteCount CcConfig::bdp() const {
  const auto rate = destination_rate.bps() == 0 ? link_rate : std::min(link_rate, destination_rate);
  return rate.bytes_in(config_base_rtt);
}

CcConfig derived(CcConfig config) {
  if (config.complete) return config;
  clamp_choices(config);
  derive_network(config);
  derive_nscc(config);
  derive_rccc(config);
  config.complete = true;
  return config;
}

std::string describe(const CcConfig& c) {
  std::string out;
  const auto line = [&out](const char* name, double value, const char* unit) {
    char text[96];
    std::snprintf(text, sizeof text, "%s %.10g %s\n", name, value, unit);
    out += text;
  };
  const auto ns = [](Duration d) { return static_cast<double>(d.ns()); };
  line("config_base_rtt", ns(c.config_base_rtt), "ns");
  line("base_rtt_floor", ns(c.base_rtt_floor), "ns");
  line("timing_noise", ns(c.timing_noise), "ns");
  line("link_rate", static_cast<double>(c.link_rate.bps()), "bit/s");
  line("bdp", static_cast<double>(c.bdp()), "B");
  line("mtu", c.mtu_bytes, "B");
  line("max_window", static_cast<double>(c.max_window), "B");
  line("target_qdelay", ns(c.target_qdelay), "ns");
  line("scaling_a", c.scaling_a, "");
  line("scaling_b", c.scaling_b, "");
  line("alpha", c.alpha, "B/ns");
  line("fi", c.fi, "B");
  line("eta", c.eta, "B");
  line("fi_scale", c.fi_scale, "");
  line("gamma", c.gamma, "");
  line("max_md_jump", c.max_md_jump, "");
  line("qa_gate", c.qa_gate, "shift");
  line("qa_threshold", ns(c.qa_threshold), "ns");
  line("adjust_bytes_threshold", static_cast<double>(c.adjust_bytes_threshold), "B");
  line("adjust_period_threshold", ns(c.adjust_period_threshold), "ns");
  line("fast_clear_delay", ns(c.fast_clear_delay), "ns");
  line("average_gain", c.average_gain, "");
  line("grant", static_cast<double>(c.grant_bytes), "B");
  line("pacer_share", c.pacer_share, "");
  line("spec_window", static_cast<double>(c.spec_window), "B");
  line("credit_cap", static_cast<double>(c.credit_cap), "B");
  line("idle_cap", static_cast<double>(c.idle_cap), "B");
  line("fabric_factor", c.fabric_factor ? 1 : 0, "");
  line("oversubscription", c.oversubscription, "");
  line("credit_request_timeout", ns(c.credit_request_timeout), "ns");
  line("paths", c.paths, "");
  line("packets in a row on one path", c.run_packets, "");
  line("the same without congestion", c.calm_run_packets, "");
  line("a turn begins a new one", c.runs_end_with_turn ? 1 : 0, "");
  return out;
}

}  // namespace uet::cc
