#include "provider/cntr.h"

#include <algorithm>
#include <optional>

#include "provider/domain.h"
#include "provider/errors.h"
#include "provider/triggered.h"

namespace uet::provider {
namespace {

/// The values cannot say that a turn failed: what did is tried again with the next one.
void poll_quietly(Worker& worker) {
  guarded_fast([&] {
    worker.poll();
    return 0;
  });
}

std::uint64_t cntr_read(fid_cntr* f) {
  Cntr& cntr = Cntr::of(f);
  poll_quietly(cntr.worker());
  return cntr.read();
}

std::uint64_t cntr_readerr(fid_cntr* f) {
  Cntr& cntr = Cntr::of(f);
  poll_quietly(cntr.worker());
  return cntr.read_error();
}

int cntr_add(fid_cntr* f, std::uint64_t value) {
  Cntr& cntr = Cntr::of(f);
  const std::lock_guard guard(cntr.worker().lock());
  cntr.add(value);
  return 0;
}

int cntr_set(fid_cntr* f, std::uint64_t value) {
  Cntr& cntr = Cntr::of(f);
  const std::lock_guard guard(cntr.worker().lock());
  cntr.set(value);
  return 0;
}

int cntr_adderr(fid_cntr* f, std::uint64_t value) {
  Cntr& cntr = Cntr::of(f);
  const std::lock_guard guard(cntr.worker().lock());
  cntr.add_error(value);
  return 0;
}

int cntr_seterr(fid_cntr* f, std::uint64_t value) {
  Cntr& cntr = Cntr::of(f);
  const std::lock_guard guard(cntr.worker().lock());
  cntr.set_error(value);
  return 0;
}

int cntr_wait(fid_cntr* f, std::uint64_t threshold, int timeout) {
  return guarded_wait([&] { return Cntr::of(f).wait(threshold, timeout); });
}

int cntr_close(fid* f) {
  return guarded([&] { return Cntr::of(f).close(); });
}

int cntr_control(fid* f, int command, void* arg) {
  return guarded([&] { return Cntr::of(f).control(command, arg); });
}

fi_ops cntr_fid_ops = make_ops({.close = cntr_close, .control = cntr_control});
fi_ops_cntr cntr_ops = {.size = sizeof(fi_ops_cntr),
                        .read = cntr_read,
                        .readerr = cntr_readerr,
                        .add = cntr_add,
                        .set = cntr_set,
                        .wait = cntr_wait,
                        .adderr = cntr_adderr,
                        .seterr = cntr_seterr};

}  // namespace

Cntr::Cntr(Domain& domain, const fi_cntr_attr& attr, void* context)
    : domain_(domain), worker_(domain.worker()), wait_(attr.wait_obj), domain_use_(domain.users()) {
  fid = {.fclass = FI_CLASS_CNTR, .context = context, .ops = &cntr_fid_ops};
  ops = &cntr_ops;
}

int Cntr::open(Domain& domain, const fi_cntr_attr& attr, fid_cntr** out, void* context) {
  if (attr.events != FI_CNTR_EVENTS_COMP || attr.flags != 0) return -FI_EINVAL;
  if (!WaitObject::is_supported(attr.wait_obj)) return -FI_ENOSYS;
  if (WaitObject::needs_progress_thread(attr.wait_obj) && !domain.start_progress_thread()) {
    return -FI_ENOSYS;
  }
  *out = new Cntr(domain, attr, context);
  return 0;
}

Cntr::~Cntr() = default;

int Cntr::close() {
  {
    const std::lock_guard guard(worker_.lock());
    if (users_.any() || !waiting_.empty() || !due_.empty()) return -FI_EBUSY;
    domain_.forget_counter(*this);
    worker_.forget(*this);
  }
  delete this;
  return 0;
}

int Cntr::control(int command, void* arg) {
  std::list<TriggeredOp> flushed;
  const std::lock_guard guard(worker_.lock());
  if (command != FI_FLUSH_WORK) return wait_.control(command, arg);
  take_waiting([](const TriggeredOp& op) { return op.work != nullptr; }, flushed);
  return 0;
}

void Cntr::await(std::list<TriggeredOp>& op) {
  domain_.add_triggering(*this);
  const auto is_before = [&](const TriggeredOp& other) {
    return other.threshold <= op.front().threshold;
  };
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), is_before);
  waiting_.splice(last.base(), op);
  next_threshold_ = waiting_.front().threshold;
  tell();
}

bool Cntr::is_open_for(std::uint64_t threshold) const {
  return value_.now() >= threshold && due_.empty();
}

void Cntr::take_waiting(const IsMeant& is_meant, std::list<TriggeredOp>& to) {
  for (std::list<TriggeredOp>* from : {&waiting_, &due_}) {
    for (auto at = from->begin(); at != from->end();) {
      const auto op = at++;
      if (is_meant(*op)) to.splice(to.end(), *from, op);
    }
  }
}

void Cntr::reach() {
  const std::uint64_t successes = value_.now(), all = successes + errors_.now();
  for (auto at = waiting_.begin(); at != waiting_.end() && at->threshold <= all;) {
    const auto op = at++;
    if (op->threshold <= (op->counts_errors() ? all : successes))
      due_.splice(due_.end(), waiting_, op);
  }
  next_threshold_ = waiting_.empty() ? kNoThreshold : waiting_.front().threshold;
  if (!due_.empty()) worker_.leave_for_unlock(*this);
}

/// What has no room waits for it, and what is behind it too.
bool Cntr::carry_out() {
  while (!due_.empty()) {
    if (!start_first(due_)) return false;
  }
  return true;
}

int Cntr::try_wait() {
  // Arming drains the descriptor, which other threads may poll: not while it has something to say.
  if (has_changed()) return -FI_EAGAIN;
  wait_.arm();
  return 0;
}

int Cntr::wait(std::uint64_t threshold, int timeout_ms) {
  // An error wakes every waiter, also the second one: what counts is what was known at the call.
  std::optional<std::uint64_t> errors_known;
  int result = -FI_ETIMEDOUT;
  worker_.wait_until(wait_, timeout_ms, Worker::OnSignal::kGoOn, [&] {
    if (!errors_known) errors_known = errors_.seen();
    if (value_.now() >= threshold) {
      // That is what the application knows now, and no more.
      value_.saw(std::max(value_.seen(), threshold));
      result = 0;
    } else if (errors_.now() != *errors_known) {
      errors_.read();
      result = -FI_EAVAIL;
    }
    return result != -FI_ETIMEDOUT;
  });
  return result;
}

}  // namespace uet::provider
