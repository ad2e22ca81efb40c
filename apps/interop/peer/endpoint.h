/// One libfabric endpoint of any provider, with what an exercise asks for, and its completions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/libfabric_endpoint.h"

namespace uet::interop {

/// The provider has no such thing: not a failure.
class Unsupported : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An operation ended with an error.
class OperationFailed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Bytes = std::vector<std::uint8_t>;

struct Wanted {
  std::uint64_t caps = FI_MSG;
  bool is_datagram = false;
  bool is_ordered = false;    ///< sends are matched in the order of posting
  bool is_delivered = false;  ///< an operation is complete when its effect is visible at the target
};

/// One operation in flight. Endpoint::keep() holds it.
struct Operation {
  fi_context2 for_provider{};
  bool is_done = false;
  int error = 0;
  std::size_t length = 0;
};

class Endpoint {
 public:
  Endpoint(const Wanted& wanted, double patience_s);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  fid_ep* ep() const { return objects_.ep.get(); }
  const fi_info& info() const { return *info_; }
  std::string name() const;  ///< as hexadecimal digits
  fi_addr_t insert(const std::string& name);

  /// Registers for the peers. Unsupported when the provider refuses flags that are not 0.
  fid_mr* open_memory(Bytes& memory, std::uint64_t flags = 0);
  /// What peers add to offsets.
  std::uint64_t base_of(const Bytes& memory) const {
    return libfabric::base_of(*info_, memory.data());
  }

  /// Posts until the provider takes it.
  void post(Operation& operation, const char* what, const std::function<ssize_t(void*)>& call);
  /// Throws when it ended with an error, or not in time.
  void wait_for(Operation& operation, const char* what);
  /// Until `is_there` is true; calls progress meanwhile.
  void wait_until(const std::function<bool()>& is_there, const std::string& what);
  /// Takes what is complete; where the provider can sleep, waits a moment for it.
  void progress();
  /// Every operation in flight ends: receives by being cancelled, the others by themselves. After a peer was lost.
  void drain();

  /// What operations point to lives as long as the endpoint: an exercise may end while they are in flight.
  template <typename T, typename... Arguments>
  T& keep(Arguments&&... arguments) {
    auto kept = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    T& out = *kept;
    kept_.push_back(std::move(kept));
    return out;
  }

  /// Remote data that came with writes, in the order of arrival.
  std::vector<std::uint64_t> remote_data;
  /// Called while waiting; may throw.
  std::function<void()> on_wait;

 private:
  void complete(void* context, std::uint64_t flags, std::size_t length, std::uint64_t data,
                int error);

  libfabric::Info info_;
  std::vector<Operation*> in_flight_;
  std::vector<std::shared_ptr<void>> kept_;
  libfabric::Endpoint objects_;  // behind what it works on
  double patience_s_;
  int nap_ms_ = 1;  ///< grows while nothing happens
};

}  // namespace uet::interop
