/// What a real process has under the provider, on virtual time: clock, seed, address locks, and ports joined by a network that
/// loses what it is told to lose. Linked in the place of provider/clock.cc, provider/address_lock.cc, provider/live_view.cc and
/// lib/ports/open_port.cc, with ppoll() and sched_yield() wrapped, so that the rest of the provider runs as it is and every run of one input is
/// the same. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/units.h"
#include "lib/net/port.h"

namespace uet::fuzz {

class VirtualPort;

class VirtualHost {
 public:
  static VirtualHost& instance();

  base::Instant now() const { return now_; }
  /// Time goes on a little with each look at the clock, as on a real one: what spins until some time has passed comes to its end.
  base::Instant look();
  void pass(base::Duration time) { now_ = now_ + time; }

  /// The parameters that libfabric has for the provider: FI_UET_<KEY>, by the key in lower case.
  std::map<std::string, std::string, std::less<>> settings;
  std::uint32_t lost_in_256 = 0;
  /// What other threads of the program do while one sleeps in a call.
  std::function<void()> while_asleep;

  /// For the next input; no port may be open.
  void reset(std::uint64_t seed);
  std::size_t open_ports() const { return ports_.size(); }

  /// A call sleeps: until something arrives, or for as long as it wants.
  void sleep(base::Duration at_most);

  // --- For the ports
  void join(VirtualPort& port);
  void leave(VirtualPort& port);
  void carry(net::FabricAddress from, net::TxPacket& packet);
  bool has_arrived(net::FabricAddress at) const;
  std::size_t deliver(VirtualPort& port, std::span<net::RxPacket> out);

 private:
  struct Flight {
    base::Instant arrives;
    net::FabricAddress from, to;
    std::uint16_t entropy = 0;
    net::TosByte tos;
    std::vector<std::uint8_t> bytes;
  };
  static constexpr std::size_t kInFlight = 4096;  ///< as much as the network holds

  base::Instant now_;
  base::Rng rng_{1};
  std::map<net::FabricAddress, VirtualPort*> ports_;
  std::deque<Flight> flights_;  ///< by time of arrival
  bool is_asleep_ = false;
};

}  // namespace uet::fuzz
