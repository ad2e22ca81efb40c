#include "provider/cntr.h"

#include <algorithm>
#include <optional>

#include "provider/domain.h"
#include "provider/errors.h"

namespace uet::provider {
namespace {

/// The values cannot say that a turn failed: what did is tried again with the next one.
void poll_quietly(Worker& worker) {
  guarded([&] {
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
  return guarded([&] { return Cntr::of(f).wait(threshold, timeout); });
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

int Cntr::close() {
  if (users_.any()) return -FI_EBUSY;
  {
    const std::lock_guard guard(worker_.lock());
    domain_.forget_counter(*this);
  }
  delete this;
  return 0;
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
  worker_.wait_until(wait_, timeout_ms, [&] {
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
