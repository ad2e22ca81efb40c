/// Which ordered messages of one source an endpoint takes now. [SES 2.5, decision 106]
#pragma once

#include "ses/match_list.h"

namespace uet::ses {

struct Sender;

/// The target's side of ordered sends of one space. Kept by source, so that what is refused holds up its own source and no
/// other one.
struct Gate {
  Sender* sender = nullptr;
  ListHook closed_hook;
  std::uint8_t generation = 0;
  bool is_enabled = true;
  // What it was closed for, as far as the wire tells messages of one source apart.
  Incoming closer;
  std::uint32_t closer_length = 0;
  /// Where its source had not proved itself, which may be forged: the PDC of the closer, and a place among such gates.
  pds::PdcRef closer_pdc;
  bool closer_is_proven = true;
  ListHook unproven_hook;

  /// May the packets of this PDC, of the source of the gate, not pass? What may be forged holds up its own PDC, and others of which it is
  /// not known whose they are.
  bool is_closed_to(pds::PdcRef pdc, bool is_proven) const {
    return !is_enabled && (closer_is_proven || !is_proven || pdc == closer_pdc);
  }
};

using GateList =
    boost::intrusive::list<Gate, boost::intrusive::member_hook<Gate, ListHook, &Gate::closed_hook>>;
using UnprovenGateList =
    boost::intrusive::list<Gate,
                           boost::intrusive::member_hook<Gate, ListHook, &Gate::unproven_hook>>;

}  // namespace uet::ses
