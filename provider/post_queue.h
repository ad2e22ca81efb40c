/// Operations that were posted to an endpoint while another thread had the loop.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "provider/endpoint.h"
#include "provider/lock.h"

namespace uet::provider {

/// In the order of the calls. Any thread puts operations in; the holder of the worker's lock takes them out.
class PostQueue {
 public:
  using Operation = std::variant<Endpoint::Send, Endpoint::Rma, Endpoint::Receive>;

  PostQueue() : places_(std::make_unique<Place[]>(kPlaces)) {}

  /// Whether an operation of that size can be kept.
  template <typename Op>
  static bool fits(const Op& op) {
    return op.iov.size() <= kMostPieces &&
           ((op.flags & FI_INJECT) == 0 || total_bytes(op.iov) <= kMostInjected);
  }
  enum class Pushed { kYes, kNoRoom, kNoPlace };
  /// A copy of `op`, which fits, with its list of buffers and, of an injected one, what they hold. It has no room beside
  /// `room` others.
  template <typename Op>
  Pushed push(const Op& op, std::size_t room);

  // --- With the worker's lock held
  bool empty() const { return size() == 0; }
  /// Calls `carry_out` for each operation, whose spans are good during the call, and takes it out; until it says of one that it
  /// has to wait. Whether none is left.
  template <typename CarryOut>
  bool take(CarryOut&& carry_out);

  // --- From any thread
  std::size_t size() const {
    const std::size_t head = head_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_acquire) - head;
  }

  static constexpr std::size_t kPlaces = 64;
  static constexpr std::size_t kMostPieces = 4;
  static constexpr std::size_t kMostInjected = 128;

 private:
  struct Place {
    Operation operation;
    std::array<iovec, kMostPieces> pieces;
    std::array<std::byte, kMostInjected> injected;

    template <typename Op>
    void keep(const Op& op);
  };
  Place& at(std::size_t index) const { return places_[index % kPlaces]; }

  const std::unique_ptr<Place[]> places_;
  std::atomic<std::size_t> tail_{0};
  std::atomic<std::size_t> head_{0};
  Lock writers_;
};

template <typename CarryOut>
bool PostQueue::take(CarryOut&& carry_out) {
  while (!empty()) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (!std::visit(carry_out, std::as_const(at(head).operation))) return false;
    head_.store(head + 1, std::memory_order_release);
  }
  return true;
}

}  // namespace uet::provider
