#include "lib/base/trace.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace uet::base {

Trace::Trace(std::size_t recorder_size)
    : recorder_(std::bit_ceil(std::max<std::size_t>(recorder_size, 1))),
      recorder_mask_(recorder_.size() - 1) {}

void Trace::add_sink(TraceSink& sink) {
  sinks_.push_back(&sink);
}

void Trace::remove_sink(TraceSink& sink) {
  std::erase(sinks_, &sink);
}

void Trace::forward(const Event& event) {
  for (TraceSink* sink : sinks_) sink->on_event(event);
}

std::uint64_t Trace::drops_total() const {
  return std::accumulate(drops_.begin(), drops_.end(), std::uint64_t{0});
}

std::vector<Event> Trace::recorded(std::uint16_t pdc) const {
  std::vector<Event> out;
  const std::size_t have = std::min(next_, recorder_.size());
  for (std::size_t i = next_ - have; i != next_; ++i) {
    const Event& e = recorder_[i & recorder_mask_];
    if (pdc == 0 || e.pdc == pdc) out.push_back(e);
  }
  return out;
}

}  // namespace uet::base
