/// What packet delivery asks the security layer when PDCs open and close. Without a guard every SYN
/// opens at once. [PDS 6.5]
///
/// The purpose: a recorded SYN must never open a PDC again, nor one whose message has come another way. A target may challenge every SYN with a
/// random start (one round trip), or accept at once what starts at or after the PSN it expects next
/// from this initiator (no round trip); an initiator copes with both. Which method, and what is
/// remembered of whom, is the guard's business: it also knows the security association behind an
/// address, which packet delivery does not.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/serial.h"
#include "lib/net/fabric_address.h"

namespace uet::pds {

class OpeningGuard {
 public:
  /// The SYN that wants to open a PDC.
  struct Opening {
    net::FabricAddress source;
    std::uint16_t spdcid = 0;
    base::Psn start;
    bool is_overtaken = false;  ///< packets that its sender sealed later came before it
  };
  /// Nothing: accepted at once. A PSN: the packet is not delivered, and the initiator is told to
  /// start there.
  using Challenge = std::optional<base::Psn>;

  virtual ~OpeningGuard() = default;

  // --- As target
  /// The first SYN of a PDC.
  virtual Challenge on_opening(const Opening& opening) = 0;
  /// A SYN for a PDC whose challenge is `announced`: true when it starts there. The initiator of another one is told `announced`
  /// (again), and moves: from then on nothing may open at the start that it leaves.
  virtual bool is_confirmed(const Opening& opening, base::Psn announced) = 0;
  /// Whether one more PDC of `source` may wait for the answer to its challenge; counted until
  /// on_wait_over(). Otherwise the SYN is refused as if the PDC table were full.
  virtual bool may_wait(const net::FabricAddress& source) {
    (void)source;
    return true;
  }
  virtual void on_wait_over(const net::FabricAddress& source) { (void)source; }
  /// A PDC that had begun at `start` is gone; may be told twice. The PSN that `source` shall start at
  /// or after from now on, which the ACK of the Close Command carries to it.
  virtual std::optional<base::Psn> on_target_closed(const net::FabricAddress& source,
                                                    base::Psn start) = 0;
  /// New_PDC_Timeout_Thresh challenges went unanswered: a flood of forged SYNs is likely.
  virtual void on_half_open_limit() = 0;

  // --- As initiator
  /// Whether RxPacket::is_overtaken tells anything.
  virtual bool knows_order() const { return true; }
  /// What `target` said it expects, if it ever did.
  virtual std::optional<base::Psn> expected_by(const net::FabricAddress& target) = 0;
  /// `target` expects this from the next PDC. An older value than the one known must be ignored.
  virtual void on_expected_psn(const net::FabricAddress& target, base::Psn expected) = 0;
};

}  // namespace uet::pds
