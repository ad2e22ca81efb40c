#include "ses/rx_unexpected.h"

namespace uet::ses {

namespace {

Source source_of(const UnexpectedMessage& u) {
  return {u.header.source, u.header.job_id, u.header.initiator_id};
}

}  // namespace

Completion completion_of(const UnexpectedMessage& u) {
  Completion completion;
  completion.tag = u.header.tag;
  completion.source = source_of(u);
  return completion;
}

PlacedMessage placed_of(const UnexpectedMessage& u, std::uint64_t start, std::uint64_t placed) {
  return PlacedMessage{.length = u.length,
                       .placed = placed,
                       .begin = start - u.buffer_offset,
                       .tag = u.header.tag,
                       .source = source_of(u),
                       .data = u.header_data,
                       .has_data = u.has_header_data};
}

void UnexpectedLists::enlist(const RequestContext& c, RiSpace& space, UnexpectedMessage& u,
                             UnexpectedMessage* header) {
  c.describe(u);
  if (header == nullptr) {
    space.unexpected.push_back(u);
    return;
  }
  u.claimed = header->claimed;
  u.claim_context = header->claim_context;
  c.endpoint->list_before(*header, u);
}

void UnexpectedLists::unlink(UnexpectedMessage& u) {
  Endpoint& endpoint = *u.endpoint;
  endpoint.unlist(u);
  if (u.is_deferred) {
    --endpoint.deferred;
    --u.sender->deferred;
  }
  store_.release(u, endpoint.overflow);
  senders_.unhold(*u.sender);
  for (RiSpace& space : endpoint.spaces) gates_.open_all(space);
}

void UnexpectedLists::release(UnexpectedMessage& u) {
  unlink(u);
  store_.recycle(u);
}

}  // namespace uet::ses
