/// Planes that have a link and take packets, but bring none while others do. One object for each endpoint.
#pragma once

#include <array>
#include <cstdint>

#include "lib/net/port.h"
#include "provider/remarks.h"

namespace uet::provider {

class DeafPlanes {
 public:
  void look(const net::Port& port, Remarks& remarks);

 private:
  /// What is sent by a plane is answered by it, so that long before so many one is there.
  static constexpr std::uint64_t kSentToTell = 100, kOthersToTell = 1000;

  /// Counters of packets when the plane brought one last.
  struct Plane {
    std::uint64_t sent = 0, received = 0, others = 0;
    int looks_since_told = kLooksBetweenWarnings;
  };
  std::array<Plane, net::kMaxPlanes> planes_{};
};

}  // namespace uet::provider
