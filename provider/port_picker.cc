#include "provider/port_picker.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/udp/descriptor.h"
#include "lib/udp/local_addresses.h"
#include "lib/udp/udp_sockets.h"
#include "provider/provider.h"

namespace uet::provider {
namespace {

/// Why each of some addresses is not to be had.
class Refusals {
 public:
  explicit Refusals(std::string why) : why_(std::move(why)) {}

  /// `holder`: of the lock, 0 when unknown. `closed_here`: this process had the UDP port before.
  void add(const PortChoice& choice, pid_t holder, bool closed_here = false) {
    const bool is_own = holder == getpid();
    is_taken_ = true;
    can_be_ended_ = can_be_ended_ || !is_own;
    why_ += (why_.empty() ? "" : "; ") + choice.address.to_string() + " is used by ";
    if (is_own)
      why_ +=
          "another copy of this provider in this process, or in another container by the process "
          "with the number of this one";
    else if (holder != 0)
      why_ += "process " + std::to_string(holder);
    else
      why_ += closed_here ? "a child of this process, or by another process" : "another process";
  }
  /// What kept others away, and what helps where that is processes.
  std::string text() const {
    if (!is_taken_) return why_;
    return why_ + (can_be_ended_ ? ": end it, or set" : ": set") +
           " FI_UET_ADDR to another address, or to several (a|b), of which each process takes the "
           "first that is free";
  }

