/// One endpoint: a resource index in the three RI spaces, with its receives and its unexpected
/// messages.
#pragma once

#include <array>

#include "ses/gate.h"
#include "ses/match_list.h"
#include "ses/unexpected_store.h"

namespace uet::ses {

struct TxOp;

/// The receive side of an endpoint in one space. [SES 2.5]
struct RiSpace {
  explicit RiSpace(bool hashed) : posted(hashed) {}

  GateList closed;  ///< senders of ordered messages that were refused
  MatchList posted;
  UnexpectedList unexpected;  ///< in order of arrival
};

struct Endpoint {
  EndpointId id = 0;
  EndpointConfig config;
  Address address;
  CompletionSink* sink = nullptr;
  std::array<RiSpace, 2> spaces{RiSpace(false), RiSpace(true)};
  UnexpectedList claimed;
  UnexpectedList fetching;  ///< rendezvous that a receive has taken, and whose rest is not here
  OverflowUse overflow;
  OverflowUse held;            ///< messages that came before their turn
  std::uint32_t headers = 0;   ///< messages of which only the header is known
  std::uint32_t deferred = 0;  ///< messages that were put off, and that no receive has taken
  std::size_t sends = 0;       ///< operations not yet complete
  std::size_t receives = 0;    ///< posted or being filled

  OverflowUse& use_of(const Unexpected& u) { return u.is_held ? held : overflow; }
  RiSpace& space(Space s) { return spaces[static_cast<std::size_t>(s)]; }
  RiSpace& space(bool tagged) { return space(tagged ? Space::kTagged : Space::kUntagged); }
  void complete(const Completion& completion) { sink->on_completion(id, completion); }
};

}  // namespace uet::ses
