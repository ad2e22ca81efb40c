/// What a CCC is told of a packet that arrived, and what it says of the next one to leave. [CC 3]
#pragma once

#include <cstdint>
#include <optional>

#include "cc/transmission.h"

namespace uet::cc {

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

}  // namespace uet::cc
