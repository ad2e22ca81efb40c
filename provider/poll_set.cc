#include "provider/poll_set.h"

#include <algorithm>

#include "provider/cntr.h"
#include "provider/cq.h"
#include "provider/domain.h"
#include "provider/errors.h"

namespace uet::provider {
namespace {

int set_poll(fid_poll* f, void** contexts, int count) {
  return guarded([&] { return PollSet::of(f).poll(contexts, count); });
}

int set_add(fid_poll* f, fid* member, std::uint64_t flags) {
  return guarded([&] { return PollSet::of(f).add(member, flags); });
}

int set_remove(fid_poll* f, fid* member, std::uint64_t) {
  return guarded([&] { return PollSet::of(f).remove(member); });
}

int set_close(fid* f) {
  return guarded([&] { return PollSet::of(f).close(); });
}

fi_ops set_fid_ops = make_ops({.close = set_close});
fi_ops_poll set_ops = {
    .size = sizeof(fi_ops_poll), .poll = set_poll, .poll_add = set_add, .poll_del = set_remove};

Users& users_of(fid* member) {
  return member->fclass == FI_CLASS_CQ ? Cq::of(member).users() : Cntr::of(member).users();
}

bool is_ready(fid* member) {
  if (member->fclass == FI_CLASS_CQ) {
    Cq& cq = Cq::of(member);
    const std::lock_guard guard(cq.worker().lock());
    cq.worker().turn();
    return cq.has_entries();
  }
  Cntr& cntr = Cntr::of(member);
  const std::lock_guard guard(cntr.worker().lock());
  cntr.worker().turn();
  return cntr.has_changed();
}

}  // namespace

PollSet::PollSet() {
  fid = {.fclass = FI_CLASS_POLL, .context = nullptr, .ops = &set_fid_ops};
  ops = &set_ops;
}

int PollSet::open(const fi_poll_attr* attr, fid_poll** out) {
  if (attr != nullptr && attr->flags != 0) return -FI_EINVAL;
  *out = new PollSet;
  return 0;
}

int PollSet::close() {
  for (fid_t member : members_) users_of(member).remove();
  delete this;
  return 0;
}

int PollSet::add(fid_t member, std::uint64_t flags) {
  if (flags != 0) return -FI_EBADFLAGS;
  if (member->fclass != FI_CLASS_CQ && member->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  const std::lock_guard guard(mutex_);
  if (std::ranges::find(members_, member) != members_.end()) return 0;
  members_.push_back(member);
  users_of(member).add();
  return 0;
}

int PollSet::remove(fid_t member) {
  const std::lock_guard guard(mutex_);
  const auto at = std::ranges::find(members_, member);
  if (at == members_.end()) return -FI_EINVAL;
  members_.erase(at);
  users_of(member).remove();
  return 0;
}

int PollSet::poll(void** contexts, int count) {
  const std::lock_guard guard(mutex_);
  int found = 0;
  for (fid_t member : members_) {
    if (found == count) break;
    if (is_ready(member)) contexts[found++] = member->context;
  }
  return found;
}

}  // namespace uet::provider
