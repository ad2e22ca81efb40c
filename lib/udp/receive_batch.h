/// What one recvmmsg() brought, as packets. [decision 126]
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <vector>

#include "lib/base/trace.h"
#include "lib/net/port.h"
#include "lib/udp/socket_address.h"

namespace uet::udp {

/// The kernel hands over datagrams, and with UDP_GRO runs of equal datagrams as one message. Each message is received into
/// several packets, each as long as the datagrams of the last run were: a run of the same size needs no copy. One of another size is
/// copied, once.
class ReceiveBatch {
 public:
  /// `merged`: the socket has UDP_GRO. `buffer_is_small`: less than was asked for. `pool` and `trace` must outlive the batch.
  ReceiveBatch(net::PacketPool& pool, bool merged, bool buffer_is_small, base::Trace& trace);

  /// Nothing is left of the last batch.
  bool is_empty() const { return current_ == messages_; }
  /// Asks the socket for up to `wanted` messages, fewer where the last ones were long; only when the batch is empty. True when there
  /// may be more behind them: the socket gave as many as there was room for. A caller that comes every few microseconds, and finds one
  /// at most, is given one without a look for the next: that costs the kernel a third of what a message costs that is there.
  bool receive(base::Instant now, int socket, std::size_t wanted);
  /// The sockets were opened again: from the next call of receive() on the kernel counts its losses from 0. `buffer_is_small` as above.
  void on_new_socket(bool buffer_is_small) {
    is_new_socket_ = true;
    buffer_is_small_ = buffer_is_small;
  }
  /// The next packet, with everything but its destination. False: the message at hand brought none (any more); the batch may
  /// hold others.
  bool next(base::Instant now, net::RxPacket& out);

 private:
  static constexpr std::size_t kMessages = 64;
  static constexpr std::size_t kVectors = 256;
  static constexpr std::size_t kLargestMessage = 65535;
  /// What one call brings is to stay in a core's own cache until it was looked at and copied.
  static constexpr std::size_t kBytesAtOnce = std::size_t{128} * 1024;
  static constexpr std::size_t kFewest = 2;  ///< messages, where it is not for a lull
  /// Runs of less are copied: nothing else would be worth so many vectors.
  static constexpr std::size_t kSmallestPiece = 1024;
  struct ControlBytes {
    alignas(cmsghdr) std::array<std::uint8_t, 128> bytes;
  };
  /// The message at hand.
  struct Message {
    std::size_t bytes = 0;
    std::size_t packet_bytes = 0;  ///< of each packet in it but the last
    std::size_t done = 0;          ///< bytes given out
    net::FabricAddress source;
    std::uint16_t source_port = 0;
    net::TosByte tos;
  };

  void expect(std::size_t packet_bytes);
  std::size_t prepare(std::size_t wanted);
  bool is_lull(base::Instant now) const;
  void note_length();
  bool arm(std::size_t message);
  bool open_message(base::Instant now);
  void read_control(base::Instant now, msghdr& header);
  void count_overflows(base::Instant now, std::uint32_t total);
  static void advise();
  net::Packet take(base::Instant now, std::size_t bytes);
  net::Packet copy(base::Instant now, std::size_t bytes);
  void end_message();

  net::PacketPool& pool_;
  base::Trace& trace_;
  bool merged_;
  bool buffer_is_small_;
  std::size_t budget_;       ///< packets that wait to be filled
  std::size_t piece_ = 0;    ///< bytes received into each packet of a message but the last
  std::size_t vectors_ = 1;  ///< packets for each message
  std::size_t next_piece_ = 0;
  std::size_t armed_ = 0;  ///< messages that are ready to be received into ...
  std::size_t used_ = 0;   ///< ... but for the first, which were used since

  base::Instant asked_at_;
  std::size_t asked_ = kMessages;  ///< then, of which `messages_` were there
  std::size_t messages_ = 0, current_ = 0;
  std::size_t most_ = kMessages;  ///< that are kBytesAtOnce, if they are as long as the last were
  bool is_open_ = false;
  Message message_;
  std::uint32_t overflows_seen_ = 0;  ///< of the socket that the last messages are from
  bool is_new_socket_ = false;        ///< the next ones are from another
  bool is_advised_ = false;

  std::array<net::Packet, kVectors>
      packets_;  ///< those of message i are [i * vectors_, (i + 1) * vectors_)
  std::array<iovec, kVectors> iovecs_;
  std::array<mmsghdr, kMessages> headers_;
  std::array<SocketAddress, kMessages> names_;
  std::array<ControlBytes, kMessages> control_;
};

}  // namespace uet::udp
