/// Domain: one fabric endpoint (worker) as one application part uses it. Several domains may share
/// a worker.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "provider/object.h"
#include "provider/worker.h"

namespace uet::provider {

class Cntr;
class Eq;
class Fabric;
class Mr;
struct TriggeredOp;

/// How memory is registered in a domain. [FI 3.3]
struct MemoryMode {
  MemoryMode(std::uint64_t caps, int mr_mode);
  bool is_rma_target;
  bool has_device_memory;  ///< FI_HMEM
  // The rest by mr_mode.
  bool has_provider_keys;
  bool has_virtual_addresses;
  bool binds_to_endpoints;
};

class Domain final : public fid_domain {
 public:
  static int open(Fabric& fabric, const fi_info& info, fid_domain** out, void* context);
  static Domain& of(fid_domain* f) { return *static_cast<Domain*>(f); }
  static Domain& of(fid_t f) { return of(reinterpret_cast<fid_domain*>(f)); }
  /// Not that of another provider.
  static bool is_ours(const fid_domain& f);

  Worker& worker() { return *worker_; }
  const fep::Settings& settings() const { return worker_->settings(); }
  Users& users() { return users_; }
  std::uint32_t api_version() const { return api_version_; }
  net::FabricAddress fabric_address() const { return fabric_address_; }
  std::size_t default_cq_size() const { return default_cq_size_; }
  std::uint32_t job_id() const { return job_id_; }

  /// The most that one packet carries.
  std::size_t payload_mtu() const { return worker_->fep().payload_mtu(); }

  // How memory is registered here. [FI 3.3]
  std::uint32_t memory_space() const { return memory_space_; }
  MemoryMode memory_mode() const;
  /// What an endpoint of it can do is said by the endpoint's fi_info: where that of the domain said nothing of memory that peers reach,
  /// or of devices', regions are registered from now on as this one says.
  void take_over(const fi_info& info);
  /// Regions of the domain are registered as one with these capabilities and this mr_mode expects.
  bool registers_as(std::uint64_t caps, int mr_mode) const;
  /// Whether a region of a device was ever registered: until then all memory is the CPU's. Open MPI 5 asks for FI_HMEM wherever it is on
  /// offer. Without the lock, by those who post: who posts from a region knows that it is registered.
  bool has_device_regions() const { return device_regions_.load(std::memory_order_relaxed); }
  void note_device_region() { device_regions_.store(true, std::memory_order_relaxed); }
  /// Where asynchronous registrations report to, if the application asked for it.
  Eq* mr_events() { return mr_events_; }

  /// False when the settings forbid it.
  bool start_progress_thread();

  // --- With the worker's lock held: regions whose accesses are counted
  // ------------------------------
  void watch(std::uint64_t key, Mr& region) { watched_[key] = &region; }
  /// A region that was refused has the key of another.
  void unwatch(std::uint64_t key, const Mr& region) {
    const auto at = watched_.find(key);
    if (at != watched_.end() && at->second == &region) watched_.erase(at);
  }
  void forget_counter(const Cntr& cntr);
  Mr* watched(std::uint64_t key) {
    if (watched_.empty()) return nullptr;
    const auto at = watched_.find(key);
    return at == watched_.end() ? nullptr : at->second;
  }

  // --- With the worker's lock held: counters that operations wait for
  // ------------------------------
  void add_triggering(Cntr& cntr);
  /// What waits for any counter, and is meant, is the caller's.
  std::list<TriggeredOp> take_triggered(const std::function<bool(const TriggeredOp&)>& is_meant);

  int bind(fid_t other, std::uint64_t flags);
  int control(int command, void* arg);
  int close();

 private:
  Domain(Fabric& fabric, const fi_info& info, std::shared_ptr<Worker> worker,
         net::FabricAddress address, void* context);
  ~Domain() = default;

  std::shared_ptr<Worker> worker_;
  const net::FabricAddress fabric_address_;
  const std::uint32_t api_version_;
  const std::uint32_t memory_space_;
  std::size_t default_cq_size_ = 0;
  std::uint32_t job_id_ = 0;
  MemoryMode memory_mode_;  ///< with the worker's lock held
  std::atomic<bool> device_regions_{false};
  Eq* event_queue_ = nullptr;
  Eq* mr_events_ = nullptr;
  std::unordered_map<std::uint64_t, Mr*> watched_;
  std::vector<Cntr*> triggering_;
  Users users_;
  UserOf fabric_use_;
};

/// fi_query_atomic: atomic.cc. Numbers newer than our headers are welcome.
int query_atomic(const Domain& domain, int type, int op, fi_atomic_attr& out, std::uint64_t flags);

/// The job that an authorization key names: four bytes in host order. Nothing for any other size.
std::optional<std::uint32_t> job_of(const std::uint8_t* auth_key, std::size_t size);

}  // namespace uet::provider
