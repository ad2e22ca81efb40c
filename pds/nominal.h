/// Sizes of Requests as congestion control counts them before they are cut. [CC 3.2]
#pragma once

#include "pds/congestion.h"
#include "pds/environment.h"

namespace uet::pds {

inline ByteCount nominal_of(const Environment& env, const Pdc& pdc, const Message& message,
                            std::uint32_t segment) {
  return env.nominal_bytes(pdc.tx.cc.of(message).request_header_bytes +
                           message.request.ses_header_bytes + message.payload_of(segment));
}

}  // namespace uet::pds
