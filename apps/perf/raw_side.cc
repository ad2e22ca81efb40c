#include "apps/perf/raw_side.h"

#include <algorithm>

namespace uet::perf {

std::span<net::RxPacket> RawSide::receive(base::Instant now) {
  for (net::RxPacket& rx : received_) rx.packet.reset();
  std::size_t n = port_.receive(now, received_);
  if (port_.next_deadline() <= now) port_.on_deadline(now);
  const auto end = std::remove_if(received_.begin(), received_.begin() + n,
                                  [&](const net::RxPacket& rx) { return rx.source != peer_; });
  n = static_cast<std::size_t>(end - received_.begin());
  return {received_.data(), n};
}

net::TxPacket RawSide::make(const RawHeader& header, std::size_t size) {
  net::TxPacket tx;
  tx.packet = port_.pool().allocate();
  if (!tx.packet) return tx;
  header.emit(tx.packet.append(size));
  tx.destination = peer_;
  tx.entropy = entropy_;
  tx.plane = plane_;
  plane_ = static_cast<std::uint8_t>((plane_ + 1) % port_.facts().planes);
  // Walk over the dynamic ports, so that every path and every socket gets its share.
  entropy_ = static_cast<std::uint16_t>(entropy_ + 1) | 0xc000;
  return tx;
}

void RawSide::send_one(net::TxPacket packet) {
  if (!packet.packet) return;
  const base::Instant until = clock_now() + base::Duration::from_ms(10);
  for (base::Instant now = clock_now(); now < until; now = clock_now())
    if (port_.send(now, {&packet, 1}) == 1) return;
}

}  // namespace uet::perf
