#include "lib/dpdk/mbuf_pool.h"

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

using net::Packet;
using net::PacketBuffer;

namespace {

static_assert(RTE_PKTMBUF_HEADROOM == net::PacketPool::kHeadroom);
static_assert(sizeof(PacketBuffer) % RTE_MBUF_PRIV_ALIGN == 0);

constexpr unsigned kMempoolCache = 256;
// Any but RTE_MBUF_PORT_INVALID, which mbufs have from their allocation by a driver until they are received.
constexpr std::uint16_t kNotToReceive = 0;
// Segments that no mbuf of ours has; freeing one makes them 1 again.
constexpr std::uint16_t kSent = 2;
constexpr std::size_t kExchange = net::PacketPool::kCacheSize / 2;

PacketBuffer* buffer_of(rte_mbuf* mbuf) {
  return static_cast<PacketBuffer*>(rte_mbuf_to_priv(mbuf));
}

void set_up_buffer(rte_mempool*, void* pool, void* object, unsigned) {
  auto* mbuf = static_cast<rte_mbuf*>(object);
  mbuf->port = kNotToReceive;
  *buffer_of(mbuf) = PacketBuffer{.room = static_cast<std::uint8_t*>(mbuf->buf_addr),
                                  .capacity = mbuf->buf_len,
                                  .offset = RTE_PKTMBUF_HEADROOM,
                                  .length = 0,
                                  .pool = static_cast<MbufPool*>(pool),
                                  .native = mbuf};
}

/// Mbufs with a driver are told from the others by what drivers leave in them, see note_sent() and kNotToReceive.
void take_back(rte_mempool* mempool, void*, void* object, unsigned) {
  auto* mbuf = static_cast<rte_mbuf*>(object);
  if (mbuf->port != RTE_MBUF_PORT_INVALID && mbuf->nb_segs == 1) return;
  mbuf->port = kNotToReceive;
  mbuf->nb_segs = 1;
  rte_mempool_put(mempool, mbuf);
}

}  // namespace

std::unique_ptr<MbufPool> MbufPool::create(std::size_t packets, std::size_t packet_bytes,
                                           int numa_node, std::string& error) {
  static std::atomic<unsigned> serial{0};
  const std::string name = "uet_pool_" + std::to_string(serial++);
  const unsigned cache = packets >= 4 * kMempoolCache ? kMempoolCache : 0;
  const auto create_on = [&](int node) {
    return rte_pktmbuf_pool_create(
        name.c_str(), static_cast<unsigned>(packets), cache, sizeof(PacketBuffer),
        static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + packet_bytes), node);
  };
  rte_mempool* mempool = create_on(numa_node);
  // Memory of another node is slower, not wrong.
  if (mempool == nullptr && numa_node != SOCKET_ID_ANY) mempool = create_on(SOCKET_ID_ANY);
  if (mempool == nullptr) {
    error = "no memory for " + std::to_string(packets) + " packets of " +
            std::to_string(packet_bytes) + " bytes (" + rte_strerror(rte_errno) +
            "); set FI_UET_POOL lower or give more hugepages";
    return nullptr;
  }
  return std::unique_ptr<MbufPool>(new MbufPool(mempool, packet_bytes));
}

std::size_t MbufPool::memory_bytes(std::size_t packets, std::size_t packet_bytes) {
  // Headers of mempool object, mbuf and PacketBuffer, with the padding between objects.
  constexpr std::size_t kOverhead = 64 + sizeof(rte_mbuf) + sizeof(PacketBuffer) + 64;
  return packets * (kOverhead + RTE_PKTMBUF_HEADROOM + packet_bytes);
}

MbufPool::MbufPool(rte_mempool* mempool, std::size_t packet_bytes)
    : mempool_(mempool), packet_bytes_(packet_bytes) {
  rte_mempool_obj_iter(mempool, set_up_buffer, this);
}

MbufPool::~MbufPool() {
  if (is_forked_child()) return;  // hugepages are the parent's, too
  rte_mempool_free(mempool_);
}

std::size_t MbufPool::capacity() const {
  return mempool_->size;
}

std::size_t MbufPool::available() const {
  return rte_mempool_avail_count(mempool_) + cached_;
}

bool MbufPool::refill() {
  if (is_forked_child()) [[unlikely]]
    return false;
  void* objects[kExchange];
  std::size_t n = kExchange;
  // The last few come one by one: a batch is all or nothing.
  if (rte_mempool_get_bulk(mempool_, objects, kExchange) != 0)
    n = rte_mempool_get(mempool_, objects) == 0 ? 1 : 0;
  for (std::size_t i = 0; i < n; ++i)
    cache_[cached_++] = buffer_of(static_cast<rte_mbuf*>(objects[i]));
  return n != 0;
}

void MbufPool::spill() {
  // The oldest half goes, so that what was touched last is taken first.
  void* objects[kExchange];
  for (std::size_t i = 0; i < kExchange; ++i) objects[i] = cache_[i]->native;
  if (!is_forked_child()) rte_mempool_put_bulk(mempool_, objects, kExchange);
  std::move(cache_ + kExchange, cache_ + cached_, cache_);
  cached_ -= kExchange;
}

void MbufPool::note_sent(std::span<rte_mbuf* const> sent) {
  for (rte_mbuf* mbuf : sent) mbuf->nb_segs = kSent;
}

void MbufPool::take_back_forgotten() {
  rte_mempool_obj_iter(mempool_, take_back, nullptr);
}

Packet MbufPool::adopt(rte_mbuf* mbuf) {
  // Also of our pool, when its data lies elsewhere: in a buffer that the driver attached.
  if (mbuf->pool != mempool_ || !RTE_MBUF_DIRECT(mbuf)) [[unlikely]]
    return copy(mbuf);
  PacketBuffer* buffer = buffer_of(mbuf);
  buffer->offset = mbuf->data_off;
  buffer->length = mbuf->data_len;
  return Packet(buffer);
}

Packet MbufPool::copy(rte_mbuf* mbuf) {
  Packet packet;
  if (mbuf->data_len <= packet_bytes_) packet = allocate();
  if (packet)
    std::memcpy(packet.append(mbuf->data_len), rte_pktmbuf_mtod(mbuf, void*), mbuf->data_len);
  rte_pktmbuf_free(mbuf);
  return packet;
}

rte_mbuf* MbufPool::to_mbuf(Packet& packet) {
  PacketBuffer* buffer = packet.buffer();
  auto* mbuf = static_cast<rte_mbuf*>(buffer->native);
  mbuf->data_off = static_cast<std::uint16_t>(buffer->offset);
  mbuf->data_len = static_cast<std::uint16_t>(buffer->length);
  mbuf->pkt_len = buffer->length;
  mbuf->ol_flags = 0;
  return mbuf;
}

}  // namespace uet::dpdk
