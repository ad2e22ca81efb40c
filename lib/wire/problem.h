/// What can be wrong with a packet, for those who report rather than drop. Data-path code uses
/// base::DropReason; the decision tree of dissect.h names every irregularity and goes on as far as
/// it can.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uet::wire {

// X(enumerator, "name", "text"); {a} and {b} in the text are numbers that come with the report.
#define UET_WIRE_PROBLEMS(X)                                                                    \
  /* frame */                                                                                   \
  X(kLinkType, "link-type", "link type {a} is not one we decode")                               \
  X(kLinkTruncated, "link-truncated", "link header needs {a} bytes, {b} are there")             \
  X(kTooManyTags, "too-many-vlan-tags", "more than two VLAN tags")                              \
  X(kNotIp, "not-ip", "protocol {a} is not IPv4 or IPv6")                                       \
  X(kCaptureCut, "capture-cut", "{a} bytes on the wire, {b} captured")                          \
  X(kIpTruncated, "ip-truncated", "IP header needs {a} bytes, {b} are there")                   \
  X(kIpVersion, "ip-version", "IP version field says {a}")                                      \
  X(kIpHeaderLength, "ip-header-length", "IPv4 header length {a} is below 20")                  \
  X(kIpLength, "ip-length", "IP length says {a} bytes, {b} are there")                          \
  X(kIpChecksum, "ip-checksum", "IPv4 header checksum is {a}, should be {b}")                   \
  X(kIpOptions, "ip-options", "{a} bytes of IPv4 options")                                      \
  X(kIpExtension, "ip-extension", "IPv6 extension header {a}")                                  \
  X(kIpFragment, "ip-fragment", "IP fragment at offset {a}")                                    \
  X(kNotUet, "not-uet", "IP protocol {a}, destination port {b}")                                \
  X(kUdpTruncated, "udp-truncated", "UDP header needs {a} bytes, {b} are there")                \
  X(kUdpLength, "udp-length", "UDP length says {a} bytes, IP has {b}")                          \
  X(kEntropyTruncated, "entropy-truncated", "entropy header needs {a} bytes, {b} are there")    \
  X(kBadCrc, "bad-crc", "UET CRC is {a}, should be {b}")                                        \
  X(kCrcMissing, "crc-missing", "no room for the UET CRC: {a} bytes")                           \
  /* any header */                                                                              \
  X(kReservedBits, "reserved-bits", "bits that must be sent as 0 are set")                      \
  X(kSurplus, "surplus-bytes", "{a} bytes behind what the headers announce")                    \
  /* TSS */                                                                                     \
  X(kTssTruncated, "tss-truncated", "TSS header needs {a} bytes, {b} are there")                \
  X(kTssNoIcv, "tss-no-icv", "no room for a PDS header and the ICV: {a} bytes")                 \
  X(kTssRefused, "tss-refused", "authentication failed with the key for SDI {a}")               \
  /* PDS */                                                                                     \
  X(kPdsTruncated, "pds-truncated", "PDS header needs {a} bytes, {b} are there")                \
  X(kPdsType, "bad-type", "PDS type {a} is reserved")                                           \
  X(kNextHdrReserved, "bad-next-hdr", "next_hdr {a} is reserved")                               \
  X(kNextHdrImpossible, "next-hdr-impossible", "next_hdr {a} cannot follow PDS type {b}")       \
  X(kControlType, "bad-ctl-type", "control type {a} is reserved")                               \
  X(kNackCode, "bad-nack-code", "NACK code {a} is reserved")                                    \
  X(kPdcidZero, "pdcid-zero", "PDC identifier 0 is reserved")                                   \
  X(kPdcidNotZero, "pdcid-not-zero", "a NACK for RUDI names a PDC")                             \
  X(kClearOffset, "clear-psn-offset-positive", "clear_psn_offset is {a}, must not be above 0")  \
  X(kAckReq, "bad-req", "req 3 is reserved")                                                    \
  X(kEpsn, "flag-epsn", "reserved flag 0x40 is set (a later extension)")                        \
  X(kCcType, "bad-cc-type", "congestion state of unassigned type {a}")                          \
  X(kSynNotAllowed, "syn-not-allowed", "control type {a} cannot open a PDC")                    \
  /* SES */                                                                                     \
  X(kSesTruncated, "ses-truncated", "SES header needs {a} bytes, {b} are there")                \
  X(kSesVersion, "bad-version", "SES version {a}")                                              \
  X(kSesOpcode, "bad-opcode", "SES opcode {a} is reserved")                                     \
  X(kSesOpcodeForm, "opcode-form", "SES opcode {a} cannot travel in form {b}")                  \
  X(kSesOpcodeMode, "opcode-mode", "SES opcode {a} cannot travel with PDS type {b}")            \
  X(kSesFlags, "bad-flags", "som and eom must both be 1 here")                                  \
  X(kSmallHd, "small-hd", "hd is reserved in a small request")                                  \
  X(kReturnCode, "bad-return-code", "return code {a} is reserved")                              \
  X(kExtTruncated, "ext-truncated", "extension needs {a} bytes, {b} are there")                 \
  X(kAmoOpcode, "bad-amo-opcode", "AMO opcode {a} is reserved")                                 \
  X(kAmoDatatype, "bad-amo-datatype", "AMO data type {a} is reserved")                          \
  X(kAmoLength, "amo-length", "{a} bytes are no multiple of the {b}-byte element")              \
  X(kPayloadMissing, "payload-missing", "headers announce {a} payload bytes, {b} are there")    \
  X(kPayloadUnexpected, "payload-unexpected", "no payload belongs here, {b} bytes are there")   \
  X(kPayloadNotMtu, "payload-not-mtu", "{a} bytes, but not the last packet and no Payload MTU") \
  X(kOffsetNotMtu, "offset-not-mtu", "message_offset {a} is no multiple of a Payload MTU")      \
  X(kBeyondMessage, "beyond-message", "packet ends at {a}, message has {b} bytes")

enum class Problem : std::uint8_t {
#define UET_X(enumerator, name, text) enumerator,
  UET_WIRE_PROBLEMS(UET_X)
#undef UET_X
      kCount
};

struct ProblemDescription {
  std::string_view name, text;
};

inline constexpr std::array<ProblemDescription, static_cast<std::size_t>(Problem::kCount)>
    kProblemDescriptions = {{
#define UET_X(enumerator, name, text) {name, text},
        UET_WIRE_PROBLEMS(UET_X)
#undef UET_X
    }};

constexpr const ProblemDescription& describe(Problem p) {
  return kProblemDescriptions[static_cast<std::size_t>(p)];
}

}  // namespace uet::wire
