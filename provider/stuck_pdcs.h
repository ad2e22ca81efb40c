/// PDCs whose oldest packet is not acknowledged at look after look, and whether their peer hears this endpoint meanwhile. One object for each
/// endpoint.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fep/fep.h"

namespace uet::provider {

struct StuckPdc {
  net::FabricAddress peer;
  std::uint16_t id = 0;
  base::Psn cack;
  std::uint32_t nacks = 0;   ///< received on it
  std::uint32_t resent = 0;  ///< packets sent again, until the first look
  bool is_half_open = false;
  bool is_closing = false;   ///< what is not acknowledged is the close of an idle PDC
  bool is_resent = false;    ///< some were sent again since then
  int looks = 0;             ///< at which all of this was the same as at the look before
  bool is_heard = false;     ///< the peer, since the look before, on whichever PDC
  bool is_answered = false;  ///< the same: the peer has said that a packet of ours came
  int looks_heard = 0, looks_answered = 0;  ///< of `looks`

  bool is_where(const StuckPdc& before) const {
    return id == before.id && cack == before.cack && nacks == before.nacks;
  }
  /// Counts one look more than `before`.
  void carry_on(const StuckPdc& before);
};

class StuckPdcs {
 public:
  /// Costs a walk over all PDCs while packets are sent again or some are stuck, and nothing else.
  void look(base::Instant now, fep::Fep& fep);
  /// Longest idle first (approximately).
  const std::vector<StuckPdc>& all() const { return stuck_; }

 private:
  /// Of a PDC, whether it waits for something or not.
  struct Position {
    base::Psn cack;
    std::uint32_t nacks = 0;
    bool is_half_open = false;
    bool operator==(const Position&) const = default;
  };
  using Positions = std::unordered_map<std::uint16_t, Position>;
  /// Of a peer since the look before.
  struct Signs {
    bool is_heard = false, is_answered = false;
  };
  using SignsOfPeers = std::unordered_map<net::FabricAddress, Signs>;

  /// Replaces positions_.
  SignsOfPeers read_signs(fep::Fep& fep);

  base::Instant looked_before_;
  std::uint64_t retransmitted_ = 0;  ///< at the look before
  Positions positions_;
  std::vector<StuckPdc> stuck_;
};

}  // namespace uet::provider
