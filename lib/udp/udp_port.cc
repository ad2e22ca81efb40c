#include "lib/udp/udp_port.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/udp/local_addresses.h"

namespace uet::udp {

using base::DropReason;
using base::Instant;

namespace {

/// The largest UET packet is 8192 bytes of payload behind at most 164 bytes of headers, whatever
/// the MTU of the interface. [WIRE 7.2]
constexpr std::size_t kPacketBytes = 9216;
constexpr std::size_t kUdpHeaderBytes = 8;
// A full socket drains at link speed; much shorter only burns the processor.
constexpr base::Duration kHeldRetry = base::Duration::from_us(20);

bool is_full(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

std::size_t max_payload_for(const net::PortFacts& facts) {
  const std::size_t headers = (facts.address.is_v4() ? 20 : 40) + kUdpHeaderBytes;
  return std::min(largest_ip_packet(facts), std::size_t{65535}) - headers;
}

}  // namespace

UdpPort::UdpPort(UdpSockets sockets, const net::PortFacts& facts, UdpInterface interface,
                 std::size_t packets, base::Trace& trace)
    : sockets_(std::move(sockets)),
      facts_(facts),
      interface_(std::move(interface)),
      is_v4_(facts.address.is_v4()),
      trace_(trace),
      pool_(packets, kPacketBytes),
      max_payload_(max_payload_for(facts)) {
  const std::size_t lanes = sockets_.senders.size();
  UET_CHECK(lanes >= 1 && lanes <= kMaxSockets);
  for (std::size_t e = 0; e < lane_of_.size(); ++e)
    lane_of_[e] = static_cast<std::uint8_t>(e % lanes);
  // A source port that we own is its own entropy value, which makes wire_entropy() idempotent.
  for (std::size_t i = 0; i < lanes; ++i)
    lane_of_[sockets_.sender_ports[i]] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < kBurst; ++i) {
    rx_messages_[i] = mmsghdr{};
    rx_messages_[i].msg_hdr.msg_iov = &rx_vectors_[i];
    rx_messages_[i].msg_hdr.msg_iovlen = 1;
    rx_messages_[i].msg_hdr.msg_name = &rx_names_[i].any;
    rx_messages_[i].msg_hdr.msg_control = rx_control_[i].bytes.data();
    tx_messages_[i] = mmsghdr{};
    tx_messages_[i].msg_hdr.msg_iov = &tx_vectors_[i];
    tx_messages_[i].msg_hdr.msg_iovlen = 1;
    tx_messages_[i].msg_hdr.msg_control = tx_control_[i].bytes.data();
  }
}

std::uint8_t UdpPort::planes_up(Instant) {
  return interface_is_running(sockets_.receiver.fd(), interface_.name) ? 1 : 0;
}

std::size_t UdpPort::path_mtu(Instant, const net::FabricAddress& destination) {
  const std::size_t most = largest_ip_packet(facts_);
  if (destination.is_unspecified() || destination.is_v4() != is_v4_) return facts_.ip_mtu;
  const SocketAddress to(destination, facts_.udp_port, interface_.index);
  const std::size_t known = route_mtu(sockets_.prober.fd(), to);
  return known == 0 ? facts_.ip_mtu : std::min(known, most);
}

// --- Receiving

std::size_t UdpPort::receive(Instant now, std::span<net::RxPacket> out) {
  if (held_count_ != 0) flush_held(now);
  std::size_t n = 0;
  // Datagrams that are too large count as well: a flood of them must not keep the caller here.
  for (std::size_t seen = 0; n < out.size() && seen < out.size();) {
    const std::size_t ready = prepare_receive(std::min(kBurst, out.size() - n));
    if (ready == 0) break;
    const int got = recvmmsg(sockets_.receiver.fd(), rx_messages_.data(),
                             static_cast<unsigned>(ready), MSG_DONTWAIT, nullptr);
    if (got <= 0) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
      n += take_received(now, i, out[n]) ? 1 : 0;
    if (static_cast<std::size_t>(got) < ready) break;
    seen += static_cast<std::size_t>(got);
  }
  return n;
}

/// Empty packets for the first slots; how many there are is limited by the pool. What the pool
/// cannot take now waits in the socket.
std::size_t UdpPort::prepare_receive(std::size_t wanted) {
  for (std::size_t i = 0; i < wanted; ++i) {
    if (!rx_packets_[i]) {
      rx_packets_[i] = pool_.allocate();
      if (!rx_packets_[i]) return i;
      rx_vectors_[i] = iovec{rx_packets_[i].data(), rx_packets_[i].tailroom()};
    }
    rx_messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in6);
    rx_messages_[i].msg_hdr.msg_controllen = sizeof(ControlBytes);
  }
  return wanted;
}

