#include "sim/node.h"

#include <algorithm>

#include "lib/base/check.h"

namespace uet::sim {

Node::Node(Simulation& simulation, SimPort& port) : simulation_(simulation), port_(port) {
  port_.set_listener(this);
}

Node::~Node() {
  port_.set_listener(nullptr);
}

void Node::set_actor(Actor* actor) {
  actor_ = actor;
  if (actor_ != nullptr) {
    on_port_ready();
  } else {
    port_.drop_received();
  }
}

void Node::jump_clock(base::Duration by) {
  clock_offset_ += by;
  on_port_ready();
}

void Node::on_port_ready() {
  if (actor_ == nullptr) {
    port_.drop_received();
    return;
  }
  if (in_turn_) {
    poked_ = true;
    return;
  }
  if (simulation_.now() < busy_until_) {
    if (timer_at_ > busy_until_) {
      timer_at_ = busy_until_;
      simulation_.events.schedule(timer_at_, *this, 0);
    }
    return;
  }
  turn_until_quiet();
  if (actor_ != nullptr) arm_timer();
}

void Node::on_event(std::uint32_t, void*) {
  // Of several timer events only the one that is expected counts; others were overtaken by an
  // earlier one.
  if (simulation_.now() != timer_at_) return;
  timer_at_ = SimTime::never();
  on_port_ready();
}

void Node::turn_until_quiet() {
  in_turn_ = true;
  int left = kMaxTurns;
  bool did_something;
  do {
    UET_CHECK(left-- > 0);
    poked_ = false;
    ++turns_;
    did_something = actor_->turn(now());
  } while (actor_ != nullptr && turn_cost_.ps() == 0 && wants_turn(did_something));
  in_turn_ = false;
  busy_until_ = simulation_.now() + turn_cost_;
}

bool Node::wants_turn(bool did_something) {
  if (poked_ || port_.has_received()) return true;
  // With a busy transmitter only a deadline can be the reason for another turn, and that must have
  // passed only once.
  return did_something && port_.send_room(now()) > 0;
}

void Node::arm_timer() {
  SimTime at = fabric_time(actor_->next_deadline());
  if (turn_cost_.ps() > 0 && (poked_ || port_.has_received())) at = simulation_.now();
  if (at <= simulation_.now()) {
    // Due already and still not done: it waits for the transmitter, which will call, or for the
    // next nanosecond.
    if (turn_cost_.ps() == 0 && port_.send_room(now()) == 0) return;
    at = std::max(simulation_.now() + kPollInterval, busy_until_);
  }
  at = std::max(at, busy_until_);
  if (at >= timer_at_ || at.is_never()) return;
  timer_at_ = at;
  simulation_.events.schedule(at, *this, 0);
}

SimTime Node::fabric_time(base::Instant local) const {
  if (local.is_never()) return SimTime::never();
  return SimTime::from(local - clock_offset_);
}

}  // namespace uet::sim
