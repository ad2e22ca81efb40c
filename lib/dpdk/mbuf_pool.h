/// Packets that are mbufs: a PacketPool on top of an rte_mempool.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "lib/net/packet.h"

struct rte_mbuf;
struct rte_mempool;

namespace uet::dpdk {

/// The PacketBuffer of each mbuf lives in its private area and is set up once. Buffers move in
/// batches between this pool's cache, the mempool's cache of the thread, and the mempool. One
/// thread at a time.
class MbufPool final : public net::PacketPool {
 public:
  /// Null: `error` says why. `packet_bytes` fit behind the headroom.
  static std::unique_ptr<MbufPool> create(std::size_t packets, std::size_t packet_bytes,
                                          int numa_node, std::string& error);
  /// Memory that such a pool takes.
  static std::size_t memory_bytes(std::size_t packets, std::size_t packet_bytes);
  ~MbufPool() override;

  std::size_t capacity() const override;
  std::size_t available() const override;
  std::size_t max_packet_bytes() const override { return packet_bytes_; }

  rte_mempool* mempool() { return mempool_; }
  /// The packet in `mbuf`, which must be one segment. Mbufs of a foreign mempool are copied; null
  /// when the pool is empty.
  net::Packet adopt(rte_mbuf* mbuf);
  /// The mbuf of `packet`, ready for a driver.
  static rte_mbuf* to_mbuf(net::Packet& packet);

  /// The driver of a memif without copying forgets what it held when its connection ends: what it was to receive into and what its peer had
  /// not fetched. This takes it back, on any thread, while the driver is stopped. What was to leave is known only from note_sent(), which is for
  /// packets of this pool that a driver took and frees in a later burst.
  void take_back_forgotten();
  static void note_sent(std::span<rte_mbuf* const> sent);

 private:
  MbufPool(rte_mempool* mempool, std::size_t packet_bytes);
  bool refill() override;
  void spill() override;
  net::Packet copy(rte_mbuf* mbuf);

  rte_mempool* mempool_;
  std::size_t packet_bytes_;
};

}  // namespace uet::dpdk
