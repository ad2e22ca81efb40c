/// Receives: which of them a message goes into, and how it ends there. [SES 7.1]
#pragma once

#include "ses/core.h"

namespace uet::ses {

/// [SES 2.6] Initiator IDs are unique in a job alone.
std::optional<std::uint32_t> job_filter(std::optional<std::uint32_t> asked, const Peer* source);

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
  /// A message that ends at `end` goes into the receive.
  void take(RiSpace& space, Receive& r, std::uint64_t end) {
    ++r.in_flight;
    if (r.multi_recv)
      advance(space, r, end);
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
  static void advance(RiSpace& space, Receive& r, std::uint64_t end);

  Core& core_;
  ChunkedPool<Receive> pool_;
  ReceiveList set_aside_;
};

}  // namespace uet::ses
