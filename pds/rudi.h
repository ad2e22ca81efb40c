/// RUDI: packets without a PDC, executed again whenever they arrive again. [PDS 17.2]
#pragma once

#include "lib/base/ring.h"
#include "pds/environment.h"
#include "pds/failed_messages.h"
#include "pds/message.h"
#include "pds/nack_queue.h"
#include "pds/rudi_table.h"
#include "pds/scheduler.h"

namespace uet::pds {

class Rudi : Part {
 public:
  /// `built`: where responses wait to be sent.
  Rudi(Environment& env, Scheduler& scheduler, MessageTable& messages, FailedMessages& failed,
       Backpressure& room, NackQueue& nacks, base::Ring<net::TxPacket>& built);
  ~Rudi() { table_.clear(); }
  Rudi(const Rudi&) = delete;
  Rudi& operator=(const Rudi&) = delete;

  // --- Source
  SubmitResult submit(Instant now, const TxMessage& request);
  bool poll(Instant now, net::TxPacket& out);
  void on_response(Instant now, const net::RxPacket& rx);
  void on_nack(Instant now, const net::RxPacket& rx, const wire::PdsNack& nack);
  void on_timer(Instant now, RudiPacket& packet);
  /// Forgets a message and all its packets.
  void abort(Message& message);

  // --- Target
  void on_request(Instant now, const net::RxPacket& rx);

  bool is_idle() const { return table_.peer_count() == 0; }
  std::uint32_t outstanding() const { return table_.outstanding(); }

 private:
  RudiPeer* peer_for(const net::FabricAddress& address);
  void release_if_idle(RudiPeer& peer);
  bool send(Instant now, RudiPacket& packet, net::TxPacket& out);
  base::Duration rto(const RudiPacket& packet) const;
  void queue_resend(RudiPacket& packet);
  void pause(Instant now, RudiPacket& packet, Duration wait);
  static void leave_network(RudiPacket& packet);
  void finish(RudiPacket& packet);
  void fail(Instant now, Message& message, PdsError error);
  void give_up(Instant now, RudiPeer& peer);

  base::TimingWheel& wheel_;
  MessageTable& messages_;
  FailedMessages& failed_;
  Backpressure& room_;
  NackQueue& nacks_;
  base::Ring<net::TxPacket>& built_;
  RudiTable table_;
};

}  // namespace uet::pds
