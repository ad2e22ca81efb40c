/// Atomics at the target. [SES 16]
#pragma once

#include "ses/rx_failures.h"
#include "ses/rx_rma.h"

namespace uet::ses {

class AtomicTarget {
 public:
  AtomicTarget(RxShared& shared, RmaTarget& rma, ReadReturns& returns, Failures& failures)
      : shared_(shared), rma_(rma), returns_(returns), failures_(failures) {}

  /// The packet's endpoint is known; steps 9 and 12 to 14 follow.
  pds::Answer begin(RequestContext& c);

 private:
  struct Amo;

  pds::Answer begin_in_region(RequestContext& c, const Amo& amo);
  pds::Answer begin_in_receive(RequestContext& c, const Amo& amo);
  pds::Answer refuse(RequestContext& c, ReturnCode code);
  pds::Answer refuse_unmatched(RequestContext& c, RiSpace& space);
  bool perform(RequestContext& c, const Amo& amo, const IovList& memory, std::uint64_t start,
               pds::Answer& answer);
  bool perform_and_return(RequestContext& c, const Amo& amo, const IovList& memory,
                          std::uint64_t start, pds::Answer& answer);
  void complete(RequestContext& c, std::uint64_t key);

  RxShared& shared_;
  RmaTarget& rma_;
  ReadReturns& returns_;
  Failures& failures_;
};

}  // namespace uet::ses
