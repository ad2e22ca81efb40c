/// Every parameter of congestion control, with the specification's defaults. [CC 4.2, 5.1, 11]
#pragma once

#include <cstdint>
#include <string>

#include "cc/choices.h"
#include "lib/base/units.h"

namespace uet::cc {

/// How the average queueing delay is formed: per sample with a fixed gain (as the UEC's simulator),
/// or weighted with the time since the sample before. [CC 4.7]
enum class AverageMode : std::uint8_t { kPerSample, kTimeWeighted };

/// Unit of credit, credit_target and rcvd_bytes on the wire. [WIRE 4.6]
inline constexpr base::ByteCount kWireUnitBytes = 256;

/// Assumed of a port that says nothing of itself. Two processes that take turns on a core answer each other within such a time; memif
/// and kernel UDP pass some 10 Gb/s on common machines, which the window that follows, 470 KB, leaves room for. [decision 30]
inline constexpr base::BitRate kUnknownLinkRate = base::BitRate::from_gbps(25);
inline constexpr base::Duration kUnknownBaseRtt = base::Duration::from_us(100);

/// The owner of the FEP fills in what it knows about port and network; derived() computes the rest.
/// Zero means "derive" for every duration, rate, byte count and gain marked so.
struct CcConfig {
  // --- What the owner decides
  // ----------------------------------------------------------------------------------------
  Algorithm algorithm = Algorithm::kNscc;
  LoadBalancing load_balancing = LoadBalancing::kOblivious;
  std::uint16_t paths = 16;  ///< entropy values per CCC, a power of two
  std::uint8_t planes = 1;   ///< source ports, at most 8
  bool trimming = false;     ///< the fabric trims
  base::Duration config_base_rtt =
      base::Duration::from_us(50);  ///< RTT of one MTU packet over the longest idle path
  base::BitRate link_rate;          ///< all ports of the CCC together; zero: kUnknownLinkRate
  std::uint32_t mtu_bytes = 4204;   ///< nominal size of a full packet
  std::uint32_t ack_gen_trigger = 16384;

  // --- The network, further
  // -----------------------------------------------------------------------------------------
  base::BitRate destination_rate;  ///< zero: as the source's link
  /// Noise of timestamps and scheduling. Zero for hardware and simulation; above zero on software
  /// endpoints, where a peer that is not polled looks like a queue. Widens fast_clear_delay and
  /// turns delay-only quick adapt off; see docs/decisions/0030-noise-of-software-endpoints.md.
  base::Duration timing_noise;
  /// Samples below this do not lower the base RTT further. Zero: config_base_rtt when there is
  /// timing noise, else none.
  base::Duration base_rtt_floor;

  // --- NSCC [CC 4.2]
  // ------------------------------------------------------------------------------------------------
  base::ByteCount max_window = 0;  ///< derived: 1.5 BDP
  base::Duration target_qdelay;    ///< derived: 0.75 config_base_rtt with trimming, else 1.0
  double scaling_a = 0;            ///< derived: BDP / 150000 B
  double scaling_b = 0;            ///< derived: target_qdelay / 12 us
  double alpha = 0;                ///< derived: proportional increase, B/ns
  double fi = 0;                   ///< derived: fair increase, B
  double eta = 0;                  ///< derived: added each adjust period, B
  double fi_scale = 0;             ///< derived: fast increase, window bytes a received byte
  double gamma = 0.8;
  double max_md_jump = 0.5;
  std::uint8_t qa_gate = 3;
  base::Duration qa_threshold;  ///< derived: never with trimming or noise, else 4 target_qdelay
  base::ByteCount adjust_bytes_threshold = 0;  ///< derived: 8 MTU
  base::Duration adjust_period_threshold;      ///< derived: config_base_rtt
  bool disable_quick_adapt = false;
  base::Duration fast_clear_delay;  ///< derived: 1 us, or timing_noise when that is more
  AverageMode average_mode = AverageMode::kPerSample;
  double average_gain = 1.0 / 80;
  std::uint32_t gain_mtu_bytes =
      0;  ///< MTU in alpha, fi and eta; derived: mtu_bytes (htsim: its payload size)
  bool probe_base_rtt = true;
  bool cwnd_validation = false;  ///< no increase while less than half of the window is used
  bool htsim_compat = false;     ///< arithmetic of the UEC's simulator where it differs [CC 4.12]

  // --- RCCC [CC 5.1]
  // ------------------------------------------------------------------------------------------------
  base::ByteCount grant_bytes = 0;  ///< derived: 4 MTU, rounded down to the credit unit
  double pacer_share = 0.99;        ///< rho
  base::ByteCount spec_window = 0;  ///< derived: 1.0 BDP (1.5 with htsim_compat)
  base::ByteCount credit_cap = 0;   ///< derived: 1.5 BDP
  bool idle_grant = true;
  base::ByteCount idle_cap = 0;  ///< derived: 1.5 BDP
  /// The pacer gives less while the fabric marks or trims. [CC 5.5] For credit alone over a fabric
  /// that is oversubscribed or has slow links; with a window as well, the window does this.
  bool fabric_factor = false;
  double oversubscription = 1.0;          ///< of the fabric; bounds how far the factor falls
  base::Duration rto_min;                 ///< zero: not known to congestion control
  base::Duration credit_request_timeout;  ///< derived: max(4 config_base_rtt, rto_min / 2)

  // --- Paths [CC 7]
  // -------------------------------------------------------------------------------------------------
  /// Round trip and window towards peers of this host, which no fabric separates from us; zero: as the others. [decision 128]
  base::Duration host_base_rtt;
  base::ByteCount host_max_window = 0;
  std::uint16_t run_packets = 1;       ///< packets in a row that take one path [decision 127]
  std::uint16_t calm_run_packets = 1;  ///< while nothing tells of congestion; not below run_packets
  /// A turn of the loop begins a new run, once the one before has carried a full packet: only what leaves in one turn can be moved as
  /// one. A turn is what has one reading of the clock.
  bool runs_end_with_turn = false;
  double saturated_fraction = 0.5;
  bool adaptive_paths = true;   ///< bitmap and mixed use about 2 W / MTU of the paths
  std::uint8_t reps_slots = 8;  ///< at most 16
  base::Duration reps_freeze = base::Duration::from_ms(10);
  std::uint16_t reroute_rtts = 10;  ///< single path: at most one change in so many RTTs while busy
  base::Duration evict_time = base::Duration::from_ms(10);
  base::Duration evict_time_max = base::Duration::from_seconds(1);

  /// Set by derived(): nothing is left to compute. A CCC takes no other.
  bool complete = false;

  /// Bandwidth-delay product: the slower link of the two, times config_base_rtt.
  base::ByteCount bdp() const;
};

/// Clamps what is out of range and fills in everything that is zero and marked "derived".
/// Idempotent. [CC 4.2]
CcConfig derived(CcConfig config);

/// One "name value unit" line per parameter, for logs and tests.
std::string describe(const CcConfig& config);

}  // namespace uet::cc
