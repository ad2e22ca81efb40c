/// Messages in: which PDC carries them, and how they end early. [PDS 5.1, 16.5, 18.1]
#pragma once

#include "pds/life.h"
#include "pds/rudi.h"
#include "pds/uud.h"

namespace uet::pds {

class Submission : Part {
 public:
  Submission(Shared& shared, SendWindow& window, ProofRequests& proofs, Life& life, Rudi& rudi,
             Uud& uud);

  SubmitResult submit(Instant now, const TxMessage& request);
  SubmitResult submit_return(Instant now, RxHandle handle, const TxMessage& request);
  void abort(Instant now, MessageToken token);
  std::uint32_t truncate(Instant now, MessageToken token, std::uint32_t extra_segments);
  void hurry(MessageToken token);
  void unlock(Instant now, PdcRef ref);

 private:
  bool has_psns_for(const Pdc& pdc, const TxMessage& request) const;
  Pdc* choose_pdc(Instant now, const TxMessage& request, bool& must_wait);
  void append(Instant now, Pdc& pdc, const TxMessage& request);

  /// The only PDC of the key of the latest message that asked, while no initiator PDC comes or goes.
  struct Recent {
    PdcKey key;
    Pdc* pdc = nullptr;
    std::uint64_t version = 0;
  };
  Recent recent_;
  PdcTable& table_;
  MessageTable& messages_;
  FailedMessages& failed_;
  Backpressure& room_;
  Scheduler& scheduler_;
  SendWindow& window_;
  ProofRequests& proofs_;
  Lifecycle& lifecycle_;
  Closing& closing_;
  Admission& admission_;
  Liveness& liveness_;
  Rudi& rudi_;
  Uud& uud_;
};

}  // namespace uet::pds
