/// Completion queue.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>

#include "provider/cq_ring.h"
#include "provider/object.h"
#include "provider/wait.h"
#include "provider/worker.h"

namespace uet::provider {

class Domain;

/// Nothing is lost: completions of accepted operations always find a place, because the ring grows
/// beyond the size the application asked for; but new operations are refused (-FI_EAGAIN) while it
/// holds that many. Only what peers can cause without us (writes with data) meets a hard bound,
/// reported as FI_EOVERRUN, as does a ring that the system has no memory for.
///
/// Errors keep their place in the order of completions.
///
/// What is there is taken without waiting for the loop, which another thread may be turning.
class Cq final : public fid_cq {
 public:
  static int open(Domain& domain, const fi_cq_attr& attr, fid_cq** out, void* context);
  static Cq& of(fid_cq* f) { return *static_cast<Cq*>(f); }
  static Cq& of(fid_t f) { return of(reinterpret_cast<fid_cq*>(f)); }

  Worker& worker() { return worker_; }
  Users& users() { return users_; }

  // --- With the worker's lock held
  // ----------------------------------------------------------------
  /// An endpoint will use this queue: memory for `size` entries is there from now on.
  void reserve() { ring_.reserve(size_); }
  void push(const CqEntry& entry);
  /// The same of an entry that `fill` completes where it is.
  template <typename Fill>
  void add(Fill&& fill) {
    if (!ring_.add(fill)) overrun_.store(true, std::memory_order_relaxed);
    announce();
  }
  /// For fi_trywait: -FI_EAGAIN when there is something to read, else armed.
  int try_wait();

  // --- With or without it
  // -------------------------------------------------------------------------
  bool is_full() const { return ring_.size() >= size_; }
  bool is_empty() const { return ring_.size() == 0; }
  bool has_entries() const { return !is_empty() || overrun_.load(std::memory_order_relaxed); }
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t take_error(fi_cq_err_entry* out);

  // --- Without it
  // ---------------------------------------------------------------------------------
  ssize_t sread(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                int timeout_ms);
  int signal();
  int control(int command, void* arg) {
    const std::lock_guard guard(worker_.lock());
    return wait_.control(command, arg);
  }
  int close();

 private:
  Cq(Domain& domain, const fi_cq_attr& attr, void* context);
  ~Cq() = default;
  void announce();
  /// With the lock of readers.
  ssize_t take_entries(void* buffer, std::size_t count, fi_addr_t* sources);
  bool is_error_next();

  Domain& domain_;
  Worker& worker_;
  const fi_cq_format format_;
  const fi_cq_wait_cond condition_;
  const std::size_t size_;
  CqRing ring_;
  bool signalled_ = false;
  std::atomic<bool> overrun_{false};  ///< entries were lost, and the application was not told yet
  WaitObject wait_;
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
