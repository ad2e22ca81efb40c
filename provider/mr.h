/// Memory region.
#pragma once

#include <rdma/fi_domain.h>
#include <sys/uio.h>

#include <vector>

#include "provider/object.h"
#include "provider/worker.h"
#include "ses/ses.h"

namespace uet::provider {

class Cntr;
class Domain;
struct MemoryMode;
class Endpoint;

extern fi_ops_mr mr_ops;

/// Data is copied by the CPU, so a region is only a key, a range and rights; or by a device's driver, which knows its memory from
/// here on. Regions of a domain
/// that peers cannot reach (neither FI_RMA nor FI_ATOMIC) are not told to the layers below, and their keys need
/// not be unique. [FI 3.3]
class Mr final : public fid_mr {
 public:
  static int open(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags, fid_mr** out);
  static Mr& of(fid_t f) { return *static_cast<Mr*>(reinterpret_cast<fid_mr*>(f)); }

  static bool is_write(ses::OpKind kind) {
    return kind == ses::OpKind::kRemoteWrite || kind == ses::OpKind::kRemoteAtomic;
  }
  /// A peer has read or written here; with the worker's lock held.
  void on_remote_access(ses::OpKind kind, bool success);

  /// Applications close counters before regions.
  void forget(const Cntr& cntr);

  int bind(fid_t other, std::uint64_t flags);
  int control(int command, void* arg);
  int close();

 private:
  Mr(Domain& domain, void* context);
  ~Mr() = default;
  int take_memory(const fi_mr_attr& attr, const MemoryMode& mode);
  int bind_endpoint(Endpoint& endpoint);
  int enable();
  int raw_key(const struct fi_mr_raw_attr& attr) const;

  Domain& domain_;
  Endpoint* endpoint_ = nullptr;  ///< bound to this one, which counts us as a user
  Cntr* write_counter_ = nullptr;
  Cntr* read_counter_ = nullptr;
  Devices::Id device_ = 0;         ///< whose memory it is
  std::vector<iovec> device_iov_;  ///< if it is a device's
  bool registered_ = false;
  bool enabled_ = true;
  UserOf domain_use_;
};

}  // namespace uet::provider
