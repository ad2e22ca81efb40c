#include "ses/peer_table.h"

namespace uet::ses {
namespace {

std::size_t source_hash(const net::FabricAddress& fa, std::uint32_t initiator_id) {
  return fa.hash() ^ (std::size_t{initiator_id} * 0x9e3779b97f4a7c15ULL);
}

}  // namespace

std::size_t PeerTable::NameHash::operator()(const Name& name) const {
  const Address& a = name.address;
  const std::size_t job = name.job ? *name.job + std::size_t{1} : 0;
  return source_hash(a.fabric_address, a.initiator_id) ^ job * 0xc4ceb9fe1a85ec53ULL ^
         (std::size_t{a.resource_index} << 12 | a.pid_on_fep) * 0xff51afd7ed558ccdULL;
}

PostResult<PeerId> PeerTable::add(const Address& address, std::optional<std::uint32_t> job) {
  if (address.resource_index == 0 || address.resource_index > 0xfff || address.pid_on_fep > 0xfff ||
      address.fabric_address.is_unspecified() || (job && *job > kLargestJob))
    return PostError::kBadArgument;
  if (auto it = by_name_.find({address, job}); it != by_name_.end()) {
    ++it->second->users;
    return it->second->id;
  }
  Peer* peer = pool_.acquire();
  if (peer == nullptr) return PostError::kNoResources;
  peer->address = address;
  peer->job = job;
  peer->users = 1;
  peer->holds = 0;
  peer->generation = {};
  peer->streams = {};
  peer->refuses_rendezvous = peer->takes_rendezvous = peer->lacks_room = false;
  peer->flows = nullptr;
  // The life number in the upper bits makes a PeerId that was removed recognisable.
  peer->id = (peer->serial << kIndexBits) | peer->pool_index;
  by_name_.emplace(Name{address, job}, peer);
  if (address.has_initiator_id)
    by_source_.emplace(source_hash(address.fabric_address, address.initiator_id), peer);
  return peer->id;
}

void PeerTable::remove(PeerId id) {
  Peer* peer = find(id);
  if (peer == nullptr) return;
  if (--peer->users == 0) forget(*peer);
}

Peer* PeerTable::find(PeerId id) {
  Peer* peer = pool_.at(id & ((1u << kIndexBits) - 1));
  return peer != nullptr && peer->id == id && peer->users > 0 ? peer : nullptr;
}

PeerId PeerTable::find_source(const Source& source) const {
  const auto [first, last] =
      by_source_.equal_range(source_hash(source.fabric_address, source.initiator_id));
  PeerId of_any_job = 0;
  for (auto it = first; it != last; ++it) {
    const Peer& peer = *it->second;
    if (peer.address.fabric_address != source.fabric_address ||
        peer.address.initiator_id != source.initiator_id)
      continue;
    if (peer.job == source.job_id) return peer.id;
    if (!peer.job) of_any_job = peer.id;
  }
  return of_any_job;
}

void PeerTable::unhold(Peer& peer) {
  if (--peer.holds == 0 && peer.users == 0) pool_.release(&peer);
}

void PeerTable::forget(Peer& peer) {
  by_name_.erase({peer.address, peer.job});
  if (peer.address.has_initiator_id) {
    const auto [first, last] =
        by_source_.equal_range(source_hash(peer.address.fabric_address, peer.address.initiator_id));
    for (auto it = first; it != last; ++it)
      if (it->second == &peer) {
        by_source_.erase(it);
        break;
      }
  }
  if (peer.holds == 0) pool_.release(&peer);
}

}  // namespace uet::ses
