/// Counter of finished operations.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <functional>
#include <limits>
#include <list>

#include "provider/left_work.h"
#include "provider/object.h"
#include "provider/wait.h"
#include "provider/worker.h"

namespace uet::provider {

class Domain;
struct TriggeredOp;
/// Which of them a call is about.
using IsMeant = std::function<bool(const TriggeredOp&)>;

/// Operations that wait for a threshold are started by the holder of the worker's lock, before it gives it back: in the order of
/// their thresholds, and where these are equal in that of the calls. What was reached stays so when the counter is set lower.
class Cntr final : public fid_cntr, private LeftWork {
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
    tell();
  }
  void set_error(std::uint64_t value) {
    errors_.set(value);
    tell();
  }
  /// Whether an operation with this threshold, called now, has nothing to wait for.
  bool is_open_for(std::uint64_t threshold) const;
  /// The one operation of `op` waits here from now on.
  void await(std::list<TriggeredOp>& op);
  /// Moves what waits here, and is meant, to the end of `to`.
  void take_waiting(const IsMeant& is_meant, std::list<TriggeredOp>& to);
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
  int control(int command, void* arg);
  int close();

 private:
  Cntr(Domain& domain, const fi_cntr_attr& attr, void* context);
  ~Cntr();
  void tell() {
    wait_.signal();
    if (value_.now() + errors_.now() >= next_threshold_) [[unlikely]]
      reach();
  }
  void reach();
  bool carry_out() override;

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
  static constexpr std::uint64_t kNoThreshold = std::numeric_limits<std::uint64_t>::max();

  Value value_, errors_;
  std::list<TriggeredOp> waiting_;               ///< by threshold
  std::list<TriggeredOp> due_;                   ///< reached theirs, and are started in this order
  std::uint64_t next_threshold_ = kNoThreshold;  ///< the least of waiting_
  WaitObject wait_;
  Users users_;
  UserOf domain_use_;
};

}  // namespace uet::provider
