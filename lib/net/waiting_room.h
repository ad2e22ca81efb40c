/// Packets that wait until their next hop is resolved: one bounded pool of places, any number of
/// queues in it.
#pragma once

#include <optional>
#include <vector>

#include "lib/net/port.h"

namespace uet::net {

/// One first-in-first-out queue. Holds places of exactly one WaitingRoom.
struct WaitingQueue {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
  std::uint32_t size = 0;
};

class WaitingRoom {
 public:
  explicit WaitingRoom(std::size_t places) : places_(places) {
    for (std::size_t i = 0; i < places; ++i)
      places_[i].next = i + 1 < places ? static_cast<std::uint32_t>(i + 1) : WaitingQueue::kNone;
    free_ = places == 0 ? WaitingQueue::kNone : 0;
  }

  std::size_t capacity() const { return places_.size(); }
  std::size_t occupied() const { return occupied_; }

  /// False, and nothing taken, when every place is occupied.
  [[nodiscard]] bool push(WaitingQueue& queue, TxPacket& packet) {
    if (free_ == WaitingQueue::kNone) return false;
    const std::uint32_t place = free_;
    free_ = places_[place].next;
    places_[place] = Place{std::move(packet), WaitingQueue::kNone};
    if (queue.size == 0)
      queue.first = place;
    else
      places_[queue.last].next = place;
    queue.last = place;
    ++queue.size;
    ++occupied_;
    return true;
  }

  /// The packet at the front; the queue must not be empty.
  TxPacket& front(const WaitingQueue& queue) { return places_[queue.first].packet; }

  TxPacket pop(WaitingQueue& queue) {
    UET_CHECK(queue.size > 0);
    const std::uint32_t place = queue.first;
    TxPacket packet = std::move(places_[place].packet);
    queue.first = places_[place].next;
    places_[place].next = free_;
    free_ = place;
    --queue.size;
    --occupied_;
    return packet;
  }

 private:
  struct Place {
    TxPacket packet;
    std::uint32_t next = WaitingQueue::kNone;
  };
  std::vector<Place> places_;
  std::uint32_t free_ = WaitingQueue::kNone;
  std::size_t occupied_ = 0;
};

}  // namespace uet::net