 private:
  std::string why_;
  bool is_taken_ = false, can_be_ended_ = false;
};

std::uint16_t udp_port_of(const PortChoice& choice, const fep::Settings& settings) {
  return choice.address.udp_port_or(static_cast<std::uint16_t>(settings.udp_port));
}

bool was_closed_here(const PortChoice& choice, const fep::Settings& settings) {
  return choice.is_one_udp_port() &&
         udp::closed_for(choice.address.host(), udp_port_of(choice, settings)).has_value();
}

/// Nothing is configured: what the user should know of an address that no other host can reach. Empty: others can.
std::string loopback_warning(const Candidates& candidates, const PortChoice& choice) {
  if (!choice.address.is_loopback()) return {};
  const auto network = std::ranges::find_if(
      candidates.ports, [](const PortChoice& c) { return !c.address.is_loopback(); });
  return network == candidates.ports.end()
             ? udp::loopback_warning(choice.address)
             : udp::no_place_warning(network->address, choice.address);
}

bool contains(const std::vector<net::FabricAddress>& all, net::FabricAddress address) {
  return std::ranges::find(all, address) != all.end();
}

}  // namespace

bool is_held_by_stranger(const PortChoice& choice, const fep::Settings& settings) {
  return choice.is_one_udp_port() &&
         udp::is_port_taken(choice.address.host(), udp_port_of(choice, settings));
}

void PortPicker::lose(net::FabricAddress address) {
  std::erase_if(held_, [&](const Held& h) { return h.choice.address == address; });
}

const PortPicker::Held* PortPicker::held(net::FabricAddress address) const {
  const auto at = std::ranges::find(held_, address, [](const Held& h) { return h.choice.address; });
  return at == held_.end() ? nullptr : &*at;
}

PortPicker::Picked PortPicker::first_free(Candidates candidates) const {
  Refusals refusals(std::move(candidates.why_none));
  for (PortChoice& choice : candidates.ports) {
    if (const Held* ours = held(choice.address)) return ours->choice;
    pid_t holder = 0;
    if (!AddressLock::is_held(choice.address, holder)) return choice;
    refusals.add(choice, holder);
  }
  return refusals.text();
}

PortPicker::Picked PortPicker::take_first(const fep::Settings& settings, Candidates candidates) {
  Refusals refusals(std::move(candidates.why_none));
  for (PortChoice& choice : candidates.ports) {
    if (const Held* ours = held(choice.address)) return ours->choice;
    pid_t holder = 0;
    auto lock = AddressLock::acquire(choice.address, holder);
    if (lock && !is_held_by_stranger(choice, settings)) {
      held_.push_back(Held{choice, std::move(*lock)});
      return choice;
    }
    refusals.add(choice, holder, was_closed_here(choice, settings));
  }
  return refusals.text();
}

/// What was said once is said again, and what else is taken is like it if possible.
Candidates PortPicker::own_candidates(const fep::Settings& settings) const {
  Candidates out = own_ports(settings);
  if (own_) out.prefer(*own_);
  return out;
}

PortPicker::Picked PortPicker::find_own(const fep::Settings& settings) {
  if (own_ && held(own_->address) != nullptr) return *own_;
  const Candidates candidates = own_candidates(settings);
  auto found = first_free(candidates);
  if (!found) return found;
  own_ = *found;
  propose(*found, true);
  return found;
}

void PortPicker::propose(const PortChoice& choice, bool is_own) {
  if (proposal(choice.address) == nullptr && !contains(named_, choice.address))
    proposed_.push_back(Proposal{choice, is_own, std::nullopt});
}

/// What we hold there, else the first that is free.
const PortChoice* PortPicker::rail_on(const Candidates& candidates,
                                      const std::string& device) const {
  const PortChoice* free = nullptr;
  for (const PortChoice& choice : candidates.ports) {
    if (choice.device != device) continue;
    if (held(choice.address) != nullptr) return &choice;
    pid_t holder = 0;
    if (free == nullptr && !AddressLock::is_held(choice.address, holder)) free = &choice;
  }
  return free;
}

base::Result<std::vector<PortChoice>, std::string> PortPicker::find_rails(
    const fep::Settings& settings) {
  auto own = find_own(settings);
  if (!own) return own.error();
  std::vector<PortChoice> rails = {*own};
  if (!is_configured(settings)) return rails;
  const Candidates candidates = own_candidates(settings);
  std::vector<std::string> seen = {own->device};
  for (const PortChoice& choice : candidates.ports) {
    if (std::ranges::find(seen, choice.device) != seen.end()) continue;
    seen.push_back(choice.device);
    const PortChoice* rail = rail_on(candidates, choice.device);
    if (rail == nullptr) continue;
    propose(*rail, false);
    rails.push_back(*rail);
  }
  return rails;
}

PortPicker::Picked PortPicker::take_own(const fep::Settings& settings) {
  if (own_ && held(own_->address) != nullptr) return *own_;
  const Candidates candidates = own_candidates(settings);
  auto taken =
      take_first(settings, without_held(candidates));  // rails stay apart while there are others
  if (!taken) taken = take_first(settings, candidates);
  if (!taken) return taken;
  own_ = *taken;
  // Where the network comes up later, the process keeps the address that it took.
  const std::string warning =
      is_configured(settings) ? std::string() : loopback_warning(candidates, *taken);
  if (!warning.empty()) tell_user(warning);
  return taken;
}

PortPicker::Picked PortPicker::find(const fep::Settings& settings, net::FabricAddress address) {
  if (std::erase_if(proposed_, [&](const Proposal& p) { return p.choice.address == address; }) != 0)
    named_.push_back(address);
  if (const Held* ours = held(address)) return ours->choice;
  return first_free(ports_at(settings, address));
}

PortPicker::Picked PortPicker::take(const fep::Settings& settings, net::FabricAddress address) {
  if (const Held* ours = held(address)) return ours->choice;
  const auto at =
      std::ranges::find(proposed_, address, [](const Proposal& p) { return p.choice.address; });
  if (at == proposed_.end()) return take_first(settings, ports_at(settings, address));
  return at->is_own ? take_own(settings) : take_rail(settings, *at);
}

PortPicker::Picked PortPicker::take_named(const fep::Settings& settings,
                                          const std::string& domain_name) {
  const auto at = std::ranges::find_if(
      proposed_, [&](const Proposal& p) { return p.choice.domain_name() == domain_name; });
  return at == proposed_.end() || at->is_own ? take_own(settings)
                                             : take(settings, at->choice.address);
}

/// Not exchanged for a port that this process has: the program would have it twice.
PortPicker::Picked PortPicker::take_rail(const fep::Settings& settings, Proposal& proposal) {
  if (proposal.taken_instead) {
    if (const Held* ours = held(*proposal.taken_instead)) return ours->choice;
  }
  Candidates candidates = without_held(own_candidates(settings));
  candidates.prefer(proposal.choice);
  auto taken = take_first(settings, std::move(candidates));
  if (taken) proposal.taken_instead = taken->address;
  return taken;
}

Candidates PortPicker::without_held(Candidates candidates) const {
  std::erase_if(candidates.ports, [&](const PortChoice& c) { return held(c.address) != nullptr; });
  return candidates;
}

const PortChoice* PortPicker::proposal(net::FabricAddress address) const {
  const auto at =
      std::ranges::find(proposed_, address, [](const Proposal& p) { return p.choice.address; });
  return at == proposed_.end() ? nullptr : &at->choice;
}

void PortPicker::abandon_in_child() {
  for (Held& h : held_) h.lock.abandon_in_child();
}

}  // namespace uet::provider
