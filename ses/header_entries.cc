#include "ses/header_entries.h"

namespace uet::ses {
namespace {

/// Of one sender.
constexpr std::size_t kHeadersPerSender = 16;

}  // namespace

UnexpectedMessage* HeaderEntries::find(const RequestContext& c, Sender& sender) {
  const RequestView& r = c.request;
  for (UnexpectedMessage& u : sender.headers)
    if (u.tagged == is_tagged(r.opcode) && u.length == r.request_length &&
        u.header.tag == c.incoming().tag && u.header.initiator_id == r.initiator &&
        u.header.job_id == r.job_id)
      return &u;
  return nullptr;
}

/// [SES 7.2]
UnexpectedMessage* HeaderEntries::note(const RequestContext& c, RiSpace& space, Sender& sender) {
  Endpoint& endpoint = *c.endpoint;
  if (endpoint.headers >= config_.overflow_headers || sender.headers.size() >= kHeadersPerSender ||
      !store_.has_descriptor())
    return nullptr;
  UnexpectedMessage* u = store_.note_header(sender, c.request.request_length);
  if (u == nullptr) return nullptr;
  c.describe(*u);
  space.unexpected.push_back(*u);
  u->active_at_ns = clock_.ns();
  sender.headers.push_back(*u);
  by_age_.push_back(*u);
  ++endpoint.headers;
  senders_.hold(sender);
  return u;
}

void HeaderEntries::touch(UnexpectedMessage& header) {
  header.active_at_ns = clock_.ns();
  by_age_.splice(by_age_.end(), by_age_, by_age_.iterator_to(header));
}

void HeaderEntries::unlist(UnexpectedMessage& u) {
  u.sender->headers.erase(u.sender->headers.iterator_to(u));
  by_age_.erase(by_age_.iterator_to(u));
  --u.endpoint->headers;
  u.is_header_only = false;
}

void HeaderEntries::forget(UnexpectedMessage& u) {
  unlist(u);
  u.endpoint->unlist(u);
  senders_.unhold(*u.sender);
  store_.recycle(u);
}

UnexpectedMessage* HeaderEntries::find_idle() {
  if (by_age_.empty()) return nullptr;
  UnexpectedMessage& oldest = by_age_.front();
  return clock_.is_past(oldest.active_at_ns, config_.message_idle) ? &oldest : nullptr;
}

}  // namespace uet::ses
