#include "provider/refused_packets.h"

#include <algorithm>
#include <system_error>

#include "lib/net/port_name.h"

namespace uet::provider {
namespace {

using base::DropReason;

/// `host` is where they should go.
std::string what_to_do(DropReason reason, const net::PortFacts& facts, const std::string& host) {
  const bool is_kernel = net::is_udp_port(facts.name);
  switch (reason) {
    case DropReason::kNoRoute:
      return "it is outside the prefix and there is no gateway; say FI_UET_GATEWAY or correct "
             "FI_UET_PREFIX";
    case DropReason::kNoNeighbor:
      return "the next hop does not answer ARP or Neighbor Discovery; the host or the gateway is "
             "off, has another address or is in another VLAN: look at " +
             (is_kernel ? "ip route get " + host + " and ip neigh"
                        : "FI_UET_ADDR, FI_UET_GATEWAY, FI_UET_PREFIX and FI_UET_VLAN");
    default:
      return "ip route get " + host +
             " says whether there is a route; a firewall or a missing permission refuses as well";
  }
}

}  // namespace

std::optional<std::string> RefusedPackets::look(fep::Fep& fep, const std::vector<StuckPdc>& stuck) {
  const net::SendFailure failure = fep.port().last_send_failure();
  const DropReason reason = failure.reason;
  const bool are_many = growth_of(fep.trace(), reason) >= kPacketsToTell;
  count(fep.trace());
  ++looks_since_told_;
  const auto waits = std::ranges::find_if(stuck, [&](const StuckPdc& pdc) {
    return pdc.looks > 0 && pdc.peer.host() == failure.destination.host();
  });
  has_some_ = are_many && waits != stuck.end();
  if (!has_some_ || looks_since_told_ < kLooksBetweenWarnings) return std::nullopt;
  looks_since_told_ = 0;
  const std::string why =
      failure.error == 0 ? "" : " (" + std::generic_category().message(failure.error) + ")";
  return "packets to " + waits->peer.to_string() + " do not leave this host, " +
         std::to_string(fep.trace().drops(reason)) + " are dropped as " +
         std::string(base::name_of(reason)) + why + ": " +
         what_to_do(reason, fep.port().facts(), waits->peer.host().to_string());
}

std::uint64_t RefusedPackets::growth_of(const base::Trace& trace, DropReason reason) const {
  const auto at = std::ranges::find(kReasons, reason);
  if (at == kReasons.end()) return 0;
  return trace.drops(reason) - counts_[next_][static_cast<std::size_t>(at - kReasons.begin())];
}

void RefusedPackets::count(const base::Trace& trace) {
  Counts& oldest = counts_[next_];
  next_ = (next_ + 1) % kLooks;
  for (std::size_t i = 0; i < kReasons.size(); ++i) oldest[i] = trace.drops(kReasons[i]);
}

}  // namespace uet::provider
