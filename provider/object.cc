#include "provider/object.h"

namespace uet::provider {

int no_bind(fid*, fid*, std::uint64_t) {
  return -FI_ENOSYS;
}

int no_control(fid*, int, void*) {
  return -FI_ENOSYS;
}

int no_ops_open(fid*, const char*, std::uint64_t, void**, void*) {
  return -FI_ENOSYS;
}

int no_ops_set(fid*, const char*, std::uint64_t, void*, void*) {
  return -FI_ENOSYS;
}

}  // namespace uet::provider
