#include "lib/net/capture_port.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "lib/net/checksum.h"
#include "lib/wire/headers.h"

namespace uet::net {
namespace {

using wire::PdsType;

constexpr base::Duration kAskInterval = base::Duration::from_seconds(1);

/// Frames need link addresses. Ours is known on some ports; others are derived from the IP address, locally administered.
std::array<std::uint8_t, 6> mac_for(const FabricAddress& address) {
  const auto& b = address.bytes();
  return {0x02, 0x00, b[12], b[13], b[14], b[15]};
}

template <typename H>
void append(std::vector<std::uint8_t>& out, const H& header) {
  const std::size_t at = out.size();
  out.resize(at + H::kSize);
  wire::emit(header, out.data() + at);
}

void append_ipv4(std::vector<std::uint8_t>& out, const FabricAddress& from, const FabricAddress& to,
                 TosByte tos, wire::IpProtocol protocol, std::size_t behind) {
  wire::Ipv4Header ip{.dscp = tos.dscp(),
                      .ecn = tos.ecn(),
                      .total_length = static_cast<std::uint16_t>(wire::Ipv4Header::kSize + behind),
                      .protocol = protocol};
  std::copy_n(from.bytes().begin() + 12, 4, ip.src.begin());
  std::copy_n(to.bytes().begin() + 12, 4, ip.dst.begin());
  const std::size_t at = out.size();
  append(out, ip);
  ip.checksum =
      checksum_fold(checksum_add(std::span(out).subspan(at)));  // its own field is still 0
  wire::emit(ip, out.data() + at);
}

void append_ipv6(std::vector<std::uint8_t>& out, const FabricAddress& from, const FabricAddress& to,
                 TosByte tos, wire::IpProtocol protocol, std::size_t behind) {
  append(out, wire::Ipv6Header{.dscp = tos.dscp(),
                               .ecn = tos.ecn(),
                               .payload_length = static_cast<std::uint16_t>(behind),
                               .next_header = protocol,
                               .src = from.bytes(),
                               .dst = to.bytes()});
}

/// " pdc 12>34" from the packet itself; empty when it names none or is sealed.
std::string pdc_text(std::span<const std::uint8_t> uet) {
  if (uet.size() < wire::PdsRequest::kSize) return {};
  const auto request = wire::decode<wire::PdsRequest>(uet.data());
  switch (request.type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
    case PdsType::kControl:
      return " pdc " + std::to_string(request.spdcid) + '>' +
             (request.syn ? "new" : std::to_string(request.dpdcid));
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx:
    case PdsType::kNack:
    case PdsType::kNackCcx:
      return " pdc " + std::to_string(request.spdcid) + '>' + std::to_string(request.dpdcid);
    default:
      return {};
  }
}

}  // namespace

CapturePort::CapturePort(std::unique_ptr<Port> inner, std::unique_ptr<CaptureFile> file,
                         UnixNsAtZero unix_ns_at_zero, base::Trace& trace)
    : PortWrapper(std::move(inner)),
      file_(std::move(file)),
      ask_unix_ns_at_zero_(std::move(unix_ns_at_zero)),
      unix_ns_at_zero_(ask_unix_ns_at_zero_()),
      trace_(trace) {
  trace_.add_sink(*this);
  impairment_ = dynamic_cast<ImpairPort*>(&this->inner());
  if (impairment_ != nullptr) impairment_->set_tap(this);
}

void CapturePort::abandon_in_child() {
  file_->abandon_in_child();
  PortWrapper::abandon_in_child();
}

CapturePort::~CapturePort() {
  trace_.remove_sink(*this);
  if (impairment_ != nullptr) impairment_->set_tap(nullptr);
  try {
    write_received();
  } catch (const std::exception&) {
    // Out of memory: the last packets are missing.
  }
}

void CapturePort::hold(Held& held, base::Instant now, const FabricAddress& from,
                       const FabricAddress& to, EntropyField entropy, TosByte tos, bool is_outbound,
                       std::span<const std::uint8_t> uet) const {
  held.at = now;
  held.uet_bytes = uet.size();
  held.pdc = 0;
  held.drop.reset();
  const PortFacts& own = facts();
  std::array<std::uint8_t, 6> own_mac;
  std::copy_n(own.mac, 6, own_mac.begin());
  std::vector<std::uint8_t>& out = held.frame;
  out.clear();
  append(out, wire::EthernetHeader{
                  .dst = is_outbound ? mac_for(to) : own_mac,
                  .src = is_outbound ? own_mac : mac_for(from),
                  .type = from.is_v4() ? wire::EtherType::kIpv4 : wire::EtherType::kIpv6});
  const std::size_t encapsulation =
      own.udp_encapsulation ? wire::UdpHeader::kSize : wire::EntropyHeader::kSize;
  const auto protocol =
      own.udp_encapsulation ? wire::IpProtocol::kUdp : wire::IpProtocol{own.ip_protocol};
  const std::size_t behind = encapsulation + uet.size();
  if (from.is_v4())
    append_ipv4(out, from, to, tos, protocol, behind);
  else
    append_ipv6(out, from, to, tos, protocol, behind);
  if (own.udp_encapsulation)
    append(out, wire::UdpHeader{.src_port = entropy.value,
                                .dst_port = to.udp_port_or(own.udp_port),
                                .length = static_cast<std::uint16_t>(behind)});
  else {
    append(out, wire::EntropyHeader{.entropy = entropy.value});
    base::store_be(out.data() + out.size() - sizeof entropy.reserved, entropy.reserved);
  }
  out.insert(out.end(), uet.begin(), uet.end());
}

void CapturePort::write(const Held& held, wire::PacketDirection direction) {
  const bool is_v4 = held.frame[wire::EthernetHeader::kSize] >> 4 == 4;
  const std::size_t in_front =
      wire::EthernetHeader::kSize + (is_v4 ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize) +
      (facts().udp_encapsulation ? wire::UdpHeader::kSize : wire::EntropyHeader::kSize);
  std::string comment = direction == wire::PacketDirection::kInbound ? "in" : "out";
  comment += pdc_text(std::span(held.frame).subspan(in_front));
  if (held.pdc != 0) comment += " local pdc " + std::to_string(held.pdc);
  if (held.drop) comment += " drop " + std::string(name_of(*held.drop));
  if (held.at >= ask_at_ || file_->may_rotate_for(held.frame.size() + comment.size())) {
    unix_ns_at_zero_ = ask_unix_ns_at_zero_();
    ask_at_ = held.at + kAskInterval;
  }
  file_->write({.time_ns = static_cast<std::uint64_t>(unix_ns_at_zero_ + held.at.ns()),
                .data = held.frame,
                .direction = direction,
                .comment = comment});
}

void CapturePort::write_received() {
  for (std::size_t i = 0; i < received_count_; ++i)
    write(received_[i], wire::PacketDirection::kInbound);
  received_count_ = 0;
  next_to_process_ = 0;
}

std::size_t CapturePort::receive(base::Instant now, std::span<RxPacket> out) {
  write_received();
  const std::size_t n = inner().receive(now, out);
  if (received_.size() < n) received_.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    hold(received_[i], now, out[i].source, out[i].destination,
         {out[i].entropy, out[i].entropy_reserved}, out[i].tos, false, out[i].packet.bytes());
  received_count_ = n;
  if (n == 0) file_->flush();  // idle: let others read what we have
  return n;
}

std::size_t CapturePort::send(base::Instant now, std::span<TxPacket> in) {
  write_received();
  // A packet that was sent is gone: copies are taken first.
  if (sending_.size() < in.size()) sending_.resize(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i].packet.keep_borrowed();
    hold(sending_[i], now, facts().address, in[i].destination,
         {plane_wire_entropy(in[i].entropy, in[i].plane)}, in[i].tos, true, in[i].packet.bytes());
  }
  offered_ = in;
  const std::size_t n = inner().send(now, in);
  offered_ = {};
  for (std::size_t i = 0; i < n; ++i) write(sending_[i], wire::PacketDirection::kOutbound);
  return n;
}

