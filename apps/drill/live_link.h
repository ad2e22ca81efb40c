/// Packets to and from one endpoint at an address, over any port.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "apps/drill/packet_text.h"
#include "apps/drill/world.h"
#include "fep/integrity.h"
#include "lib/base/trace.h"
#include "lib/net/port.h"

namespace uet::drill {

/// CLOCK_MONOTONIC.
base::Instant clock_now();

class LiveLink {
 public:
  /// What arrived and was not taken, since the link was made.
  struct Counters {
    std::uint64_t sent = 0, received = 0;
    std::uint64_t broken = 0;     ///< wrong CRC, or too short for one
    std::uint64_t strangers = 0;  ///< packets of other hosts
  };

  /// `port` and `trace` must outlive the link.
  LiveLink(net::Port& port, base::Trace& trace, const net::FabricAddress& peer, bool has_crc);

  /// Records what follows in a file; an empty path ends that. Returns what went wrong.
  std::string capture_to(const std::string& path);

  /// False when the port takes nothing.
  bool send(std::span<const std::uint8_t> bytes, const Travel& travel, bool with_wrong_crc);
  /// The next packet of the peer, awaited until `until` at the latest.
  std::optional<SeenPacket> receive(base::Instant until);
  const Counters& counters() const { return counters_; }
  const net::PortFacts& facts() const { return port_.facts(); }

 private:
  net::Port& outer() { return capture_ ? *capture_ : port_; }
  std::optional<SeenPacket> take(net::RxPacket& rx);
  void sleep_until(base::Instant until);

  net::Port& port_;
  base::Trace& trace_;
  net::FabricAddress peer_;
  fep::Integrity integrity_;
  std::unique_ptr<net::Port> capture_;
  std::array<net::RxPacket, 32> burst_;
  std::size_t burst_size_ = 0, burst_next_ = 0;
  Counters counters_;
};

}  // namespace uet::drill
