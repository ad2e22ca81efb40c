/// UUD: datagrams, sent once. [PDS 17.3]
#pragma once

#include "pds/environment.h"
#include "pds/failed_messages.h"
#include "pds/message.h"

namespace uet::pds {

class Uud : Part {
 public:
  Uud(Environment& env, MessageTable& messages, FailedMessages& failed)
      : Part(env), messages_(messages), failed_(failed) {}
  ~Uud() { queue_.clear(); }
  Uud(const Uud&) = delete;
  Uud& operator=(const Uud&) = delete;

  SubmitResult submit(Instant now, const TxMessage& request);
  bool poll(Instant now, net::TxPacket& out);
  void on_packet(Instant now, const net::RxPacket& rx);
  void abort(Message& message) {
    queue_.erase(queue_.iterator_to(message));
    messages_.forget(message);
  }
  bool is_idle() const { return queue_.empty(); }

 private:
  MessageTable& messages_;
  FailedMessages& failed_;
  MessageQueue queue_;
};

}  // namespace uet::pds
