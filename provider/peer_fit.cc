#include "provider/peer_fit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ses/payload_sizes.h"

namespace uet::provider {
namespace {

/// A few may be damage on the way; more of them are a peer with another setting.
constexpr std::uint64_t kPacketsToTell = 3;
constexpr std::uint64_t kCreditRequestsToTell =
    5;  ///< a second; requests that draw nothing leave ten times in one
constexpr int kLooksToTell = 2;
constexpr int kLooksToTellOfRoom = 3;  ///< so long may a receiver compute, and then go on by itself
constexpr auto kSilence = base::Duration::from_ms(1500);
constexpr std::uint32_t kHeaders = 160;

/// Of a packet that the flight recorder still knows.
std::optional<std::uint64_t> recorded_bytes(const base::Trace& trace, std::uint16_t pdc,
                                            base::Psn psn) {
  for (const base::Event& event : trace.recorded(pdc))
    if (event.id == base::EventId::kRequestSent && event.psn == psn) return event.a;
  return std::nullopt;
}

std::uint32_t nacks_received(const pds::Pds::PdcView& pdc) {
  std::uint32_t sum = 0;
  for (const pds::NackCount& nack : pdc.nacks)
    if (nack.way == pds::NackWay::kReceived) sum += nack.count;
  return sum;
}

std::string narrow_way(const net::PortFacts& facts) {
  return "the interface there or a switch between carries less than the MTU here, " +
         std::to_string(facts.ip_mtu) + "; FI_UET_MAX_PAYLOAD=1024 at both ends fits every way";
}

std::string setting_of_ports(const fep::Settings& settings) {
  std::string text = "FI_UET_PORT is ";
  for (const std::string& port : settings.ports)
    text += (&port == settings.ports.data() ? "" : "|") + port;
  return text;
}

}  // namespace

std::vector<std::string> PeerFit::look(base::Instant now, fep::Fep& fep,
                                       const fep::Settings& settings) {
  looked_before_ = std::exchange(looked_at_, now);
  ++looks_since_crc_;
  ++looks_since_silence_;
  ++looks_since_narrow_;
  ++looks_since_room_;
  look_at_crc(fep, settings);
  look_at_credit(fep, settings);
  look_at_security(fep, settings);
  look_at_room(fep, settings);
  if (look_at_link(now, fep, settings)) {
    look_for_silence(now, fep, settings);
    look_for_narrow_ways(fep);
  }
  return std::exchange(remarks_, {});
}

void PeerFit::remark(std::string text) {
  remarks_.push_back(std::move(text));
}

void PeerFit::look_at_crc(fep::Fep& fep, const fep::Settings& settings) {
  const std::uint64_t bad = fep.trace().drops(base::DropReason::kBadCrc);
  if (bad < bad_crcs_told_ + kPacketsToTell || looks_since_crc_ < kLooksBetweenWarnings) return;
  remark(std::to_string(bad - bad_crcs_told_) + " packets with a wrong CRC, the last from " +
         fep.last_bad_crc_from().to_string() + ": is FI_UET_PROTECT the same there (here " +
         (settings.protect == fep::Protection::kNone ? "none" : "crc") + ")?");
  bad_crcs_told_ = bad;
  looks_since_crc_ = 0;
}

/// A peer that gives no credit is asked again and again, while no data leaves: those of this version give it whatever they run.
void PeerFit::look_at_credit(fep::Fep& fep, const fep::Settings& settings) {
  base::Trace& trace = fep.trace();
  const std::uint64_t data =
      trace.count(base::EventId::kRequestSent) + trace.count(base::EventId::kPacketRetransmitted);
  const std::uint64_t asked = trace.count(base::EventId::kControlSent);
  const cc::Algorithm cc = settings.cc;
  const bool wants_credit = cc == cc::Algorithm::kRccc || cc == cc::Algorithm::kBoth;
  const bool is_stuck = wants_credit && data == data_sent_ &&
                        asked >= asked_ + kCreditRequestsToTell &&
                        fep.pds().gauges().queued_messages > 0;
  looks_without_credit_ = is_stuck ? looks_without_credit_ + 1 : 0;
  data_sent_ = data;
  asked_ = asked;
  if (looks_without_credit_ != kLooksToTell) return;
  std::string peer = "a peer";
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    if (pdc.queued > 0) peer = pdc.peer.to_string();
    return pdc.queued == 0;
  });
  remark("credit was asked for " + std::to_string(asked) + " times and " + peer +
         " grants none: it is of an older version or another make, and needs FI_UET_CC=nscc here "
         "(it is " +
         (cc == cc::Algorithm::kRccc ? "rccc" : "both") + ")");
}

