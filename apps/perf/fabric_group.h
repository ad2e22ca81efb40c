/// A group of collective operations over a libfabric endpoint: tagged messages between all members.
#pragma once

#include <deque>
#include <vector>

#include "apps/perf/collectives.h"
#include "apps/perf/fabric_endpoint.h"

namespace uet::perf {

inline constexpr unsigned kMembersMax = 1024;

class FabricGroup final : public Group {
 public:
  /// `names` of all members in the order of their ranks, ours included.
  FabricGroup(FabricEndpoint& endpoint, unsigned rank,
              const std::vector<std::vector<std::uint8_t>>& names);

  unsigned rank() const override { return rank_; }
  unsigned size() const override { return static_cast<unsigned>(peers_.size()); }
  Ticket send(unsigned to, std::uint64_t tag, const std::uint8_t* from, std::size_t bytes) override;
  Ticket receive(unsigned from, std::uint64_t tag, std::uint8_t* to, std::size_t bytes) override;
  void wait(Ticket ticket) override;

 private:
  Ticket new_operation(std::size_t bytes);

  FabricEndpoint& endpoint_;
  unsigned rank_;
  std::vector<fi_addr_t> peers_;
  std::deque<Operation> operations_;  ///< stay where they are while providers point to them
  std::vector<Ticket> free_;
};

}  // namespace uet::perf
