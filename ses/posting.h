/// From a request to an operation in its queue. [SES 4, 6]
#pragma once

#include "ses/send_queues.h"

namespace uet::ses {

/// Checks what users ask for, and makes operations of it; and of what the target's half of SES asks for.
class Posting {
 public:
  Posting(Core& core, Operations& operations, RendezvousSources& sources, SendQueues& queues)
      : core_(core), operations_(operations), sources_(sources), queues_(queues) {}

  PostResult<Posted> send(Instant now, Endpoint& endpoint, const SendRequest& request);
  PostResult<Posted> rma(Instant now, Endpoint& endpoint, const RmaRequest& request);
  PostResult<Posted> atomic(Instant now, Endpoint& endpoint, const AtomicRequest& request);
  /// See Fetcher.
  bool fetch(Instant now, Fetch& fetch, const FetchRequest& request);

 private:
  struct Common;
  PostResult<Posted> send_datagram(Instant now, Endpoint& endpoint, const SendRequest& request);
  PostResult<AtomicPart*> describe_atomic(Instant now, const AtomicRequest& request);
  PostResult<TxOp*> prepare(Instant now, Endpoint& endpoint, const Common& common,
                            SesOpcode opcode);
  bool may_be_long(Instant now, const Endpoint& endpoint, const Peer& peer,
                   std::uint64_t length) const;
  void enqueue(Instant now, TxOp& op);

  Core& core_;
  Operations& operations_;
  RendezvousSources& sources_;
  SendQueues& queues_;
};

}  // namespace uet::ses
