/// A CCC with one or more PDCs, driven by hand.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "cc/ccc.h"
#include "cc/receiver.h"

namespace uet::cc {

constexpr Instant at(std::int64_t ns) {
  return Instant::from_ns(ns);
}

inline CcConfig hand_config(Algorithm algorithm = Algorithm::kNscc) {
  CcConfig c;
  c.algorithm = algorithm;
  c.link_rate = base::BitRate::from_gbps(100);
  c.config_base_rtt = Duration::from_us(12);
  c.trimming = true;
  c.mtu_bytes = 4136;
  return c;
}

class CccTest : public testing::Test {
 protected:
  static constexpr ByteCount kPacket = 4136;

  void make(const CcConfig& config, bool sprayed = true, Duration cached = {}) {
    config_ = derived(config);
    ccc_ = std::make_unique<Ccc>(config_, 7, sprayed, cached, rng_, trace_, now_);
  }
  void SetUp() override { make(hand_config()); }

  /// Announces and sends one packet.
  SendParams send(Transmission& t, PdcShare& share, ByteCount bytes = kPacket) {
    ccc_->on_new_data(now_, bytes);
    const auto params = ccc_->next_send(now_, nullptr, bytes);
    ccc_->on_send(now_, t, share, bytes, params, false);
    return params;
  }
  SendParams resend(Transmission& t, PdcShare& share) {
    const auto bytes = ByteCount{t.nominal_bytes};
    const auto params = ccc_->next_send(now_, &t, bytes);
    ccc_->on_send(now_, t, share, bytes, params, true);
    return params;
  }
  AckSignal ack_of(const Transmission* trigger, std::uint32_t rcvd_units) {
    AckSignal ack;
    ack.arrived_at = now_;
    ack.trigger = trigger;
    ack.retx_echo = trigger != nullptr && trigger->resent == 1;
    ack.has_nscc_state = true;
    ack.rcvd_units = rcvd_units;
    return ack;
  }
  void ack(Transmission& t, PdcShare& share, std::uint32_t rcvd_units) {
    const bool first = t.is_counted();
    ccc_->on_first_ack(t, share);
    ccc_->on_ack(now_, share, ack_of(first ? &t : nullptr, rcvd_units));
  }
  bool trim(Transmission& t, PdcShare& share, bool echo = false) {
    return ccc_->on_nack(now_, t, share,
                         {.arrived_at = now_, .cause = NackCause::kTrimmed, .retx_echo = echo});
  }
  /// The first packet of a flow that goes on is acknowledged; the Probe that follows is answered after `ns`.
  void answer_base_probe(std::int64_t ns) {
    Transmission t;
    ccc_->on_new_data(now_, 10 * kPacket);
    send(t, share_);
    wait(20'000);
    ack(t, share_, 17);
    ASSERT_TRUE(ccc_->poll_probe(now_));
    AckSignal answer;
    answer.is_probe_answer = true;
    answer.probe_sent_at = now_;
    wait(ns);
    answer.arrived_at = now_;
    ccc_->on_ack(now_, share_, answer);
  }
  void wait(std::int64_t ns) { now_ = now_ + Duration::from_ns(ns); }

  Instant now_ = Instant::from_ns(1'000'000);
  base::Rng rng_{1};
  base::Trace trace_{64};
  CcConfig config_;
  std::unique_ptr<Ccc> ccc_;
  PdcShare share_;
};

}  // namespace uet::cc
