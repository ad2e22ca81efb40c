#include "ses/message_shares.h"

#include "lib/base/check.h"

namespace uet::ses {
namespace {

/// Without a packet, until a discarded message gives its place to another message of its source.
constexpr base::Duration kDiscardedRests = base::Duration::from_seconds(2);

}  // namespace

Sender* MessageShares::owner_of(RequestContext& c) {
  if (c.owner != nullptr) return c.owner;
  c.owner = senders_.find_or_make(0, c.packet.source, clock_.ns());
  if (c.owner != nullptr) senders_.hold(*c.owner);
  return c.owner;
}

bool MessageShares::fits(const Sender& owner, pds::PdcRef pdc) const {
  const std::size_t free = messages_.available(), held = owner.messages;
  return free > 0 && has_share(held, free) && messages_.use().has_share(pdc, free - held);
}

bool MessageShares::has_place(RequestContext& c) {
  clock_.advance(c.now);
  Sender* owner = owner_of(c);
  if (owner == nullptr) return false;
  while (!fits(*owner, c.key.pdc)) {
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
  RxMessage* m = messages_.create(c.key, c.request, clock_.ns(), *c.owner);
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
