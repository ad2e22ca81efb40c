/// A device that moves whole Ethernet frames: what lies under an IpPort (a DPDK queue, a simulated link, a capture).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/units.h"
#include "lib/net/packet.h"

namespace uet::net {

using MacAddress = std::array<std::uint8_t, 6>;

struct FrameDeviceFacts {
  std::string name;
  MacAddress mac{};
  std::size_t ip_mtu = 1500;  ///< largest IP packet (the frame is 14 bytes and VLAN tags larger)
  base::BitRate link_rate;
  bool promiscuous = false;  ///< frames for other MAC addresses arrive too
};

/// One thread. Frames begin with the Ethernet destination and end before the FCS.
class FrameDevice {
 public:
  virtual ~FrameDevice() = default;
  virtual const FrameDeviceFacts& facts() const = 0;
  virtual PacketPool& pool() = 0;
  /// As Port::receive / Port::send, but whole frames.
  virtual std::size_t receive_frames(std::span<Packet> out) = 0;
  virtual std::size_t send_frames(std::span<Packet> in) = 0;
  /// Whether frames sent now can arrive at all. Asked some hundred times a second where several devices serve one endpoint,
  /// so it may cost a system call.
  virtual bool has_link() { return true; }
  /// Counts how often the link came up again: the host at the other end may be another one now.
  virtual std::uint32_t link_generation() const { return 0; }
  virtual int wakeup_fd() const { return -1; }
  virtual bool arm_wakeup() { return true; }
};

}  // namespace uet::net
