#include "pds/failed_messages.h"

namespace uet::pds {

void FailedMessages::report(Instant now, PdsError error) {
  while (!queue_.empty()) {
    Message& message = queue_.front();
    queue_.pop_front();
    const MessageToken token = message.request.token;
    const bool silent = message.is_silent;
    const bool in_doubt = message.may_be_delivered && was_not_delivered(error);
    messages_.forget(message);
    if (!silent) upper_.on_message_error(now, token, in_doubt ? PdsError::kInDoubt : error);
  }
}

}  // namespace uet::pds
