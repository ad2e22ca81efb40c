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
};

using GateList =
    boost::intrusive::list<Gate, boost::intrusive::member_hook<Gate, ListHook, &Gate::closed_hook>>;

}  // namespace uet::ses
