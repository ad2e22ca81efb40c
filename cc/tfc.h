/// TFC: credit in cells of the destination's buffer, for a relation between two points that must
/// not lose packets to a full buffer. Minimal design of our own, since the specification's text is
/// not at hand. [CC 6]
#pragma once

#include "cc/credit_source.h"

namespace uet::cc {

/// Cells that a packet takes up at the destination. Both ends must compute the same number.
std::uint32_t tfc_cost(const CcConfig& config, ByteCount nominal_bytes);

class TfcSource {
 public:
  TfcSource(const CcConfig& config, Instant now);

  bool may_send(ByteCount bytes) const { return tfc_cost(config_, bytes) <= credit_cells_; }
  void on_send(Instant now, ByteCount bytes);
  /// The packet was lost on the way, so it takes up no cells; its retransmission pays again.
  void on_lost(ByteCount bytes) { credit_cells_ += tfc_cost(config_, bytes); }
  /// It had arrived after all.
  void on_lost_but_arrived(ByteCount bytes) { credit_cells_ -= tfc_cost(config_, bytes); }
  void on_credit(Instant now, std::uint32_t cells);
  std::uint32_t credit_target(const Demand& demand, ByteCount bytes_leaving) const;
  bool spends_last(ByteCount bytes) const;
  void reset(Instant now);

  std::int64_t credit_cells() const { return credit_cells_; }
  CreditRequestTimer& timer() { return timer_; }
  const CreditRequestTimer& timer() const { return timer_; }

 private:
  const CcConfig& config_;
  CreditRequestTimer timer_;
  std::int64_t credit_cells_;
  std::uint32_t credit_seen_;
};

/// Destination side, one per source CCC: a fixed pool of cells.
class TfcPool {
 public:
  explicit TfcPool(const CcConfig& config);

  /// A new data packet is kept. False when the source sent beyond its credit: drop it, the source's
  /// timeout repairs.
  bool on_packet(ByteCount nominal_bytes);
  /// SES has consumed a packet.
  void on_consumed(ByteCount nominal_bytes);
  /// The source asks: report at the next poll even if little was freed.
  void on_request() { report_asked_ = true; }

  /// Cumulative grant for an ACK of credit type; taking it counts as a report.
  std::uint32_t take_credit();
  /// Grant for a Credit control packet, when a quarter of the pool was freed since the last report.
  std::optional<std::uint32_t> poll_credit();

  std::uint32_t cells_in_use() const { return in_use_; }
  std::uint32_t pool_cells() const { return config_.tfc_pool_cells; }

 private:
  const CcConfig& config_;
  std::uint32_t in_use_ = 0;
  std::uint32_t given_;
  std::uint32_t unreported_ = 0;
  bool report_asked_ = false;
};

}  // namespace uet::cc
