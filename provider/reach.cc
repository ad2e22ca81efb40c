#include "provider/reach.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ses/payload_sizes.h"

namespace uet::provider {
namespace {

constexpr int kLooksToTellOfLink = 2;
constexpr int kLooksToTellOfLosses = 3;  ///< so late may an answer of the peer's user be
constexpr auto kSilence = base::Duration::from_ms(1500);
/// A port that asks for its neighbors itself says so late that one does not answer.
constexpr auto kSilenceOfNeighbors = base::Duration::from_ms(3000);
constexpr std::uint32_t kHeaders = 160;

/// Of a packet that the flight recorder still knows.
std::optional<std::uint64_t> recorded_bytes(const base::Trace& trace, std::uint16_t pdc,
                                            base::Psn psn) {
  for (const base::Event& event : trace.recorded(pdc))
    if (event.id == base::EventId::kRequestSent && event.psn == psn) return event.a;
  return std::nullopt;
}

/// As far as it is known.
bool is_small_packet(const base::Trace& trace, const StuckPdc& pdc) {
  const auto bytes = recorded_bytes(trace, pdc.id, pdc.cack + 1);
  return bytes && *bytes <= ses::kSmallestPayload + kHeaders;
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

void Reach::look(base::Instant now, fep::Fep& fep, const fep::Settings& settings, bool is_explained,
                 Remarks& remarks) {
  ++looks_since_silence_;
  ++looks_since_lossy_;
  stuck_.look(now, fep);
  deaf_planes_.look(fep.port(), remarks_);
  const bool has_link = look_at_link(now, fep, settings);
  if (auto why = refused_.look(fep, stuck_.all())) remark(std::move(*why));
  if (has_link && !refused_.has_some()) {
    if (!is_explained) look_for_silence(now, fep, settings);
    look_for_narrow_ways(fep);
    look_for_one_way_losses(fep);
  }
  std::ranges::move(std::exchange(remarks_, {}), std::back_inserter(remarks));
}

void Reach::remark(std::string text) {
  remarks_.push_back(std::move(text));
}

/// Only where something waits to leave: a server whose client is not there yet has nothing to complain of.
bool Reach::look_at_link(base::Instant now, fep::Fep& fep, const fep::Settings& settings) {
  net::Port& port = fep.port();
  const bool has_link = port.planes_up(now) != 0;
  const bool waits = fep.pds().gauges().outstanding_packets > 0;
  looks_without_link_ = !has_link && waits ? looks_without_link_ + 1 : 0;
  if (looks_without_link_ == kLooksToTellOfLink) {
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

/// Ports of devices have a MAC address here, and find those of others themselves.
bool asks_for_neighbors(const net::PortFacts& facts) {
  return std::ranges::any_of(facts.mac, [](std::uint8_t byte) { return byte != 0; });
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
void Reach::look_for_silence(base::Instant now, fep::Fep& fep, const fep::Settings& settings) {
  if (looks_since_silence_ < kLooksBetweenWarnings || fep.pds().gauges().pdcs_half_open == 0)
    return;
  const net::PortFacts& facts = fep.port().facts();
  const auto patience = asks_for_neighbors(facts) ? kSilenceOfNeighbors : kSilence;
  const HeardAt heard = when_heard(fep);
  std::string peer, narrow;
  bool was_heard = false;
  std::uint16_t udp_port = facts.udp_port;
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    const bool is_silent =
        pdc.is_initiator && pdc.peer_id == 0 && pdc.unacked > 0 && now - pdc.heard_at >= patience;
    if (!is_silent) return true;
    const auto last = heard.find(pdc.peer);
    was_heard = last != heard.end();
    if (was_heard && now - last->second < patience) return true;
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

/// Large packets are lost while others come to the peer: a way that loses by size, and tells nothing. What is lost by chance is not the
/// oldest packet at two looks.
void Reach::look_for_narrow_ways(fep::Fep& fep) {
  if (looks_since_lossy_ < kLooksBetweenWarnings || fep.payload_mtu() <= ses::kSmallestPayload)
    return;
  for (const StuckPdc& pdc : stuck_.all()) {
    if (pdc.looks == 0 || !pdc.is_resent || !pdc.is_answered || is_small_packet(fep.trace(), pdc))
      continue;
    looks_since_lossy_ = 0;
    return remark(
        "large packets to " + pdc.peer.to_string() +
        " are lost again and again while others arrive: " + narrow_way(fep.port().facts()));
  }
}

/// The peer sends, but has answered no packet of ours, Probes included. One that has stopped is heard at the first look at most.
void Reach::look_for_one_way_losses(fep::Fep& fep) {
  if (looks_since_lossy_ < kLooksBetweenWarnings) return;
  for (const StuckPdc& pdc : stuck_.all()) {
    const bool is_one_way = pdc.looks >= kLooksToTellOfLosses && pdc.is_resent &&
                            pdc.looks_answered == 0 && pdc.looks_heard >= 2;
    if (!is_one_way) continue;
    looks_since_lossy_ = 0;
    const bool may_be_large = pdc.is_half_open && !is_small_packet(fep.trace(), pdc);
    const std::string peer = pdc.peer.to_string();
    return remark("packets to " + peer + " do not arrive, though " + peer +
                  " is heard: look at the route to it, at firewalls on the way, and at who else "
                  "has its address" +
                  (may_be_large ? ". Or " + narrow_way(fep.port().facts()) : ""));
  }
}

}  // namespace uet::provider
