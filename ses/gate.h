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
};

using GateList =
    boost::intrusive::list<Gate, boost::intrusive::member_hook<Gate, ListHook, &Gate::closed_hook>>;

}  // namespace uet::ses
