#include "provider/alias.h"

#include <memory>

#include "provider/errors.h"

namespace uet::provider {
namespace {

int alias_close(fid* f) {
  delete &Alias::of(f);
  return 0;
}
int alias_bind(fid* f, fid* other, std::uint64_t flags) {
  return guarded([&] { return Endpoint::of(f).bind(other, flags); });
}
int alias_control(fid* f, int command, void* arg) {
  return guarded([&] { return Endpoint::of(f).control(Alias::of(f), command, arg); });
}

fi_ops alias_fid_ops =
    make_ops({.close = alias_close, .bind = alias_bind, .control = alias_control});

}  // namespace

Alias::Alias(const EndpointFid& original)
    : EndpointFid(original), endpoint_use_(original.endpoint().users()) {
  fid.ops = &alias_fid_ops;
}

int Alias::open(const EndpointFid& original, const struct fi_alias& wanted) {
  std::unique_ptr<Alias> alias(new Alias(original));
  if (const int error = alias->set_ops_flags(wanted.flags); error != 0) return error;
  *wanted.fid = &alias.release()->fid;
  return 0;
}

}  // namespace uet::provider
