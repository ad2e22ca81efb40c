/// Congestion control context: may a packet leave now, and on which path? One per destination FEP,
/// traffic class and kind of spraying; serves one or several PDCs. [UET 3.6]
///
/// Knows: windows, credit, paths (entropy values), what is open in the network. Knows nothing of
/// packets, PSNs, sockets. The PDS calls every method, on one thread; the CCC never calls back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cc/cc_config.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "lib/base/units.h"

namespace uet::cc {

using base::ByteCount;
using base::Duration;
using base::Instant;

/// One PSN's transmission record. The PDS owns one per outstanding PSN, hands it to every call
/// about that PSN, and only reads it; the CCC writes it, and so counts each transmission exactly
/// once. [congestion control, "counted once"]
struct Transmission {
  Instant sent_at;                  ///< of the latest transmission
  std::uint32_t nominal_bytes = 0;  ///< transport size + 40
  std::uint16_t entropy = 0;        ///< of the latest transmission
  std::uint8_t plane = 0;
  std::uint8_t resent = 0;  ///< retransmissions, saturating at 2
  bool open = false;        ///< in the network, not yet closed by ACK, NACK or inferred loss
  bool marked = false;      ///< waits to be retransmitted
  bool acked = false;       ///< first ACK seen
  bool timed_out = false;   ///< latest loss was a timeout: the next copy must take another path
  bool arrived = false;     ///< the destination is known to have it, acknowledged or not
  bool copy_unanswered =
      false;  ///< a retransmission was given up without an answer, and one may still come
  bool held =
      false;  ///< the destination said that it has this transmission, but not what became of it
};

/// Per PDC (and direction): which part of Rcvd_Bytes was already counted, and this PDC's share of
/// inflight. Written by the CCC only. Two sources say what has arrived, the destination's byte
/// counter and the acknowledged PSNs; whichever is ahead counts, so that neither a lost nor a plain
/// nor a wrong counter lets inflight drift: `inflight == bytes of open transmissions -
/// counted_ahead` after every event.
struct PdcShare {
  std::uint32_t last_rcvd_units = 0;  ///< 24-bit wire counter, 256-byte units
  std::uint32_t open_packets = 0;     ///< transmissions in the network
  std::uint32_t marked_packets = 0;   ///< waiting to be sent again
  bool attached = false;              ///< has sent something through its CCC
  ByteCount inflight = 0;
  ByteCount unacked_bytes = 0;  ///< sent at least once, not acknowledged, not abandoned
  ByteCount rcvd_ahead = 0;     ///< bytes by the counter minus bytes by acknowledged PSNs
  ByteCount counted_ahead =
      0;  ///< bytes taken out of inflight as received minus bytes by acknowledged PSNs
  ByteCount held_bytes =
      0;  ///< of open transmissions that arrived: the counter may not have said so yet
};

/// The congestion part of one ACK.
struct AckSignal {
  Instant arrived_at;
  bool ecn = false;           ///< m flag
  bool retx_echo = false;     ///< retx flag
  std::uint16_t entropy = 0;  ///< path named by the ACK, used when `trigger` is null
  const Transmission* trigger =
      nullptr;  ///< record of ACK_PSN, if this ACK acknowledges it for the first time
  bool has_nscc_state = false;
  std::uint32_t rcvd_units = 0;          ///< rcvd_bytes field
  std::uint16_t service_time_units = 0;  ///< 128 ns units; 0 not given, 0xffff overflow
  std::uint8_t penalty = 0;              ///< rcv_cwnd_pend
  bool restore_window = false;           ///< rc
  std::uint16_t ooo_count = 0xffff;
  bool has_credit_state = false;
  std::uint32_t credit_units = 0;  ///< 24-bit cumulative grant
  bool is_probe_answer = false;
  Instant probe_sent_at;  ///< with is_probe_answer
  /// An ACK without congestion state (plain 12-byte ACK) still closes what it acknowledges: nominal
  /// bytes of the PSNs it acknowledges for the first time. For traces only: on_first_ack has told
  /// the same bytes already, and mixed plain and full ACKs must not count them twice.
  ByteCount plain_acked_bytes = 0;
};

enum class NackCause : std::uint8_t { kTrimmed, kTrimmedLastHop, kOther };

struct NackSignal {
  Instant arrived_at;
  NackCause cause = NackCause::kOther;
  bool ecn = false;
  bool retx_echo = false;
  std::uint16_t entropy = 0;  ///< used when no record exists
  bool pdc_exists = true;
};

/// How the next packet shall leave.
struct SendParams {
  std::uint16_t entropy = 0;
  std::uint8_t plane = 0;
  bool ack_request = false;
  std::optional<std::uint32_t>
      credit_target;  ///< 24 bits; present when requests must carry CC state
};

enum class CccState : std::uint8_t { kIdle, kPending, kReady, kActive };

/// The CCCs of one endpoint that could send now: they share its link. Belongs to the creator of
/// the CCCs.
struct Rivals {
  std::uint32_t ready = 0;
};

class Ccc {
 public:
  /// `sprayed` is false for ROD (one entropy value at a time). `cached_base_rtt` is zero when
  /// unknown. References must outlive the CCC; `config` only when it is complete (see derived()),
  /// others are completed in a copy. Without `rivals` the CCC has the link for itself.
  Ccc(const CcConfig& config, std::uint8_t ccc_id, bool sprayed, Duration cached_base_rtt,
      base::Rng& rng, base::Trace& trace, Instant now, Rivals* rivals = nullptr);
  ~Ccc();
  Ccc(const Ccc&) = delete;
  Ccc& operator=(const Ccc&) = delete;

