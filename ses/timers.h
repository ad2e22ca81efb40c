/// Deadlines of single objects, ordered by time. The nodes live in the objects: setting one
/// allocates nothing.
#pragma once

#include <boost/intrusive/set.hpp>

#include "lib/base/units.h"

namespace uet::ses {

struct TimerNode
    : boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  enum class Kind : std::uint8_t { kOpRetry, kLaneResume };
  base::Instant at;
  Kind kind = Kind::kOpRetry;
  bool is_set = false;
  void* owner = nullptr;

  friend bool operator<(const TimerNode& a, const TimerNode& b) { return a.at < b.at; }
};

class Timers {
 public:
  Timers() = default;
  ~Timers() { nodes_.clear(); }

  void set(TimerNode& node, base::Instant at) {
    cancel(node);
    node.at = at;
    node.is_set = true;
    nodes_.insert(node);
  }
  void cancel(TimerNode& node) {
    if (!node.is_set) return;
    nodes_.erase(nodes_.iterator_to(node));
    node.is_set = false;
  }
  base::Instant next() const {
    return nodes_.empty() ? base::Instant::never() : nodes_.begin()->at;
  }
  /// Takes one that is due, or null.
  TimerNode* pop(base::Instant now) {
    if (nodes_.empty() || nodes_.begin()->at > now) return nullptr;
    TimerNode& node = *nodes_.begin();
    cancel(node);
    return &node;
  }

 private:
  boost::intrusive::multiset<TimerNode> nodes_;
};

}  // namespace uet::ses
