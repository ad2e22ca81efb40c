/// Which SES forms, opcodes, extensions and lengths go together. [WIRE 4.3, 5.1, 5.19]
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "lib/wire/ses_headers.h"

namespace uet::wire {

inline constexpr std::uint32_t kPayloadMtuMin = 1024, kPayloadMtuMax = 8192;
/// That of our endpoints among each other on an Ethernet with its usual MTU. [decision 169]
inline constexpr std::uint32_t kEthernetPayload = 1280;
inline constexpr std::uint64_t kCompareOperandBytes = 32;

/// [WIRE 7.2, decision 169]
constexpr bool is_payload_mtu(std::uint64_t n) {
  return n == kEthernetPayload ||
         (n >= kPayloadMtuMin && n <= kPayloadMtuMax && std::has_single_bit(n));
}
constexpr bool is_multiple_of_payload_mtu(std::uint64_t n) {
  return n % kPayloadMtuMin == 0 || n % kEthernetPayload == 0;
}
/// The largest payload MTU of no more than `n` bytes; 0 where there is none.
constexpr std::uint64_t payload_mtu_within(std::uint64_t n) {
  if (n < kPayloadMtuMin) return 0;
  const std::uint64_t power = std::bit_floor(std::min<std::uint64_t>(n, kPayloadMtuMax));
  return power == kPayloadMtuMin && n >= kEthernetPayload ? kEthernetPayload : power;
}

/// What a packet of a wide READ asks for. Its `hd` is set; the first has this in the place of header data, the others in that of
/// their length, of which it is not one. [decision 170]
struct WideAsk {
  static constexpr std::uint32_t kMostPackets = 8;

  std::uint32_t packets = 0;  ///< of data
  std::uint32_t payload = 0;  ///< bytes in each but the last of the READ

  constexpr std::uint32_t bytes() const { return packets * payload; }
  constexpr bool is_valid() const {
    return packets > 1 && packets <= kMostPackets && is_payload_mtu(payload);
  }
  constexpr std::uint16_t pack() const {
    return static_cast<std::uint16_t>(packets << 6 | payload / kUnit);
  }
  /// Of bits that may be anything; not valid then.
  static constexpr WideAsk unpack(std::uint64_t bits) {
    if (bits > (kMostPackets << 6 | 0x3f)) return {};
    return {static_cast<std::uint32_t>(bits >> 6), static_cast<std::uint32_t>(bits & 0x3f) * kUnit};
  }