  // --- Source side
  // ---------------------------------------------------------------------------------------------------

  /// Nominal bytes of packets to come; negative when messages were aborted.
  void on_new_data(Instant now, ByteCount bytes);
  /// True when data waits (by on_new_data and by records marked for retransmission) and every
  /// active algorithm lets a packet of `nominal_bytes` leave.
  bool may_send(ByteCount nominal_bytes) const;
  /// Out of `free_planes`, those by which a packet should leave now. 0: better wait, the good paths
  /// lead through ports that are busy.
  std::uint8_t worthwhile_planes(Instant now, std::uint8_t free_planes) const;
  /// Path and flags for the next packet; call only when it is about to be built. `previous` is its
  /// record when it is a retransmission. `free_planes` is a bit set of ports that can take a
  /// packet, never 0.
  SendParams next_send(Instant now, const Transmission* previous, ByteCount nominal_bytes,
                       std::uint8_t free_planes = 1);
  /// The packet was handed to the port. Fills in `t`.
  void on_send(Instant now, Transmission& t, PdcShare& share, ByteCount nominal_bytes,
               const SendParams& params, bool is_retransmission);
  /// A SACK shows that the destination has this PSN, though its response is still missing.
  void on_arrived(Transmission& t);
  /// This PSN is acknowledged for the first time (cumulatively or alone). Call for each such PSN,
  /// the one that the ACK names first, then on_ack once.
  void on_first_ack(Transmission& t, PdcShare& share);
  void on_ack(Instant now, PdcShare& share, const AckSignal& ack);
  /// The destination has the packet and says so without an ACK: it left the network, however long its answer takes.
  void on_held(Instant now, Transmission& t, PdcShare& share);
  /// Returns true when `t` is now marked for retransmission, false when the NACK was about a
  /// transmission already closed.
  bool on_nack(Instant now, Transmission& t, PdcShare& share, const NackSignal& nack);
  /// `timeout`: an RTO; otherwise inferred from SACK, or, in a CCC that is not sprayed, sent again only because one before
  /// it was lost (go-back-N), which is no sign of congestion. Returns as on_nack.
  bool on_inferred_loss(Instant now, Transmission& t, PdcShare& share, bool timeout,
                        bool pdc_exists = true);
  /// The PSN will never be sent again (PDC closed or failed): closes the record without a
  /// congestion reaction.
  void on_abandon(Transmission& t, PdcShare& share);
  /// A PDC of this CCC knows its peer, by whatever packet: from now on the destination can be asked for credit.
  void on_pdc_opened();
  /// The PDC leaves this CCC: what rounding left of its share goes back.
  void on_pdc_closed(PdcShare& share);
  void on_credit(Instant now, std::uint32_t credit_units);
  /// A port (plane) lost its link or has it again; `up` is the bit set of those that have one.
  void on_planes_changed(Instant now, std::uint8_t up);

  CccState state() const;
  /// Demand for a Credit Request control packet when one is due now (RCCC blocked without credit),
  /// else nothing.
  std::optional<std::uint32_t> poll_credit_request(Instant now);
  /// A Probe is wanted: for the base RTT, once after the first feedback of a new CCC, or because the window is full of packets that
  /// the destination will not acknowledge unasked. [CC 4.9, docs/decisions/0038]
  bool poll_probe(Instant now);
  /// When to poll again, if nothing happens before. `can_probe`: there is a PDC that could carry a Probe.
  Instant next_deadline(bool can_probe = true) const;

  std::uint8_t id() const;
  bool carries_credit() const;  ///< requests use the CC form (RUD_CC_REQ, ROD_CC_REQ)
  ByteCount window_bytes() const;
  ByteCount inflight_bytes() const;
  Duration base_rtt() const;
  Duration smoothed_rtt() const;  ///< for holdoffs; base_rtt() before the first sample

  enum class PathState : std::uint8_t {
    kGood,
    kEvicted,    ///< lost something, or its port lost the link: not used for a while
    kReturning,  ///< one packet may try, or is trying, whether it works again
  };
  struct PathInfo {
    std::uint16_t entropy;
    std::uint8_t plane;
    Duration rtt;  ///< last sample, zero if none
    std::uint32_t sent, marks, trims, losses;
    std::uint8_t penalty;  ///< the score: turns in which the path will be passed over, 0 to 15
    PathState state;
  };
  /// Path table for uet-stat and tests; index < path_count().
  std::size_t path_count() const;
  PathInfo path(std::size_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "good", "evicted", "returning".
std::string_view name_of(Ccc::PathState state);

}  // namespace uet::cc
