/// Messages whose error SES has yet to hear. [PDS 16.5]
#pragma once

#include "pds/backpressure.h"
#include "pds/message.h"

namespace uet::pds {

class FailedMessages {
 public:
  FailedMessages(MessageTable& messages, Upper& upper) : messages_(messages), upper_(upper) {}
  ~FailedMessages() { queue_.clear(); }
  FailedMessages(const FailedMessages&) = delete;
  FailedMessages& operator=(const FailedMessages&) = delete;

  void add(Message& message) { queue_.push_back(message); }
  void add(MessageQueue& messages) { queue_.splice(queue_.end(), messages); }
  /// SES aborted it: it hears nothing of it any more.
  void drop(Message& message) {
    queue_.erase(queue_.iterator_to(message));
    messages_.forget(message);
  }
  /// SES may submit or abort from within the calls that this makes; each message leaves the queue before.
  void report(Instant now, PdsError error);

 private:
  MessageTable& messages_;
  Upper& upper_;
  MessageQueue queue_;
};

}  // namespace uet::pds
