/// One libfabric RDM endpoint and its peer, as a benchmark needs them: opened, addresses exchanged,
/// memory registered.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/perf/control_channel.h"

namespace uet::perf {

/// Closes any libfabric object.
struct FidDeleter {
  template <typename T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <typename T>
using Fid = std::unique_ptr<T, FidDeleter>;

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};

/// Works with any provider that offers RDM endpoints with messages, tags and RMA.
/// Every failure throws std::runtime_error naming the call.
class FabricSession {
 public:
  /// `ordered` asks for send-after-send order, as MPI does. `buffer_bytes` of memory are registered
  /// for everything.
  FabricSession(ControlChannel& control, const std::string& provider, bool ordered,
                std::size_t buffer_bytes);

  fid_ep* ep() { return ep_.get(); }
  fi_addr_t peer() const { return peer_; }
  std::uint8_t* buffer() { return buffer_.data(); }
  void* descriptor() { return descriptor_; }
  std::uint64_t remote_address() const { return remote_address_; }
  std::uint64_t remote_key() const { return remote_key_; }
  std::size_t inject_size() const { return info_->tx_attr->inject_size; }
  const char* provider_name() const { return info_->fabric_attr->prov_name; }

  /// Reads finished operations; throws when one failed. Returns how many.
  std::size_t poll();
  /// Turns progress until `count` operations (in all) have finished, the total being kept by the
  /// caller.
  void wait_for(std::uint64_t& finished, std::uint64_t count);
  /// Repeats a post that asks for patience.
  template <typename Post>
  void post(Post&& attempt, std::uint64_t& finished) {
    for (;;) {
      const ssize_t rc = attempt();
      if (rc == 0) return;
      if (rc != -FI_EAGAIN) fail("post", rc);
      finished += poll();
    }
  }
  [[noreturn]] static void fail(const char* call, ssize_t rc);

 private:
  std::unique_ptr<fi_info, InfoDeleter> info_;
  std::vector<std::uint8_t> buffer_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_cq> cq_;
  Fid<fid_av> av_;
  Fid<fid_mr> mr_;
  Fid<fid_ep> ep_;  // last: closed first
  void* descriptor_ = nullptr;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t remote_address_ = 0;
  std::uint64_t remote_key_ = 0;
};

}  // namespace uet::perf
