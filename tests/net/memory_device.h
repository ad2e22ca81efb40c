/// Two FrameDevices joined by memory: what one sends the other receives, frame by frame, under the eye of the test.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "lib/net/frame_device.h"
#include "lib/net/heap_packet_pool.h"

namespace uet::net {

using Bytes = std::vector<std::uint8_t>;

class MemoryDevice final : public FrameDevice {
 public:
  MemoryDevice(const MacAddress& mac, std::size_t packets, std::size_t ip_mtu)
      : pool_(packets, ip_mtu + 64) {
    facts_.name = "memory";
    facts_.mac = mac;
    facts_.ip_mtu = ip_mtu;
  }

  ~MemoryDevice() override {
    if (missing_at_end != nullptr) *missing_at_end = pool_.capacity() - pool_.available();
  }

  void connect(MemoryDevice& peer) { peer_ = &peer; }
  bool has_link() override { return is_up; }
  std::uint32_t link_generation() const override { return generation; }
  const FrameDeviceFacts& facts() const override { return facts_; }
  void set_link_rate(base::BitRate rate) { facts_.link_rate = rate; }
  PacketPool& pool() override { return pool_; }

  std::size_t receive_frames(std::span<Packet> out) override {
    std::size_t n = 0;
    while (n < out.size() && !arrived_.empty()) {
      out[n] = pool_.allocate();
      if (!out[n]) break;
      const Bytes& frame = arrived_.front();
      std::copy(frame.begin(), frame.end(), out[n].append(frame.size()));
      arrived_.pop_front();
      ++n;
    }
    return n;
  }

  std::size_t send_frames(std::span<Packet> in) override {
    std::size_t n = 0;
    for (; n < in.size() && n < room; ++n) {
      const Bytes frame(in[n].bytes().begin(), in[n].bytes().end());
      sent.push_back(frame);
      if (peer_ != nullptr && !is_cut) peer_->arrived_.push_back(frame);
      in[n].reset();
    }
    return n;
  }

  /// A frame that the test made up.
  void inject(Bytes frame) { arrived_.push_back(std::move(frame)); }

  /// Frames that have not been fetched yet.
  std::size_t waiting() const { return arrived_.size(); }

  std::vector<Bytes> sent;
  std::size_t room = SIZE_MAX;  ///< frames that one call takes
  std::uint32_t generation = 0;
  bool is_cut = false;                    ///< what is sent is lost
  bool is_up = true;                      ///< what has_link() says
  std::size_t* missing_at_end = nullptr;  ///< packets that had not come back when the pool went

 private:
  FrameDeviceFacts facts_;
  HeapPacketPool pool_;
  MemoryDevice* peer_ = nullptr;
  std::deque<Bytes> arrived_;
};

}  // namespace uet::net
