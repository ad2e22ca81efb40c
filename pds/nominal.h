/// Sizes of Requests as congestion control counts them before they are cut. [CC 3.2]
#pragma once

#include "lib/wire/pds_headers.h"
#include "pds/congestion.h"
#include "pds/environment.h"

namespace uet::pds {

inline std::size_t request_header_bytes(const Congestion& congestion) {
  return congestion.ccc->carries_credit() ? wire::PdsRequestCc::kSize : wire::PdsRequest::kSize;
}

inline ByteCount nominal_of(const Environment& env, const Pdc& pdc, const Message& message,
                            std::uint32_t segment) {
  return env.nominal_bytes(request_header_bytes(pdc.tx.cc.of(message)) +
                           message.request.ses_header_bytes + message.payload_of(segment));
}

}  // namespace uet::pds
