/// Packets to and from one endpoint at an address, over any port.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/drill/packet_text.h"
#include "apps/drill/sealing.h"
#include "apps/drill/testbed.h"
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
    std::uint64_t broken = 0;     ///< wrong CRC or ICV, or too short for one: see refused()
    std::uint64_t strangers = 0;  ///< packets of other hosts
  };

  /// How a packet of the script leaves.
  struct Manner {
    bool is_spoilt = false;    ///< with a wrong CRC, or ICV
    bool is_in_clear = false;  ///< not sealed, though there are keys
  };

  /// What is given must outlive the link. Without `sealing` packets are not secured.
  LiveLink(net::Port& port, base::Trace& trace, const net::FabricAddress& peer, bool has_crc,
           Sealing* sealing);

  /// Records what follows in a file; an empty path ends that. Returns what went wrong.
  std::string capture_to(const std::string& path);

  /// False when the port takes nothing.
  bool send(std::span<const std::uint8_t> bytes, const Travel& travel, Manner manner);
  /// Remembers the last packet, byte for byte as it left.
  void remember() { remembered_ = last_; }
  /// That packet leaves again. False as with send(), or when none was remembered.
  bool send_remembered();
  /// The next packet of the peer, awaited until `until` at the latest.
  std::optional<SeenPacket> receive(base::Instant until);
  const Counters& counters() const { return counters_; }
  /// What was wrong with those that are broken: "2 tss-bad-icv".
  std::string refused() const;
  Sealing* sealing() { return sealing_; }
  const net::PortFacts& facts() const { return port_.facts(); }

 private:
  /// As it was on the wire.
  struct Sent {
    std::vector<std::uint8_t> bytes;
    std::uint16_t entropy = 0;
    net::TosByte tos;
  };

  net::TxPacket packet_for(std::span<const std::uint8_t> bytes, std::uint16_t entropy,
                           net::TosByte tos);
  bool offer(net::TxPacket& tx);
  net::Port& outer() { return capture_ ? *capture_ : port_; }
  std::optional<SeenPacket> take(net::RxPacket& rx);
  void sleep_until(base::Instant until);

  net::Port& port_;
  base::Trace& trace_;
  net::FabricAddress peer_;
  Sealing* const sealing_;
  fep::Integrity integrity_;
  Sent last_;
  std::optional<Sent> remembered_;
  std::unique_ptr<net::Port> capture_;
  std::array<net::RxPacket, 32> burst_;
  std::size_t burst_size_ = 0, burst_next_ = 0;
  Counters counters_;
  std::array<std::uint64_t, base::kDropReasonCount> refusals_{};
};

}  // namespace uet::drill
