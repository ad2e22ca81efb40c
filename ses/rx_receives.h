/// Receives: which of them a message goes into, and how it ends there. [SES 7.1]
#pragma once

#include <algorithm>

#include "ses/core.h"

namespace uet::ses {

/// [SES 2.6] Initiator IDs are unique in a job alone.
inline std::optional<std::uint32_t> job_filter(const std::optional<std::uint32_t>& asked,
                                               const Peer* source) {
  return asked || source == nullptr ? asked : source->job;
}

/// Where a message goes in a receive.
struct Place {
  std::uint64_t start =
      0;  ///< behind the cursor by as much as its initiator says; means nothing where nothing fits
  std::uint64_t limit = 0;  ///< bytes of it that fit
  std::size_t next = 0;     ///< where the next one may begin; never before the cursor
};

/// Of a message of `length` bytes. Any `buffer_offset` may come from the wire, so also one that leads around to what earlier messages
/// have: a message that begins outside of the buffer uses it up.
inline Place place_in(const Receive& receive, std::uint64_t buffer_offset, std::uint64_t length) {
  Place place{.start = receive.cursor + buffer_offset, .next = receive.iov.size()};
  const std::uint64_t size = receive.iov.size();
  if (place.start < receive.cursor || place.start >= size) return place;
  place.limit = std::min(length, size - place.start);
  place.next = std::min(next_message_at(static_cast<std::size_t>(place.start + place.limit)),
                        receive.iov.size());
  return place;
}

/// A message that has gone into a receive, as the completion of that describes it.
struct PlacedMessage {
  std::uint64_t length = 0;  ///< of the message
  std::uint64_t placed = 0;  ///< bytes of it in the receive
  std::uint64_t begin = 0;   ///< of the message in a multi-receive buffer
  std::uint64_t tag = 0;
  Source source;
  std::uint64_t data = 0;
  bool has_data = false;
};

/// Receives::complete() adds what `receive` says of itself. Without a `failure` the rest of the message is what did not fit.
inline Completion completion_in(const Receive& receive, const PlacedMessage& message,
                                ReturnCode failure = ReturnCode::kOk) {
  Completion completion;
  const bool is_cut = failure == ReturnCode::kOk && message.placed < message.length;
  completion.code = is_cut ? ReturnCode::kTruncated : failure;
  completion.length = static_cast<std::size_t>(message.placed);
  completion.overflow_length = static_cast<std::size_t>(message.length - message.placed);
  if (receive.multi_recv)
    completion.buffer = static_cast<std::uint8_t*>(receive.iov.base()) + message.begin;
  completion.tag = message.tag;
  completion.data = message.data;
  completion.has_data = message.has_data;
  completion.source = message.source;
  return completion;
}

/// Makes, matches and completes receives. What bytes go into them is for others.
class Receives {
 public:
  explicit Receives(Core& core) : core_(core), pool_(core.config.max_receives) {}
  ~Receives() { set_aside_.clear(); }
  Receives(const Receives&) = delete;
  Receives& operator=(const Receives&) = delete;

  /// Null: any source. Only sources whose messages can be told from others can be asked for.
  PostResult<const Peer*> source_filter(PeerId source) const {
    if (source == kAnyPeer) return static_cast<const Peer*>(nullptr);
    return known_source(source);
  }
  /// Not posted yet. Null: `error` says why.
  Receive* make(Endpoint& endpoint, const ReceiveRequest& request, const Peer* source,
                PostError& error);
  void release(Receive& r);

  /// The receive that takes a message of `need` bytes. Multi-receive buffers whose rest is too small are given back on the way; one
  /// that is smaller than the message as a whole takes what fits.
  Receive* match(Instant now, RiSpace& space, const Incoming& incoming, std::uint64_t need) {
    Receive* r = space.posted->find(incoming);
    return r == nullptr || !r->multi_recv ? r : match_buffer(now, space, incoming, need, r);
  }
  /// A message goes into the receive, at `place`.
  void take(RiSpace& space, Receive& r, const Place& place) {
    ++r.in_flight;
    if (r.multi_recv)
      advance(space, r, place);
    else if (r.is_posted)  // else it was the claim's
      space.posted->remove(r);
  }

  /// One message in `r` is at its end; `completion` says how, and `endpoint` where it came to.
  void complete(Instant now, Endpoint& endpoint, Receive& r, Completion& completion);
  /// `r` is not posted any more and ends without a message.
  void end(Instant now, Receive& r, Completion completion = {});

  /// Between both steps of closing an endpoint: the last message placed into `r` was dropped.
  void set_aside(Receive& r) { set_aside_.push_back(r); }
  Receive* next_aside();

  std::size_t available() const { return pool_.available(); }
  std::size_t in_use() const { return pool_.in_use(); }

 private:
  PostResult<const Peer*> known_source(PeerId source) const;
  Receive* match_buffer(Instant now, RiSpace& space, const Incoming& incoming, std::uint64_t need,
                        Receive* r);
  void retire(Instant now, RiSpace& space, Receive& r);
  static void advance(RiSpace& space, Receive& r, const Place& place);

  Core& core_;
  ChunkedPool<Receive> pool_;
  ReceiveList set_aside_;
};

}  // namespace uet::ses
