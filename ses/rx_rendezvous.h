/// Rendezvous at the target: the header and the eager part are those of any send, the rest is read from the source once a receive
/// has taken the message. [SES 9, decision 142]
#pragma once

#include "ses/rx_fetches.h"
#include "ses/rx_shared.h"

namespace uet::ses {

/// The message of the packet came as a rendezvous: where its rest is. Nothing for all others. How the message was addressed says how
/// the target is, not its source: that is as its own address says, which is known of all sources that are read from.
void note_rest(const PeerTable& peers, const RequestContext& c, UnexpectedMessage& u);

/// From the moment that a receive has such a message until all of it is there, or will not come. Messages that were put off go the
/// same way.
class RendezvousTarget final : private FetchSink {
 public:
  explicit RendezvousTarget(RxShared& shared)
      : shared_(shared), fetches_(shared.core, shared.senders, shared.clock) {
    shared.core.fetch_sink = this;
  }

  /// A descriptor for one that a receive takes at its first packet. Null when there is none left.
  UnexpectedMessage* describe(const RequestContext& c);
  /// `r` takes it, and from now on it is none of the unexpected ones: `limit` bytes of it fit, from `start` on.
  void bind(UnexpectedMessage& u, Receive& r, std::uint64_t start, std::uint64_t limit);
  /// One that waited goes into a receive. `copied`: bytes of it that are there.
  void adopt(Instant now, UnexpectedMessage& u, Receive& r, std::uint64_t start,
             std::uint64_t limit, std::size_t copied);
  /// All that comes with the message is in its receive. READs begin when there is a place for one.
  void fetch_rest(Instant now, UnexpectedMessage& u);
  /// No receive wants it: what was put off is asked for, to be discarded.
  void fetch_unwanted(Instant now, UnexpectedMessage& u);
  /// The message that a token of a restart was made for; null when there is none.
  UnexpectedMessage* find_restart(std::uint32_t token);
  /// What was asked to restart is whole, or fails with `code`.
  void end_restart(Instant now, UnexpectedMessage& u, ReturnCode code = ReturnCode::kOk);
  /// Asks for those that wait until there is a place, as far as places are free.
  void serve(Instant now) { fetches_.serve(now); }
  /// The receive is no concern of the message any more: it has its completion. `told`: what its initiator hears, if it asks.
  void leave(Instant now, UnexpectedMessage& u, ReturnCode told);

  /// First what is being fetched for the endpoint, before its own operations are cancelled.
  void close(Instant now, Endpoint& endpoint);
  /// Those of which their sources send nothing any more.
  void drop_idle(Instant now);
  std::size_t messages() const { return fetches_.messages(); }

 private:
  void on_fetched(Instant now, Fetch& fetch, ReturnCode code) override;
  void end(Instant now, UnexpectedMessage& u, ReturnCode code);

  RxShared& shared_;
  Fetches fetches_;
};

}  // namespace uet::ses