void PeerFit::look_at_security(fep::Fep& fep, const fep::Settings& settings) {
  const base::Trace& trace = fep.trace();
  if (settings.keys.empty() && trace.drops(base::DropReason::kTssUnexpected) >= kPacketsToTell)
    remark(
        "packets come encrypted, and are dropped: a peer has FI_UET_KEYS set, and this endpoint "
        "has not");
  if (!settings.keys.empty() && trace.drops(base::DropReason::kTssMissing) >= kPacketsToTell)
    remark("packets come in clear, and are dropped: FI_UET_KEYS is set here, and not at a peer");
}

/// A receive that names one of the messages behind those that fill the room waits for ever, and nothing else tells why.
void PeerFit::look_at_room(fep::Fep& fep, const fep::Settings& settings) {
  const base::Trace& trace = fep.trace();
  const ses::Ses::Gauges gauges = fep.ses().gauges();
  const Received before =
      std::exchange(received_, {.matched = trace.count(base::EventId::kMessageMatched),
                                .delivered = trace.count(base::EventId::kMessageDelivered),
                                .unexpected = gauges.unexpected_messages,
                                .receives = gauges.receives_posted});
  const bool is_stuck =
      gauges.header_only_messages > 0 && gauges.receives_posted > 0 && received_ == before;
  looks_without_room_ = is_stuck ? looks_without_room_ + 1 : 0;
  if (looks_without_room_ < kLooksToTellOfRoom || looks_since_room_ < kLooksBetweenWarnings) return;
  remark("receives wait, and " + std::to_string(gauges.unexpected_messages) +
         " messages that none of them takes fill the room for what arrives before its receive, so "
         "that others are refused: raise FI_UET_OVERFLOW_MSGS (here " +
         std::to_string(settings.overflow_msgs) + ") and FI_UET_OVERFLOW_BYTES (here " +
         std::to_string(settings.overflow_bytes) + "), or receive some of these messages first");
  looks_since_room_ = 0;
}

/// Only where something waits to leave: a server whose client is not there yet has nothing to complain of.
bool PeerFit::look_at_link(base::Instant now, fep::Fep& fep, const fep::Settings& settings) {
  net::Port& port = fep.port();
  const bool has_link = port.planes_up(now) != 0;
  const bool waits = fep.pds().gauges().outstanding_packets > 0;
  looks_without_link_ = !has_link && waits ? looks_without_link_ + 1 : 0;
  if (looks_without_link_ == kLooksToTell) {
    const std::string& name = port.facts().name;
    const bool is_memif = name.find("memif") != std::string::npos;
    remark("port " + name + " has no link" +
           (is_memif ? ": is there a process with the other role at its socket? Here " +
                           setting_of_ports(settings)
                     : ""));
  }
  return has_link;
}

namespace {

std::string way_to_listen(const net::PortFacts& facts, std::uint16_t udp_port) {
  if (!facts.udp_encapsulation) return "on IP without UDP as here";
  const std::string port = std::to_string(udp_port);
  if (udp_port == facts.udp_port) return "with FI_UET_UDP_PORT " + port + " as here";
  return "behind no firewall that stops UDP port " + port + ",";
}

using HeardAt = std::unordered_map<net::FabricAddress, base::Instant>;

/// When each peer was heard of, on any of its contexts; those are left out that never were.
HeardAt when_heard(fep::Fep& fep) {
  HeardAt heard;
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    if (pdc.peer_id == 0) return true;
    const auto [at, is_new] = heard.try_emplace(pdc.peer, pdc.heard_at);
    if (!is_new) at->second = std::max(at->second, pdc.heard_at);
    return true;
  });
  return heard;
}

}  // namespace

