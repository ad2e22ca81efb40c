#include "apps/stat/explanations.h"

#include <fmt/format.h>

namespace uet::stat {

using base::DropReason;
using base::EventId;

namespace {

constexpr DropAdvice harmless(std::string_view advice) {
  return {Concern::kHarmless, advice};
}
constexpr DropAdvice if_many(std::string_view advice) {
  return {Concern::kIfMany, advice};
}
constexpr DropAdvice fault(std::string_view advice) {
  return {Concern::kFault, advice};
}

constexpr std::string_view kForeignSender =
    "Another program sends to our UDP port or IP protocol, or a peer speaks another version: "
    "FI_UET_PCAP and uet-dump show who.";
constexpr std::string_view kStrayFrame =
    "Ordinary traffic of a shared network that is not for this endpoint.";
constexpr std::string_view kPeerBug =
    "A peer breaks the protocol, or forges: FI_UET_PCAP and uet-dump show the packet and who "
    "sent it.";
constexpr std::string_view kLatePacket =
    "Copies and late packets of a network that reorders or loses; what they carry was answered "
    "before.";
constexpr std::string_view kSlowReader =
    "The program turns its endpoint too rarely: FI_UET_PROGRESS=thread, fewer processes on the "
    "core, or larger rings by FI_UET_DPDK_RXD.";

constexpr DropAdvice advice(DropReason reason) {
  switch (reason) {
    case DropReason::kTruncated:
    case DropReason::kBadType:
    case DropReason::kBadNextHeader:
    case DropReason::kBadControlType:
    case DropReason::kNotUet:
      return if_many(kForeignSender);
    case DropReason::kNotForUs:
    case DropReason::kNotIp:
    case DropReason::kIcmpIgnored:
      return harmless(kStrayFrame);
    case DropReason::kBadIpHeader:
    case DropReason::kBadUdpLength:
    case DropReason::kBadLinkMessage:
      return if_many(
          "Damage on the way, or a neighbor with a bug: look at cables and at FI_UET_PCAP.");
    case DropReason::kIpOptions:
    case DropReason::kFragment:
      return fault(
          "UET sends neither options nor fragments. A router or tunnel between adds them: give "
          "both "
          "ends the MTU of the way by FI_UET_MTU.");
    case DropReason::kBadCrc:
      return fault(
          "A peer with FI_UET_PROTECT=none or a NAT between, where every packet of that peer is "
          "dropped; damage by memory or cables, where it is a few. Say the same FI_UET_PROTECT at "
          "both ends.");
    case DropReason::kVlanMismatch:
      return if_many(
          "Frames of other VLANs reach this port: say FI_UET_VLAN, or correct the switch.");
    case DropReason::kNoNeighbor:
      return fault(
          "The peer or the gateway is off, has another address or is in another VLAN: look at "
          "FI_UET_ADDR, FI_UET_GATEWAY, FI_UET_PREFIX and FI_UET_VLAN.");
    case DropReason::kNeighborQueueFull:
      return if_many(
          "At the start, while addresses are found; the packets are sent again. If it goes on, "
          "peers "
          "do not answer: see no-neighbor.");
    case DropReason::kNeighborTableFull:
      return fault("More neighbors than places wait for an answer: many addresses do not exist.");
    case DropReason::kNoBuffer:
      return fault(
          "Raise FI_UET_POOL, or turn the endpoint more often: the program holds packets.");
    case DropReason::kTooLarge:
      return fault(
          "The MTU of the device is below what the endpoint was opened with: lower FI_UET_MTU or "
          "FI_UET_MAX_PAYLOAD, or raise the MTU of the device.");
    case DropReason::kNoRoute:
      return fault("Say FI_UET_GATEWAY or correct FI_UET_PREFIX.");
    case DropReason::kWrongFamily:
      return fault("Say FI_UET_ADDR of the family that the peers have.");
    case DropReason::kTransmitFull:
      return if_many(
          "The asker repeats its question. If it goes on, the device takes nothing: look at its "
          "link.");
    case DropReason::kAddressConflict:
      return fault("Give each host an FI_UET_ADDR of its own.");
    case DropReason::kSocketOverflow:
      return if_many(
          "A burst was larger than the buffer; the packets are sent again. If it goes on, "
          "sysctl -w net.core.rmem_max=16777216 gives larger buffers, and FI_UET_PROGRESS=thread "
          "reads them sooner.");
    case DropReason::kSendFailed:
      return fault(
          "ip route get ADDRESS says whether there is a route; a firewall or a missing permission "
          "refuses as well.");
    case DropReason::kLinkDown:
      return if_many(
          "When a plane loses its link; the packets go by others. If it goes on, look at the "
          "device "
          "of the plane that is DOWN.");
    case DropReason::kDeviceMissed:
    case DropReason::kDeviceNoBuffer:
      return if_many(kSlowReader);
    case DropReason::kDeviceReceiveError:
      return fault(
          "Cable, optics, or a sender with a larger MTU: compare MTUs, then look at the link.");
    case DropReason::kDeviceSendError:
      return fault("The log of the driver says why; a reset of the device often ends it.");
    case DropReason::kDeviceGone:
      return fault("Bring the device back and open the endpoint again; other planes go on.");
    case DropReason::kImpaired:
      return harmless("FI_UET_IMPAIR asks for it: unset it where the network should be good.");
    case DropReason::kTssUnexpected:
      return fault("The peer has keys and this endpoint has none: say FI_UET_KEYS here.");
    case DropReason::kTssMissing:
      return fault(
          "The peer has no keys: say FI_UET_KEYS there. Many from strangers are an attack.");
    case DropReason::kTssUnknownDomain:
      return fault("The peer has the key file of another domain (SDI): uet-keys check names it.");
    case DropReason::kTssNoKey:
      return if_many(
          "During a rotation. If it goes on, the peer rotated before this host had the key, or "
          "this "
          "host retired it: uet-keys install.");
    case DropReason::kTssMalformed:
      return fault(
          "One end has SSI and the other has not, or it is an attack: compare the key files.");
    case DropReason::kTssDomainStopped:
      return fault(
          "auth_fail_action: drop_domain took effect. A new key (uet-keys rotate) or "
          "FI_UET_KEYS_SIGNAL ends it.");
    case DropReason::kTssLateEpoch:
      return fault("The peer has an old epoch of the key: give it the newer key file.");
    case DropReason::kTssNotMember:
      return fault(
          "Add the address and SSI of the peer to members of the key file, if it belongs there.");
    case DropReason::kTssBadIcv:
      return fault(
          "Another key, a NAT, damage, or forgery. Where every packet of a peer is dropped, "
          "compare "
          "the key files.");
    case DropReason::kTssReplayed:
      return if_many("Copies made by the network. Many are recorded packets of an attacker.");
    case DropReason::kTssTrimmed:
      return if_many(
          "A switch trims under congestion; the loss is found without it. Trimming gains little "
          "with keys.");
    case DropReason::kTssSourcesFull:
      return fault("More senders than limits.max_sources of the key file: raise it.");
    case DropReason::kTssCounterSpent:
      return fault("Rotate the key (uet-keys rotate), or make the counter state writable.");
    case DropReason::kTssNoTxKey:
      return fault(
          "The key file has no key to send under, or a server with SSI speaks to an address that "
          "is "
          "not in members.");
    case DropReason::kUnknownPdc:
    case DropReason::kDuplicate:
    case DropReason::kPsnBelowStart:
    case DropReason::kPsnTooOld:
    case DropReason::kNackNotOutstanding:
    case DropReason::kStaleNack:
    case DropReason::kClosing:
    case DropReason::kUnknownPktId:
    case DropReason::kStaleAnswer:
    case DropReason::kSesUnknownResponse:
      return harmless(kLatePacket);
    case DropReason::kPeerMismatch:
      return if_many(
          "A peer that started again, or packets in the name of another host: with many, look for "
          "two hosts with one address.");
    case DropReason::kRoleMismatch:
    case DropReason::kModeMismatch:
    case DropReason::kAckNeverSent:
    case DropReason::kSynNotAllowed:
    case DropReason::kMalformedNack:
    case DropReason::kReservedNack:
    case DropReason::kBadClear:
    case DropReason::kSesMalformed:
      return fault(kPeerBug);
    case DropReason::kPsnBeyondWindow:
      return if_many(
          "The source sent more than this target grants; it sends again. If it goes on, give both "
          "ends the same FI_UET_MPR.");
    case DropReason::kRodOutOfOrder:
      return if_many(
          "A loss on an ordered context, after which everything behind the gap comes again. "
          "FI_UET_ROD_REORDER=1 keeps it.");
    case DropReason::kStaleSyn:
      return harmless(
          "A copy of an old opening; with keys that were used before also the first packet of each "
          "PDC, which is challenged once.");
    case DropReason::kUnknownControlNack:
      return harmless("The peer is of another make and goes on without that kind of packet.");
    case DropReason::kTrimmed:
      return if_many(
          "A switch trims under congestion; the source sends again at once. Many are an "
          "oversubscribed link.");
    case DropReason::kNoPdc:
      return if_many("The source asks again. If it goes on, raise FI_UET_MAX_PDC here.");
    case DropReason::kNoTracker:
      return if_many(
          "The source asks again. If it goes on, more contexts have gaps at a time than there are "
          "trackers: FI_UET_PDS=Max_RX_Trackers=N.");
    case DropReason::kNoResource:
      return if_many(
          "The source pauses and sends again. If it goes on, unexpected messages fill the room: "
          "post "
          "receives sooner, or raise FI_UET_OVERFLOW_BYTES and FI_UET_OVERFLOW_MSGS.");
    case DropReason::kUnknownCcType:
      return harmless(
          "The peer is of another make; congestion control goes on by round trip times.");
    case DropReason::kAckQueueFull:
      return if_many(
          "The source sends again. If it goes on, the port cannot send: look at its link.");
    case DropReason::kTableRefused:
      return if_many(
          "An idempotent request or response that the layer above does not take; a late copy "
          "mostly. "
          "If it goes on, FI_UET_PCAP and uet-dump show who sends it.");
    case DropReason::kNackRateLimited:
      return if_many(
          "A source that is refused often; it finds out by its timeout. See the NACKs by code.");
    case DropReason::kDatagramNoBuffer:
      return if_many(
          "Datagrams are sent once, and one without a posted receive is gone: post receives "
          "sooner. "
          "An unknown job or address is FI_UET_JOB or FI_UET_JOBS.");
    case DropReason::kAtomicRefused:
      return fault(
          "The program names memory, an operator or a type that is not there; its completion has "
          "the "
          "error.");
    case DropReason::kCount:
      break;
  }
  return {};
}

constexpr std::string_view meaning(EventId event) {
  switch (event) {
    case EventId::kPacketReceived:
      return "A packet came from the port, before any check.";
    case EventId::kPacketSent:
      return "The port took a packet.";
    case EventId::kPacketDropped:
      return "A packet ended here; drops count by reason.";
    case EventId::kPortBusy:
      return "The port took fewer packets than were built; they wait. Many: the device is the "
             "bottleneck.";
    case EventId::kPdcOpened:
      return "A delivery context (PDC) begins, by us or by a peer. Many: FI_UET_PDC_IDLE closes "
             "them "
             "too soon.";
    case EventId::kPdcEstablished:
      return "The peer answered the first packet of a PDC.";
    case EventId::kPdcStateChanged:
      return "A PDC went from one state to another.";
    case EventId::kPdcClosed:
      return "A PDC ended; after an error its messages fail or begin anew.";
    case EventId::kMessageQueued:
      return "A message waits for its PDC to send it.";
    case EventId::kRequestSent:
      return "A packet of a message went out, for the first time or again.";
    case EventId::kPacketRetransmitted:
      return "A packet was sent again. Beside request-sent it is the share of the work that is "
             "lost.";
    case EventId::kRequestDelivered:
      return "A packet of a message was handed to the layer above, once.";
    case EventId::kDuplicateReceived:
      return "A packet came that was received before: its ACK was lost or late, or the peer timed "
             "out "
             "too soon.";
    case EventId::kAckSent:
      return "An ACK went out.";
    case EventId::kAckReceived:
      return "An ACK came.";
    case EventId::kNackSent:
      return "This endpoint refused a packet; nacks count by code.";
    case EventId::kNackReceived:
      return "A peer refused a packet of ours; nacks count by code.";
    case EventId::kControlSent:
      return "A control packet went out: probe, clear, close, credit.";
    case EventId::kControlReceived:
      return "A control packet came.";
    case EventId::kTimeout:
      return "A retransmission timeout: nothing was heard for that long. Many: a peer or a path is "
             "dead, or the peer's program is away; FI_UET_RTO_INIT and FI_UET_PROGRESS.";
    case EventId::kInferredLoss:
      return "A packet is taken for lost because later ones were answered, or at the end of a "
             "timeout.";
    case EventId::kClearMoved:
      return "A source said which answers it no longer needs; the target forgets them.";
    case EventId::kWindowChanged:
      return "Congestion control changed the window of a peer.";
    case EventId::kCreditGranted:
      return "This endpoint granted credit to a source (FI_UET_CC=rccc or both).";
    case EventId::kPathEvicted:
      return "A path that lost or slowed packets is avoided.";
    case EventId::kPathRestored:
      return "A path that was avoided is used again.";
    case EventId::kPlanesChanged:
      return "A plane lost its link or has it again.";
    case EventId::kMessageSubmitted:
      return "A message, or the next attempt of one, was handed to packet delivery.";
    case EventId::kMessageCompleted:
      return "An operation of the program ended.";
    case EventId::kMessageMatched:
      return "A receive that was posted took a message.";
    case EventId::kMessageHeld:
      return "A message came before its turn and waits for those sent before it.";
    case EventId::kOrderGapPassed:
      return "A message of an ordered stream will never come; those behind it go on.";
    case EventId::kMessageUnexpected:
      return "A message found no receive and waits in the room of FI_UET_OVERFLOW_BYTES.";
    case EventId::kMessageDelivered:
      return "A message is whole in its buffer.";
    case EventId::kMessageRetried:
      return "An attempt was refused, or its PDC was lost, and the message goes again, mostly "
             "after a "
             "pause. Many without lost PDCs: the receiver posts receives too late.";
    case EventId::kLinkRetried:
      return "A port without a link tried again to get it.";
    case EventId::kCount:
      break;
  }
  return {};
}

constexpr bool is_every_one_explained() {
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i)
    if (advice(static_cast<DropReason>(i)).advice.empty()) return false;
  for (std::size_t i = 0; i < base::kEventCount; ++i)
    if (meaning(static_cast<EventId>(i)).empty()) return false;
  return true;
}
static_assert(is_every_one_explained());

}  // namespace

std::string_view name_of(Concern concern) {
  switch (concern) {
    case Concern::kHarmless:
      return "harmless";
    case Concern::kIfMany:
      return "harmless while rare";
    case Concern::kFault:
      return "a fault";
  }
  return {};
}

DropAdvice advice_on(DropReason reason) {
  return advice(reason);
}

std::string_view meaning_of(EventId event) {
  return meaning(event);
}

std::vector<std::string> explain(std::string_view name) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<DropReason>(i);
    if (!name.empty() && name != base::name_of(reason)) continue;
    const DropAdvice a = advice(reason);
    out.push_back(fmt::format("drop {}: {} ({}). {}", base::name_of(reason), base::text_of(reason),
                              name_of(a.concern), a.advice));
  }
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const auto event = static_cast<EventId>(i);
    if (!name.empty() && name != base::describe(event).name) continue;
    out.push_back(fmt::format("event {}: {}", base::describe(event).name, meaning(event)));
  }
  return out;
}

}  // namespace uet::stat
