#include "lib/udp/receive_batch.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/base/cancellation.h"

namespace uet::udp {

using base::DropReason;
using base::Instant;

ReceiveBatch::ReceiveBatch(net::PacketPool& pool, bool merged, bool buffer_is_small,
                           base::Trace& trace)
    : pool_(pool),
      trace_(trace),
      merged_(merged),
      buffer_is_small_(buffer_is_small),
      budget_(std::clamp<std::size_t>(pool.capacity() / 4, 64, kVectors)) {
  expect(pool.max_packet_bytes());
  for (std::size_t i = 0; i < kMessages; ++i) {
    headers_[i] = mmsghdr{};
    headers_[i].msg_hdr.msg_name = &names_[i].any;
    headers_[i].msg_hdr.msg_control = control_[i].bytes.data();
  }
}

/// From now on messages are received into pieces of that size. A message that is larger than all of them together would be cut
/// off, so there are as many as the largest one needs.
void ReceiveBatch::expect(std::size_t packet_bytes) {
  piece_ = next_piece_ = std::clamp(packet_bytes, kSmallestPiece, pool_.max_packet_bytes());
  vectors_ = merged_ ? (kLargestMessage + piece_ - 1) / piece_ : 1;
  armed_ = used_ = 0;
}

bool ReceiveBatch::receive(Instant now, int socket, std::size_t wanted) {
  if (next_piece_ != piece_) expect(next_piece_);
  if (std::exchange(is_new_socket_, false)) [[unlikely]]
    overflows_seen_ = 0;
  const std::size_t most = is_lull(now) ? 1 : most_;
  messages_ = current_ = 0;
  asked_at_ = now;
  asked_ = prepare(std::min(wanted, most));
  if (asked_ == 0) return false;
  const base::WithoutCancellation without_cancellation;
  const int got =
      recvmmsg(socket, headers_.data(), static_cast<unsigned>(asked_), MSG_DONTWAIT, nullptr);
  if (got <= 0) return false;
  messages_ = used_ = static_cast<std::size_t>(got);
  note_length();
  return messages_ == asked_ && most >= kFewest;
}

void ReceiveBatch::note_length() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < messages_; ++i) bytes += headers_[i].msg_len;
  static_assert(kBytesAtOnce >= kFewest * kLargestMessage);
  most_ =
      std::clamp(kBytesAtOnce * messages_ / std::max<std::size_t>(bytes, 1), kFewest, kMessages);
}

/// The next message is not expected to have another one behind it. After a pause, whatever came meanwhile is there.
bool ReceiveBatch::is_lull(Instant now) const {
  constexpr base::Duration kPause = base::Duration::from_us(20);
  return messages_ <= 1 && messages_ < asked_ && now - asked_at_ < kPause;
}

/// Makes messages ready to be received into, which most of them still are; for how many is limited by the pool. What the
/// pool cannot take now waits in the socket.
std::size_t ReceiveBatch::prepare(std::size_t wanted) {
  const std::size_t count = std::min(wanted, std::max<std::size_t>(budget_ / vectors_, 1));
  for (; used_ != 0; --used_)
    if (!arm(used_ - 1)) armed_ = used_ - 1;
  while (armed_ < count && arm(armed_)) ++armed_;
  return std::min(armed_, count);
}

/// False: the pool is empty.
bool ReceiveBatch::arm(std::size_t message) {
  const std::size_t first = message * vectors_, last = first + vectors_ - 1;
  for (std::size_t v = first; v <= last; ++v) {
    if (packets_[v] && message < armed_) continue;  // as it was
    if (!packets_[v]) packets_[v] = pool_.allocate();
    if (!packets_[v]) return false;
    iovecs_[v] = iovec{packets_[v].data(), v == last ? packets_[v].tailroom() : piece_};
  }
  msghdr& header = headers_[message].msg_hdr;
  header.msg_iov = &iovecs_[first];
  header.msg_iovlen = vectors_;
  header.msg_namelen = sizeof(sockaddr_in6);
  header.msg_controllen = sizeof(ControlBytes);
  return true;
}

