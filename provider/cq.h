/// Completion queue.
#pragma once

#include <rdma/fi_eq.h>

#include <memory>
#include <vector>

#include "provider/object.h"
#include "provider/wait.h"
#include "provider/worker.h"

namespace uet::provider {

class Domain;

/// One finished operation, as a queue of any format may have to report it.
struct CqEntry {
  void* op_context = nullptr;
  std::uint64_t flags = 0;
  std::size_t length = 0;
  void* buffer = nullptr;
  std::uint64_t data = 0;
  std::uint64_t tag = 0;
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  std::size_t overflow_length = 0;
  int error = 0;       ///< positive fi_errno, 0 for success
  int prov_errno = 0;  ///< SES return code
};

/// Nothing is lost: completions of accepted operations always find a place, because the ring grows
/// beyond the size the application asked for; but new operations are refused (-FI_EAGAIN) while it
/// holds that many. Only what peers can cause without us (writes with data) meets a hard bound,
/// reported as FI_EOVERRUN, as does a ring that the system has no memory for.
///
/// Errors keep their place in the order of completions.
class Cq final : public fid_cq {
 public:
  static int open(Domain& domain, const fi_cq_attr& attr, fid_cq** out, void* context);
  static Cq& of(fid_cq* f) { return *static_cast<Cq*>(f); }
  static Cq& of(fid_t f) { return of(reinterpret_cast<fid_cq*>(f)); }

  Worker& worker() { return worker_; }
  Domain& domain() { return domain_; }
  Users& users() { return users_; }

  // --- With the worker's lock held
  // ----------------------------------------------------------------
  /// An endpoint will use this queue: memory for `size` entries is there from now on.
  void reserve();
  bool is_full() const { return used_ >= size_; }
  bool is_empty() const { return used_ == 0; }
  bool has_entries() const { return used_ != 0 || overrun_; }
  void push(const CqEntry& entry);
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t take_error(fi_cq_err_entry* out);
  /// For fi_trywait: -FI_EAGAIN when there is something to read, else armed.
  int try_wait();

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
  bool grow();
  CqEntry& head() { return ring_[head_ & (ring_.size() - 1)]; }
  void pop() {
    ++head_;
    --used_;
  }

  Domain& domain_;
  Worker& worker_;
  const fi_cq_format format_;
  const fi_cq_wait_cond condition_;
  const std::size_t size_;
  std::vector<CqEntry> ring_;  ///< a power of two, or empty before the first user
  std::size_t head_ = 0;
  std::size_t used_ = 0;
  bool signalled_ = false;
  bool overrun_ = false;
  WaitObject wait_;
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
