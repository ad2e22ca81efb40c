/// Every parameter of packet delivery, with the specification's defaults. [UET 3.5, configuration
/// table]
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/base/units.h"
#include "lib/net/port.h"

namespace uet::pds {

/// Names are the specification's, in our casing. Ranges are checked by set_parameter() and
/// check_parameters() (pds/parameters.h).
struct PdsConfig {
  static constexpr std::uint8_t kNoTimeoutLimit = 15, kNoNackLimit = 31;

  std::uint8_t default_mpr = 8;  ///< peer window assumed before the first mpr, 128-packet units
  std::uint8_t override_mpr_zero_value = 0;  ///< packets; 0: not set
  std::uint16_t max_ack_data_size = 16;
  std::uint16_t trimmable_ack_size = 10240;
  bool ack_on_ecn = true;
  bool enb_ack_per_pkt = false;
  std::uint32_t ack_gen_trigger = 16384;
  std::uint32_t ack_gen_min_pkt_add = 1024;
  base::Duration rto_init_time = base::Duration::from_ms(1);
  std::uint8_t max_rto_retx_cnt = 5;  ///< kNoTimeoutLimit: any number
  base::Duration nack_retx_time = base::Duration::from_ms(1);
  std::uint8_t max_nack_retx_cnt = 5;                        ///< kNoNackLimit: any number
  bool limit_psn_range = true;                               ///< with an OpeningGuard only
  base::Duration new_pdc_time = base::Duration::from_ms(5);  ///< zero: off
  std::uint32_t new_pdc_timeout_thresh = 64;
  base::Duration pds_clear_time = base::Duration::from_ms(1);
  base::Duration close_req_time = base::Duration::from_ms(1);
  base::Duration tail_loss_time{};  ///< zero: off
  /// Silence at the tail is answered with a Probe, and data only with what the answer shows to be missing: for peers that
  /// are silent for longer than a round trip because they share a core. tail_loss_time is a lower bound then, and messages whose ACK
  /// may wait go unasked for up to a quarter of it. [decision 167]
  bool tail_loss_asks = false;
  std::uint8_t max_tail_loss_retx = 5;
  base::Duration syn_retx_safety_time = base::Duration::from_ms(5);
  // Ours. [PDS 2.2]
  std::uint16_t local_mp_range = 1024;  ///< packets; multiple of 128
  base::Duration pdc_idle_time = base::Duration::from_seconds(1);
  base::Duration pdcid_quarantine = base::Duration::from_seconds(2);
  base::Duration tombstone_time = base::Duration::from_seconds(2);
  std::uint32_t max_pdc = 1024;
  std::uint8_t max_pdc_per_key = 4;
  std::uint32_t gtd_store_max = 4096;
  std::uint16_t rudi_max_outstanding = 128;
  base::Duration ses_procg_limit = base::Duration::from_seconds(30);
  std::uint32_t nack_rate_limit = 1000;  ///< per second and source address
  std::uint32_t nack_burst = 64;
  std::uint16_t sack_loss_thresh = 0;  ///< 0: off
  /// RUD: how much longer than a round trip a packet may stay out once packets sent after it have arrived, before it
  /// counts as lost. Never less than half the smoothed round trip. Zero: off, only the RTO finds the loss.
  base::Duration reorder_window{};
  bool rod_reorder = false;  ///< hold out-of-order ROD packets instead of dropping
  base::Duration rto_max = base::Duration::from_ms(100);
  base::Duration peer_timeout = base::Duration::from_seconds(60);
  /// The longest that an initiator repeats what opens a PDC, and that a target remembers it, whatever peer_timeout says. No setting: hosts could
  /// differ, and then a message is executed twice where the initiator has more patience than the target has memory. Smaller in tests only.
  base::Duration opening_patience = base::Duration::from_seconds(60);
  std::uint32_t max_messages = 4096;  ///< queued messages, all PDCs together
  std::uint32_t max_messages_per_pdc =
      1024;  ///< of those, on one PDC: a dead peer must not take them all
  base::ByteCount pdc_spread_bytes =
      256 * 1024;  ///< backlog of a PDC above which a key may open another one
  /// PSNs that one direction of a PDC may use under Limit_PSN_Range, and how many of them before the
  /// end the close begins. [PDS 7.6] Smaller in tests only.
  std::uint32_t psn_range = 1u << 31;
  std::uint32_t psn_range_reserve = 1u << 16;
  // Sizes of pools and tables; 0 means "derive" (see pds/pool_sizes.h). Each is a hard bound.
  std::uint32_t max_ccc = 0;        ///< congestion contexts; 0: one per PDC
  std::uint32_t max_tx_chunks = 0;  ///< blocks of outstanding-packet records
  std::uint32_t max_rx_trackers =
      0;  ///< receive bitmaps in use (only PDCs with gaps or open answers need one)
  std::uint32_t ack_queue_max =
      4096;  ///< acknowledgements owed and not yet sent; above it they are merged
  /// Closed target PDCs that are remembered, besides one for each place in the PDC table. The rate at which peers may open
  /// PDCs here is this divided by tombstone_time; above it they are told to wait. 0: nothing is remembered.
  std::uint32_t max_tombstones = 4096;
  /// Openings that are remembered after a PDC of an unproven peer made place for another: for peer_timeout and tombstone_time,
  /// so 65,536 allow 1,057 such openings a second with the defaults. Above it newcomers are told to wait.
  std::uint32_t max_openings_remembered = 65536;
  std::uint32_t nack_queue_max = 256;     ///< NACKs that wait to be sent; more are dropped
  std::uint32_t nack_sources_max = 1024;  ///< source addresses the NACK rate limit tells apart
  std::uint32_t rudi_max_peers = 64;      ///< peers with RUDI packets outstanding
  std::uint32_t held_packets_max =
      1024;  ///< rod_reorder: out-of-order packets held, all PDCs together
  std::uint32_t built_queue_max =
      128;  ///< RUDI responses and last ACKs built ahead; more are dropped
  std::uint32_t forced_start_psn = 0;  ///< for tests and captures: every PDC starts here; 0: random
  /// DSCP of each kind of packet. [WIRE 2.7]
  std::uint8_t dscp_data = 0, dscp_trimmable = 18, dscp_trimmable_rtx = 20, dscp_trimmed = 26,
               dscp_trimmed_last_hop = 28, dscp_control = 46;
  /// What the nominal size of a packet counts beyond its transport size. [CC 3.2] Simulations that
  /// compare with other simulators set their own.
  std::uint32_t nominal_extra = 40;
  std::uint32_t security_overhead =
      4;                      ///< bytes that CRC or TSS add to each packet (header and trailer)
  bool use_trimming = false;  ///< requests carry a trimmable DSCP

  /// How long a place is kept for a peer that says nothing: where peer_timeout is never, for an hour.
  base::Duration longest_silence() const {
    return peer_timeout > base::Duration{} ? peer_timeout : base::Duration::from_seconds(3600);
  }
  bool limits_timeouts() const { return max_rto_retx_cnt < kNoTimeoutLimit; }
  /// A packet has had as many timeouts as it may.
  bool is_timeout_limit(unsigned timeouts) const {
    return limits_timeouts() && timeouts >= max_rto_retx_cnt;
  }
  /// A packet was refused more often than it may be.
  bool is_above_nack_limit(unsigned nacks) const {
    return max_nack_retx_cnt < kNoNackLimit && nacks > max_nack_retx_cnt;
  }

  net::TrimmedDscps trimmed_dscps() const { return {dscp_trimmed, dscp_trimmed_last_hop}; }
};

/// Places of a table that one kind of users leaves to the other, so that neither waits for the other for ever. A table of less than
/// four has none to spare. See docs/decisions/0086.
constexpr std::uint32_t reserve_of(std::uint32_t places) {
  return std::min<std::uint32_t>(places / 4, 64);
}

}  // namespace uet::pds
