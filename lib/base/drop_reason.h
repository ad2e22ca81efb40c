/// Why a received packet was dropped. One reason per cause, each with its own counter; there is no "other".
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace uet::base {

// One line per reason: X(enumerator, "name-in-counters-and-captures", "what happened").
// Append within the group of the layer that drops. The order is not part of any format.
#define UET_DROP_REASONS(X)                                                                      \
  /* wire: decoding */                                                                           \
  X(kTruncated, "truncated", "shorter than its headers say")                                     \
  X(kBadType, "bad-type", "unknown or reserved PDS type")                                        \
  X(kBadNextHeader, "bad-next-hdr", "next_hdr impossible for this PDS type")                     \
  X(kBadControlType, "bad-ctl-type", "reserved control type")                                    \
  /* net: frames, addresses, integrity */                                                        \
  X(kNotForUs, "not-for-us", "frame or IP destination is another host")                          \
  X(kNotIp, "not-ip", "EtherType that this port does not handle")                                \
  X(kBadIpHeader, "bad-ip-header", "IP version, header length or checksum wrong")                \
  X(kIpOptions, "ip-options", "IPv4 options or IPv6 extension headers")                          \
  X(kFragment, "fragment", "IP fragment")                                                        \
  X(kNotUet, "not-uet", "IP protocol or UDP port of another protocol")                           \
  X(kBadUdpLength, "bad-udp-length", "UDP length disagrees with the IP length")                  \
  X(kBadCrc, "bad-crc", "UET CRC does not match")                                                \
  X(kVlanMismatch, "vlan-mismatch", "802.1Q tag of another VLAN")                                \
  X(kNoNeighbor, "no-neighbor", "next hop did not answer ARP or Neighbor Discovery")             \
  X(kNeighborQueueFull, "neighbor-queue-full", "too many packets wait for address resolution")   \
  X(kNeighborTableFull, "neighbor-table-full", "every neighbor place has packets waiting")       \
  X(kNoBuffer, "no-buffer", "packet pool is empty")                                              \
  X(kTooLarge, "too-large", "larger than the port can send")                                     \
  X(kNoRoute, "no-route",                                                                        \
    "destination outside the prefix and no gateway, or not a unicast address")                   \
  X(kWrongFamily, "wrong-family", "IPv6 destination on an IPv4 port or the reverse")             \
  X(kTransmitFull, "transmit-full", "device took no more frames for an ARP, ND or echo reply")   \
  X(kAddressConflict, "address-conflict", "another host claims our IP address")                  \
  X(kBadLinkMessage, "bad-link-message", "malformed ARP, Neighbor Discovery or ICMP message")    \
  X(kIcmpIgnored, "icmp-ignored", "ICMP message that needs no answer from this port")            \
  X(kSocketOverflow, "socket-overflow", "kernel socket buffer was full")                         \
  X(kSendFailed, "send-failed", "kernel refused the packet: no route, no permission")            \
  X(kLinkDown, "link-down", "waited for a port (plane) that lost its link")                      \
  X(kDeviceMissed, "device-missed", "receive ring of the NIC was full")                          \
  X(kDeviceNoBuffer, "device-no-buffer", "driver of the NIC found no free packet buffer")        \
  X(kDeviceReceiveError, "device-receive-error", "NIC refused the frame: bad FCS, too long")     \
  X(kDeviceSendError, "device-send-error", "NIC could not send the frame")                       \
  X(kDeviceGone, "device-gone", "the NIC was removed, or did not come back from a reset")        \
  X(kImpaired, "impaired", "dropped on purpose by FI_UET_IMPAIR")                                \
  /* tss */                                                                                      \
  X(kTssUnexpected, "tss-unexpected", "secured packet where none is configured")                 \
  X(kTssMissing, "tss-missing", "clear packet where security is required")                       \
  X(kTssUnknownDomain, "tss-unknown-domain", "secure domain that is not this endpoint's")        \
  X(kTssNoKey, "tss-no-key", "sealed under a key slot (AN) that is empty")                       \
  X(kTssMalformed, "tss-malformed", "too short for TSS, or SSI present against the domain")      \
  X(kTssDomainStopped, "tss-domain-stopped", "too many forgeries: the domain accepts nothing")   \
  X(kTssLateEpoch, "tss-late-epoch", "epoch older than the domain allows")                       \
  X(kTssNotMember, "tss-not-member", "sender is not on the domain's list of members")            \
  X(kTssBadIcv, "tss-bad-icv", "did not verify: forged, damaged, or another key")                \
  X(kTssReplayed, "tss-replayed", "verified, but seen before or older than the replay floor")    \
  X(kTssTrimmed, "tss-trimmed", "secured packet that was trimmed: it cannot be verified")        \
  X(kTssSourcesFull, "tss-sources-full", "verified, but no room to remember one more sender")    \
  X(kTssCounterSpent, "tss-counter-spent", "not sent: no packet counter is left for the key")    \
  X(kTssNoTxKey, "tss-no-tx-key", "not sent: no key to send under, or an unknown client")        \
  /* pds */                                                                                      \
  X(kUnknownPdc, "unknown-pdc", "ACK, NACK or control packet for a PDC that does not exist")     \
  X(kPeerMismatch, "peer-mismatch", "source address or spdcid is not the peer of this PDC")      \
  X(kRoleMismatch, "role-mismatch", "packet that this role never receives")                      \
  X(kModeMismatch, "mode-mismatch", "RUD packet on a ROD PDC or the reverse")                    \
  X(kDuplicate, "duplicate", "PSN received before; nothing to answer")                           \
  X(kPsnBelowStart, "psn-below-start", "PSN before the start PSN of the PDC")                    \
  X(kPsnTooOld, "psn-too-old", "PSN older than any window allows")                               \
  X(kPsnBeyondWindow, "psn-beyond-window", "PSN beyond the granted window")                      \
  X(kRodOutOfOrder, "rod-out-of-order", "PSN above the expected one on a ROD PDC")               \
  X(kAckNeverSent, "ack-never-sent", "acknowledges a PSN that was never sent")                   \
  X(kNackNotOutstanding, "nack-not-outstanding", "refuses a PSN that is not outstanding")        \
  X(kStaleNack, "stale-nack", "NACK for an older transmission of the PSN")                       \
  X(kUnknownControlNack, "unknown-control-nack", "peer does not know a kind of control packet")  \
  X(kStaleSyn, "stale-syn", "SYN of a PDC that was closed a moment ago")                         \
  X(kSynNotAllowed, "syn-not-allowed", "this packet type cannot open a PDC")                     \
  X(kClosing, "closing", "PSN beyond the Close Command")                                         \
  X(kTrimmed, "trimmed", "packet was trimmed on the way")                                        \
  X(kNoPdc, "no-pdc", "PDC table is full")                                                       \
  X(kNoTracker, "no-tracker", "no memory for PSN tracking")                                      \
  X(kNoResource, "no-resource", "SES or PDS refused the packet for lack of resources")           \
  X(kUnknownPktId, "unknown-pkt-id", "RUDI response or NACK for an unknown pkt_id")              \
  X(kUnknownCcType, "unknown-cc-type", "ACK with an unknown congestion state; state ignored")    \
  X(kStaleAnswer, "stale-answer", "SES answered a packet that is gone or answered already")      \
  X(kMalformedNack, "malformed-nack", "NACK whose kind contradicts its identifiers")             \
  X(kReservedNack, "reserved-nack", "NACK with a reserved code")                                 \
  X(kBadClear, "bad-clear", "CLEAR ahead of what was received; ignored")                         \
  X(kAckQueueFull, "ack-queue-full", "no room for one more acknowledgement or response to send") \
  X(kTableRefused, "table-refused", "datagram or response refused by the layer above")           \
  X(kNackRateLimited, "nack-rate-limited", "NACK withheld by the rate limit")                    \
  /* ses */                                                                                      \
  X(kSesMalformed, "ses-malformed", "SES header or extension does not fit the packet")           \
  X(kSesUnknownResponse, "ses-unknown-response", "response that matches nothing outstanding")    \
  X(kDatagramNoBuffer, "datagram-no-buffer", "datagram without a buffer, address or job")        \
  X(kAtomicRefused, "atomic-refused",                                                            \
    "atomic with an operator, type, size, address or key that does not exist")

enum class DropReason : std::uint8_t {
#define UET_X(enumerator, name, text) enumerator,
  UET_DROP_REASONS(UET_X)
#undef UET_X
      kCount
};

inline constexpr std::size_t kDropReasonCount = static_cast<std::size_t>(DropReason::kCount);

namespace detail {
inline constexpr std::array<std::string_view, kDropReasonCount> kDropNames = {
#define UET_X(enumerator, name, text) name,
    UET_DROP_REASONS(UET_X)
#undef UET_X
};
inline constexpr std::array<std::string_view, kDropReasonCount> kDropTexts = {
#define UET_X(enumerator, name, text) text,
    UET_DROP_REASONS(UET_X)
#undef UET_X
};
}  // namespace detail

constexpr std::string_view name_of(DropReason r) {
  return detail::kDropNames[static_cast<std::size_t>(r)];
}
constexpr std::string_view text_of(DropReason r) {
  return detail::kDropTexts[static_cast<std::size_t>(r)];
}

}  // namespace uet::base
