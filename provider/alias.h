/// The same endpoint under another fid_ep, whose operations have flags of their own by default. fi_ep_alias(3)
#pragma once

#include <rdma/fi_endpoint.h>

#include "provider/endpoint.h"

namespace uet::provider {

/// An endpoint cannot be closed before its aliases.
class Alias final : public EndpointFid {
 public:
  /// FI_ALIAS of fi_control: begins with the flags of `original`, an endpoint or an alias, but for the half that `wanted` names.
  static int open(const EndpointFid& original, const struct fi_alias& wanted);
  static Alias& of(fid_t f) { return static_cast<Alias&>(EndpointFid::of(f)); }

 private:
  explicit Alias(const EndpointFid& original);

  UserOf endpoint_use_;
};

}  // namespace uet::provider
