#include "apps/perf/fabric_group.h"

namespace uet::perf {
namespace {

/// The sender is part of a message's tag: not every provider matches by source.
std::uint64_t tag_of(std::uint64_t tag, unsigned sender) {
  return tag * kMembersMax + sender;
}

}  // namespace

FabricGroup::FabricGroup(FabricEndpoint& endpoint, unsigned rank,
                         const std::vector<std::vector<std::uint8_t>>& names)
    : endpoint_(endpoint), rank_(rank) {
  for (const auto& name : names) peers_.push_back(endpoint.add_peer(name));
}

Group::Ticket FabricGroup::new_operation(std::size_t bytes) {
  if (free_.empty()) {
    free_.push_back(operations_.size());
    operations_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  operations_[ticket].bytes = bytes;
  operations_[ticket].is_done = false;
  return ticket;
}

Group::Ticket FabricGroup::send(unsigned to, std::uint64_t tag, const std::uint8_t* from,
                                std::size_t bytes) {
  const Ticket ticket = new_operation(bytes);
  std::uint64_t finished = 0;
  endpoint_.post(
      [&] {
        return fi_tsend(endpoint_.ep(), from, bytes, endpoint_.descriptor(), peers_[to],
                        tag_of(tag, rank_), &operations_[ticket]);
      },
      finished);
  return ticket;
}

Group::Ticket FabricGroup::receive(unsigned from, std::uint64_t tag, std::uint8_t* to,
                                   std::size_t bytes) {
  const Ticket ticket = new_operation(bytes);
  std::uint64_t finished = 0;
  endpoint_.post(
      [&] {
        return fi_trecv(endpoint_.ep(), to, bytes, endpoint_.descriptor(), FI_ADDR_UNSPEC,
                        tag_of(tag, from), 0, &operations_[ticket]);
      },
      finished);
  return ticket;
}

void FabricGroup::wait(Ticket ticket) {
  while (!operations_[ticket].is_done) endpoint_.poll();
  free_.push_back(ticket);
}

}  // namespace uet::perf
