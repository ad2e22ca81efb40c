/// Where the ordered messages of one initiator stand that come over all paths. [decision 141]
#pragma once

#include <boost/intrusive/set.hpp>

#include "ses/sequence.h"
#include "ses/unexpected_store.h"

namespace uet::ses {

/// Numbers of one stream that are less than kSequenceWindow apart.
struct BeforeByNumber {
  static std::uint32_t number_of(const UnexpectedMessage& u) { return u.number; }
  static std::uint32_t number_of(std::uint32_t number) { return number; }
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return number_distance(number_of(a), number_of(b)) < 0;
  }
};
using HeldMessages = boost::intrusive::set<
    UnexpectedMessage,
    boost::intrusive::member_hook<UnexpectedMessage, decltype(UnexpectedMessage::held_hook),
                                  &UnexpectedMessage::held_hook>,
    boost::intrusive::compare<BeforeByNumber>, boost::intrusive::constant_time_size<false>>;

/// The target's side: everything before `expected` has been matched, or will not come.
struct Stream : Pooled {
  ListHook sender_hook;   ///< of its sender, last used first
  ListHook holding_hook;  ///< while it holds messages
  Sender* sender = nullptr;
  std::uint32_t id = 0;
  bool tagged = false;
  std::uint32_t expected = 0;
  std::int64_t active_at_ns = 0;  ///< last message, in loop time
  HeldMessages held;              ///< messages that came before their turn
};

using StreamList =
    boost::intrusive::list<Stream,
                           boost::intrusive::member_hook<Stream, ListHook, &Stream::sender_hook>,
                           boost::intrusive::constant_time_size<true>>;
using HoldingList =
    boost::intrusive::list<Stream,
                           boost::intrusive::member_hook<Stream, ListHook, &Stream::holding_hook>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace uet::ses
