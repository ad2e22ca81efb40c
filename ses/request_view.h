/// A received request, whichever of the three header forms it came in. [SES 5, WIRE 5]
#pragma once

#include <cstdint>
#include <span>

#include "lib/wire/headers.h"
#include "ses/endpoint_table.h"
#include "ses/payload_sizes.h"
#include "ses/sequence.h"

namespace uet::ses {

using wire::SesOpcode;

/// What to do with an opcode at all. [SES 6]
enum class OpcodeClass : std::uint8_t {
  kNoOp,
  kSend,
  kRendezvous,
  kWrite,
  kRead,
  kDatagram,
  kMsgError,
  kRestart,
  kAwaitDelivery,
  kAtomic,
  kFillGap,
  kUnsupported
};

struct RequestView {
  wire::NextHdr form = wire::NextHdr::kRequestStd;
  SesOpcode opcode{};
  OpcodeClass kind{};
  std::uint8_t version = 0;
  bool dc = false, ie = false, rel = false, hd = false, eom = false, som = false;
  std::uint16_t message_id = 0;  ///< standard form only
  std::uint8_t ri_generation = 0;
  std::uint32_t job_id = 0;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;  ///< small form: the index of an optimized key
  std::uint64_t buffer_offset = 0;
  std::uint32_t initiator = 0;
  std::uint64_t mkey_match = 0;
  std::uint64_t header_data = 0;
  std::uint32_t request_length = 0;
  std::uint32_t carried_length =
      0;                      ///< of the message in its packets: a rendezvous leaves the rest out
  std::uint32_t covered = 0;  ///< bytes of the message that this packet carries or asks for
  std::uint32_t message_offset = 0;
  WideAsk wide;               ///< no packets: not a wide READ
  bool is_sequenced = false;  ///< `opcode` is then the plain one
  SequenceField sequence;
  // Of deferrable sends, and of the request to restart one. [SES 8.1]
  std::uint32_t initiator_token = 0, target_token = 0;
  std::span<const std::uint8_t> payload;

  bool is_single() const { return som && eom; }
  /// A READ whose packets ask for several packets of data each. [decision 170]
  bool is_wide_read() const { return wide.packets > 0; }
  bool is_small() const { return form == wire::NextHdr::kRequestSmall; }
  Target target() const { return {rel, job_id, pid_on_fep, resource_index}; }
};

/// From the vendor's range: "tell me when a receive has taken the message with this message id". Targets that do not know it
/// answer UNSUPPORTED_OP. [SES 6, decision 105]
inline constexpr auto kAwaitDeliveryOpcode = SesOpcode::kAwaitDelivery;

OpcodeClass classify(SesOpcode opcode);
constexpr bool is_tagged(SesOpcode opcode) {
  return opcode == SesOpcode::kTaggedSend || opcode == SesOpcode::kDeferrableTsend ||
         opcode == SesOpcode::kRendezvousTsend;
}
constexpr bool is_tagged_atomic(SesOpcode opcode) {
  return opcode == SesOpcode::kTsendAtomic || opcode == SesOpcode::kTsendFetchAtomic;
}
constexpr bool is_fetching(SesOpcode opcode) {
  return opcode == SesOpcode::kFetchingAtomic || opcode == SesOpcode::kTsendFetchAtomic;
}
constexpr bool is_deferrable(SesOpcode opcode) {
  return opcode == SesOpcode::kDeferrableSend || opcode == SesOpcode::kDeferrableTsend;
}

/// Decodes the header. False when the bytes are too short for it or `next_hdr` is no request.
/// Payload that the header announces may still be missing: see fit_payload(). `own_mtu` is our own
/// payload MTU: what a first packet covers that does not tell.
bool parse_request(std::uint8_t next_hdr, std::span<const std::uint8_t> bytes,
                   std::uint32_t own_mtu, RequestView& out);

/// Nearly all sends: one packet with the standard header, whose payload is all there, and which asks for nothing but a receive. False
/// where any of that is otherwise or wrong, and nothing is filled in: parse_request() tells. `longest`: payload of one packet.
bool parse_plain_send(std::span<const std::uint8_t> bytes, std::uint32_t longest, RequestView& out);

/// Nearly all packets of longer messages: a further one of a write or a send, with the standard header and all its payload.
/// False where any of that is otherwise or wrong, and nothing is filled in. Whether it fits into its message is not looked at.
bool parse_plain_next(std::span<const std::uint8_t> bytes, RequestView& out);

/// True when every byte that this packet should carry is there; cuts surplus bytes off. Not for atomics: their extension
/// says what they carry.
bool fit_payload(RequestView& request);

/// Of a message that was asked for: its token says which receive waits for it. [SES 8.3]
constexpr bool names_receive(const RequestView& r) {
  return is_deferrable(r.opcode) && r.target_token != 0;
}

/// The closing packet of a deferred message: no bytes, and none will come behind it. [SES 8.2]
constexpr bool closes_early(const RequestView& r) {
  return is_deferrable(r.opcode) && !r.som && r.eom && r.covered == 0;
}
/// Rule 4 of the message table: does this packet lie inside its message as segmentation makes them?
/// [SES 4.2, 4.3]
bool is_well_segmented(const RequestView& request, std::uint32_t own_mtu);

/// What stands between the header and the payload of a rendezvous. [WIRE 5.11]
wire::ExtRendezvous rendezvous_of(const RequestView& request);

}  // namespace uet::ses
