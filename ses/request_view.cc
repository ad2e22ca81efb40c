#include "ses/request_view.h"

#include <algorithm>

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
  out.request_length = h.request_length;
}

template <typename H>
void copy_standard(const H& h, RequestView& out) {
  copy_common(h, out);
  out.message_id = h.message_id;
  // [WIRE 5.7] Deferrable sends carry restart tokens in the place of the offset.
  out.buffer_offset = is_deferrable(h.opcode) ? 0 : h.buffer_offset;
  out.initiator = h.initiator;
  out.mkey_match = h.mkey_match;
}

/// A message of one packet may come without the mark of its end. [docs/interop.md]
bool is_whole(const wire::SesStandardFirst& h, std::size_t payload, std::uint32_t payload_mtu) {
  return h.request_length <= (h.opcode == SesOpcode::kRead ? payload_mtu : payload);
}

void parse_standard(std::span<const std::uint8_t> bytes, std::uint32_t payload_mtu,
                    RequestView& out) {
  const std::uint8_t* p = bytes.data();
  constexpr std::uint8_t kSomMask = 0x01;
  if ((p[1] & kSomMask) != 0) {
    const auto h = wire::decode<wire::SesStandardFirst>(p);
    copy_standard(h, out);
    out.header_data = h.header_data;
    out.message_offset = 0;
    out.eom = h.eom || is_whole(h, bytes.size() - wire::SesStandardFirst::kSize, payload_mtu);
    out.covered = out.eom ? h.request_length : payload_mtu;
  } else {
    const auto h = wire::decode<wire::SesStandardNext>(p);
    copy_standard(h, out);
    out.message_offset = h.message_offset;
    out.covered = h.payload_length;
  }
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
    case SesOpcode::kDatagramSend:
      return OpcodeClass::kDatagram;
    case SesOpcode::kMsgError:
      return OpcodeClass::kMsgError;
    case SesOpcode::kDeferrableRtr:
      return OpcodeClass::kRestart;
    default:
      return OpcodeClass::kUnsupported;
  }
}

bool parse_request(std::uint8_t next_hdr, std::span<const std::uint8_t> bytes,
                   std::uint32_t payload_mtu, RequestView& out) {
  out.form = static_cast<wire::NextHdr>(next_hdr);
  std::size_t header = 0;
  switch (out.form) {
    case wire::NextHdr::kRequestStd: {
      header = wire::SesStandardFirst::kSize;
      if (bytes.size() < header) return false;
      parse_standard(bytes, payload_mtu, out);
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
  const OpcodeClass c = classify(out.opcode);
  if (c == OpcodeClass::kNoOp || c == OpcodeClass::kMsgError || c == OpcodeClass::kRestart ||
      c == OpcodeClass::kAwaitDelivery)
    out.covered = 0;
  return true;
}

bool fit_payload(RequestView& request) {
  const std::size_t carried = request.opcode == SesOpcode::kRead ? 0 : request.covered;
  if (request.payload.size() < carried) return false;
  request.payload = request.payload.first(carried);
  return true;
}

bool is_well_segmented(const RequestView& r, std::uint32_t payload_mtu) {
  if (r.covered > payload_mtu) return false;
  const std::uint64_t end = std::uint64_t{r.message_offset} + r.covered;
  if (end > r.request_length) return false;
  if (r.message_offset % payload_mtu != 0) return false;
  if (!r.eom) return r.covered == payload_mtu;
  if (closes_early(r)) return true;
  return end == r.request_length;
}

}  // namespace uet::ses
