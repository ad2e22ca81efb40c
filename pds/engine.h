/// The parts of one Pds, and what each input means to them. Not for users: include pds/pds.h.
///
/// A part knows those that stand above it in this list and none below, so no two parts call each other in a circle;
/// tools/call_graph.py shows it. What a part cannot decide it returns.
#pragma once

#include "pds/rx_ack.h"
#include "pds/rx_control.h"
#include "pds/rx_nack.h"
#include "pds/rx_request.h"
#include "pds/submit.h"
#include "pds/timers.h"
#include "pds/tx_control.h"
#include "pds/tx_poll.h"

namespace uet::pds {

class Engine {
 public:
  Engine(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
         net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper);

  // --- From and to the loop
  /// May take the packet out of `rx`.
  void on_packet(Instant now, net::RxPacket& rx);
  bool poll_transmit(Instant now, net::TxPacket& out, std::uint8_t free_planes);
  bool may_have_packets() const {
    return !scheduler_.is_idle() || !nacks_.is_empty() || !built_.is_empty() || !uud_.is_idle() ||
           !rudi_.is_idle() || room_.has_news();
  }
  void on_planes_changed(Instant now, std::uint8_t up);
  void on_deadline(Instant now);
  Instant next_deadline() const;

  // --- From SES
  Submission& submission() { return submission_; }
  SequencedIntake& sequenced() { return sequenced_; }

  // --- From the user
  void set_opening_guard(OpeningGuard& guard) {
    env_.guard = &guard;
    table_.set_guarded();
  }
  void close_all(Instant now) { life_.closing.close_all(now); }
  bool is_idle() const;
  Pds::Gauges gauges() const;
  PdcTable& pdcs() { return table_; }
  CongestionTable& congestions() { return congestions_; }
  const NackCounts& nack_counts() const { return env_.nack_counts; }

 private:
  bool poll_data(Instant now, net::TxPacket& out);

  // --- Shared by all
  Environment env_;
  Backpressure room_;
  Scheduler scheduler_;
  PdcStates states_;
  NackQueue nacks_;
  PdcTable table_;
  CongestionTable congestions_;
  MessageTable messages_;
  FailedMessages failed_;
  base::Ring<net::TxPacket> built_;  ///< last ACKs of closed PDCs, RUDI responses
  // --- Without PDCs
  Rudi rudi_;
  Uud uud_;
  // --- The two directions of PDCs
  SendingHalf sending_;
  ReceivingHalf receiving_;
  // --- Packets out
  AckBuilder acks_;
  ControlSender controls_;
  DataSender sender_;
  DataPoll data_;
  // --- The life of PDCs
  Life life_;
  Timers timers_;
  // --- Packets in
  TargetOpening opening_;
  SequencedIntake sequenced_;
  RequestIntake requests_;
  AckIntake acks_in_;
  NackIntake nacks_in_;
  ControlIntake controls_in_;
  // --- Messages in
  Submission submission_;

  Planes planes_;
  bool rudi_turn_ = false;
};

}  // namespace uet::pds
