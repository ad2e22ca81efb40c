#include "cc/tfc.h"

#include <algorithm>

#include "cc/wire_counter.h"

namespace uet::cc {

std::uint32_t tfc_cost(const CcConfig& config, ByteCount nominal_bytes) {
  const ByteCount bytes = std::max<ByteCount>(nominal_bytes, 0) + config.tfc_packet_overhead;
  return static_cast<std::uint32_t>((bytes + config.tfc_cell_bytes - 1) / config.tfc_cell_bytes);
}

TfcSource::TfcSource(const CcConfig& config, Instant now)
    : config_(config),
      timer_(config, now),
      credit_cells_(config.tfc_pool_cells),
      credit_seen_(config.tfc_pool_cells & kWireCounterMask) {}

void TfcSource::on_send(Instant now, ByteCount bytes) {
  credit_cells_ -= tfc_cost(config_, bytes);
  timer_.packet_left(now);
}

void TfcSource::on_credit(Instant now, std::uint32_t cells) {
  cells &= kWireCounterMask;
  const auto granted = units_ahead(cells, credit_seen_);
  if (granted == 0) return;
  credit_seen_ = cells;
  // More than the pool cannot be ours; a destination that says so has lost count.
  credit_cells_ = std::min<std::int64_t>(credit_cells_ + granted, config_.tfc_pool_cells);
  timer_.credit_came(now);
}

std::uint32_t TfcSource::credit_target(const Demand& demand, ByteCount bytes_leaving) const {
  const auto left = credit_cells_ - (bytes_leaving > 0 ? tfc_cost(config_, bytes_leaving) : 0);
  const auto want = std::int64_t{tfc_cost(config_, demand.new_bytes + demand.resend_bytes)} - left;
  const auto bounded = std::clamp<std::int64_t>(want, 0, config_.tfc_pool_cells);
  return (credit_seen_ + static_cast<std::uint32_t>(bounded)) & kWireCounterMask;
}

bool TfcSource::spends_last(ByteCount bytes) const {
  const auto cost = tfc_cost(config_, bytes);
  return credit_cells_ - cost < cost;
}

void TfcSource::reset(Instant now) {
  credit_cells_ = config_.tfc_pool_cells;
  credit_seen_ = config_.tfc_pool_cells & kWireCounterMask;
  timer_ = CreditRequestTimer(config_, now);
}

TfcPool::TfcPool(const CcConfig& config)
    : config_(config), given_(config.tfc_pool_cells & kWireCounterMask) {}

bool TfcPool::on_packet(ByteCount nominal_bytes) {
  const auto cost = tfc_cost(config_, nominal_bytes);
  if (cost > config_.tfc_pool_cells - in_use_) return false;
  in_use_ += cost;
  return true;
}

void TfcPool::on_consumed(ByteCount nominal_bytes) {
  const auto cost = std::min(tfc_cost(config_, nominal_bytes), in_use_);
  in_use_ -= cost;
  unreported_ += cost;
  given_ = (given_ + cost) & kWireCounterMask;
}

std::uint32_t TfcPool::take_credit() {
  unreported_ = 0;
  report_asked_ = false;
  return given_;
}

std::optional<std::uint32_t> TfcPool::poll_credit() {
  if (!report_asked_ && unreported_ * 4 < config_.tfc_pool_cells) return std::nullopt;
  return take_credit();
}

}  // namespace uet::cc
