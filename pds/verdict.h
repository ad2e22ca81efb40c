/// What becomes of a sequenced packet that arrived. Functions of the PDC and the packet alone: they change nothing and call
/// nothing. Carried out by SequencedIntake. [PDS 7.5, 9.2, 9.3]
#pragma once

#include "pds/arrival.h"
#include "pds/nack_rules.h"
#include "pds/pdc.h"
#include "pds/psn_class.h"

namespace uet::pds {

struct Verdict {
  enum class Action : std::uint8_t {
    kDeliver,
    kRepeatFinished,  ///< a duplicate of a PSN at or below CACK
    kRepeatKnown,     ///< a duplicate of one above CACK
    kGap,             ///< ROD: not the next one
    kRefuse,
  };
  Action action = Action::kDeliver;
  Refusal refusal{};  ///< with kRefuse
  /// The packet belongs here, whatever becomes of it: the peer lives, and its PDCID is what the packet says. What lies beyond
  /// the window may be a guess and shows neither. [PDS 6.3]
  bool shows_peer = true;
};

/// Why a packet without SYN is not one of `pdc`, which its dpdcid names; null when there is none. The order of the checks is
/// significant. [PDS 9.2]
std::optional<Refusal> misfit(const Pdc* pdc, const Arrival& in);

/// `in` is one of `pdc`.
Verdict judge(const Pdc& pdc, const Arrival& in);

/// The same of a trimmed packet, of which only the headers are there: it is never delivered and shows nothing. `pdc` is null when
/// it would open one. [PDS 13.6]
Verdict judge_trimmed(const Pdc* pdc, const Arrival& in);

}  // namespace uet::pds
