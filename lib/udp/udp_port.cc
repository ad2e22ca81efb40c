#include "lib/udp/udp_port.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lib/base/cancellation.h"
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
/// How often a port whose interface is gone looks for another one of that name.
constexpr base::Duration kFollowInterval = base::Duration::from_ms(100);
/// How often a single port looks whether its interface is there.
constexpr base::Duration kLookInterval = base::Duration::from_seconds(1);

bool is_full(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

/// The kernel took no run, but may take its packets: they are larger than the way carries and must be fragmented, or the route does
/// something to packets that needs them one by one (IPsec).
bool is_no_run(int error) {
  return error == EMSGSIZE || error == EINVAL || error == EIO;
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
      look_at_(is_of_interface() && !is_tied() ? Instant() : Instant::never()),
      is_v4_(facts.address.is_v4()),
      trace_(trace),
      pool_(packets, kPacketBytes),
      max_payload_(max_payload_for(facts)),
      may_merge_(sockets_.can_merge),
      watch_(is_v4_, is_tied() ? interface_.index : 0, interface_.index),
      to_send_(is_v4_, facts.udp_port, interface_.index),
      received_(pool_, sockets_.can_merge, has_small_buffer(), trace) {
  const std::size_t senders = sockets_.senders.size();
  UET_CHECK(senders >= 1 && senders <= kMaxSockets);
  for (std::size_t e = 0; e < sender_of_.size(); ++e)
    sender_of_[e] = static_cast<std::uint8_t>(e % senders);
  // A source port that we own is its own entropy value, which makes wire_entropy() idempotent.
  for (std::size_t i = 0; i < senders; ++i)
    sender_of_[sockets_.sender_ports[i]] = static_cast<std::uint8_t>(i);
  pool_.let_borrow();
}

/// By index, which stays when the interface gets another name. The sockets of a plane, and those with a link-local address, stay with it.
std::uint8_t UdpPort::planes_up(Instant now) {
  const base::WithoutCancellation without_cancellation;
  std::string name = interface_.name;
  if (interface_.index != 0) name = interface_name(sockets_.receiver.fd(), interface_.index);
  if (!name.empty())
    interface_.name = name;
  else if (is_of_interface() && !follow_interface(now))
    return 0;
  if (is_tied()) sockets_.config.device = interface_.name;  // by which a sender is opened again
  return interface_is_running(sockets_.receiver.fd(), interface_.name) ? 1 : 0;
}

/// The interface is gone. True when there is another one of its name, as after a reload of its driver, and the port uses that from here on.
bool UdpPort::follow_interface(Instant now) {
  if (now < follow_at_) return false;
  follow_at_ = now + kFollowInterval;
  const unsigned index = interface_index(interface_.name);
  if (index == 0) return false;
  const int receiver = sockets_.receiver.fd();
  const char* const name = interface_.name.c_str();
  if (!tie_again(sockets_, interface_.name, index)) {
    if (std::exchange(follow_error_, errno) != errno)
      std::fprintf(stderr, "uet: interface %s was made anew, and port %s cannot use it yet: %s\n",
                   name, facts_.name.c_str(), std::strerror(follow_error_));
    return false;
  }
  follow_error_ = 0;
  interface_.index = index;
  if (sockets_.receiver.fd() != receiver) {
    is_reopened_ = true;
    received_.on_new_socket(has_small_buffer());
  }
  to_send_.set_scope(index);
  watch_ = NeighborWatch(is_v4_, is_tied() ? index : 0, index);
  std::fprintf(stderr, "uet: interface %s was made anew; port %s goes on with it\n", name,
               facts_.name.c_str());
  return true;
}

net::Way UdpPort::way_to(Instant now, const net::FabricAddress& destination) {
  const base::WithoutCancellation without_cancellation;
  net::Way way{.ip_mtu = facts_.ip_mtu};
  if (destination.is_unspecified() || destination.is_v4() != is_v4_) return way;
  const SocketAddress to(destination, destination.udp_port_or(facts_.udp_port), interface_.index);
  if (const std::size_t known = route_mtu(sockets_.prober.fd(), to); known != 0)
    way.ip_mtu = std::min(known, largest_ip_packet(facts_));
  way.stays_on_host = own_addresses_.has(now, to);
  return way;
}

// --- Receiving

std::size_t UdpPort::receive(Instant now, std::span<net::RxPacket> out) {
  if (held_count_ != 0) flush_held(now);
  std::size_t n = 0;
  // Datagrams that are too large count as well: a flood of them must not keep the caller here.
  bool may_have_more = true;
  for (std::size_t seen = 0; n < out.size() && seen < out.size();) {
    if (received_.is_empty()) {
      if (!may_have_more) break;
      may_have_more = received_.receive(now, sockets_.receiver.fd(), out.size() - n);
      if (received_.is_empty()) break;
    }
    ++seen;
    if (!received_.next(now, out[n])) continue;
    // A forged IPv6 source can have the form of an IPv4 address here.
    if (out[n].source.is_v4() != is_v4_) [[unlikely]] {
      trace_.drop(now, DropReason::kBadIpHeader, out[n].packet.size());
      out[n].packet.reset();
      continue;
    }
    out[n++].destination = facts_.address;
  }
  return n;
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
  sizes_by_sender_.fill(0);
  const bool is_careful = watch_.is_careful();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (refuse(now, in[i])) continue;
    if (is_careful && keep_from_kernel(now, in[i])) [[unlikely]]
      continue;
    const std::uint8_t sender = sender_of_[in[i].entropy];
    by_sender_[sender][sizes_by_sender_[sender]++] = static_cast<std::uint8_t>(i);
  }
  for (std::size_t sender = 0; sender < sockets_.senders.size(); ++sender)
    if (sizes_by_sender_[sender] != 0) transmit_by(now, sender, in);
}

bool UdpPort::refuse(Instant now, net::TxPacket& tx) {
  const std::size_t bytes = tx.packet.full_size();
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

/// True for a packet that would stay in the kernel: it is dropped.
bool UdpPort::keep_from_kernel(Instant now, net::TxPacket& tx) {
  if (!watch_.keeps(now, tx.destination.host())) return false;
  send_failure_ = {.at = now, .destination = tx.destination, .reason = DropReason::kNoNeighbor};
  trace_.drop(now, DropReason::kNoNeighbor, tx.packet.full_size());
  tx.packet.reset();
  return true;
}

void UdpPort::transmit_by(Instant now, std::size_t sender, std::span<net::TxPacket> in) {
  const std::size_t count = sizes_by_sender_[sender];
  const auto packet_at = [&](std::size_t i) -> net::TxPacket& { return in[by_sender_[sender][i]]; };
  const auto release = [&](std::size_t& done, std::size_t n) {
    for (const std::size_t end = done + n; done < end; ++done) packet_at(done).packet.reset();
  };
  const base::WithoutCancellation without_cancellation;
  std::size_t done = 0;
  std::size_t loose_until = may_merge_ ? 0 : count;  // packets before it have messages of their own
  while (done < count) {
    to_send_.clear();
    for (std::size_t i = done; i < count; ++i) to_send_.add(packet_at(i), i > loose_until);
    std::size_t message = 0;
    while (message < to_send_.messages()) {
      const int sent = sendmmsg(sockets_.senders[sender].fd(), to_send_.at(message),
                                static_cast<unsigned>(to_send_.messages() - message), MSG_DONTWAIT);
      if (sent > 0) {
        for (int i = 0; i < sent; ++i) release(done, to_send_.packets_of(message++));
        continue;
      }
      if (errno == EINTR) continue;
      if (is_full(errno)) {
        for (; done < count; ++done) hold(now, packet_at(done));
        return;
      }
      if (to_send_.packets_of(message) > 1 && is_no_run(errno)) {
        if (errno == EIO) stop_merging();
        loose_until = done + to_send_.packets_of(message);
        break;
      }
      if (errno == EMSGSIZE && !sockets_.may_fragment) {
        // Cut before a router told what it carries, and cannot be cut anew. [decision 125]
        let_fragment(sockets_);
        continue;
      }
      // The error belongs to this packet or to an earlier one (an ICMP answer); the others deserve
      // their own try.
      const DropReason reason = errno == EMSGSIZE ? DropReason::kTooLarge : DropReason::kSendFailed;
      if (reason == DropReason::kSendFailed)
        send_failure_ = {.at = now,
                         .destination = packet_at(done).destination,
                         .reason = reason,
                         .error = errno};
      for (std::size_t i = 0; i < to_send_.packets_of(message); ++i)
        trace_.drop(now, reason, packet_at(done + i).packet.full_size());
      release(done, to_send_.packets_of(message++));
    }
  }
}

/// The routes of this host want single packets, so asking again each time is of no use.
void UdpPort::stop_merging() {
  may_merge_ = false;
  std::fprintf(stderr,
               "uet: the kernel refuses runs of packets here, port %s sends them one by one\n",
               facts_.name.c_str());
}

void UdpPort::hold(Instant now, net::TxPacket& tx) {
  UET_CHECK(held_count_ < kBurst);
  watch_.on_held(now);
  tx.packet.keep_borrowed();
  held_[held_count_++] = std::move(tx);
  retry_held_at_ = now + kHeldRetry;
}

void UdpPort::on_deadline(Instant now) {
  if (held_count_ != 0) flush_held(now);
  if (now < look_at_) return;
  look_at_ = now + kLookInterval;
  planes_up(now);
}

void UdpPort::flush_held(Instant now) {
  if (watch_.is_due(now)) [[unlikely]]
    watch_.look(now, sockets_);
  std::array<net::TxPacket, kBurst> again;
  const std::size_t count = std::exchange(held_count_, 0);
  std::move(held_.begin(), held_.begin() + count, again.begin());
  retry_held_at_ = Instant::never();
  transmit(now, {again.data(), count});
  if (held_count_ == 0) watch_.on_released();
}

}  // namespace uet::udp
