/// A libfabric endpoint and its one peer, over whose control connection addresses are exchanged.
#pragma once

#include <string>

#include "apps/perf/control_channel.h"
#include "apps/perf/fabric_endpoint.h"

namespace uet::perf {

/// A peer that fails or leaves ends every wait.
class FabricSession : public FabricEndpoint {
 public:
  FabricSession(ControlChannel& control, Patience& patience, const std::string& provider,
                bool ordered, std::size_t buffer_bytes);

  fi_addr_t peer() const { return peer_; }
  std::uint64_t remote_address() const { return remote_address_; }
  std::uint64_t remote_key() const { return remote_key_; }

 private:
  void exchange_addresses();
  void look_up(bool something_finished);

  ControlChannel& control_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t remote_address_ = 0;
  std::uint64_t remote_key_ = 0;
  Patience::Clock::time_point told_{};  ///< the peer that something finished
};

}  // namespace uet::perf
