#include "provider/alias.h"

#include <memory>

namespace uet::provider {
namespace {

int alias_close(fid* f) {
  delete &Alias::of(f);
  return 0;
}

/// Those of an endpoint, all but one.
fi_ops* alias_ops(const fi_ops& of_endpoint) {
  static fi_ops ops = [&] {
    fi_ops all = of_endpoint;
    all.close = alias_close;
    return all;
  }();
  return &ops;
}

}  // namespace

Alias::Alias(const EndpointFid& original)
    : EndpointFid(original), endpoint_use_(original.endpoint().users()) {
  fid.ops = alias_ops(*original.fid.ops);
}

int Alias::open(const EndpointFid& original, const struct fi_alias& wanted) {
  std::unique_ptr<Alias> alias(new Alias(original));
  if (const int error = alias->set_ops_flags(wanted.flags); error != 0) return error;
  *wanted.fid = &alias.release()->fid;
  return 0;
}

}  // namespace uet::provider
