/// Congestion control context: may a packet leave now, and on which path? One per destination FEP,
/// traffic class and kind of spraying; serves one or several PDCs. [UET 3.6]
///
/// Knows: windows, credit, paths (entropy values), what is open in the network. Knows nothing of
/// packets, PSNs, sockets. The PDS calls every method, on one thread; the CCC never calls back.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cc/allowance.h"
#include "cc/ledger.h"
#include "cc/path_judge.h"
#include "cc/prober.h"
#include "cc/signals.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "lib/base/units.h"

namespace uet::cc {

enum class CccState : std::uint8_t { kIdle, kPending, kReady, kActive };

class Ccc {
 public:
  /// `sprayed` is false for ROD (one entropy value at a time). `cached_base_rtt` is zero when
  /// unknown. References must outlive the CCC; `config` must be complete (see derived()). Without
  /// `contending` the CCC has the link for itself.
  Ccc(const CcConfig& config, std::uint8_t ccc_id, bool sprayed, Duration cached_base_rtt,
      base::Rng& rng, base::Trace& trace, Instant now, ContendingContexts* contending = nullptr);
  Ccc(const Ccc&) = delete;
  Ccc& operator=(const Ccc&) = delete;

  // --- Source side
  // ---------------------------------------------------------------------------------------------------

  /// Nominal bytes of packets to come; negative when messages were aborted.
  void on_new_data(Instant now, ByteCount bytes) {
    const bool was_resting = !ledger_.has_data();
    ledger_.on_new_data(bytes);
    if (was_resting && ledger_.has_data()) allowance_.on_data_after_rest(now);
    note_rest(now);
  }
  /// True when data waits (by on_new_data and by records marked for retransmission) and every
  /// active algorithm lets a packet of `nominal_bytes` leave.
  bool may_send(ByteCount nominal_bytes) const {
    return ledger_.has_data() && allowance_.allows(nominal_bytes);
  }
  /// Out of `free_planes`, those by which a packet should leave now. 0: better wait, the good paths
  /// lead through ports that are busy.
  std::uint8_t worthwhile_planes(Instant now, std::uint8_t free_planes) const {
    return config_.planes == 1 ? free_planes : worthwhile_of_many(now, free_planes);
  }
  /// Data waits that has no credit to leave with.
  bool lacks_credit() const { return ledger_.has_data() && allowance_.lacks_credit(); }
  /// Since when the destination has left many Credit Requests without credit; never when it has not.
  Instant refused_credit_since() const {
    return lacks_credit() ? allowance_.credit_requested_in_vain_since() : Instant::never();
  }
  const CcConfig& config() const { return config_; }
  /// Path and flags for the next packet; call only when it is about to be built. `previous` is its
  /// record when it is a retransmission. `free_planes` is a bit set of ports that can take a
  /// packet, 0 for any. `last_may_wait`: the last packet that there is need not ask for its ACK, there will be others.
  SendParams next_send(Instant now, const Transmission* previous, ByteCount nominal_bytes,
                       std::uint8_t free_planes = 1, bool last_may_wait = false);
  /// The packet was handed to the port. Fills in `t`.
  void on_send(Instant now, Transmission& t, PdcShare& share, ByteCount nominal_bytes,
               const SendParams& params, bool is_retransmission);
  /// Both for a packet that leaves for the first time, by the path that `t` tells then. Returns whether it asks for its ACK.
  bool send_new(Instant now, Transmission& t, PdcShare& share, ByteCount nominal_bytes,
                std::uint8_t free_planes, bool last_may_wait);
  /// The packet that has left asks whether there is a PDC for it at all: it takes no room in the window from the packets of others
  /// while no answer comes, and its timeout is no sign of congestion. For packets that leave one by one, an RTO apart.
  void leave_out(Transmission& t, PdcShare& share);
  /// A SACK shows that the destination has this PSN, though its response is still missing.
  void on_arrived(Transmission& t);
  /// This PSN is acknowledged for the first time (cumulatively or alone). Call for each such PSN,
  /// the one that the ACK names first, then on_ack once.
  void on_first_ack(Transmission& t, PdcShare& share) {
    if (!t.is_counted()) return;
    note_settled(t);
    if (ledger_.acknowledge(t, share) == Ledger::Acknowledged::kForResend)
      allowance_.restore_inflight(t.nominal_bytes);
    paths_.on_first_ack(now_seen_, t, base_rtt());
  }
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
  /// The destination's window excludes the packet now, and nothing says that the packet has arrived: it waits to be sent again.
  /// No sign of congestion. Returns as on_nack.
  bool on_excluded(Instant now, Transmission& t, PdcShare& share);
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
  std::optional<std::uint32_t> poll_credit_request(Instant now) {
    now_seen_ = now;
    if (credit_request_due() > now) return std::nullopt;
    return request_credit(now);
  }
  /// A Probe is wanted: for the base RTT, once after the first feedback of a new CCC, or because the window is full of packets that
  /// the destination will not acknowledge unasked. [CC 4.9, docs/decisions/0038]
  bool poll_probe(Instant now);
  /// When to poll again, if nothing happens before. `can_probe`: there is a PDC that could carry a Probe.
  Instant next_deadline(bool can_probe = true) const;

