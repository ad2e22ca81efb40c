/// One request being handled, and what its checks have found so far.
#pragma once

#include <algorithm>

#include "ses/rx_message.h"
#include "ses/unexpected_store.h"

namespace uet::ses {

struct RequestContext {
  Instant now;
  const pds::RxRequest& packet;
  RequestView request;
  MessageKey key;  ///< its message id once the header was read
  Endpoint* endpoint = nullptr;
  RxMessage* message = nullptr;  ///< that a packet goes on with which needs no check by itself
  /// Of what the packet takes from pools of all endpoints; held until it is answered.
  Sender* owner = nullptr;
  ReturnCode failure = ReturnCode::kOk;  ///< why its message fails, once that is known
  RxMessage* failed = nullptr;           ///< that message, if it has begun
  bool is_taken = false;  ///< a send: a receive or the store has its message from now on

  Incoming incoming() const {
    return {is_tagged(request.opcode) ? request.mkey_match : 0, request.job_id, request.initiator,
            packet.source};
  }
  Source source() const { return {packet.source, request.job_id, request.initiator}; }
  /// Bytes of a buffer that the message reaches.
  std::uint64_t need() const {
    return bytes_reached(request.buffer_offset, request.request_length);
  }
  /// What a message without a receive is known by.
  void describe(UnexpectedMessage& u) const {
    u.endpoint = endpoint;
    u.tagged = is_tagged(request.opcode);
    u.header = incoming();
    u.length = request.request_length;
    u.buffer_offset = request.buffer_offset;
    take_header_data(u);
  }
  /// What the first packet of a message says for all of it, whenever it comes.
  void take_header_data(UnexpectedMessage& u) const {
    if (!request.som) return;
    u.som_seen = true;
    u.has_header_data = request.hd;
    u.header_data = request.header_data;
  }
  bool is_ordered() const { return packet.mode == pds::Mode::kRod; }
};

}  // namespace uet::ses