bool ReceiveBatch::next(Instant now, net::RxPacket& out) {
  if (!is_open_ && !open_message(now)) return false;
  const std::size_t bytes = std::min(message_.packet_bytes, message_.bytes - message_.done);
  out.packet = take(now, bytes);
  message_.done += bytes;
  if (message_.done >= message_.bytes) end_message();
  if (!out.packet) return false;
  out.source = message_.source;
  out.entropy = message_.source_port;
  out.tos = message_.tos;
  return true;
}

/// False: it brings nothing.
bool ReceiveBatch::open_message(Instant now) {
  mmsghdr& header = headers_[current_];
  message_.bytes = message_.packet_bytes = header.msg_len;
  message_.done = 0;
  message_.tos = {};
  read_control(now, header.msg_hdr);
  if ((header.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
    trace_.drop(now, DropReason::kTooLarge, message_.bytes);
    end_message();
    return false;
  }
  message_.source = names_[current_].address();
  message_.source_port = names_[current_].port();
  is_open_ = true;
  return true;
}

void ReceiveBatch::read_control(Instant now, msghdr& header) {
  const auto value_of = [](const cmsghdr* c) {
    std::uint32_t value = 0;
    std::memcpy(&value, CMSG_DATA(c), sizeof value);
    return value;
  };
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      message_.tos.value = *CMSG_DATA(c);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      message_.tos.value = static_cast<std::uint8_t>(value_of(c));
    } else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      if (const std::size_t bytes = value_of(c); bytes != 0) message_.packet_bytes = bytes;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      count_overflows(now, value_of(c));
    }
  }
}

/// `total` is modulo 2^32, and of the socket.
void ReceiveBatch::count_overflows(Instant now, std::uint32_t total) {
  if (total == overflows_seen_) return;
  if (buffer_is_small_ && !std::exchange(is_advised_, true)) advise();
  trace_.drop_elsewhere(now, DropReason::kSocketOverflow, total - overflows_seen_);
  overflows_seen_ = total;
}

/// Once: a user who measures wants to know, and the setting is the system's.
void ReceiveBatch::advise() {
  const base::WithoutCancellation without_cancellation;
  std::fprintf(
      stderr,
      "uet: the kernel dropped packets that did not fit the receive buffer of a UDP socket; "
      "`sysctl -w net.core.rmem_max=16777216` allows a larger one\n");
}

/// The packet with the next `bytes` of the message: one that was filled with just them, or a copy. Null: there is none, it was
/// counted.
net::Packet ReceiveBatch::take(Instant now, std::size_t bytes) {
  const std::size_t first = current_ * vectors_;
  const bool is_whole =
      message_.done == 0 && message_.bytes == bytes && bytes <= iovecs_[first].iov_len;
  if (!is_whole && message_.packet_bytes != piece_) return copy(now, bytes);
  const std::size_t at = first + message_.done / piece_;
  if (at - first >= vectors_ || bytes > iovecs_[at].iov_len) return copy(now, bytes);
  net::Packet packet = std::move(packets_[at]);
  packet.append(bytes);
  return packet;
}

net::Packet ReceiveBatch::copy(Instant now, std::size_t bytes) {
  net::Packet packet;
  if (bytes > pool_.max_packet_bytes())
    trace_.drop(now, DropReason::kTooLarge, bytes);
  else if (!(packet = pool_.allocate()))
    trace_.drop(now, DropReason::kNoBuffer, bytes);
  else if (message_.packet_bytes >= kSmallestPiece)
    next_piece_ = message_.packet_bytes;
  std::uint8_t* to = packet ? packet.append(bytes) : nullptr;
  std::size_t offset = message_.done;
  for (std::size_t left = to == nullptr ? 0 : bytes, v = current_ * vectors_; left != 0; ++v) {
    if (offset >= iovecs_[v].iov_len) {
      offset -= iovecs_[v].iov_len;
      continue;
    }
    const std::size_t n = std::min(left, iovecs_[v].iov_len - offset);
    std::memcpy(to, static_cast<const std::uint8_t*>(iovecs_[v].iov_base) + offset, n);
    to += n;
    left -= n;
    offset = 0;
  }
  return packet;
}

void ReceiveBatch::end_message() {
  is_open_ = false;
  ++current_;
}

}  // namespace uet::udp
