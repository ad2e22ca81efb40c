/// Cuts and sends Requests, new and again. [PDS 7.1, 7.2, 8]
#pragma once

#include "pds/arrival.h"
#include "pds/built.h"
#include "pds/halves.h"

namespace uet::pds {

/// Ports (fabric planes) as bits.
struct Planes {
  std::uint8_t free = 1;  ///< can take data now
  std::uint8_t up = 1;    ///< have a link
};

class DataSender : Part {
 public:
  DataSender(Environment& env, Scheduler& scheduler, SendingHalf& sending)
      : Part(env),
        scheduler_(scheduler),
        window_(sending.window),
        tx_blocks_(sending.window.records()),
        loss_(sending.loss),
        clear_(sending.clear),
        patience_(patience_of(config_)) {}

  enum class Work : std::uint8_t { kNone, kResend, kNew };
  /// What this PDC would send next, and for a retransmission its PSN.
  Work next_work(Instant now, Pdc& pdc, Psn& psn);
  /// Its size as congestion control counts it.
  ByteCount nominal_of_next(const Pdc& pdc, Work work, Psn psn) const;
  /// What it has new leaves in the usual form: it is open, and no credit goes with it.
  bool is_plain(const Pdc& pdc) const {
    return pdc.state != PdcState::kCreating && !env_.sends_credit_state;
  }
  /// Sends new data of a PDC that is_plain(), one packet after the other as long as window and congestion control agree, which
  /// they have done for the first one. `nominal` is the size of that. Returns how many of `out` are filled: 0 when there was no packet.
  std::size_t send_run(Instant now, Pdc& pdc, ByteCount nominal, const Planes& planes,
                       std::span<net::TxPacket> out);
  /// Sends it, whatever it is. Congestion control has agreed.
  Built send(Instant now, Pdc& pdc, Work work, Psn psn, const Planes& planes, net::TxPacket& out);

 private:
  static Duration patience_of(const PdsConfig& config);
  static bool note_sent(TxHalf& tx, Message& message, ByteCount announced);
  static void note_request_left(Instant now, Pdc& pdc);
  static Psn clear_of(const Pdc& pdc);
  static void prepend_plain(const Pdc& pdc, NextHdr next, Psn psn, bool ar, net::Packet& packet);
  void prepend_request(const Pdc& pdc, const cc::Ccc& ccc, NextHdr next, Psn psn, bool ar,
                       bool retx, const std::optional<std::uint32_t>& credit_target,
                       net::Packet& packet);

  Scheduler& scheduler_;
  SendWindow& window_;
  TxBlockPool& tx_blocks_;
  LossRecovery& loss_;
  ClearSender& clear_;
  const Duration patience_;  ///< see Asking
};

}  // namespace uet::pds
