/// Operations that wait for a counter: those of calls with FI_TRIGGER, and the deferred work of a domain. fi_trigger(3)
#pragma once

#include <rdma/fi_trigger.h>
#include <sys/uio.h>

#include <array>
#include <list>
#include <utility>
#include <variant>
#include <vector>

#include "provider/cntr.h"
#include "provider/endpoint.h"

namespace uet::provider {

class Domain;

/// A counter that cannot be closed meanwhile, or none.
class CounterUse {
 public:
  explicit CounterUse(Cntr* counter) : counter_(counter) {
    if (counter_ != nullptr) counter_->users().add();
  }
  ~CounterUse() {
    if (counter_ != nullptr) counter_->users().remove();
  }
  CounterUse(const CounterUse&) = delete;
  CounterUse& operator=(const CounterUse&) = delete;

  Cntr* get() const { return counter_; }

 private:
  Cntr* const counter_;
};

/// Deferred work without an endpoint.
struct CounterChange {
  bool add = false;  ///< or set
  std::uint64_t value = 0;
};

/// Holds the lists of buffers of its operation, but not what lies in them.
struct TriggeredOp {
  using Operation = std::variant<CounterChange, Endpoint::Send, Endpoint::Rma, Endpoint::Receive,
                                 Endpoint::Atomic>;

  /// Of a call with FI_TRIGGER, or of `work`: which counts in `told` when it is over, or is done to it.
  TriggeredOp(std::uint64_t at_threshold, const fi_deferred_work* of_work, Cntr* told)
      : threshold(at_threshold), work(of_work), counter(told) {}

  template <typename Op>
  void keep(Endpoint& by, const Op& op);
  void count(bool success) const;

  const std::uint64_t threshold;
  const fi_deferred_work* const work;  ///< only its address means something
  const CounterUse counter;
  Operation operation;
  Endpoint* endpoint = nullptr;
  void* context = nullptr;              ///< the application's
  std::list<TriggeredOp>::iterator at;  ///< in whichever list it is

  /// Deferred work is for what happened, well or not; a call with FI_TRIGGER for what succeeded.
  bool counts_errors() const { return work != nullptr; }

 private:
  std::vector<iovec> pieces_;
  std::array<std::vector<fi_ioc>, 3> elements_;
};

/// With the lock held: starts the first of `due` and takes it out. False: there is no room for it now.
bool start_first(std::list<TriggeredOp>& due);

// fi_control of a domain. What is cancelled or flushed says nothing more.
int queue_work(Domain& domain, const fi_deferred_work& work);
int cancel_work(Domain& domain, const fi_deferred_work& work);
int flush_work(Domain& domain);

}  // namespace uet::provider
