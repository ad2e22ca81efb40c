#include "lib/udp/neighbor_watch.h"

#include "lib/base/cancellation.h"

namespace uet::udp {

using base::Instant;

void NeighborWatch::on_held(Instant now) {
  if (!look_at_.is_never()) return;
  look_at_ = now + kLookAfter;
  unsent_ = 0;
}

void NeighborWatch::look(Instant now, UdpSockets& sockets) {
  const base::WithoutCancellation without_cancellation;
  std::size_t unsent = 0;
  for (const Descriptor& sender : sockets.senders) unsent += unsent_bytes(sender.fd());
  const bool is_first = unsent_ == 0;
  const bool drains = unsent + kDrains <= unsent_;
  unsent_ = unsent;
  look_at_ = now + kStuckAfter;
  if (!is_first && drains) return;
  known_at_ = kept_at_ = now;
  if (!unresolved_.look() || is_first || !may_exchange(now)) return;
  for (std::size_t i = 0; i < sockets.senders.size(); ++i) {
    const int fd = sockets.senders[i].fd();
    if (unsent_bytes(fd) > send_buffer_bytes(fd) / 2) renew_sender(sockets, i);
  }
  unsent_ = 0;
}

bool NeighborWatch::may_exchange(Instant now) {
  if (now - period_began_ >= kExchangePeriod) {
    period_began_ = now;
    exchanges_ = 0;
  }
  return exchanges_++ < kMostExchanges;
}

bool NeighborWatch::keeps(Instant now, const net::FabricAddress& host) {
  if (now - kept_at_ >= kForgetAfter) {
    unresolved_.clear();
    return false;
  }
  if (now - known_at_ >= kFresh) {
    const base::WithoutCancellation without_cancellation;
    known_at_ = now;
    unresolved_.look();
  }
  if (!unresolved_.keeps(host)) return false;
  kept_at_ = now;
  return true;
}

}  // namespace uet::udp
