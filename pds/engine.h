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
  std::size_t poll_transmit(Instant now, std::span<net::TxPacket> out, std::uint8_t free_planes);
  bool may_have_packets() const {
    return !shared_.scheduler.is_idle() || !shared_.nacks.is_empty() || !shared_.built.is_empty() ||
           !uud_.is_idle() || !rudi_.is_idle() || shared_.room.has_new_room() ||
           has_records_again();
  }
  bool has_only_acks() const;
  void on_planes_changed(Instant now, std::uint8_t up);
  void on_deadline(Instant now);
  Instant next_deadline() const;

  /// SES asked for something, perhaps on behalf of a call of the user, and no packet was looked for since.
  bool has_unpolled_packets() const { return is_unpolled_ && may_have_packets(); }

  // --- From SES
  Submission& submission() {
    is_unpolled_ = true;
    return submission_;
  }
  SequencedIntake& sequenced() {
    is_unpolled_ = true;
    return sequenced_;
  }

  // --- From the user
  void set_opening_guard(OpeningGuard& guard) {
    shared_.env.guard = &guard;
    shared_.pdcs.set_guarded();
  }
  void close_all(Instant now) { life_.closing.close_all(now); }
  bool is_idle() const;
  Pds::Gauges gauges() const;
  PdcTable& pdcs() { return shared_.pdcs; }
  CongestionTable& congestions() { return shared_.congestions; }
  const NackCounts& nack_counts() const { return shared_.env.nack_counts; }

 private:
  /// PDCs wait for records, and some have come free.
  bool has_records_again() const {
    return shared_.scheduler.lacks_records() && sending_.window.records().free_blocks() > 0;
  }
  bool poll_control(Instant now, net::TxPacket& out, bool& lacks_buffer);
  std::size_t poll_data(Instant now, std::span<net::TxPacket> out);

  Shared shared_;
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
  bool is_unpolled_ = false;
};

}  // namespace uet::pds
