/// Which PDC sends the next Request. [CC 3.7]
#pragma once

#include "pds/tx_data.h"

namespace uet::pds {

/// Round robin over CCCs, and within a CCC over its PDCs, one packet a turn. Where no other CCC has anything to send a PDC may send
/// several packets of a message in its turn, and a PDC alone has all turns: such packets are cut in one go.
class DataPoll : Part {
 public:
  DataPoll(Environment& env, Scheduler& scheduler, const SendWindow& window, DataSender& sender)
      : Part(env), scheduler_(scheduler), window_(window), sender_(sender) {}

  /// How many packets it put into `out`; 0 when no PDC may send, or when there is no packet.
  std::size_t poll(Instant now, const Planes& planes, std::span<net::TxPacket> out);
  /// PDCs that were looked at in search of one that is exempt from credit, since the start.
  std::uint64_t looked() const { return looked_; }

 private:
  std::size_t poll_ready(Instant now, const Planes& planes, std::span<net::TxPacket> out,
                         CongestionRing& waiting);
  void arm_credit_exemption(Instant now, Pdc& pdc);
  bool find_credit_exemption(Instant now, Congestion& congestion);

  Scheduler& scheduler_;
  const SendWindow& window_;
  DataSender& sender_;
  std::uint64_t looked_ = 0;
};

}  // namespace uet::pds