 private:
  static constexpr std::uint32_t kUnit = 256;
};

/// Requests 0x10-0x2f are reserved; 0x30-0x3e are the vendor's.
constexpr bool is_reserved(SesOpcode o) {
  return static_cast<std::uint8_t>(o) < 0x30 && name_of(o).empty();
}
constexpr bool is_reserved(ResponseOpcode o) {
  return static_cast<std::uint8_t>(o) < 0x30 && name_of(o).empty();
}
constexpr bool is_reserved(ReturnCode c) {
  const auto v = static_cast<std::uint8_t>(c);
  return name_of(c).empty() && !(v >= 0x30 && v <= 0x37);
}
constexpr bool is_reserved(AmoOpcode o) {
  const auto v = static_cast<std::uint8_t>(o);
  return name_of(o).empty() && !(v >= 0xe0 && v <= 0xfe);
}
constexpr bool is_reserved(AmoDatatype t) {
  const auto v = static_cast<std::uint8_t>(t);
  return name_of(t).empty() && !(v >= 0xe0 && v <= 0xfe);
}

/// [WIRE 4.5 to 4.13] Whether this SES form may follow this PDS type.
constexpr bool can_follow(PdsType type, NextHdr form) {
  const bool is_request = form == NextHdr::kRequestSmall || form == NextHdr::kRequestMedium ||
                          form == NextHdr::kRequestStd;
  const bool is_data = form == NextHdr::kResponseData || form == NextHdr::kResponseDataSmall;
  switch (type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      return is_request || is_data || form == NextHdr::kNone;
    case PdsType::kRudiReq:
    case PdsType::kUudReq:
      return is_request;
    case PdsType::kRudiResp:
      return is_data || form == NextHdr::kResponse;
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx:
      return is_data || form == NextHdr::kResponse || form == NextHdr::kNone;
    default:
      return form == NextHdr::kNone;
  }
}

constexpr bool has_atomic_extension(SesOpcode o) {
  return o == SesOpcode::kAtomic || o == SesOpcode::kFetchingAtomic ||
         o == SesOpcode::kTsendAtomic || o == SesOpcode::kTsendFetchAtomic;
}
constexpr bool has_rendezvous_extension(SesOpcode o) {
  return o == SesOpcode::kRendezvousSend || o == SesOpcode::kRendezvousTsend ||
         o == SesOpcode::kSequencedRendezvousSend || o == SesOpcode::kSequencedRendezvousTsend;
}
/// True for the operations whose extension is 36 bytes long.
constexpr bool has_compare_operands(AmoOpcode o) {
  return o >= AmoOpcode::kCswap && o <= AmoOpcode::kMswap;
}

/// Rendezvous, deferrable, ready-to-restart and error messages need the standard form.
constexpr bool is_allowed_in_form(SesOpcode o, NextHdr form) {
  const bool needs_standard = has_rendezvous_extension(o) || o == SesOpcode::kDeferrableSend ||
                              o == SesOpcode::kDeferrableTsend || o == SesOpcode::kDeferrableRtr ||
                              o == SesOpcode::kMsgError;
  return form == NextHdr::kRequestStd || !needs_standard;
}
/// [WIRE 5.16] RESPONSE_W_DATA travels in the forms with data, everything else in the form without.
constexpr bool is_allowed_in_form(ResponseOpcode o, NextHdr form) {
  if (static_cast<std::uint8_t>(o) >= 0x30) return true;  // the vendor knows
  return (o == ResponseOpcode::kResponseWData) == (form != NextHdr::kResponse);
}

/// UUD carries datagrams and nothing else does; RUDI carries idempotent requests.
constexpr bool is_allowed_in_mode(SesOpcode o, PdsType type) {
  if (static_cast<std::uint8_t>(o) >= 0x30 || is_reserved(o)) return true;
  if (type == PdsType::kUudReq) return o == SesOpcode::kDatagramSend;
  if (type == PdsType::kRudiReq) return o == SesOpcode::kWrite || o == SesOpcode::kRead;
  return o != SesOpcode::kDatagramSend;
}

/// Bytes of one element, 0 for reserved and vendor types. [WIRE 5.13]
constexpr std::size_t amo_bytes(AmoDatatype t) {
  switch (t) {
    case AmoDatatype::kInt8:
    case AmoDatatype::kUint8:
      return 1;
    case AmoDatatype::kInt16:
    case AmoDatatype::kUint16:
    case AmoDatatype::kBfloat16:
    case AmoDatatype::kFloat16:
      return 2;
    case AmoDatatype::kInt32:
    case AmoDatatype::kUint32:
    case AmoDatatype::kFloat:
      return 4;
    case AmoDatatype::kInt64:
    case AmoDatatype::kUint64:
    case AmoDatatype::kDouble:
    case AmoDatatype::kFloatComplex:
      return 8;
    case AmoDatatype::kInt128:
    case AmoDatatype::kUint128:
    case AmoDatatype::kDoubleComplex:
    case AmoDatatype::kLongDouble:
      return 16;
    case AmoDatatype::kLongDoubleComplex:
      return 32;
  }
  return 0;
}

/// How many bytes of the message a request packet covers. Not known from the headers when one
/// Payload MTU is meant.
struct Coverage {
  bool is_known = false;
  std::uint64_t bytes = 0;
};

/// [WIRE 5.19] Without the exceptions for READ (covered, not carried) and extensions.
template <typename H>
constexpr Coverage coverage_of(const H& h) {
  if (h.opcode == SesOpcode::kDeferrableRtr || h.opcode == SesOpcode::kNoOp ||
      h.opcode == SesOpcode::kMsgError)
    return {.is_known = true, .bytes = 0};
  if constexpr (requires { h.payload_length; })
    return {.is_known = true, .bytes = h.payload_length};
  else
    return {.is_known = h.eom, .bytes = h.request_length};
}

}  // namespace uet::wire
