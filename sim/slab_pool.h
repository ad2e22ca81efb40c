/// A packet pool on the heap that grows by slabs up to a limit, so that a thousand endpoints share
/// what they use instead of each owning its worst case.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/net/packet.h"

namespace uet::sim {

class SlabPool final : public net::PacketPool {
 public:
  /// At most `limit` packets of up to `packet_bytes` exist.
  SlabPool(std::size_t limit, std::size_t packet_bytes);
  ~SlabPool() override;

  std::size_t capacity() const override { return limit_; }
  std::size_t available() const override { return limit_ - in_use(); }
  std::size_t max_packet_bytes() const override { return packet_bytes_; }
  /// Memory of one packet.
  std::size_t buffer_bytes() const { return buffer_bytes_; }
  /// Packets in the hands of users of the pool.
  std::size_t in_use() const { return created_ - free_.size() - cached_; }
  std::size_t peak_bytes() const { return slabs_.size() * kSlab * buffer_bytes_; }
  /// A packet was refused because `limit` of them were in use.
  bool has_run_out() const { return has_run_out_; }
  /// While set, allocate() fails as if every packet were in use. A fault for tests.
  void set_exhausted(bool exhausted);
  bool is_exhausted() const { return exhausted_; }

 protected:
  bool refill() override;
  void spill() override;

 private:
  static constexpr std::size_t kSlab = 64;

  void grow();

  std::size_t limit_, packet_bytes_, buffer_bytes_;
  std::size_t created_ = 0;
  bool exhausted_ = false, has_run_out_ = false;
  std::vector<std::unique_ptr<std::uint8_t[]>> slabs_;
  std::vector<std::unique_ptr<net::PacketBuffer[]>> buffers_;
  std::vector<net::PacketBuffer*> free_;
};

}  // namespace uet::sim
