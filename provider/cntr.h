/// Counter of finished operations.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>

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
  void add(std::uint64_t n) { set(value_.now() + n); }
  void add_error(std::uint64_t n) { set_error(errors_.now() + n); }
  void set(std::uint64_t value) {
    value_.set(value);
    wait_.signal();
  }
  void set_error(std::uint64_t value) {
    errors_.set(value);
    wait_.signal();
  }
  /// For fi_trywait.
  int try_wait();

  // --- With or without it
  // -------------------------------------------------------------------------
  std::uint64_t read() { return value_.read(); }
  std::uint64_t read_error() { return errors_.read(); }
  /// For poll sets: changed since it was last read.
  bool has_changed() const { return value_.has_changed() || errors_.has_changed(); }

  // --- Without it
  // ---------------------------------------------------------------------------------
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
  /// Set with the lock, read by any thread: who reads it sees the memory that the operations wrote.
  class Value {
   public:
    std::uint64_t now() const { return now_.load(std::memory_order_acquire); }
    std::uint64_t seen() const { return seen_.load(std::memory_order_relaxed); }
    void set(std::uint64_t value) { now_.store(value, std::memory_order_release); }
    void saw(std::uint64_t value) { seen_.store(value, std::memory_order_relaxed); }
    std::uint64_t read() {
      const std::uint64_t value = now();
      saw(value);
      return value;
    }
    bool has_changed() const { return now() != seen(); }

   private:
    std::atomic<std::uint64_t> now_{0};
    std::atomic<std::uint64_t> seen_{0};  ///< by the application
  };
  Value value_, errors_;
  WaitObject wait_;
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
