#include "pds/uud.h"

#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"

namespace uet::pds {

using wire::NextHdr;

SubmitResult Uud::submit(Instant now, const TxMessage& request) {
  Message& message = messages_.add(request);
  if (request.segments != 1) {  // one packet or nothing [PDS 3.1]
    message.is_silent = false;
    failed_.add(message);
    failed_.report(now, PdsError::kAborted);
    return SubmitResult::kQueued;
  }
  queue_.push_back(message);
  return SubmitResult::kQueued;
}

// Sent once. Having left is all that is ever known about a datagram, and it is what on_response
// reports. [PDS 17.3]
bool Uud::poll(Instant now, net::TxPacket& out) {
  if (queue_.empty()) return false;
  net::Packet packet = pool_.allocate();
  if (!packet) return false;
  Message& message = queue_.front();
  queue_.pop_front();
  const MessageToken token = message.request.token;
  const SegmentInfo info = upper_.emit_segment(token, 0, PdcRef{}, Psn{}, packet);
  wire::PdsUud header;
  header.type = wire::PdsType::kUudReq;
  header.next_hdr = static_cast<NextHdr>(info.next_hdr);
  wire::emit(header, packet.prepend(wire::PdsUud::kSize));
  trace_.emit(now, EventId::kRequestSent, 0, {}, packet.full_size());
  packet.keep_borrowed();  // the user hears of the end before the port has the packet
  out.packet = std::move(packet);
  out.destination = message.request.destination;
  out.entropy = Environment::any_entropy(env_.rng.next_u32());
  out.plane = net::kAnyPlane;
  out.tos.value = net::TosByte::of(config_.dscp_data, 2).value;
  messages_.forget(message);
  upper_.on_response(now, token, 0, 0, {});
  return true;
}

void Uud::on_packet(Instant now, const net::RxPacket& rx) {
  const auto bytes = rx.packet.bytes();
  if (env_.is_trimmed(rx)) return trace_.drop(now, DropReason::kTrimmed, bytes.size());
  const auto h = wire::decode<wire::PdsUud>(bytes.data());
  if (h.next_hdr < NextHdr::kRequestSmall || h.next_hdr > NextHdr::kRequestStd)
    return trace_.drop(now, DropReason::kBadNextHeader, bytes.size());
  RxRequest request;
  request.mode = Mode::kUud;
  request.next_hdr = static_cast<std::uint8_t>(h.next_hdr);
  request.source = rx.source;
  request.bytes = bytes.subspan(wire::PdsUud::kSize);
  trace_.emit(now, EventId::kRequestDelivered, 0, {}, bytes.size());
  (void)upper_.on_request(now, request);
}

}  // namespace uet::pds
