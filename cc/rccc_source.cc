#include "cc/rccc_source.h"

#include <algorithm>

#include "cc/wire_counter.h"

namespace uet::cc {
namespace {

// Requests that bring no new credit before the source doubts the counter that it believed.
constexpr unsigned kRequestsBeforeDoubt = 3;

}  // namespace

RcccSource::RcccSource(const CcConfig& config, Instant now)
    : config_(config), timer_(config, now), credit_(config.spec_window) {}

void RcccSource::on_send(Instant now, ByteCount bytes) {
  // A packet that leaves without credit is not charged: it would only deepen the debt that blocks
  // us.
  if (credit_ > 0) credit_ -= bytes;
  sends_without_credit_ = false;
  timer_.packet_left(now);
}

void RcccSource::on_first_feedback() {
  if (!speculative_) return;
  speculative_ = false;
  credit_ = std::min<ByteCount>(credit_, 0);
}

void RcccSource::on_credit(Instant now, std::uint32_t credit_units) {
  on_first_feedback();
  credit_units &= kWireCounterMask;
  ByteCount granted = units_ahead(credit_units, credit_seen_) * kWireUnitBytes;
  if (granted == 0) {
    // Older or repeated, unless it is the first we hear: then the destination still counts from an
    // earlier life of this CCC. Take over its counter, and one packet's worth, so that a demand it
    // understands can travel.
    // Or a counter that we believed was not the destination's: then it answers our requests with its own, which is not ahead.
    const bool is_other = timer_.unanswered() >= kRequestsBeforeDoubt;
    if ((heard_credit_ && !is_other) || credit_units == credit_seen_) return;
    granted = config_.mtu_bytes;
  }
  heard_credit_ = true;
  credit_ = std::min(credit_ + granted, config_.credit_cap);
  credit_seen_ = credit_units;
  timer_.credit_came(now);
}

std::uint32_t RcccSource::credit_target(const Demand& demand, ByteCount bytes_leaving) const {
  const ByteCount mtu = config_.mtu_bytes;
  const ByteCount credit_left = credit_ - bytes_leaving;
  ByteCount want = demand.new_bytes + demand.resend_bytes;
  if (demand.window) want = std::min(want, *demand.window + mtu);
  want = std::min(want, config_.credit_cap);
  want -= credit_left;
  // The counter stays behind the credit we hold and do not need: nothing is to be added to that. Speculative credit was not counted.
  if (speculative_) want = std::max<ByteCount>(want, demand.new_bytes > 0 ? mtu : 0);
  // The link is shared with others: credit for more than that share would only be held. [CC 5.3]
  if (demand.contending > 1 && want > 0)
    want = std::max(want / demand.contending, std::min(want, mtu));
  return (credit_seen_ + units_rounded_up(want)) & kWireCounterMask;
}

void RcccSource::reset(Instant now) {
  credit_ = config_.spec_window;
  credit_seen_ = 0;
  speculative_ = true;
  heard_credit_ = false;
  sends_without_credit_ = false;
  timer_ = CreditRequestTimer(config_, now);
}

}  // namespace uet::cc
