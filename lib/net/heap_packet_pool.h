/// Packet buffers in ordinary memory: for the kernel-UDP port, tests and every port without a
/// driver of its own.
#pragma once

#include <memory>
#include <vector>

#include "lib/net/packet.h"

namespace uet::net {

/// A fixed number of equal buffers in one slab, taken at construction. The last one given back is
/// the first one taken again, so a quiet endpoint touches few of them and the rest stays unbacked
/// by memory. One thread; packets must not outlive the pool.
class HeapPacketPool final : public PacketPool {
 public:
  /// `packet_bytes` is the largest packet that fits behind the headroom.
  HeapPacketPool(std::size_t packets, std::size_t packet_bytes);
  /// Its port sends packets that borrow.
  void let_borrow() { can_borrow_ = true; }
  ~HeapPacketPool() override;
  HeapPacketPool(const HeapPacketPool&) = delete;
  HeapPacketPool& operator=(const HeapPacketPool&) = delete;

  std::size_t capacity() const override { return buffers_.size(); }
  std::size_t available() const override { return free_.size() + cached_; }
  std::size_t max_packet_bytes() const override { return packet_bytes_; }

 private:
  struct FreeSlab {
    void operator()(std::uint8_t* slab) const;
  };
  bool refill() override;
  void spill() override;

  std::size_t packet_bytes_;
  std::unique_ptr<std::uint8_t, FreeSlab> slab_;
  std::vector<PacketBuffer> buffers_;
  std::vector<PacketBuffer*> free_;  ///< a stack with room reserved for all
};

}  // namespace uet::net
