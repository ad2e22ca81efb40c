/// One side of `uet-perf raw`: a port, the peer's address, and the loop around them.
#pragma once

#include <array>
#include <chrono>
#include <vector>

#include "apps/perf/raw_bench.h"
#include "apps/perf/raw_message.h"
#include "lib/net/port.h"

namespace uet::perf {

inline base::Instant clock_now() {
  return base::Instant::from_ns(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::steady_clock::now().time_since_epoch())
                                    .count());
}

/// Memory that the copying run copies from or to, front to back again and again. As large as all messages under way that it is compared with, it
/// is as much in caches as they are.
class CopyBuffer {
 public:
  /// 2^shift bytes, more than a packet.
  void resize(unsigned shift) {
    const std::size_t bytes = std::size_t{1} << shift;
    if (bytes_.size() != bytes) bytes_.assign(bytes, 0x5a);
    at_ = 0;
  }
  std::uint8_t* next(std::size_t n) {
    if (at_ + n > bytes_.size()) at_ = 0;
    std::uint8_t* p = bytes_.data() + at_;
    at_ += n;
    return p;
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

class RawSide {
 public:
  static constexpr std::size_t kBurst = 32;

  RawSide(net::Port& port, const net::FabricAddress& peer) : port_(port), peer_(peer) {}

  net::Port& port() { return port_; }
  /// One burst from the peer; runs the port's own deadlines as well. Packets of others are gone
  /// already.
  std::span<net::RxPacket> receive(base::Instant now);
  /// An unsent packet with this header and `size` bytes in all; null when the pool is empty.
  net::TxPacket make(const RawHeader& header, std::size_t size);
  /// Sends one packet now or, after a short while, gives up.
  void send_one(net::TxPacket packet);
  std::size_t send(base::Instant now, std::span<net::TxPacket> packets) {
    return port_.send(now, packets);
  }

 private:
  net::Port& port_;
  net::FabricAddress peer_;
  std::array<net::RxPacket, kBurst> received_;
  std::uint16_t entropy_ = 0xc000;
  std::uint8_t plane_ = 0;  ///< each in turn
};

/// Throws std::runtime_error when the peer stays silent. Both return what the exit code says.
int run_raw_client(const RawOptions& options, RawSide& side);
int run_raw_server(const RawOptions& options, RawSide& side);

}  // namespace uet::perf