void CapturePort::on_lost(base::Instant now, const RxPacket& packet) {
  hold(lost_, now, packet.source, packet.destination, {packet.entropy, packet.entropy_reserved},
       packet.tos, false, packet.packet.bytes());
  lost_.drop = base::DropReason::kImpaired;
  write(lost_, wire::PacketDirection::kInbound);
}

void CapturePort::on_lost(base::Instant, const TxPacket& packet) {
  const auto index = static_cast<std::size_t>(&packet - offered_.data());
  if (index < offered_.size()) sending_[index].drop = base::DropReason::kImpaired;
}

bool CapturePort::arm_wakeup() {
  write_received();
  file_->flush();
  return inner().arm_wakeup();
}

void CapturePort::on_event(const base::Event& event) {
  if (event.id == base::EventId::kPacketReceived) {
    ++next_to_process_;
    return;
  }
  if (next_to_process_ == 0 || next_to_process_ > received_count_) return;
  Held& current = received_[next_to_process_ - 1];
  // Timers and senders drop things too; the length tells those apart from the packet at hand.
  if (event.id != base::EventId::kPacketDropped) return;
  if (event.b != 0 && event.b != current.uet_bytes) return;
  current.drop = static_cast<base::DropReason>(event.a);
  current.pdc = event.pdc;
}

}  // namespace uet::net
