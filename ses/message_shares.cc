#include "ses/message_shares.h"

#include "lib/base/check.h"

namespace uet::ses {
namespace {

/// Without a packet, until a discarded message gives its place to another message of its source.
constexpr base::Duration kDiscardedRests = base::Duration::from_seconds(2);

}  // namespace

Sender* MessageShares::owner_of(RequestContext& c) {
  if (c.owner != nullptr) return c.owner;
  c.owner = senders_.find_or_make(0, c.packet.source, clock_.ns(), c.packet.is_proven);
  if (c.owner != nullptr) senders_.hold(*c.owner);
  return c.owner;
}

bool MessageShares::fits(const Sender& owner, const RequestContext& c) const {
  const std::size_t free = messages_.available();
  if (free == 0) return false;
  // What came in the name of a source before it had proved itself is not its own.
  const std::size_t unproven = owner.unproven_messages;
  const std::size_t held = c.packet.is_proven ? owner.messages - unproven : unproven;
  return has_share(held, free) && messages_.use().has_share(c.key.pdc, free - held);
}

bool MessageShares::has_place(RequestContext& c) {
  clock_.advance(c.now);
  Sender* owner = owner_of(c);
  if (owner == nullptr) return false;
  while (!fits(*owner, c)) {
    const bool has_old_discarded =
        !owner->discarded.empty() &&
        clock_.is_past(owner->discarded.front().active_at_ns, kDiscardedRests);
    if (!has_old_discarded) {
      ++refused_;
      return false;
    }
    release(owner->discarded.front());
  }
  return true;
}

RxMessage& MessageShares::begin(RequestContext& c, RxTarget target) {
  RxMessage* m = messages_.create(c.key, c.request, clock_.ns(), *c.owner, c.packet.is_proven);
  UET_CHECK(m != nullptr);  // has_place() looked
  m->endpoint = c.endpoint;
  messages_.set_target(*m, target);
  senders_.hold(*c.owner);
  return *m;
}

void MessageShares::release(RxMessage& message) {
  Sender& sender = *message.sender;
  messages_.release(message);
  senders_.unhold(sender);
}

}  // namespace uet::ses
