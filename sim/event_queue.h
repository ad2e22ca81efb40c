/// The virtual clock and everything that is going to happen.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/sim_time.h"

namespace uet::sim {

/// Something that events happen to. `kind` and `data` mean what the handler wants them to mean.
class EventHandler {
 public:
  virtual ~EventHandler() = default;
  virtual void on_event(std::uint32_t kind, void* data) = 0;
};

/// A four-ary heap ordered by time, then by order of scheduling, so that equal times run first in,
/// first out and a run depends on nothing but its inputs. Events live in the heap's own array:
/// scheduling allocates nothing once the array has grown. Events cannot be withdrawn; a handler
/// ignores those that it no longer wants.
class EventQueue {
 public:
  SimTime now() const { return now_; }
  /// `at` must not lie in the past. The handler must outlive the event.
  void schedule(SimTime at, EventHandler& handler, std::uint32_t kind, void* data = nullptr);
  /// For scenario scripts, not for packets: runs `action` at `at`.
  void call_at(SimTime at, std::function<void()> action);

  bool is_empty() const { return heap_.empty(); }
  SimTime next_at() const { return heap_.empty() ? SimTime::never() : heap_.front().at; }
  /// Advances the clock to the next event and runs it; false when there is none.
  bool run_next();
  /// Runs all events up to and including `end`; the clock then shows `end` (unless it is never).
  void run_until(SimTime end);
  std::uint64_t events_run() const { return events_run_; }

 private:
  struct Event {
    SimTime at;
    std::uint64_t order;
    EventHandler* handler;
    void* data;
    std::uint32_t kind;
    bool is_before(const Event& o) const { return at != o.at ? at < o.at : order < o.order; }
  };
  /// Runs the std::function of call_at(); the function's index travels as the event's kind.
  class Calls final : public EventHandler {
   public:
    std::uint32_t store(std::function<void()> action);
    void on_event(std::uint32_t kind, void* data) override;

   private:
    std::vector<std::function<void()>> actions_;
    std::vector<std::uint32_t> free_;
  };

  void sift_up(std::size_t i);
  void sift_down(std::size_t i);

  std::vector<Event> heap_;
  Calls calls_;
  SimTime now_;
  std::uint64_t next_order_ = 0;
  std::uint64_t events_run_ = 0;
};

}  // namespace uet::sim
