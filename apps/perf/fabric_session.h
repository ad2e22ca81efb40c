/// One libfabric RDM endpoint and its peer, as a benchmark needs them: opened, addresses exchanged,
/// memory registered.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
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
using Info = std::unique_ptr<fi_info, InfoDeleter>;

/// The provider's offer of an RDM endpoint with messages, tags and RMA. Throws a sentence when there is none.
Info find_provider(const std::string& provider, bool ordered);

/// Works with any provider that offers RDM endpoints with messages, tags and RMA.
/// Every failure throws std::runtime_error naming the call; a peer that fails or leaves ends every wait.
class FabricSession {
 public:
  /// `ordered` asks for send-after-send order, as MPI does. `buffer_bytes` of memory are registered
  /// for everything.
  FabricSession(ControlChannel& control, Patience& patience, const std::string& provider,
                bool ordered, std::size_t buffer_bytes);

  fid_ep* ep() { return ep_.get(); }
  fi_addr_t peer() const { return peer_; }
  std::uint8_t* buffer() { return buffer_.data(); }
  void* descriptor() { return descriptor_; }
  std::uint64_t remote_address() const { return remote_address_; }
  std::uint64_t remote_key() const { return remote_key_; }
  std::size_t inject_size() const { return info_->tx_attr->inject_size; }
  const char* provider_name() const { return info_->fabric_attr->prov_name; }

  /// Received messages must have this many bytes.
  void expect_length(std::size_t bytes) { expected_length_ = bytes; }
  /// For the message when nothing happens.
  void set_waiting_for(const char* what) { waiting_for_ = what; }
  /// Makes progress and reads finished operations; throws when one failed. Returns how many. Now and then also looks at
  /// the clock and at the control connection.
  std::size_t poll();
  /// Makes progress until `count` operations (in all) have finished, the total being kept by the
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
  void open_endpoint();
  void register_memory();
  void exchange_addresses();
  [[noreturn]] void throw_error_entry();
  void look_up();

  ControlChannel& control_;
  Patience& patience_;
  Info info_;
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
  std::size_t expected_length_ = 0;
  const char* waiting_for_ = "an operation to finish";
  Patience::Clock::time_point told_{};  ///< the peer that something finished
  std::uint64_t turns_ = 0;
  bool something_finished_ = false;  ///< since the last look at the clock
};

}  // namespace uet::perf
