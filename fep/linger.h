/// How long an endpoint that goes stays for its peers: they may not have heard the last acknowledgements, which only it can send again.
#pragma once

#include <cstdint>

#include "lib/base/units.h"

namespace uet::fep {

/// Until it is idle, until nothing has come for three retransmission timeouts (a peer that lost an acknowledgement asks again after one, and
/// what it sends then may get lost as well), and 1.5 s at most.
class Linger {
 public:
  Linger(base::Instant begin, base::Duration rto_max, std::uint64_t packets_received)
      : begin_(begin), heard_at_(begin), patience_(rto_max * 3), packets_(packets_received) {}

  /// To be asked after each turn, with the packets received so far.
  bool is_over(base::Instant now, bool is_idle, std::uint64_t packets_received) {
    if (packets_received != packets_) heard_at_ = now;
    packets_ = packets_received;
    return is_idle || now - heard_at_ > patience_ || now - begin_ > kLongest;
  }

 private:
  static constexpr base::Duration kLongest = base::Duration::from_ms(1500);

  base::Instant begin_, heard_at_;
  base::Duration patience_;
  std::uint64_t packets_;
};

}  // namespace uet::fep