bool UdpPort::take_received(Instant now, std::size_t slot, net::RxPacket& out) {
  mmsghdr& message = rx_messages_[slot];
  const std::size_t bytes = message.msg_len;
  net::TosByte tos;
  read_control(now, message.msg_hdr, tos);
  if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0) {
    trace_.drop(now, DropReason::kTooLarge, bytes);
    return false;  // the empty packet stays in its slot
  }
  out.packet = std::move(rx_packets_[slot]);
  out.packet.append(bytes);
  out.source = rx_names_[slot].address();
  out.destination = facts_.address;
  out.entropy = rx_names_[slot].port();
  out.tos = tos;
  return true;
}

void UdpPort::read_control(Instant now, msghdr& message, net::TosByte& tos) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      tos.value = *CMSG_DATA(c);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int value = 0;
      std::memcpy(&value, CMSG_DATA(c), sizeof value);
      tos.value = static_cast<std::uint8_t>(value);
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      std::uint32_t total = 0;
      std::memcpy(&total, CMSG_DATA(c), sizeof total);
      if (total != overflows_seen_)
        trace_.drop_elsewhere(now, DropReason::kSocketOverflow, total - overflows_seen_);
      overflows_seen_ = total;
    }
  }
}

// --- Sending

std::size_t UdpPort::send(Instant now, std::span<net::TxPacket> in) {
  if (held_count_ != 0) flush_held(now);
  std::size_t n = 0;
  while (n < in.size() && held_count_ == 0) {
    const std::size_t count = std::min(kBurst, in.size() - n);
    transmit(now, in.subspan(n, count));
    n += count;
  }
  return n;
}

/// Sends at most a burst. Afterwards every packet is sent, dropped or held.
void UdpPort::transmit(Instant now, std::span<net::TxPacket> in) {
  lane_sizes_.fill(0);
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (refuse(now, in[i])) continue;
    const std::uint8_t lane = lane_of_[in[i].entropy];
    lanes_[lane][lane_sizes_[lane]++] = static_cast<std::uint8_t>(i);
  }
  for (std::size_t lane = 0; lane < sockets_.senders.size(); ++lane)
    if (lane_sizes_[lane] != 0) transmit_lane(now, lane, in);
}

bool UdpPort::refuse(Instant now, net::TxPacket& tx) {
  const std::size_t bytes = tx.packet.size();
  DropReason reason;
  if (bytes > max_payload_)
    reason = DropReason::kTooLarge;
  else if (tx.destination.is_unspecified())
    reason = DropReason::kNoRoute;
  else if (tx.destination.is_v4() != is_v4_)
    reason = DropReason::kWrongFamily;
  else
    return false;
  trace_.drop(now, reason, bytes);
  tx.packet.reset();
  return true;
}

void UdpPort::transmit_lane(Instant now, std::size_t lane, std::span<net::TxPacket> in) {
  const std::size_t count = lane_sizes_[lane];
  const auto packet_at = [&](std::size_t i) -> net::TxPacket& { return in[lanes_[lane][i]]; };
  for (std::size_t i = 0; i < count; ++i) fill_message(i, packet_at(i));
  std::size_t done = 0;
  while (done < count) {
    const int sent = sendmmsg(sockets_.senders[lane].fd(), &tx_messages_[done],
                              static_cast<unsigned>(count - done), MSG_DONTWAIT);
    if (sent > 0) {
      for (const std::size_t end = done + static_cast<std::size_t>(sent); done < end; ++done)
        packet_at(done).packet.reset();
      continue;
    }
    if (is_full(errno)) break;
    if (errno == EINTR) continue;
    // The error belongs to this packet or to an earlier one (an ICMP answer); the others deserve
    // their own try.
    const DropReason reason = errno == EMSGSIZE ? DropReason::kTooLarge : DropReason::kSendFailed;
    trace_.drop(now, reason, packet_at(done).packet.size());
    packet_at(done++).packet.reset();
  }
  for (; done < count; ++done) hold(now, packet_at(done));
}

void UdpPort::fill_message(std::size_t slot, net::TxPacket& tx) {
  tx_vectors_[slot] = iovec{tx.packet.data(), tx.packet.size()};
  tx_names_[slot] = SocketAddress(tx.destination, facts_.udp_port, interface_.index);
  msghdr& message = tx_messages_[slot].msg_hdr;
  message.msg_name = &tx_names_[slot].any;
  message.msg_namelen = tx_names_[slot].length;
  message.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* const c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = is_v4_ ? IPPROTO_IP : IPPROTO_IPV6;
  c->cmsg_type = is_v4_ ? IP_TOS : IPV6_TCLASS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  const int tos = tx.tos.value;
  std::memcpy(CMSG_DATA(c), &tos, sizeof tos);
}

void UdpPort::hold(Instant now, net::TxPacket& tx) {
  UET_CHECK(held_count_ < kBurst);
  held_[held_count_++] = std::move(tx);
  retry_held_at_ = now + kHeldRetry;
}

void UdpPort::flush_held(Instant now) {
  std::array<net::TxPacket, kBurst> again;
  const std::size_t count = std::exchange(held_count_, 0);
  std::move(held_.begin(), held_.begin() + count, again.begin());
  retry_held_at_ = Instant::never();
  transmit(now, {again.data(), count});
}

}  // namespace uet::udp
