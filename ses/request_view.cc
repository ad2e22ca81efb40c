#include "ses/request_view.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lib/wire/ses_rules.h"
#include "ses/rendezvous.h"

namespace uet::ses {
namespace {

template <typename H>
void copy_common(const H& h, RequestView& out) {
  out.opcode = h.opcode;
  out.version = h.version;
  out.dc = h.dc;
  out.ie = h.ie;
  out.rel = h.rel;
  out.hd = h.hd;
  out.eom = h.eom;
  out.som = h.som;
  out.ri_generation = h.ri_generation;
  out.job_id = h.job_id;
  out.pid_on_fep = h.pid_on_fep;
  out.resource_index = h.resource_index;
  out.request_length = out.carried_length = h.request_length;
}

/// [decision 141] A numbered send is a send but for its number.
void take_sequence(RequestView& out) {
  struct Plain {
    SesOpcode opcode;
    OpcodeClass kind;
  };
  static constexpr std::array kPlain = {
      Plain{SesOpcode::kSend, OpcodeClass::kSend},
      Plain{SesOpcode::kTaggedSend, OpcodeClass::kSend},
      Plain{SesOpcode::kSend, OpcodeClass::kFillGap},
      Plain{SesOpcode::kTaggedSend, OpcodeClass::kFillGap},
      Plain{SesOpcode::kRendezvousSend, OpcodeClass::kRendezvous},
      Plain{SesOpcode::kRendezvousTsend, OpcodeClass::kRendezvous},
  };
  const Plain& plain = kPlain[static_cast<std::size_t>(out.opcode) -
                              static_cast<std::size_t>(SesOpcode::kSequencedSend)];
  out.opcode = plain.opcode;
  out.kind = plain.kind;
  out.is_sequenced = true;
  out.sequence = SequenceField::unpack(out.buffer_offset);
  out.buffer_offset = 0;
}

constexpr bool is_plain_send(SesOpcode opcode) {
  return opcode == SesOpcode::kSend || opcode == SesOpcode::kTaggedSend;
}

/// [SES 8.1] The initiator's in the upper half.
void take_tokens(std::uint64_t bits, RequestView& out) {
  out.initiator_token = static_cast<std::uint32_t>(bits >> 32);
  out.target_token = static_cast<std::uint32_t>(bits);
}

template <typename H>
[[gnu::always_inline]] inline void copy_standard(const H& h, RequestView& out) {
  copy_common(h, out);
  out.message_id = h.message_id;
  out.buffer_offset = h.buffer_offset;
  out.initiator = h.initiator;
  out.mkey_match = h.mkey_match;
  // [WIRE 5.7] In the place of the offset.
  if (is_deferrable(h.opcode)) take_tokens(std::exchange(out.buffer_offset, 0), out);
  if (h.opcode == SesOpcode::kDeferrableRtr) take_tokens(h.mkey_match, out);
  if (is_sequenced(h.opcode)) take_sequence(out);
}

/// The first of several packets covers one payload MTU of its sender, which no field names: it shows in
/// what the packet carries. Bytes behind that are surplus. [WIRE 5.19]
std::uint32_t carried_mtu(std::size_t carried, std::uint32_t own_mtu) {
  if (carried < kSmallestPayload || carried == own_mtu) return own_mtu;
  if (carried == kEthernetPayload) return kEthernetPayload;
  return std::bit_floor(static_cast<std::uint32_t>(
      std::min<std::size_t>(carried, std::max(own_mtu, kLargestPayload))));
}

/// A READ carries nothing, so our initiators write what its first packet asks for where others have
/// header data. Peers that leave it 0 must use our payload MTU. [decisions 125, 169]
std::uint32_t asked_mtu(const wire::SesStandardFirst& h, std::uint32_t own_mtu) {
  const bool is_told = !h.hd && is_payload_mtu(h.header_data, own_mtu);
  return is_told ? static_cast<std::uint32_t>(h.header_data) : assumed_payload(own_mtu);
}

/// [decision 170]
WideAsk wide_ask_of(const RequestView& read, std::uint64_t bits) {
  if (!read.hd) return {};
  const WideAsk ask = WideAsk::unpack(bits);
  return ask.is_valid() ? ask : WideAsk{};
}

void parse_standard(std::span<const std::uint8_t> bytes, std::uint32_t own_mtu, RequestView& out) {
  constexpr std::uint8_t kSomMask = 0x01;
  const std::uint8_t* const p = bytes.data();
  if ((p[1] & kSomMask) != 0) {
    const auto h = wire::decode<wire::SesStandardFirst>(p);
    copy_standard(h, out);
    out.header_data = h.header_data;
    out.message_offset = 0;
    const std::size_t payload = bytes.size() - wire::SesStandardFirst::kSize;
    const bool is_read = h.opcode == SesOpcode::kRead;
    if (is_read) out.wide = wide_ask_of(out, h.header_data);
    std::size_t reach = payload;
    if (is_read) reach = out.is_wide_read() ? out.wide.bytes() : asked_mtu(h, own_mtu);
    // A message of one packet may come without the mark of its end. [docs/interop.md] There are no other atomics.
    out.eom = h.eom || h.request_length <= reach || wire::has_atomic_extension(h.opcode);
    if (out.eom)
      out.covered = h.request_length;
    else
      out.covered = is_read ? static_cast<std::uint32_t>(reach) : carried_mtu(payload, own_mtu);
  } else {
    const auto h = wire::decode<wire::SesStandardNext>(p);
    copy_standard(h, out);
    out.message_offset = h.message_offset;
    out.covered = h.payload_length;
    if (h.opcode == SesOpcode::kRead) out.wide = wide_ask_of(out, h.payload_length);
    if (!out.is_wide_read()) return;
    const bool is_inside = h.message_offset <= h.request_length;
    out.covered = !h.eom ? out.wide.bytes() : is_inside ? h.request_length - h.message_offset : 0;
  }
}

/// The extension stands before the payload, and only the bytes behind it are of the message. Without it nothing can be done.
void take_extension(std::uint8_t flags, std::uint32_t own_mtu, RequestView& out) {
  constexpr std::uint8_t kEomMask = 0x02;
  if (out.form != wire::NextHdr::kRequestStd) return;  // refused for its form
  if (out.payload.size() < wire::ExtRendezvous::kSize) {
    out.kind = OpcodeClass::kUnsupported;
    return;
  }
  out.payload = out.payload.subspan(wire::ExtRendezvous::kSize);
  out.carried_length = rendezvous_of(out).eager_length;
  if (!out.som) return;
  out.eom = (flags & kEomMask) != 0 || out.carried_length <= out.payload.size();
  out.covered = out.eom ? out.carried_length : carried_mtu(out.payload.size(), own_mtu);
}

}  // namespace

OpcodeClass classify(SesOpcode opcode) {
  if (opcode == kAwaitDeliveryOpcode) return OpcodeClass::kAwaitDelivery;
  switch (opcode) {
    case SesOpcode::kNoOp:
      return OpcodeClass::kNoOp;
    case SesOpcode::kWrite:
      return OpcodeClass::kWrite;
    case SesOpcode::kRead:
      return OpcodeClass::kRead;
    case SesOpcode::kSend:
    case SesOpcode::kTaggedSend:
    case SesOpcode::kDeferrableSend:
    case SesOpcode::kDeferrableTsend:
      return OpcodeClass::kSend;
    case SesOpcode::kRendezvousSend:
    case SesOpcode::kRendezvousTsend:
      return OpcodeClass::kRendezvous;
    case SesOpcode::kDatagramSend:
      return OpcodeClass::kDatagram;
    case SesOpcode::kMsgError:
      return OpcodeClass::kMsgError;
    case SesOpcode::kDeferrableRtr:
      return OpcodeClass::kRestart;
    case SesOpcode::kAtomic:
    case SesOpcode::kFetchingAtomic:
    case SesOpcode::kTsendAtomic:
    case SesOpcode::kTsendFetchAtomic:
      return OpcodeClass::kAtomic;
    default:
      return OpcodeClass::kUnsupported;
  }
}

bool parse_request(std::uint8_t next_hdr, std::span<const std::uint8_t> bytes,
                   std::uint32_t own_mtu, RequestView& out) {
  out.form = static_cast<wire::NextHdr>(next_hdr);
  out.wide = {};
  std::size_t header = 0;
  switch (out.form) {
    case wire::NextHdr::kRequestStd: {
      header = wire::SesStandardFirst::kSize;
      if (bytes.size() < header) return false;
      parse_standard(bytes, own_mtu, out);
      break;
    }
    case wire::NextHdr::kRequestMedium: {
      header = wire::SesMedium::kSize;
      if (bytes.size() < header) return false;
      const auto h = wire::decode<wire::SesMedium>(bytes.data());
      copy_common(h, out);
      out.initiator = h.initiator;
      out.mkey_match = h.mkey_match;
      out.header_data = h.hd ? h.hdr_or_offset : 0;
      out.buffer_offset = h.hd ? 0 : h.hdr_or_offset;
      out.covered = h.request_length;
      break;
    }
    case wire::NextHdr::kRequestSmall: {
      header = wire::SesSmall::kSize;
      if (bytes.size() < header) return false;
      const auto h = wire::decode<wire::SesSmall>(bytes.data());
      copy_common(h, out);
      out.hd = false;
      out.buffer_offset = h.buffer_offset;
      out.covered = h.request_length;
      break;
    }
    default:
      return false;
  }
  out.payload = bytes.subspan(header);
  if (!out.is_sequenced) out.kind = classify(out.opcode);
  const OpcodeClass c = out.kind;
  if (c == OpcodeClass::kRendezvous) take_extension(bytes[1], own_mtu, out);
  constexpr auto kBit = [](OpcodeClass k) { return 1u << static_cast<unsigned>(k); };
  constexpr unsigned kCarryNothing =
      kBit(OpcodeClass::kNoOp) | kBit(OpcodeClass::kMsgError) | kBit(OpcodeClass::kRestart) |
      kBit(OpcodeClass::kAwaitDelivery) | kBit(OpcodeClass::kFillGap);
  if ((kBit(c) & kCarryNothing) != 0) out.covered = 0;
  // [WIRE 5.8] A target may name the length of the message there, which says nothing.
  if (c == OpcodeClass::kRestart) out.request_length = out.carried_length = 0;
  return true;
}

bool parse_plain_send(std::span<const std::uint8_t> bytes, std::uint32_t longest,
                      RequestView& out) {
  constexpr std::size_t kHeader = wire::SesStandardFirst::kSize;
  if (bytes.size() < kHeader) return false;
  const auto h = wire::decode<wire::SesStandardFirst>(bytes.data());
  const bool is_plain = is_plain_send(h.opcode) && h.version == 0 && !h.ie && h.som && h.eom;
  if (!is_plain || h.request_length > std::min<std::size_t>(longest, bytes.size() - kHeader))
    return false;
  copy_common(h, out);
  out.kind = OpcodeClass::kSend;
  out.message_id = h.message_id;
  out.buffer_offset = h.buffer_offset;
  out.initiator = h.initiator;
  out.mkey_match = h.mkey_match;
  out.header_data = h.header_data;
  out.covered = h.request_length;
  out.payload = bytes.subspan(kHeader, h.request_length);
  return true;
}

bool parse_plain_next(std::span<const std::uint8_t> bytes, RequestView& out) {
  constexpr std::size_t kHeader = wire::SesStandardNext::kSize;
  if (bytes.size() < kHeader) return false;
  const auto h = wire::decode<wire::SesStandardNext>(bytes.data());
  const bool is_send = is_plain_send(h.opcode) || is_deferrable(h.opcode) ||
                       h.opcode == SesOpcode::kSequencedSend ||
                       h.opcode == SesOpcode::kSequencedTsend;
  const bool is_plain =
      (is_send || h.opcode == SesOpcode::kWrite) && h.version == 0 && !h.ie && !h.som;
  if (!is_plain || h.payload_length > bytes.size() - kHeader) return false;
  out.kind = is_send ? OpcodeClass::kSend : OpcodeClass::kWrite;
  copy_standard(h, out);
  out.message_offset = h.message_offset;
  out.covered = h.payload_length;
  out.payload = bytes.subspan(kHeader, h.payload_length);
  return true;
}

bool fit_payload(RequestView& request) {
  const std::size_t carried = request.opcode == SesOpcode::kRead ? 0 : request.covered;
  if (request.payload.size() < carried) return false;
  request.payload = request.payload.first(carried);
  return true;
}

bool is_well_segmented(const RequestView& r, std::uint32_t own_mtu) {
  const std::uint32_t most = r.is_wide_read() ? r.wide.bytes() : std::max(own_mtu, kLargestPayload);
  if (r.covered > most) return false;
  if (r.is_single() && r.message_offset == 0) [[likely]]
    return r.covered == r.carried_length;
  const std::uint64_t end = std::uint64_t{r.message_offset} + r.covered;
  if (end > r.carried_length) return false;
  if (!r.eom)
    return (is_payload_mtu(r.covered, own_mtu) || r.is_wide_read()) &&
           r.message_offset % r.covered == 0;
  if (r.is_wide_read())
    return end == r.carried_length && r.covered > 0 && r.message_offset % r.wide.bytes() == 0;
  // The last packet does not tell what the others carry, but that is a multiple of one of these.
  if (r.message_offset % kSmallestPayload != 0 && r.message_offset % kEthernetPayload != 0 &&
      r.message_offset % own_mtu != 0)
    return false;
  if (closes_early(r)) return true;
  return end == r.carried_length;
}

wire::ExtRendezvous rendezvous_of(const RequestView& r) {
  return wire::decode<wire::ExtRendezvous>(r.payload.data() - wire::ExtRendezvous::kSize);
}

}  // namespace uet::ses
