#include "provider/triggered.h"

#include <mutex>
#include <optional>
#include <type_traits>

#include "provider/domain.h"
#include "provider/errors.h"
#include "provider/post_queue.h"
#include "provider/structures.h"

namespace uet::provider {
namespace {

/// What is answered out of what has arrived by now.
constexpr std::uint64_t kOfThisMoment = FI_PEEK | FI_CLAIM | FI_DISCARD;

/// In the structures of applications.
bool is_counter_of(const Domain& domain, fid_cntr* f) {
  return f != nullptr && f->fid.fclass == FI_CLASS_CNTR && &Cntr::of(f).domain() == &domain;
}

bool is_endpoint_of(const Domain& domain, fid_ep* f) {
  return f != nullptr && f->fid.fclass == FI_CLASS_EP && &Endpoint::of(f).domain() == &domain;
}

template <typename Op>
int defer(Domain& domain, const fi_deferred_work& work, fid_ep* endpoint,
          const std::optional<Op>& op) {
  if (!op || !is_endpoint_of(domain, endpoint)) return -FI_EINVAL;
  return Endpoint::of(endpoint).defer(work, *op);
}

int defer_change(Domain& domain, const fi_deferred_work& work) {
  const fi_op_cntr& op = *work.op.cntr;
  if (work.completion_cntr != nullptr || !is_counter_of(domain, op.cntr)) return -FI_EINVAL;
  std::list<TriggeredOp> one;
  one.emplace_back(work.threshold, &work, &Cntr::of(op.cntr)).operation =
      CounterChange{.add = work.op_type == FI_OP_CNTR_ADD, .value = op.value};
  const std::lock_guard guard(domain.worker().lock());
  Cntr::of(work.triggering_cntr).await(one);
  return 0;
}

}  // namespace

// --- TriggeredOp

/// Calls may reuse their lists of buffers when they return.
template <typename Op>
void TriggeredOp::keep(Endpoint& by, const Op& op) {
  Op& own = operation.emplace<Op>(op);
  endpoint = &by;
  context = op.context;
  if (work != nullptr) {
    own.deferred = true;
    own.context = this;
  }
  if constexpr (std::is_same_v<Op, Endpoint::Atomic>) {
    std::size_t n = 0;
    for (std::span<const fi_ioc>* list : {&own.operand, &own.compare, &own.result}) {
      elements_[n].assign(list->begin(), list->end());
      *list = elements_[n++];
    }
  } else {
    pieces_.assign(op.iov.begin(), op.iov.end());
    own.iov = pieces_;
  }
}

void TriggeredOp::count(bool success) const {
  Cntr* const cntr = counter.get();
  if (cntr != nullptr) success ? cntr->add(1) : cntr->add_error(1);
}

bool start_first(std::list<TriggeredOp>& due) {
  TriggeredOp& op = due.front();
  if (op.endpoint != nullptr) return op.endpoint->start(due);
  // Out of the list first: the counter may be the one whose list it is.
  std::list<TriggeredOp> one;
  one.splice(one.begin(), due, due.begin());
  if (const auto* change = std::get_if<CounterChange>(&op.operation)) {
    Cntr& cntr = *op.counter.get();
    change->add ? cntr.add(change->value) : cntr.set(change->value);
  }
  return true;
}

// --- Deferred work

int queue_work(Domain& domain, const fi_deferred_work& work) {
  if (!is_counter_of(domain, work.triggering_cntr)) return -FI_EINVAL;
  if (work.completion_cntr != nullptr && !is_counter_of(domain, work.completion_cntr))
    return -FI_EINVAL;
  if (work.op.msg == nullptr) return -FI_EINVAL;
  const auto& op = work.op;
  switch (work.op_type) {
    case FI_OP_RECV:
      return defer(domain, work, op.msg->ep, std::optional(receive_of(op.msg->msg, op.msg->flags)));
    case FI_OP_SEND:
      return defer(domain, work, op.msg->ep, std::optional(send_of(op.msg->msg, op.msg->flags)));
    case FI_OP_TRECV:
      return defer(domain, work, op.tagged->ep,
                   std::optional(receive_of(op.tagged->msg, op.tagged->flags)));
    case FI_OP_TSEND:
      return defer(domain, work, op.tagged->ep,
                   std::optional(send_of(op.tagged->msg, op.tagged->flags)));
    case FI_OP_READ:
    case FI_OP_WRITE:
      return defer(domain, work, op.rma->ep,
                   rma_of(op.rma->msg, work.op_type == FI_OP_READ, op.rma->flags));
    case FI_OP_ATOMIC:
      return defer(domain, work, op.atomic->ep,
                   atomic_of(op.atomic->msg, AtomicForm::kPlain, {}, op.atomic->flags));
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& fetch = *op.fetch_atomic;
      const AtomicPieces pieces{.compare = {},
                                .result = {fetch.fetch.msg_iov, fetch.fetch.iov_count}};
      return defer(domain, work, fetch.ep,
                   atomic_of(fetch.msg, AtomicForm::kFetch, pieces, fetch.flags));
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& compare = *op.compare_atomic;
      const AtomicPieces pieces{.compare = {compare.compare.msg_iov, compare.compare.iov_count},
                                .result = {compare.fetch.msg_iov, compare.fetch.iov_count}};
      return defer(domain, work, compare.ep,
                   atomic_of(compare.msg, AtomicForm::kCompare, pieces, compare.flags));
    }
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      return defer_change(domain, work);
  }
  return -FI_ENOSYS;
}

