#include "sim/event_queue.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace uet::sim {

namespace {
constexpr std::size_t kArity = 4;
}

void EventQueue::schedule(SimTime at, EventHandler& handler, std::uint32_t kind, void* data) {
  UET_CHECK(at >= now_);
  heap_.push_back(Event{at, next_order_++, &handler, data, kind});
  sift_up(heap_.size() - 1);
}

void EventQueue::call_at(SimTime at, std::function<void()> action) {
  schedule(at, calls_, calls_.store(std::move(action)));
}

bool EventQueue::run_next() {
  if (heap_.empty()) return false;
  const Event event = heap_.front();
  heap_.front() = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0);
  now_ = event.at;
  ++events_run_;
  event.handler->on_event(event.kind, event.data);
  return true;
}

void EventQueue::run_until(SimTime end) {
  while (!heap_.empty() && heap_.front().at <= end) run_next();
  if (!end.is_never() && now_ < end) now_ = end;
}

void EventQueue::sift_up(std::size_t i) {
  const Event event = heap_[i];
  while (i > 0) {
    const std::size_t parent = (i - 1) / kArity;
    if (!event.is_before(heap_[parent])) break;
    heap_[i] = heap_[parent];
    i = parent;
  }
  heap_[i] = event;
}

void EventQueue::sift_down(std::size_t i) {
  const Event event = heap_[i];
  const std::size_t size = heap_.size();
  for (;;) {
    const std::size_t first = i * kArity + 1;
    if (first >= size) break;
    std::size_t best = first;
    const std::size_t last = std::min(first + kArity, size);
    for (std::size_t c = first + 1; c < last; ++c) {
      if (heap_[c].is_before(heap_[best])) best = c;
    }
    if (!heap_[best].is_before(event)) break;
    heap_[i] = heap_[best];
    i = best;
  }
  heap_[i] = event;
}

std::uint32_t EventQueue::Calls::store(std::function<void()> action) {
  if (free_.empty()) {
    actions_.push_back(std::move(action));
    return static_cast<std::uint32_t>(actions_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  actions_[index] = std::move(action);
  return index;
}

void EventQueue::Calls::on_event(std::uint32_t kind, void*) {
  // The action may schedule further calls and so move actions_: take it out first.
  const std::function<void()> action = std::exchange(actions_[kind], nullptr);
  free_.push_back(kind);
  action();
}

}  // namespace uet::sim