/// An opening that is not answered, by a peer that is not heard of on other contexts either. Openings that are refused have been heard of.
void PeerFit::look_for_silence(base::Instant now, fep::Fep& fep, const fep::Settings& settings) {
  const bool is_explained = looks_since_crc_ < kLooksBetweenWarnings;
  if (looks_since_silence_ < kLooksBetweenWarnings || is_explained ||
      fep.pds().gauges().pdcs_half_open == 0)
    return;
  const net::PortFacts& facts = fep.port().facts();
  const HeardAt heard = when_heard(fep);
  std::string peer, narrow;
  bool was_heard = false;
  std::uint16_t udp_port = facts.udp_port;
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    const bool is_silent =
        pdc.is_initiator && pdc.peer_id == 0 && pdc.unacked > 0 && now - pdc.heard_at >= kSilence;
    if (!is_silent) return true;
    const auto last = heard.find(pdc.peer);
    was_heard = last != heard.end();
    if (was_heard && now - last->second < kSilence) return true;
    peer = pdc.peer.to_string();
    udp_port = pdc.peer.udp_port_or(facts.udp_port);
    const auto bytes = recorded_bytes(fep.trace(), pdc.id, pdc.cack + 1);
    if (bytes && *bytes > ses::kSmallestPayload + kHeaders) narrow = " Or " + narrow_way(facts);
    return false;
  });
  if (peer.empty()) return;
  looks_since_silence_ = 0;
  if (was_heard)
    return remark("nothing is heard from " + peer +
                  " any more: is its process stopped or dead, or does it compute and not poll "
                  "(FI_UET_PROGRESS=thread there answers meanwhile)?");
  remark("nothing is heard from " + peer + " yet: does an endpoint run there, " +
         way_to_listen(facts, udp_port) +
         (settings.keys.empty() ? " and without FI_UET_KEYS?" : " and with the same FI_UET_KEYS?") +
         narrow);
}

/// Large packets are lost while the peer is heard of and refuses nothing: a way that loses by size, and tells nothing. What is lost by
/// chance is not the oldest packet at two looks, and of a peer that has stopped nothing comes between them.
void PeerFit::look_for_narrow_ways(fep::Fep& fep) {
  const Stuck before = std::exchange(stuck_, Stuck{});
  const std::uint64_t resent = fep.trace().count(base::EventId::kPacketRetransmitted);
  const bool is_losing = std::exchange(retransmitted_, resent) != resent;
  if (!is_losing || looks_since_narrow_ < kLooksBetweenWarnings ||
      fep.payload_mtu() <= ses::kSmallestPayload)
    return;
  const HeardAt heard = when_heard(fep);
  std::string peer;
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    const auto last = heard.find(pdc.peer);
    if (pdc.unacked == 0 || last == heard.end() || last->second <= looked_before_) return true;
    const Stuck is{.id = pdc.id, .cack = pdc.cack, .nacks = nacks_received(pdc)};
    const bool is_still = is == before;
    if (is_still || stuck_.id == 0) stuck_ = is;
    if (is_still) peer = pdc.peer.to_string();
    return !is_still;
  });
  if (peer.empty()) return;
  const auto bytes = recorded_bytes(fep.trace(), stuck_.id, stuck_.cack + 1);
  if (bytes && *bytes <= ses::kSmallestPayload + kHeaders) return;
  remark("large packets to " + peer +
         " are lost again and again while others arrive: " + narrow_way(fep.port().facts()));
  looks_since_narrow_ = 0;
}

}  // namespace uet::provider
