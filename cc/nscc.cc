#include "cc/nscc.h"

#include <algorithm>

#include "lib/base/check.h"

namespace uet::cc {
namespace {

// Results that go into the window are cut toward zero, so that every machine gets the same bytes.
// [CC 4.11]
ByteCount truncated(double bytes) {
  return static_cast<ByteCount>(bytes);
}

}  // namespace

Nscc::Nscc(const CcConfig& config, Duration cached_base_rtt, Instant now) : config_(config) {
  UET_CHECK(config.complete);
  state_.window = config.max_window;
  state_.window_max = config.max_window;
  state_.base_rtt = config.config_base_rtt;
  state_.last_adjust = now;
  state_.last_decrease = now;
  state_.last_sample = now;
  if (cached_base_rtt > Duration()) on_base_rtt_sample(cached_base_rtt);
}

void Nscc::on_ack(Instant now, const Ack& ack) {
  state_.inflight -= ack.newly_received;
  state_.bytes_ignored += ack.newly_received;
  state_.received_bytes += ack.newly_received;
  state_.achieved_bytes += ack.newly_received;
  apply_penalty(ack);
  if (!ack.rtt) {
    if (!config_.htsim_compat) return;
    apply_window_rules(now, ack, Duration::from_ns(truncated(state_.average_delay_ns)));
    return;
  }
  on_base_rtt_sample(*ack.rtt);
  const auto queueing = std::max(*ack.rtt - state_.base_rtt, Duration());
  average(now, queueing, ack.ecn);
  apply_window_rules(now, ack, queueing);
}

void Nscc::apply_window_rules(Instant now, const Ack& ack, Duration queueing) {
  if (quick_adapt(now, false, ack.ecn, queueing)) return;
  const bool held = ack.penalty > 0 || (config_.cwnd_validation &&
                                        state_.inflight + ack.newly_received < state_.window / 2);
  const bool queued = queueing >= config_.target_qdelay;
  if (!ack.ecn && queued && !held) fair_increase(ack.newly_received);
  if (!ack.ecn && !queued && !held) proportional_increase(ack.newly_received, queueing);
  if (ack.ecn && queued) multiplicative_decrease(now);
  settle_if_due(now);
}

void Nscc::on_nack(Instant now, ByteCount bytes, Trim trim, std::optional<Duration> rtt,
                   bool credit_owns_last_hop) {
  if (!config_.htsim_compat) state_.inflight -= bytes;
  if (rtt) on_base_rtt_sample(*rtt);
  bool handled = false;
  const bool credit_answers = trim == Trim::kLastHop && credit_owns_last_hop;
  if (trim != Trim::kNone) {
    // The cut packet would have waited for a full queue: its delay counts as one base RTT.
    average(now, config_.config_base_rtt, true);
    state_.bytes_ignored += bytes;
    if (!credit_answers || config_.htsim_compat) {
      state_.trigger_qa = true;
      handled = quick_adapt(now, true, true, Duration());
    }
  }
  if (trim != Trim::kNone && !credit_answers && !handled) shrink_by(bytes);
  if (config_.htsim_compat) state_.inflight -= bytes;
}

void Nscc::on_inferred_loss(ByteCount bytes) {
  shrink_by(bytes);
  if (!config_.htsim_compat) state_.bytes_ignored += bytes;
  state_.inflight -= bytes;
}

void Nscc::on_base_rtt_sample(Duration rtt) {
  rtt = std::max(rtt, std::max(config_.base_rtt_floor, Duration::from_ns(1)));
  if (rtt >= state_.base_rtt) return;
  state_.base_rtt = rtt;
  const auto bytes = config_.link_rate.bytes_in(rtt);
  // Never above the first limit (the destination may be slower than our link), never below one
  // packet.
  state_.window_max = std::clamp(bytes + bytes / 2, mtu(), config_.max_window);
  state_.window = std::min(state_.window, state_.window_max);
}

// Destination flow control. [CC 4.8]
void Nscc::apply_penalty(const Ack& ack) {
  if (ack.penalty > 0) {
    if (state_.saved_window == 0) state_.saved_window = state_.window;
    const auto cut = (ack.newly_received * ack.penalty) >> 7;
    state_.window = std::max(mtu(), std::min(state_.window, state_.inflight) - cut);
  } else if (ack.restore_window && state_.saved_window > 0) {
    state_.window = std::min(state_.saved_window, state_.window_max);
    state_.saved_window = 0;
  }
}

void Nscc::average(Instant now, Duration queueing, bool ecn) {
  auto sample = static_cast<double>(queueing.ns());
  double weight = config_.average_gain;
  if (config_.average_mode == AverageMode::kTimeWeighted) {
    const auto elapsed = static_cast<double>((now - state_.last_sample).ns());
    weight = std::clamp(elapsed / static_cast<double>(state_.base_rtt.ns()), 0.0, 1.0);
    state_.last_sample = now;
  } else if (!ecn && queueing > config_.target_qdelay) {
    // Not marked although it waited long: the queue has drained behind this packet.
    sample = static_cast<double>(state_.base_rtt.ns()) / 4;
  }
  state_.average_delay_ns += (sample - state_.average_delay_ns) * weight;
}

void Nscc::fair_increase(ByteCount bytes) {
  state_.inc_bytes += config_.fi * static_cast<double>(bytes);
}

void Nscc::proportional_increase(ByteCount bytes, Duration queueing) {
  if (queueing < config_.fast_clear_delay) {
    state_.fi_count += bytes;
    if (state_.fi_count > state_.window || state_.fast_increase) {
      const auto gain = truncated(static_cast<double>(bytes) * config_.fi_scale);
      state_.window = std::min(state_.window + gain, state_.window_max);
      state_.fast_increase = true;
      return;
    }
  } else {
    state_.fi_count = 0;
  }
  state_.fast_increase = false;
  const auto room = static_cast<double>((config_.target_qdelay - queueing).ns());
  state_.inc_bytes += config_.alpha * static_cast<double>(bytes) * room;
}

void Nscc::settle_if_due(Instant now) {
  const auto since = now - state_.last_adjust;
  const bool period_over = config_.htsim_compat ? since > config_.adjust_period_threshold
                                                : since >= config_.adjust_period_threshold;
  if (!period_over && state_.received_bytes <= config_.adjust_bytes_threshold) {
    if (config_.htsim_compat) state_.window = std::min(state_.window, state_.window_max);
    return;
  }
  state_.window += truncated(state_.inc_bytes / static_cast<double>(state_.window));
  if (period_over) {
    state_.last_adjust = now;
    state_.window += truncated(config_.eta);
  }
  state_.window = std::clamp(state_.window, mtu(), state_.window_max);
  state_.inc_bytes = 0;
  state_.received_bytes = 0;
}

void Nscc::multiplicative_decrease(Instant now) {
  state_.fast_increase = false;
  state_.fi_count = 0;
  const double average_delay = state_.average_delay_ns;
  const auto target = static_cast<double>(config_.target_qdelay.ns());
  if (average_delay <= target || now - state_.last_decrease <= state_.base_rtt) return;
  const double factor =
      std::max(1.0 - config_.gamma * (average_delay - target) / average_delay, config_.max_md_jump);
  state_.window = std::max(truncated(static_cast<double>(state_.window) * factor), mtu());
  state_.last_decrease = now;
}

bool Nscc::quick_adapt(Instant now, bool loss, bool ecn, Duration queueing) {
  if (config_.disable_quick_adapt) return false;
  bool handled = false;
  if (state_.bytes_ignored < state_.bytes_to_ignore && ecn) {
    handled = true;  // a mark of packets queued before the last cut
  } else if (config_.htsim_compat ? now > state_.qa_end : now >= state_.qa_end) {
    const bool bad = state_.trigger_qa || loss || queueing > config_.qa_threshold;
    if (state_.qa_end != Instant() && bad &&
        state_.achieved_bytes < (state_.window_max >> config_.qa_gate)) {
      state_.window = std::max(state_.achieved_bytes, mtu());
      state_.bytes_to_ignore = state_.inflight;
      state_.bytes_ignored = 0;
      state_.trigger_qa = false;
      handled = true;
    }
    state_.achieved_bytes = 0;
    state_.qa_end = now + state_.base_rtt + config_.target_qdelay;
  }
  if (handled) {
    state_.inc_bytes = 0;
    state_.received_bytes = 0;
  }
  return handled;
}

void Nscc::shrink_by(ByteCount bytes) {
  state_.window = std::max(state_.window - bytes, mtu());
}

}  // namespace uet::cc
