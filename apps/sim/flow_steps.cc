#include "apps/sim/flow_steps.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace uet::sim {

namespace {

struct Gate {
  std::size_t awaited = 0;  ///< flows that fire it and have no step yet
  std::uint32_t step = 0;   ///< of the flows that it starts, as far as known
  std::vector<std::size_t> starts;
  bool is_open = false;
};

/// Gives steps to flows, gate after gate.
class Stairs {
 public:
  explicit Stairs(const TrafficMatrix& matrix) : matrix_(matrix), steps_(matrix.flows.size()) {
    for (std::size_t i = 0; i < matrix.flows.size(); ++i) {
      const Flow& f = matrix.flows[i];
      if (f.started_by)
        gates_[*f.started_by].starts.push_back(i);
      else
        ready_.push_back(i);
      if (f.fires_when_sent) ++gates_[*f.fires_when_sent].awaited;
      if (f.fires_when_received) ++gates_[*f.fires_when_received].awaited;
    }
  }

  std::vector<std::uint32_t> climb() {
    for (walk(); open_one_of_a_circle();) walk();
    return std::move(steps_);
  }

 private:
  void walk() {
    while (!ready_.empty()) {
      const std::size_t i = ready_.back();
      ready_.pop_back();
      fire(matrix_.flows[i].fires_when_sent, steps_[i]);
      fire(matrix_.flows[i].fires_when_received, steps_[i]);
    }
  }
  void fire(std::optional<std::uint32_t> trigger, std::uint32_t step) {
    if (!trigger) return;
    Gate& gate = gates_[*trigger];
    if (gate.is_open) return;
    gate.step = std::max(gate.step, step + 1);
    if (--gate.awaited == 0) open(gate);
  }
  void open(Gate& gate) {
    gate.is_open = true;
    for (const std::size_t i : gate.starts) {
      steps_[i] = gate.step;
      ready_.push_back(i);
    }
  }
  /// A gate that some flow has fired, while others that fire it stand behind itself.
  bool open_one_of_a_circle() {
    for (auto& [id, gate] : gates_) {
      if (gate.is_open || gate.step == 0) continue;
      open(gate);
      return true;
    }
    return false;
  }

  const TrafficMatrix& matrix_;
  std::vector<std::uint32_t> steps_;
  std::unordered_map<std::uint32_t, Gate> gates_;
  std::vector<std::size_t> ready_;
};

}  // namespace

std::vector<std::uint32_t> steps_of(const TrafficMatrix& matrix) {
  return Stairs(matrix).climb();
}

}  // namespace uet::sim
