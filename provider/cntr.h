/// Counter of finished operations.
#pragma once

#include <rdma/fi_eq.h>

#include "provider/object.h"
#include "provider/wait.h"
#include "provider/worker.h"

namespace uet::provider {

class Domain;

class Cntr final : public fid_cntr {
 public:
  static int open(Domain& domain, const fi_cntr_attr& attr, fid_cntr** out, void* context);
  static Cntr& of(fid_cntr* f) { return *static_cast<Cntr*>(f); }
  static Cntr& of(fid_t f) { return of(reinterpret_cast<fid_cntr*>(f)); }

  Worker& worker() { return worker_; }
  Domain& domain() { return domain_; }
  Users& users() { return users_; }

  // --- With the worker's lock held
  // ----------------------------------------------------------------
  void add(std::uint64_t n) {
    value_ += n;
    wait_.signal();
  }
  void add_error(std::uint64_t n) {
    errors_ += n;
    wait_.signal();
  }
  void set(std::uint64_t value) {
    value_ = value;
    wait_.signal();
  }
  void set_error(std::uint64_t value) {
    errors_ = value;
    wait_.signal();
  }
  std::uint64_t read() {
    value_seen_ = value_;
    return value_;
  }
  std::uint64_t read_error() {
    errors_seen_ = errors_;
    return errors_;
  }
  /// For poll sets: changed since it was last read.
  bool has_changed() const { return value_ != value_seen_ || errors_ != errors_seen_; }
  /// For fi_trywait.
  int try_wait();

  int wait(std::uint64_t threshold, int timeout_ms);
  int control(int command, void* arg) {
    const std::lock_guard guard(worker_.lock());
    return wait_.control(command, arg);
  }
  int close();

 private:
  Cntr(Domain& domain, const fi_cntr_attr& attr, void* context);
  ~Cntr() = default;

  Domain& domain_;
  Worker& worker_;
  std::uint64_t value_ = 0;
  std::uint64_t errors_ = 0;
  std::uint64_t value_seen_ = 0;
  std::uint64_t errors_seen_ = 0;
  WaitObject wait_;
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