  std::uint8_t id() const { return id_; }
  /// Requests use the CC form (RUD_CC_REQ, ROD_CC_REQ).
  bool carries_credit() const { return allowance_.has_credit(); }
  /// Without a window of our own, the largest one says how much the path can hold.
  ByteCount window_bytes() const {
    return allowance_.has_window() ? allowance_.window() : config_.max_window;
  }
  /// Granted and not spent, below zero when more was sent; only with carries_credit().
  ByteCount credit_bytes() const { return allowance_.credit(); }
  ByteCount inflight_bytes() const { return allowance_.inflight(); }
  Duration base_rtt() const { return allowance_.base_rtt(); }
  /// For holdoffs; base_rtt() before the first sample.
  Duration smoothed_rtt() const { return smoothed_rtt_ == Duration() ? base_rtt() : smoothed_rtt_; }

  using PathState = cc::PathState;
  struct PathInfo {
    std::uint16_t entropy;
    std::uint8_t plane;
    Duration rtt;  ///< last sample, zero if none
    std::uint32_t sent, marks, trims, losses;
    std::uint8_t penalty;  ///< the score: turns in which the path will be passed over, 0 to 15
    PathState state;
  };
  /// Path table for uet-stat and tests; index < path_count().
  std::size_t path_count() const { return paths_.table().size(); }
  PathInfo path(std::size_t index) const;

 private:
  Duration slow_above() const;
  Demand waiting(ByteCount leaving, bool is_resend) const;
  std::uint32_t next_path(PathRequest& request, ByteCount nominal_bytes);
  void on_any_feedback(Instant now);
  /// A transmission is no longer open: whatever asked for its ACK has helped, or is not what is needed.
  void note_settled(const Transmission& t) {
    prober_.on_settled(t.sent_at);
    prober_.on_closed();
  }
  bool is_stuck() const;
  bool take_in(Transmission& t, PdcShare& share);
  /// Without a PDC the destination could not answer; the next SYN carries the demand.
  Instant credit_request_due() const {
    return lacks_credit() && heard_ ? allowance_.credit_request_due() : Instant::never();
  }
  std::uint32_t request_credit(Instant now);
  std::uint8_t worthwhile_of_many(Instant now, std::uint8_t free_planes) const;
  /// After each event: what idling ends, and whether this CCC could send.
  void note_rest(Instant now) {
    now_seen_ = now;
    allowance_.note_readiness(ledger_.has_data());
    if (ledger_.is_idle()) allowance_.on_idle();
  }
  void note_changes(Instant now);

  const CcConfig& config_;
  base::Trace& trace_;
  Ledger ledger_;
  Allowance allowance_;
  PathJudge paths_;
  Prober prober_;

  Instant now_seen_;
  Duration smoothed_rtt_;
  ByteCount traced_window_;
  const std::uint8_t id_;
  const bool sprayed_;
  bool heard_ = false;  ///< any feedback: a PDC exists at the destination
};

}  // namespace uet::cc
