/// Work that threads leave for the holder of a lock, in place of waiting for it.
#pragma once

#include <atomic>

namespace uet::provider {

class LeftWork;

/// Threads push, the holder of a lock takes all.
class LeftWorkList {
 public:
  /// Does nothing where it is in the list already, and was not taken yet.
  inline void push(LeftWork& work);
  bool empty() const { return first_.load(std::memory_order_relaxed) == nullptr; }
  /// Calls `carry_out` for each, in the order in which they were pushed. What it says is not over is in the list again.
  template <typename CarryOut>
  void take(CarryOut&& carry_out);
  /// Before `work` ends: nothing pushes it any longer.
  void forget(LeftWork& work) {
    take([&](LeftWork& other) { return &other == &work; });
  }

 private:
  std::atomic<LeftWork*> first_{nullptr};  ///< the latest
};

class LeftWork {
 public:
  /// With the worker's lock held. False: something of it has to wait, and asks again.
  virtual bool carry_out() = 0;

 protected:
  virtual ~LeftWork() = default;

 private:
  friend class LeftWorkList;
  LeftWork* next_ = nullptr;
  std::atomic<bool> is_in_list_{false};
};

void LeftWorkList::push(LeftWork& work) {
  if (work.is_in_list_.exchange(true, std::memory_order_acq_rel)) return;
  work.next_ = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(work.next_, &work, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

template <typename CarryOut>
void LeftWorkList::take(CarryOut&& carry_out) {
  LeftWork* latest = first_.exchange(nullptr, std::memory_order_acquire);
  LeftWork* oldest = nullptr;
  while (latest != nullptr) {
    LeftWork* const before = latest->next_;
    latest->next_ = oldest;
    oldest = latest;
    latest = before;
  }
  while (oldest != nullptr) {
    LeftWork& work = *oldest;
    oldest = work.next_;
    // From here on it may be pushed again.
    work.is_in_list_.exchange(false, std::memory_order_acq_rel);
    if (!carry_out(work)) push(work);
  }
}

}  // namespace uet::provider
