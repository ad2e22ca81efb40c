#include "provider/reach.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "ses/payload_sizes.h"

namespace uet::provider {
namespace {

constexpr int kLooksToTellOfLink = 2;
constexpr int kLooksToTellOfLosses = 3;  ///< so late may an answer of the peer's user be
constexpr auto kSilence = base::Duration::from_ms(1500);
/// A port that asks for its neighbors itself says so late that one does not answer.
constexpr auto kSilenceOfNeighbors = base::Duration::from_ms(3000);
/// Retransmission and a busy peer explain a shorter silence of a peer that was heard of.
constexpr auto kOutage = base::Duration::from_seconds(5);
constexpr int kLooksToTellOfOutage = 5;
/// A loop that is so far behind takes no packets in: what is not heard then is the fault of this side.
constexpr auto kLoopBehind = base::Duration::from_ms(100);
constexpr std::size_t kPeersRemembered = 4096;
/// For so long at least, where there are more.
constexpr auto kRemembered = base::Duration::from_seconds(3600);
constexpr std::size_t kPdcsOfShortWalk = 1024;
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
  ++looks_since_outage_;
  ++looks_since_lossy_;
  stuck_.look(now, fep);
  remember_heard(now, fep);
  deaf_planes_.look(fep.port(), remarks_);
  const bool has_link = look_at_link(now, fep, settings);
  if (auto why = refused_.look(fep, stuck_.all())) remark(std::move(*why));
  if (has_link && !refused_.has_some()) {
    const bool is_loop_turned = now - fep.next_deadline() < kLoopBehind;
    if (!is_explained && is_loop_turned) {
      look_for_outages(now);
      look_for_unanswered_openings(now, fep, settings);
    }
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

}  // namespace

/// Contexts go, and what was heard on them stays known. Where nothing is amiss the walk is a short one: it begins with those that are idle,
/// and so go first.
void Reach::remember_heard(base::Instant now, fep::Fep& fep) {
  bool has_made_room = false;
  const bool is_all_well = fep.pds().gauges().pdcs_half_open == 0 && stuck_.all().empty();
  std::size_t left = is_all_well ? kPdcsOfShortWalk : std::numeric_limits<std::size_t>::max();
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    if (pdc.peer_id != 0) {
      if (heard_.size() >= kPeersRemembered && !heard_.contains(pdc.peer)) {
        if (!std::exchange(has_made_room, true))
          std::erase_if(heard_, [now](const auto& h) { return now - h.second.at > kRemembered; });
        if (heard_.size() >= kPeersRemembered) return --left > 0;
      }
      Heard& heard = heard_[pdc.peer];
      heard.at = std::max(heard.at, pdc.heard_at);
    }
    return --left > 0;
  });
}

/// An opening that is not answered, by a peer that is not heard of on other contexts either. Openings that are refused have been heard of.
void Reach::look_for_unanswered_openings(base::Instant now, fep::Fep& fep,
                                         const fep::Settings& settings) {
  if (fep.pds().gauges().pdcs_half_open == 0) return;
  const net::PortFacts& facts = fep.port().facts();
  const auto patience = asks_for_neighbors(facts) ? kSilenceOfNeighbors : kSilence;
  std::optional<net::FabricAddress> never_heard, not_any_more;
  base::Duration silence;
  std::string narrow;
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    const base::Duration waits = now - pdc.heard_at;
    if (!pdc.is_initiator || pdc.peer_id != 0 || pdc.unacked == 0 || waits < patience) return true;
    const auto heard = heard_.find(pdc.peer);
    if (heard != heard_.end()) {
      const bool is_out = waits >= kOutage && now - heard->second.at >= kOutage;
      if (is_out && !not_any_more && !heard->second.is_outage_told()) {
        not_any_more = pdc.peer;
        silence = waits;
      }
      return true;
    }
    never_heard = pdc.peer;
    const auto bytes = recorded_bytes(fep.trace(), pdc.id, pdc.cack + 1);
    if (bytes && *bytes > ses::kSmallestPayload + kHeaders) narrow = " Or " + narrow_way(facts);
    return false;
  });
  if (not_any_more && looks_since_outage_ >= kLooksBetweenWarnings)
    tell_outage(now, *not_any_more, silence, 0);
  if (!never_heard || looks_since_silence_ < kLooksBetweenWarnings) return;
  looks_since_silence_ = 0;
  remark("nothing is heard from " + never_heard->to_string() +
         " yet: does an endpoint run there, " +
         way_to_listen(facts, never_heard->udp_port_or(facts.udp_port)) +
         (settings.keys.empty() ? " and without FI_UET_KEYS?" : " and with the same FI_UET_KEYS?") +
         narrow);
}

/// Requests on open contexts that are not acknowledged, by peers of which nothing else is heard either. That is usual for seconds where a peer
/// computes and turns its loop by calls alone.
void Reach::look_for_outages(base::Instant now) {
  if (looks_since_outage_ < kLooksBetweenWarnings) return;
  std::optional<net::FabricAddress> first;
  base::Duration silence;
  int others = 0;
  for (const StuckPdc& pdc : stuck_.all()) {
    if (pdc.is_half_open || pdc.is_closing || pdc.looks < kLooksToTellOfOutage) continue;
    const auto heard = heard_.find(pdc.peer);
    if (heard == heard_.end() || heard->second.is_outage_told()) continue;
    if (now - heard->second.at < kOutage) continue;
    if (!first) {
      first = pdc.peer;
      // A peer may have had nothing to say for long before.
      silence = std::min(now - heard->second.at, base::Duration::from_seconds(pdc.looks));
    } else if (*first != pdc.peer) {
      ++others;
      heard->second.note_told(now);
    }
  }
  if (first) tell_outage(now, *first, silence, others);
}

void Reach::tell_outage(base::Instant now, net::FabricAddress peer, base::Duration silence,
                        int others) {
  looks_since_outage_ = 0;
  Heard& heard = heard_[peer];
  heard.note_told(now);
  const std::string of_others =
      others > 0 ? " and " + std::to_string(others) + (others > 1 ? " other peers" : " other peer")
                 : "";
  const std::string number =
      heard.outages > 1 ? " (outage " + std::to_string(heard.outages) + " of this peer)" : "";
  remark("nothing is heard from " + peer.to_string() + of_others + " any more for " +
         std::to_string(silence.ns() / base::Duration::from_seconds(1).ns()) +
         " s: is its process stopped or ended, does it compute and not poll "
         "(FI_UET_PROGRESS=thread there answers meanwhile), or is its host off?" +
         number);
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
