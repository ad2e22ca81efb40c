/// Fabric object: the set of endpoints that reach each other.
#pragma once

#include <rdma/fabric.h>

#include "provider/object.h"

namespace uet::provider {

inline constexpr const char* kFabricName = "UET";

int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* context);

class Fabric final : public fid_fabric {
 public:
  static Fabric& of(fid_fabric* f) { return *static_cast<Fabric*>(f); }
  static Fabric& of(fid_t f) { return of(reinterpret_cast<fid_fabric*>(f)); }

  /// Not that of another provider.
  static bool is_ours(const fid_fabric& f);

  explicit Fabric(const fi_fabric_attr& attr, void* context);
  Users& users() { return users_; }
  int close();

 private:
  ~Fabric() = default;
  Users users_;
};

}  // namespace uet::provider
