/// One libfabric RDM endpoint as a benchmark needs it: opened, memory registered, peers to be added.
#pragma once

#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/libfabric_endpoint.h"
#include "apps/perf/patience.h"

namespace uet::perf {

/// The provider's offer of an RDM endpoint with messages, tags and RMA. Throws a sentence when there is none.
libfabric::Info find_provider(const std::string& provider, bool ordered);

/// The context of an operation that is told apart from others.
struct Operation {
  fi_context2 room;       ///< a provider may keep something here
  std::size_t bytes = 0;  ///< of a receive: what must arrive
  bool is_done = false;
};

/// Works with any provider that offers RDM endpoints with messages, tags and RMA.
/// Every failure throws std::runtime_error naming the call.
class FabricEndpoint {
 public:
  /// `ordered` asks for send-after-send order, as MPI does. `buffer_bytes` of memory are registered for everything. `look`
  /// is called now and then while operations are waited for, and told whether one has finished since.
  FabricEndpoint(Patience& patience, const std::string& provider, bool ordered,
                 std::size_t buffer_bytes, std::function<void(bool)> look);

  fid_ep* ep() { return endpoint_.ep.get(); }
  std::uint8_t* buffer() { return buffer_.data(); }
  std::size_t buffer_bytes() const { return buffer_.size(); }
  void* descriptor() { return descriptor_; }
  std::size_t inject_size() const { return info_->tx_attr->inject_size; }
  const char* provider_name() const { return info_->fabric_attr->prov_name; }

  /// What a peer gives to add_peer().
  std::vector<std::uint8_t> name() const { return endpoint_.name(); }
  fi_addr_t add_peer(const std::vector<std::uint8_t>& name);
  /// Where peers find the buffer, and its key.
  std::uint64_t address_for_peers() const { return libfabric::base_of(*info_, buffer_.data()); }
  std::uint64_t key() const { return fi_mr_key(memory_); }

  /// Messages received without an Operation must have this many bytes.
  void expect_length(std::size_t bytes) { expected_length_ = bytes; }
  /// For the message when nothing happens.
  void set_waiting_for(const char* what) { waiting_for_ = what; }
  /// Makes progress and reads finished operations; their contexts are null or Operations. Throws when one failed. Returns
  /// how many.
  std::size_t poll();
  /// Makes progress until `count` operations (in all) have finished, the total being kept by the caller.
  void wait_for(std::uint64_t& finished, std::uint64_t count);
  /// Repeats a post that asks for patience.
  template <typename Post>
  void post(Post&& attempt, std::uint64_t& finished) {
    for (;;) {
      const ssize_t rc = attempt();
      if (rc == 0) return;
      if (rc != -FI_EAGAIN) libfabric::fail("post", rc);
      finished += poll();
    }
  }

 private:
  [[noreturn]] void throw_error_entry();

  Patience& patience_;
  libfabric::Info info_;
  std::vector<std::uint8_t> buffer_;
  libfabric::Endpoint endpoint_;  // behind what it works on
  fid_mr* memory_ = nullptr;
  void* descriptor_ = nullptr;
  std::function<void(bool)> look_;
  std::size_t expected_length_ = 0;
  const char* waiting_for_ = "an operation to finish";
  std::uint64_t turns_ = 0;
  bool something_finished_ = false;  ///< since the last look
};

}  // namespace uet::perf
