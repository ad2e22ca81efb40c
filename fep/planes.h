/// The ports of one endpoint: which have a link, and which can take a packet now. [CC 7.8]
///
/// With one port all of this costs a comparison.
#pragma once

#include <array>
#include <cstdint>

#include "lib/net/port.h"

namespace uet::fep {

class Planes {
 public:
  explicit Planes(std::uint8_t count) : count_(count), up_(all()) {}

  bool is_single() const { return count_ == 1; }
  /// Ports with a link, a bit each.
  std::uint8_t up() const { return up_; }
  /// Asks the port about its links; true when one was lost or found since.
  bool has_changed(base::Instant now, net::Port& port) {
    if (count_ == 1) return false;
    const auto before = up_;
    up_ = static_cast<std::uint8_t>(port.planes_up(now) & all());
    return up_ != before;
  }

  /// Counts the room on each port; call before a burst is built.
  void look(base::Instant now, const net::Port& port) {
    if (count_ == 1) return;
    for (unsigned p = 0; p < count_; ++p) room_[p] = is_up(p) ? port.plane_room(now, p) : 0;
  }
  /// Ports with a link and with room, less what assign() gave away since look(). Not asked of a single port.
  std::uint8_t free() const {
    if (count_ == 1) return 1;
    std::uint8_t free = 0;
    for (unsigned p = 0; p < count_; ++p)
      if (room_[p] > 0) free = static_cast<std::uint8_t>(free | 1u << p);
    return free;
  }
  /// Has any of these ports a place by now?
  static bool has_room(base::Instant now, const net::Port& port, unsigned planes) {
    for (unsigned p = 0; planes >> p != 0; ++p)
      if ((planes >> p & 1) != 0 && port.plane_room(now, p) > 0) return true;
    return false;
  }
  /// Takes one place on the packet's port. A packet that may leave by any port, or whose port has no link, takes the free
  /// ones in turn; an answer waits for the port on which its peer was heard, for that is known to work.
  void assign(net::TxPacket& tx) {
    if (count_ == 1) {
      tx.plane = 0;
      return;
    }
    if (tx.plane >= count_ || !is_up(tx.plane)) tx.plane = next_free();
    if (room_[tx.plane] > 0) --room_[tx.plane];
  }

 private:
  std::uint8_t all() const { return static_cast<std::uint8_t>((1u << count_) - 1); }
  bool is_up(unsigned plane) const { return ((up_ >> plane) & 1) != 0; }
  std::uint8_t next_free() {
    for (unsigned step = 0; step < count_; ++step) {
      turn_ = static_cast<std::uint8_t>((turn_ + 1) % count_);
      if (room_[turn_] > 0) break;
    }
    return turn_;
  }

  std::uint8_t count_;
  std::uint8_t up_;
  std::uint8_t turn_ = 0;
  std::array<std::size_t, net::kMaxPlanes> room_{};
};

}  // namespace uet::fep
