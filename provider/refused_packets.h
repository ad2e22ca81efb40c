/// Packets that do not leave this host, because it has no way for them: what the port counts, told where a peer is waited for. One object
/// for each endpoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fep/fep.h"
#include "provider/remarks.h"
#include "provider/stuck_pdcs.h"

namespace uet::provider {

class RefusedPackets {
 public:
  std::optional<std::string> look(fep::Fep& fep, const std::vector<StuckPdc>& stuck);
  /// At the last look a peer was waited for whose packets were dropped: silence of peers may come from that.
  bool has_some() const { return has_some_; }

 private:
  /// One may be chance, as while an interface goes down.
  static constexpr std::uint64_t kPacketsToTell = 3;
  /// A port that looks for a neighbor in vain drops what has waited for it about every three seconds.
  static constexpr std::size_t kLooks = 4;
  static constexpr std::array kReasons = {base::DropReason::kSendFailed, base::DropReason::kNoRoute,
                                          base::DropReason::kNoNeighbor};
  using Counts = std::array<std::uint64_t, kReasons.size()>;

  /// Drops for `reason` in the last looks, this one included.
  std::uint64_t growth_of(const base::Trace& trace, base::DropReason reason) const;
  void count(const base::Trace& trace);

  std::array<Counts, kLooks> counts_{};  ///< at the looks before
  std::size_t next_ = 0;                 ///< the oldest of them, which the next look replaces
  bool has_some_ = false;
  int looks_since_told_ = kLooksBetweenWarnings;
};

}  // namespace uet::provider
