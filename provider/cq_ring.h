/// The entries of a completion queue: written by the loop, taken by threads that need not wait for it.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "provider/lock.h"

namespace uet::provider {

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
  int prov_errno = 0;  ///< of provider/errors.h
};

/// The holder of the worker's lock writes, the holder of readers() takes.
class CqRing {
 public:
  // --- The writer
  /// Memory for `size` entries is there from now on.
  void reserve(std::size_t size);
  /// `fill` completes the new entry where it is: what is written one field at a time is slow to copy. False: there are kMostEntries,
  /// or the system has no memory for more.
  template <typename Fill>
  bool add(Fill&& fill) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == ring_.size() && !grow()) return false;
    CqEntry& entry = at(tail);
    entry = CqEntry();
    fill(entry);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // --- The reader
  Lock& readers() { return readers_; }
  const CqEntry& front() { return at(head_.load(std::memory_order_relaxed)); }
  void pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

  // --- From any thread
  std::size_t size() const {
    // In this order: the tail that is read is not behind the head.
    const std::size_t head = head_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_acquire) - head;
  }

  /// A peer that writes with data faster than the application reads ends here.
  static constexpr std::size_t kMostEntries = std::size_t{1} << 20;

 private:
  CqEntry& at(std::size_t index) { return ring_[index & (ring_.size() - 1)]; }
  bool grow();

  std::vector<CqEntry> ring_;  ///< a power of two, or empty; replaced with both locks held
  std::atomic<std::size_t> tail_{0};
  std::atomic<std::size_t> head_{0};
  Lock readers_;
};

}  // namespace uet::provider
