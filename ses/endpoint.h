/// One endpoint: a resource index in the three RI spaces, with its receives and its unexpected
/// messages.
#pragma once

#include <array>
#include <vector>

#include "ses/gate.h"
#include "ses/match_list.h"
#include "ses/unexpected_queue.h"

namespace uet::ses {

struct TxOp;

/// The receive side of an endpoint in one space. [SES 2.5]
struct RiSpace {
  explicit RiSpace(bool tagged) : own(tagged), unexpected(tagged) {}

  GateList closed;  ///< senders of ordered messages that were refused
  MatchList own;
  MatchList* posted = &own;  ///< what messages may take: `own`, or that of a shared receive context
  UnexpectedQueue unexpected;
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
  OverflowUse held;                ///< messages that came before their turn
  std::uint32_t headers = 0;       ///< messages of which only the header is known
  std::uint32_t deferred = 0;      ///< messages that were put off, and that no receive has taken
  std::size_t sends = 0;           ///< operations not yet complete
  std::size_t receives = 0;        ///< posted or being filled
  Endpoint* context = nullptr;     ///< the shared receive context whose receives it takes
  std::vector<Endpoint*> members;  ///< of a shared receive context
  std::size_t next_member = 0;     ///< whose waiting messages are looked at first

  OverflowUse& use_of(const UnexpectedMessage& u) { return u.is_held ? held : overflow; }
  /// Where an unexpected message waits, claimed or not: takes it out, or puts another one before it.
  void unlist(UnexpectedMessage& u) {
    if (u.claimed) {
      claimed.erase(claimed.iterator_to(u));
    } else {
      space(u.tagged).unexpected.remove(u);
    }
  }
  void list_before(UnexpectedMessage& place, UnexpectedMessage& u) {
    if (place.claimed) {
      claimed.insert(claimed.iterator_to(place), u);
    } else {
      space(place.tagged).unexpected.insert_before(place, u);
    }
  }
  RiSpace& space(Space s) { return spaces[static_cast<std::size_t>(s)]; }
  RiSpace& space(bool tagged) { return space(tagged ? Space::kTagged : Space::kUntagged); }
  void complete(const Completion& completion) { sink->on_completion(id, completion); }
};

/// From now on messages to `endpoint` take the receives of the shared receive context; until it leaves.
inline void join(Endpoint& endpoint, Endpoint& context) {
  endpoint.context = &context;
  context.members.push_back(&endpoint);
  for (std::size_t i = 0; i < endpoint.spaces.size(); ++i)
    endpoint.spaces[i].posted = &context.spaces[i].own;
}
inline void leave(Endpoint& endpoint) {
  if (endpoint.context == nullptr) return;
  std::erase(endpoint.context->members, &endpoint);
  endpoint.context = nullptr;
  for (RiSpace& space : endpoint.spaces) space.posted = &space.own;
}

}  // namespace uet::ses
