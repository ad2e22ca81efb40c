/// A packet on its way through the simulated fabric.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/net/port.h"

namespace uet::sim {

/// Index of a host of the fabric.
using HostId = std::uint32_t;

/// Which of a queue's two FIFOs a packet uses.
enum class TrafficClass : std::uint8_t {
  kData,     ///< low: marked, trimmed or dropped when the queue is long
  kControl,  ///< high: acknowledgements, control and trimmed packets
};

/// One packet and what switches read of it. Owned by exactly one holder (a queue, an event, a port)
/// through a plain pointer; goes back with FramePool::release().
struct Frame {
  net::RxPacket rx;
  Frame* next = nullptr;   ///< link of the FIFO that holds it
  std::uint64_t flow = 0;  ///< what switches hash besides the entropy value: source and destination
  std::uint64_t id = 0;    ///< number of the packet in this run
  HostId source = 0;
  HostId destination = 0;
  std::uint32_t cuts = 0;        ///< of the link that it is on, when it left
  std::uint32_t wire_bytes = 0;  ///< size that queues and links count
  std::uint16_t headers = 0;     ///< bytes of `rx.packet` in front of the UET packet
  TrafficClass traffic_class = TrafficClass::kData;
  bool trimmable = false;
  bool trimmed = false;
};

class FramePool {
 public:
  Frame* acquire() {
    if (free_ == nullptr) grow();
    Frame* f = free_;
    free_ = f->next;
    f->next = nullptr;
    f->trimmed = false;
    f->headers = 0;
    f->id = ++next_id_;
    ++in_use_;
    return f;
  }
  /// The packet inside goes back to its own pool.
  void release(Frame* f) {
    f->rx.packet.reset();
    f->next = free_;
    free_ = f;
    --in_use_;
  }
  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::size_t kSlab = 256;
  void grow() {
    slabs_.push_back(std::make_unique<Frame[]>(kSlab));
    for (std::size_t i = kSlab; i-- > 0;) {
      slabs_.back()[i].next = free_;
      free_ = &slabs_.back()[i];
    }
  }
  std::vector<std::unique_ptr<Frame[]>> slabs_;
  Frame* free_ = nullptr;
  std::uint64_t next_id_ = 0;
  std::size_t in_use_ = 0;
};

/// First in, first out, through Frame::next; can also give back its newest.
class FrameFifo {
 public:
  bool is_empty() const { return head_ == nullptr; }
  std::size_t size() const { return size_; }
  void push(Frame* f) {
    f->next = nullptr;
    (tail_ == nullptr ? head_ : tail_->next) = f;
    tail_ = f;
    ++size_;
  }
  Frame* pop() {
    Frame* f = head_;
    head_ = f->next;
    if (head_ == nullptr) tail_ = nullptr;
    f->next = nullptr;
    --size_;
    return f;
  }
  Frame* oldest() const { return head_; }
  Frame* newest() const { return tail_; }
  /// Puts `f` where the newest is and returns that one. Must not be empty.
  Frame* replace_newest(Frame* f);

 private:
  Frame* head_ = nullptr;
  Frame* tail_ = nullptr;
  std::size_t size_ = 0;
};

inline Frame* FrameFifo::replace_newest(Frame* f) {
  Frame* old = tail_;
  f->next = nullptr;
  if (head_ == old) {
    head_ = f;
  } else {
    Frame* before = head_;
    while (before->next != old) before = before->next;
    before->next = f;
  }
  tail_ = f;
  old->next = nullptr;
  return old;
}

/// Where a link ends.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// Takes ownership of the frame.
  virtual void on_frame(Frame* frame) = 0;
};

}  // namespace uet::sim