int cancel_work(Domain& domain, const fi_deferred_work& work) {
  std::list<TriggeredOp> cancelled;
  const std::lock_guard guard(domain.worker().lock());
  cancelled = domain.take_triggered([&](const TriggeredOp& op) { return op.work == &work; });
  return cancelled.empty() ? -FI_ENOENT : 0;
}

int flush_work(Domain& domain) {
  std::list<TriggeredOp> flushed;
  const std::lock_guard guard(domain.worker().lock());
  flushed = domain.take_triggered([](const TriggeredOp& op) { return op.work != nullptr; });
  return 0;
}

// --- Endpoint

/// Injected data would have to be read before the operation that it waits for is over.
template <typename Op>
ssize_t Endpoint::post_triggered(Op op) {
  if ((caps_ & FI_TRIGGER) == 0) return -FI_EOPNOTSUPP;
  const auto* wish = static_cast<const fi_triggered_context*>(op.context);
  if (wish == nullptr) return -FI_EINVAL;
  if (wish->event_type != FI_TRIGGER_THRESHOLD) return -FI_ENOSYS;
  const fi_trigger_threshold& threshold = wish->trigger.threshold;
  if (!is_counter_of(domain_, threshold.cntr)) return -FI_EINVAL;
  Cntr& counter = Cntr::of(threshold.cntr);
  op.flags &= ~FI_TRIGGER;
  if ((op.flags & (FI_INJECT | kOfThisMoment)) != 0) return -FI_EINVAL;
  if (const int error = check(op); error != 0) return error;
  std::list<TriggeredOp> one;
  one.emplace_back(threshold.threshold, nullptr, nullptr).keep(*this, op);
  const std::lock_guard guard(worker_.lock());
  if (!counter.is_open_for(threshold.threshold)) {
    counter.await(one);
    return 0;
  }
  if (!carry_out_before(op)) return -FI_EAGAIN;
  return post_now(op);
}

template ssize_t Endpoint::post_triggered(Send);
template ssize_t Endpoint::post_triggered(Rma);
template ssize_t Endpoint::post_triggered(Receive);
template ssize_t Endpoint::post_triggered(Atomic);

template <typename Op>
int Endpoint::defer(const fi_deferred_work& work, const Op& op) {
  if ((caps_ & FI_TRIGGER) == 0) return -FI_EOPNOTSUPP;
  // A buffer for many messages has many completions: which would count it?
  constexpr std::uint64_t kUnclear = kOfThisMoment | FI_MULTI_RECV;
  if (std::is_same_v<Op, Receive> && (op.flags & kUnclear) != 0) return -FI_ENOSYS;
  if (const int error = check(op); error != 0) return error;
  Cntr* const told = work.completion_cntr != nullptr ? &Cntr::of(work.completion_cntr) : nullptr;
  std::list<TriggeredOp> one;
  one.emplace_back(work.threshold, &work, told).keep(*this, op);
  const std::lock_guard guard(worker_.lock());
  Cntr::of(work.triggering_cntr).await(one);
  return 0;
}

bool Endpoint::start(std::list<TriggeredOp>& due) {
  // Its completion, which may come inside the call, looks for deferred work there.
  deferred_.splice(deferred_.begin(), due, due.begin());
  const auto op = deferred_.begin();
  op->at = op;
  const bool is_deferred = op->work != nullptr;
  bool has_room = true;
  const auto post_it = [&](const auto& own) {
    if constexpr (!std::is_same_v<std::decay_t<decltype(own)>, CounterChange>) {
      const ssize_t error = guarded_fast([&]() -> ssize_t {
        return carry_out_before(own) ? post_now(own, Turn::kTriggered) : -FI_EAGAIN;
      });
      has_room = error != -FI_EAGAIN;
      if (has_room && error != 0) fail(own, error);
      if (has_room && (error != 0 || !is_deferred)) deferred_.erase(op);
    }
  };
  std::visit(post_it, op->operation);
  if (!has_room) due.splice(due.begin(), deferred_, op);
  return has_room;
}

void Endpoint::drop_triggered() {
  std::list<TriggeredOp> dropped;
  const std::lock_guard guard(worker_.lock());
  dropped = domain_.take_triggered([&](const TriggeredOp& op) { return op.endpoint == this; });
}

/// One that waits, or deferred work that does not wait any longer.
bool Endpoint::cancel_triggered(base::Instant now, void* context) {
  for (TriggeredOp& op : deferred_) {
    if (op.context == context)
      return worker_.ses().cancel(now, id_, reinterpret_cast<std::uint64_t>(&op));
  }
  bool is_found = false;
  const auto is_first = [&](const TriggeredOp& op) {
    const bool is_meant = op.endpoint == this && op.work == nullptr && op.context == context;
    return is_meant && !std::exchange(is_found, true);
  };
  for (const TriggeredOp& op : domain_.take_triggered(is_first)) {
    const auto say_so = [&](const auto& own) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(own)>, CounterChange>)
        fail(own, -FI_ECANCELED);
    };
    std::visit(say_so, op.operation);
  }
  return is_found;
}

}  // namespace uet::provider
