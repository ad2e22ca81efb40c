/// How many NACKs a source address may provoke that are not tied to a live PDC. [PDS 2.2, 19 R19]
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/units.h"
#include "lib/net/fabric_address.h"

namespace uet::pds {

/// A token bucket per source, in a table of fixed size: four candidates a source, the longest
/// unused one is taken over. A new source starts with a full bucket, so a flood with changing
/// addresses is answered at most one NACK a packet.
class NackLimiter {
 public:
  NackLimiter(std::uint32_t sources, std::uint32_t per_second, std::uint32_t burst,
              const base::HashKey& key);

  /// True when one NACK to `source` may leave now; counts it.
  bool allow(base::Instant now, const net::FabricAddress& source);

 private:
  struct Bucket {
    net::FabricAddress source;
    base::Instant at;         ///< when `tokens` was right
    std::int64_t tokens = 0;  ///< in NACKs x 1e9, so that one nanosecond adds `per_second`
    bool is_used = false;
  };
  static constexpr std::uint32_t kWays = 4;

  const base::HashKey& key_;
  std::uint32_t sets_;
  std::int64_t per_second_;
  std::int64_t full_;
  std::unique_ptr<Bucket[]> buckets_;
};

}  // namespace uet::pds
