/// A device that nothing comes from and that swallows everything: for checking scenarios.
#pragma once

#include "lib/net/frame_device.h"
#include "lib/net/heap_packet_pool.h"

namespace uet::fabric {

class NullDevice final : public net::FrameDevice {
 public:
  const net::FrameDeviceFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive_frames(std::span<net::Packet>) override { return 0; }
  std::size_t send_frames(std::span<net::Packet> in) override {
    for (net::Packet& packet : in) packet.reset();
    return in.size();
  }

 private:
  net::FrameDeviceFacts facts_{.name = "null"};
  net::HeapPacketPool pool_{64, 2048};
};

}  // namespace uet::fabric
