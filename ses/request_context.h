/// One request being handled, and what its checks have found so far.
#pragma once

#include <algorithm>

#include "ses/rx_message.h"

namespace uet::ses {

struct RequestContext {
  Instant now;
  const pds::RxRequest& packet;
  RequestView request;
  MessageKey key;
  Endpoint* endpoint = nullptr;
  /// Of what the packet takes from pools of all endpoints; held until it is answered.
  Sender* owner = nullptr;
  bool is_taken = false;  ///< a send: a receive or the store has its message from now on

  Incoming incoming() const {
    return {is_tagged(request.opcode) ? request.mkey_match : 0, request.job_id, request.initiator,
            packet.source};
  }
  Source source() const { return {packet.source, request.job_id, request.initiator}; }
  /// Bytes of a buffer that the message reaches.
  std::uint64_t need() const {
    return std::min(request.buffer_offset, std::uint64_t{1} << 40) + request.request_length;
  }
  bool is_ordered() const { return packet.mode == pds::Mode::kRod; }
};

}  // namespace uet::ses
