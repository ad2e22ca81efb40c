/// What all libfabric objects have in common: the first member every C caller relies on, and the
/// calls that no object supports.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <atomic>
#include <cstdint>

namespace uet::provider {

int no_bind(fid* object, fid* other, std::uint64_t flags);
int no_control(fid* object, int command, void* arg);
int no_ops_open(fid* object, const char* name, std::uint64_t flags, void** ops, void* context);
int no_ops_set(fid* object, const char* name, std::uint64_t flags, void* ops, void* context);

/// The table that every object needs; members that are not given answer -FI_ENOSYS.
struct CommonOps {
  int (*close)(fid*);
  int (*bind)(fid*, fid*, std::uint64_t) = no_bind;
  int (*control)(fid*, int, void*) = no_control;
};
constexpr fi_ops make_ops(CommonOps ops) {
  return fi_ops{.size = sizeof(fi_ops),
                .close = ops.close,
                .bind = ops.bind,
                .control = ops.control,
                .ops_open = no_ops_open,
                .tostr = nullptr,
                .ops_set = no_ops_set};
}

/// How many other objects need this one: fi_close answers -FI_EBUSY until there are none.
/// A thread that sees none may delete the object: what its users did to it has happened before.
class Users {
 public:
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }
  void remove() { count_.fetch_sub(1, std::memory_order_release); }
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }

 private:
  std::atomic<int> count_{0};
};

/// Counts as a user of `users` as long as it lives.
class UserOf {
 public:
  explicit UserOf(Users& users) : users_(users) { users_.add(); }
  ~UserOf() { users_.remove(); }
  UserOf(const UserOf&) = delete;
  UserOf& operator=(const UserOf&) = delete;

 private:
  Users& users_;
};

}  // namespace uet::provider
