#include "lib/udp/send_batch.h"

#include <cstring>

namespace uet::udp {

SendBatch::SendBatch(bool is_v4, std::uint16_t udp_port, unsigned scope)
    : is_v4_(is_v4), udp_port_(udp_port), scope_(scope) {
  for (std::size_t i = 0; i < kPackets; ++i) {
    headers_[i] = mmsghdr{};
    headers_[i].msg_hdr.msg_name = &names_[i].any;
    headers_[i].msg_hdr.msg_control = control_[i].bytes.data();
  }
}

void SendBatch::add(const net::TxPacket& tx, bool may_merge) {
  UET_DCHECK(packets_ < kPackets);
  const std::size_t bytes = tx.packet.full_size();
  if (messages_ == 0 || !may_merge || !fits(runs_[messages_ - 1], tx, bytes)) begin(tx, bytes);
  Run& run = runs_[messages_ - 1];
  msghdr& header = headers_[messages_ - 1].msg_hdr;
  ++packets_;
  ++run.packets;
  run.bytes += bytes;
  run.is_closed = bytes < run.packet_bytes;
  const std::size_t first = vectors_;
  add_vector(tx.packet.front());
  if (tx.packet.has_borrowed()) {
    add_vector(tx.packet.borrowed());
    add_vector(tx.packet.back());
  }
  header.msg_iovlen += vectors_ - first;
  if (run.packets == 2) add_run_length(header, run);
}

bool SendBatch::fits(const Run& run, const net::TxPacket& tx, std::size_t bytes) const {
  return !run.is_closed && bytes != 0 && bytes <= run.packet_bytes && run.packets < kRunPackets &&
         run.bytes + bytes <= kRunBytes && run.tos.value == tx.tos.value &&
         run.destination == tx.destination;
}

void SendBatch::begin(const net::TxPacket& tx, std::size_t bytes) {
  const std::size_t slot = messages_++;
  Run& run = runs_[slot];
  run.packets = run.bytes = 0;
  run.packet_bytes = bytes;
  run.is_closed = false;
  run.destination = tx.destination;
  run.tos = tx.tos;
  names_[slot].set(tx.destination, tx.destination.udp_port_or(udp_port_), scope_);
  msghdr& header = headers_[slot].msg_hdr;
  header.msg_namelen = names_[slot].length;
  header.msg_iov = &iovecs_[vectors_];
  header.msg_iovlen = 0;
  header.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* const c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = is_v4_ ? IPPROTO_IP : IPPROTO_IPV6;
  c->cmsg_type = is_v4_ ? IP_TOS : IPV6_TCLASS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  const int tos = tx.tos.value;
  std::memcpy(CMSG_DATA(c), &tos, sizeof tos);
}

void SendBatch::add_vector(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  iovecs_[vectors_++] = iovec{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

void SendBatch::add_run_length(msghdr& header, const Run& run) {
  cmsghdr* const tos = CMSG_FIRSTHDR(&header);
  header.msg_controllen = sizeof(ControlBytes);
  cmsghdr* const c = CMSG_NXTHDR(&header, tos);
  c->cmsg_level = SOL_UDP;
  c->cmsg_type = UDP_SEGMENT;
  c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto bytes = static_cast<std::uint16_t>(run.packet_bytes);
  std::memcpy(CMSG_DATA(c), &bytes, sizeof bytes);
}

}  // namespace uet::udp
