#include "lib/net/ip_port.h"

#include <algorithm>

#include "lib/net/checksum.h"
#include "lib/net/full_device.h"
#include "lib/wire/codec.h"

namespace uet::net {

using base::DropReason;

namespace {

/// Each look for news of the resolver costs a system call: this often while it is asked for a neighbor ...
constexpr Duration kAnswerPoll = Duration::from_us(100);
/// ... and otherwise, since a neighbor may move unasked. Until then packets go to its old MAC.
constexpr Duration kNewsPoll = Duration::from_ms(50);

FrameFormat format_of(const IpPortConfig& config, const FrameDeviceFacts& device) {
  return FrameFormat{.mac = device.mac,
                     .address = config.address,
                     .vlan = config.vlan,
                     .udp_encapsulation = !config.native_ip,
                     .udp_port = config.udp_port,
                     .ip_protocol = config.ip_protocol,
                     .ttl = config.ttl};
}

/// True when the first `bits` bits of both addresses agree.
bool same_prefix(const FabricAddress& a, const FabricAddress& b, unsigned bits) {
  const unsigned bytes = bits / 8;
  if (!std::equal(a.bytes().begin(), a.bytes().begin() + bytes, b.bytes().begin())) return false;
  if (bits % 8 == 0) return true;
  const unsigned differ = a.bytes()[bytes] ^ b.bytes()[bytes];
  return differ >> (8 - bits % 8) == 0;
}

/// The kernel's loopback interface carries loopback addresses.
bool is_loopback_interface(std::string_view spec) {
  constexpr std::string_view kName = ",iface=lo";
  const std::size_t at = spec.find(kName);
  if (at == std::string_view::npos) return false;
  const std::string_view behind = spec.substr(at + kName.size());
  return behind.empty() || behind.front() == ',';
}

/// Why no host has this address in its network; empty: one may.
std::string why_no_host(const FabricAddress& address, unsigned prefix_length,
                        std::string_view spec) {
  const std::string text = address.to_string();
  if (address.is_loopback() && !is_loopback_interface(spec))
    return text + " is a loopback address, which no network carries";
  if (!address.is_v4() || prefix_length > 30) return {};  // [RFC 3021] has no such addresses
  const std::uint32_t host_bits = 0xffff'ffffu >> prefix_length;
  const std::string network = " of a network with FI_UET_PREFIX " + std::to_string(prefix_length);
  if ((address.v4() & host_bits) == 0) return text + " is the name" + network;
  if ((address.v4() & host_bits) == host_bits) return text + " is the broadcast address" + network;
  return {};
}

}  // namespace

bool read_ip_config(const PortRequest& request, IpPortConfig& config, std::string& error) {
  const FabricAddress& address = request.address;
  const std::string text = address.to_string();
  const bool is_v4 = address.is_v4();
  const unsigned bits = is_v4 ? 32 : 128;
  if (address.is_unspecified()) {
    error =
        request.spec + ": this port needs an address of its own; set FI_UET_ADDR, e.g. 10.0.0.1";
    return false;
  }
  if (!is_unicast(address)) {
    error = text + " is not a unicast address; set FI_UET_ADDR to one";
    return false;
  }
  if (request.prefix_length > bits) {
    error = "prefix length " + std::to_string(request.prefix_length) + " is longer than the " +
            std::to_string(bits) + " bits of " + text;
    return false;
  }
  if (request.vlan > 4094) {
    error =
        "VLAN " + std::to_string(request.vlan) + " does not exist; use 1 to 4094, or 0 for none";
    return false;
  }
  if (!request.gateway.is_unspecified() && request.gateway.is_v4() != is_v4) {
    error = "gateway " + request.gateway.to_string() + " and address " + text +
            " must both be IPv4 or both be IPv6";
    return false;
  }
  if (request.gateway == address) {
    error = "gateway " + text + " is the address of this endpoint; FI_UET_GATEWAY is its router";
    return false;
  }
  const unsigned usual_length = is_v4 ? 24 : 64;
  config.prefix_length = request.prefix_length != 0 ? request.prefix_length : usual_length;
  if (const std::string why = why_no_host(address, config.prefix_length, request.spec);
      !why.empty()) {
    error = why + "; set FI_UET_ADDR to that of a host";
    return false;
  }
  config.address = address;
  config.gateway = request.gateway;
  config.vlan = request.vlan;
  config.native_ip = request.native_ip;
  config.udp_port = request.udp_port;
  config.ip_protocol = request.ip_protocol;
  config.hash_key = request.hash_key;
  return true;
}

IpPort::IpPort(std::unique_ptr<FrameDevice> device, const IpPortConfig& config, base::Trace& trace)
    : device_(std::move(device)),
      config_(config),
      trace_(trace),
      format_(format_of(config, device_->facts())),
      max_payload_(device_->facts().ip_mtu - ip_header_bytes(format_)),
      neighbors_(config.neighbors, config.hash_key),
      waiting_(config.neighbors.max_waiting),
      looped_room_(config.max_looped) {
  const FrameDeviceFacts& device_facts = device_->facts();
  UET_CHECK(PacketPool::kHeadroom >= header_bytes(format_));
  facts_.name = config.name.empty() ? device_facts.name : config.name;
  facts_.address = config.address;
  facts_.ip_mtu = device_facts.ip_mtu;
  facts_.link_rate = device_facts.link_rate;
  facts_.udp_encapsulation = !config.native_ip;
  facts_.udp_port = config.udp_port;
  facts_.ip_protocol = config.ip_protocol;
  std::copy(device_facts.mac.begin(), device_facts.mac.end(), facts_.mac);
}

IpPort::~IpPort() = default;

// --- Receiving

std::size_t IpPort::receive(Instant now, std::span<RxPacket> out) {
  if (device_->link_generation() != link_generation_) [[unlikely]] {
    link_generation_ = device_->link_generation();
    neighbors_.on_link_change(now);
  }
  if (config_.resolver != nullptr) [[unlikely]]
    poll_resolver(now);
  std::size_t n = take_looped(out);
  if (resolved_.size != 0) send_resolved(now);
  // Frames that are not for us count as well: a flood of them must not keep the caller here.
  for (std::size_t seen = 0, got = 0; n < out.size() && seen < out.size(); seen += got) {
    const std::size_t want = std::min(kBurst, out.size() - n);
    got = device_->receive_frames({received_.data(), want});
    for (std::size_t i = 0; i < got; ++i) n += deliver(now, received_[i], out[n]) ? 1 : 0;
    if (got < want) break;
  }
  return n;
}

std::size_t IpPort::take_looped(std::span<RxPacket> out) {
  std::size_t n = 0;
  while (looped_.size != 0 && n < out.size()) {
    TxPacket tx = looped_room_.pop(looped_);
    out[n++] = RxPacket{std::move(tx.packet), config_.address, config_.address, tx.entropy, tx.tos};
  }
  return n;
}

/// True when `out` holds a UET packet now; everything else ends here.
bool IpPort::deliver(Instant now, Packet& frame, RxPacket& out) {
  ParsedFrame parsed;
  if (const auto refused = parse_frame(format_, frame.bytes(), parsed)) {
    trace_.drop(now, *refused, frame.size());
    frame.reset();
    return false;
  }
  // Padding goes first: trim_back counts from the end of the frame.
  frame.trim_back(frame.size() - parsed.offset - parsed.length);
  frame.trim_front(parsed.offset);
  if (parsed.kind == FrameKind::kUet) [[likely]] {
    out.packet = std::move(frame);
    out.source = parsed.source;
    out.destination = parsed.destination;
    out.entropy = parsed.entropy;
    out.entropy_reserved = parsed.entropy_reserved;
    out.tos = parsed.tos;
    return true;
  }
  if (parsed.kind == FrameKind::kArp)
    on_arp(now, parsed, std::move(frame));
  else
    on_icmp(now, parsed, std::move(frame));
  return false;
}

void IpPort::on_arp(Instant now, const ParsedFrame& parsed, Packet frame) {
  const auto arp = parse_arp(frame.bytes());
  if (!arp) return trace_.drop(now, arp.error(), frame.size());
  const FabricAddress sender = FabricAddress::from_v4(arp->sender_ip);
  const FabricAddress target = FabricAddress::from_v4(arp->target_ip);
  if (sender == config_.address)
    return trace_.drop(
        now, arp->sender_mac == format_.mac ? DropReason::kNotForUs : DropReason::kAddressConflict,
        frame.size());
  const bool asks_us = arp->operation == ArpMessage::kRequest && target == config_.address;
  const bool answers_us =
      arp->operation == ArpMessage::kReply && target == config_.address && !parsed.to_group;
  const Claim claim = asks_us ? Claim::kQuestion : answers_us ? Claim::kAnswer : Claim::kNews;
  const bool is_new = on_claim(now, sender, arp->sender_mac, claim);
  if (asks_us && config_.answers) {
    if (!send_arp(ArpMessage::kReply, parsed.source_mac, sender))
      trace_.drop(now, DropReason::kTransmitFull, frame.size());
  } else if (!is_new) {
    trace_.drop(now, DropReason::kNotForUs, frame.size());
  }
}

void IpPort::on_icmp(Instant now, const ParsedFrame& parsed, Packet frame) {
  const bool is_v4 = config_.address.is_v4();
  const auto header = wire::parse<IcmpHeader>(frame.bytes());
  if (!header) return trace_.drop(now, header.error(), frame.size());
  const std::uint16_t checksum =
      is_v4 ? checksum_fold(checksum_add(frame.bytes()))
            : icmp6_checksum(parsed.source, parsed.destination, frame.bytes());
  if (checksum != 0) return trace_.drop(now, DropReason::kBadLinkMessage, frame.size());
  if (header->type == (is_v4 ? IcmpHeader::kEchoRequestV4 : IcmpHeader::kEchoRequestV6))
    return on_echo(now, parsed, std::move(frame));
  if (!is_v4 && (header->type == IcmpHeader::kNeighborSolicitation ||
                 header->type == IcmpHeader::kNeighborAdvertisement))
    return on_neighbor_message(now, parsed, std::move(frame));
  trace_.drop(now, DropReason::kIcmpIgnored, frame.size());
}

void IpPort::on_echo(Instant now, const ParsedFrame& parsed, Packet frame) {
  const std::size_t bytes = frame.size();
  // Never answer a group, or a host without an address: such requests only serve to multiply
  // traffic.
  const bool is_personal =
      !parsed.to_group && parsed.destination == config_.address && !parsed.source.is_unspecified();
  if (!config_.answers || !is_personal) return trace_.drop(now, DropReason::kIcmpIgnored, bytes);
  const bool is_v4 = config_.address.is_v4();
  make_echo_reply(frame.bytes(), is_v4);
  prepend_ip(format_, parsed.source, is_v4 ? wire::IpProtocol::kIcmp : wire::IpProtocol::kIcmpV6,
             config_.ttl, parsed.tos, frame);
  prepend_ethernet(format_, parsed.source_mac,
                   is_v4 ? wire::EtherType::kIpv4 : wire::EtherType::kIpv6, frame);
  if (!send_frame(std::move(frame))) trace_.drop(now, DropReason::kTransmitFull, bytes);
}

void IpPort::on_neighbor_message(Instant now, const ParsedFrame& parsed, Packet frame) {
  const std::size_t bytes = frame.size();
  // Hop limit 255 proves that no router passed it on. [RFC 4861 7.1]
  const auto message = parse_neighbor_message(frame.bytes());
  if (!message) return trace_.drop(now, message.error(), bytes);
  if (parsed.hop_limit != 255) return trace_.drop(now, DropReason::kBadLinkMessage, bytes);
  const bool is_ours = message->target == config_.address;
  if (message->is_advertisement) {
    if (is_ours) return trace_.drop(now, DropReason::kAddressConflict, bytes);
    Neighbor* const known = neighbors_.find(message->target);
    const bool has_mac = known != nullptr && known->has_mac();
    // It may be an anycast address, or a proxy that answers. [RFC 4861 7.2.5]
    if (has_mac && message->mac && !message->overrides && *message->mac != known->mac)
      return neighbors_.on_doubt(now, *known);
    // Asked by unicast, a host may leave its MAC out: it is the one that it was asked at. [RFC 4861 7.2.4]
    const bool confirms = has_mac && !message->mac && message->is_solicited;
    const auto mac = confirms ? std::optional(known->mac) : message->mac;
    const Claim claim = message->is_solicited && !parsed.to_group ? Claim::kAnswer : Claim::kNews;
    if (!mac || !on_claim(now, message->target, *mac, claim))
      trace_.drop(now, DropReason::kIcmpIgnored, bytes);
    return;
  }
  if (!is_ours) return trace_.drop(now, DropReason::kNotForUs, bytes);
  const bool is_anonymous = parsed.source.is_unspecified();
  if (message->mac && !is_anonymous) on_claim(now, parsed.source, *message->mac, Claim::kQuestion);
  if (!config_.answers) return;
  // A host without an address wants to know whether ours is free: all nodes get the answer.
  constexpr std::array<std::uint8_t, 16> kAllNodes{0xff, 0x02, 0, 0, 0, 0, 0, 0,
                                                   0,    0,    0, 0, 0, 0, 0, 1};
  const FabricAddress to = is_anonymous ? FabricAddress::from_v6(kAllNodes) : parsed.source;
  const MacAddress to_mac = is_anonymous ? multicast_mac(to) : parsed.source_mac;
  const NeighborMessage answer{.is_advertisement = true,
                               .is_solicited = !is_anonymous,
                               .overrides = true,
                               .target = config_.address,
                               .mac = format_.mac};
  if (!send_neighbor_message(answer, to_mac, to))
    trace_.drop(now, DropReason::kTransmitFull, bytes);
}

// --- Sending

std::size_t IpPort::send(Instant now, std::span<TxPacket> in) {
  if (resolved_.size != 0) send_resolved(now);
  if (resolved_.size != 0) return 0;  // the device is full
  std::size_t i = 0;
  while (i < in.size()) {
    const std::size_t first = i;
    while (i < in.size() && staged_count_ < kBurst && stage(now, in[i])) ++i;
    const std::size_t count = i - first;
    const std::size_t sent = flush_staged(in.subspan(first, count));
    if (sent < count) return first + sent;
    // What is not staged must come after everything in front of it has left: the caller counts from
    // the front.
    if (count < kBurst && i < in.size()) {
      if (!take_slow(now, in[i])) return i;
      ++i;
    }
  }
  return i;
}

/// Builds the frame of a packet whose next hop is known. False: it needs take_slow().
bool IpPort::stage(Instant now, TxPacket& tx) {
  Neighbor* neighbor = neighbor_for(tx.destination);
  if (neighbor == nullptr || !neighbor->has_mac() || tx.packet.size() > max_payload_) return false;
  neighbors_.on_use(now, *neighbor);
  build_frame(format_, neighbor->mac, tx.destination, tx.tos, tx.entropy, tx.packet);
  staged_[staged_count_++] = std::move(tx.packet);
  return true;
}

/// Gives the staged frames, which came from `in`, to the device. What it does not take becomes a
/// packet of `in` again.
std::size_t IpPort::flush_staged(std::span<TxPacket> in) {
  if (staged_count_ == 0) return 0;
  const std::size_t sent = device_->send_frames({staged_.data(), staged_count_});
  for (std::size_t i = sent; i < staged_count_; ++i) {
    staged_[i].trim_front(header_bytes(format_));
    in[i].packet = std::move(staged_[i]);
  }
  staged_count_ = 0;
  return sent;
}

bool IpPort::take_slow(Instant now, TxPacket& tx) {
  if (tx.packet.size() > max_payload_) {
    drop(now, tx, DropReason::kTooLarge);
    return true;
  }
  if (tx.destination == config_.address) return loop_back(tx);
  const auto next_hop = next_hop_of(tx.destination);
  if (!next_hop) {
    drop(now, tx, next_hop.error());
    return true;
  }
  if (neighbors_.find(*next_hop) == nullptr)
    if (Neighbor* oldest = neighbors_.in_the_way())
      drop_waiting(now, *oldest, DropReason::kNeighborTableFull);
  Neighbor* neighbor = neighbors_.find_or_start(now, *next_hop);
  if (neighbor == nullptr) {
    drop(now, tx, DropReason::kNeighborTableFull);
    return true;
  }
  return take_unresolved(now, *neighbor, tx);
}

bool IpPort::take_unresolved(Instant now, Neighbor& neighbor, TxPacket& tx) {
  if (neighbor.state == NeighborState::kUnreachable) {
    drop(now, tx, DropReason::kNoNeighbor);
    return true;
  }
  if (neighbor.deadline <= now) run_due(now);
  if (neighbor.has_mac()) return false;  // the resolver knew it: the next send() finds it
  // Not one question left the device: a link without a peer. Let the caller keep its packets.
  if (neighbor.state == NeighborState::kResolving && neighbor.attempts == 0) return false;
  if (neighbor.state == NeighborState::kUnreachable) return take_unresolved(now, neighbor, tx);
  if (neighbor.waiting.size >= config_.neighbors.max_waiting_each ||
      !waiting_.push(neighbor.waiting, tx))
    drop(now, tx, DropReason::kNeighborQueueFull);
  return true;
}

bool IpPort::loop_back(TxPacket& tx) {
  return looped_room_.push(looped_, tx);
}

/// The neighbor that packets for `destination` go to, when there is one.
Neighbor* IpPort::neighbor_for(const FabricAddress& destination) {
  Route& route = routes_[destination.hash() % kRouteCacheSize];
  if (route.neighbor != nullptr && route.generation == neighbors_.generation() &&
      route.destination == destination) [[likely]]
    return route.neighbor;
  if (destination == config_.address) return nullptr;
  const auto next_hop = next_hop_of(destination);
  if (!next_hop) return nullptr;
  Neighbor* neighbor = neighbors_.find(*next_hop);
  if (neighbor != nullptr) route = Route{destination, neighbor, neighbors_.generation()};
  return neighbor;
}

base::Result<FabricAddress, DropReason> IpPort::next_hop_of(
    const FabricAddress& destination) const {
  if (destination.is_unspecified() || is_multicast(destination)) return DropReason::kNoRoute;
  if (destination.is_v4() != config_.address.is_v4()) return DropReason::kWrongFamily;
  const FabricAddress host = destination.host();
  if (is_on_link(host)) return host;
  if (config_.gateway.is_unspecified()) return DropReason::kNoRoute;
  return config_.gateway;
}

bool IpPort::is_on_link(const FabricAddress& address) const {
  // IPv4 sits in the last four bytes, behind 96 bits that all of them share.
  const unsigned bits = config_.prefix_length + (config_.address.is_v4() ? 96 : 0);
  if (address.is_v4() != config_.address.is_v4()) return false;
  if (same_prefix(address, config_.address, bits)) return true;
  return address.is_link_local();
}

void IpPort::drop(Instant now, TxPacket& tx, DropReason reason) {
  if (reason == DropReason::kNoNeighbor || reason == DropReason::kNoRoute)
    send_failure_ = {.at = now, .destination = tx.destination, .reason = reason};
  trace_.drop(now, reason, tx.packet.size());
  tx.packet.reset();
}

void IpPort::drop_waiting(Instant now, Neighbor& neighbor, DropReason reason) {
  while (neighbor.waiting.size != 0) {
    TxPacket tx = waiting_.pop(neighbor.waiting);
    drop(now, tx, reason);
  }
}

// --- Address resolution

Instant IpPort::next_deadline() const {
  return std::min(neighbors_.next_deadline(), retry_resolved_at_);
}

void IpPort::on_deadline(Instant now) {
  if (config_.resolver != nullptr) poll_resolver(now);
  run_due(now);
  if (resolved_.size != 0) send_resolved(now);
}

/// True when it told us something: the neighbor is known now.
bool IpPort::on_claim(Instant now, const FabricAddress& who, const MacAddress& mac, Claim claim) {
  // The gateway may be outside of the prefix (a point-to-point or /32 set-up).
  if (who == config_.address || !(is_on_link(who) || who == config_.gateway)) return false;
  Neighbor* neighbor = neighbors_.on_claim(now, who, mac, claim);
  if (neighbor == nullptr) return false;
  while (neighbor->waiting.size != 0) {
    TxPacket tx = waiting_.pop(neighbor->waiting);
    UET_CHECK(waiting_.push(resolved_, tx));
  }
  if (resolved_.size != 0) send_resolved(now);
  return true;
}

void IpPort::run_due(Instant now) {
  for (;;) {
    const auto [step, neighbor] = neighbors_.next_due(now);
    switch (step) {
      case NeighborTable::Step::kNone:
        return;
      case NeighborTable::Step::kSolicit:
        if (config_.resolver != nullptr)
          ask_resolver(now, *neighbor);
        else if (!solicit(*neighbor))
          neighbors_.on_solicit_refused(now, *neighbor);
        break;
      case NeighborTable::Step::kGiveUp:
        drop_waiting(now, *neighbor, DropReason::kNoNeighbor);
        break;
    }
  }
}

void IpPort::ask_resolver(Instant now, const Neighbor& neighbor) {
  MacAddress mac;
  if (config_.resolver->ask(neighbor.address, mac))
    on_claim(now, neighbor.address, mac, Claim::kAnswer);
}

void IpPort::poll_resolver(Instant now) {
  const Duration pause = neighbors_.next_deadline().is_never() ? kNewsPoll : kAnswerPoll;
  if (now - resolver_polled_at_ < pause) return;
  resolver_polled_at_ = now;
  FabricAddress who;
  MacAddress mac;
  for (;;) {
    switch (config_.resolver->poll(who, mac)) {
      case NeighborResolver::News::kNone:
        return;
      case NeighborResolver::News::kFound:
        on_news(now, who, mac);
        break;
      case NeighborResolver::News::kLost:
        neighbors_.on_link_change(now);
        break;
    }
  }
}

/// A neighbor that is where it was is asked again no later for that: the resolver tells as well that it believes what it knows no longer. It
/// tells of a MAC before that is confirmed, too, so what was not asked for is a claim like any other.
void IpPort::on_news(Instant now, const FabricAddress& who, const MacAddress& mac) {
  const Neighbor* const known = neighbors_.find(who);
  const bool is_old =
      known != nullptr && known->state == NeighborState::kReachable && known->mac == mac;
  if (!is_old) on_claim(now, who, mac, Claim::kAnswer);
}

/// False when the device took nothing.
bool IpPort::solicit(const Neighbor& neighbor) {
  constexpr MacAddress kBroadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  if (config_.address.is_v4())
    return send_arp(ArpMessage::kRequest, neighbor.has_mac() ? neighbor.mac : kBroadcast,
                    neighbor.address);
  const NeighborMessage question{.target = neighbor.address, .mac = format_.mac};
  if (neighbor.has_mac()) return send_neighbor_message(question, neighbor.mac, neighbor.address);
  const FabricAddress group = solicited_node_address(neighbor.address);
  return send_neighbor_message(question, multicast_mac(group), group);
}

bool IpPort::send_arp(std::uint16_t operation, const MacAddress& to, const FabricAddress& target) {
  Packet packet = pool().allocate();
  if (!packet) return false;
  const ArpMessage arp{.operation = operation,
                       .sender_mac = format_.mac,
                       .sender_ip = config_.address.v4(),
                       .target_mac = operation == ArpMessage::kReply ? to : MacAddress{},
                       .target_ip = target.v4()};
  wire::emit(arp, packet.append(ArpMessage::kSize));
  prepend_ethernet(format_, to, wire::EtherType::kArp, packet);
  return send_frame(std::move(packet));
}

bool IpPort::send_neighbor_message(const NeighborMessage& message, const MacAddress& to,
                                   const FabricAddress& destination) {
  Packet packet = pool().allocate();
  if (!packet) return false;
  emit_neighbor_message(message, config_.address, destination,
                        packet.append(kNeighborMessageBytes));
  prepend_ip(format_, destination, wire::IpProtocol::kIcmpV6, 255, TosByte{}, packet);
  prepend_ethernet(format_, to, wire::EtherType::kIpv6, packet);
  return send_frame(std::move(packet));
}

bool IpPort::send_frame(Packet frame) {
  return device_->send_frames({&frame, 1}) == 1;
}

/// Packets whose next hop answered leave in the order in which they came.
void IpPort::send_resolved(Instant now) {
  retry_resolved_at_ = Instant::never();
  while (resolved_.size != 0) {
    TxPacket& tx = waiting_.front(resolved_);
    const bool is_staged = stage(now, tx);
    if (is_staged && flush_staged({&tx, 1}) == 0) {
      retry_resolved_at_ = now + kFullDeviceRetry;
      return;
    }
    TxPacket gone = waiting_.pop(resolved_);
    if (!is_staged) wait_again(now, gone);
  }
}

/// The link came back while the device was full, so the neighbor is asked anew: its packets wait for that answer, too.
void IpPort::wait_again(Instant now, TxPacket& tx) {
  Neighbor* const neighbor = neighbor_for(tx.destination);
  const bool is_asked = neighbor != nullptr && neighbor->state == NeighborState::kResolving;
  if (!is_asked || neighbor->waiting.size >= config_.neighbors.max_waiting_each ||
      !waiting_.push(neighbor->waiting, tx))
    drop(now, tx, DropReason::kNoNeighbor);
}

}  // namespace uet::net
