#include "provider/post_queue.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace uet::provider {

/// Afterwards the operation points to what the place holds.
template <typename Op>
void PostQueue::Place::keep(const Op& op) {
  Op& own = operation.emplace<Op>(op);
  std::ranges::copy(op.iov, pieces.begin());
  own.iov = {pieces.data(), op.iov.size()};
  if ((op.flags & FI_INJECT) == 0) return;
  std::byte* to = injected.data();
  for (const iovec& piece : op.iov) {
    if (piece.iov_len != 0) std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
  pieces[0] = {injected.data(), static_cast<std::size_t>(to - injected.data())};
  own.iov = {pieces.data(), 1};
}

template <typename Op>
PostQueue::Pushed PostQueue::push(const Op& op, std::size_t room) {
  const std::lock_guard guard(writers_);
  const std::size_t others = size();
  if (others >= room) return Pushed::kNoRoom;
  if (others == kPlaces) return Pushed::kNoPlace;
  const std::size_t tail = tail_.load(std::memory_order_relaxed);
  at(tail).keep(op);
  tail_.store(tail + 1, std::memory_order_release);
  return Pushed::kYes;
}

template PostQueue::Pushed PostQueue::push(const Endpoint::Send&, std::size_t);
template PostQueue::Pushed PostQueue::push(const Endpoint::Rma&, std::size_t);
template PostQueue::Pushed PostQueue::push(const Endpoint::Receive&, std::size_t);

}  // namespace uet::provider
