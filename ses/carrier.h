/// What SES needs from the layer that carries its messages. [SES 20]
#pragma once

#include "pds/pds.h"

namespace uet::ses {

using base::Instant;

/// The downward half of pds::Pds, with the same contracts. Tests put a scripted one in its place.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual pds::SubmitResult submit(Instant now, const pds::TxMessage& message) = 0;
  virtual pds::SubmitResult submit_return(Instant now, pds::RxHandle request,
                                          const pds::TxMessage& message) = 0;
  virtual void unlock(Instant now, pds::PdcRef pdc) = 0;
  virtual void abort(Instant now, pds::MessageToken token) = 0;
  virtual std::uint32_t truncate(Instant now, pds::MessageToken token,
                                 std::uint32_t extra_segments) = 0;
};

}  // namespace uet::ses
