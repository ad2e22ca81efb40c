/// Poll set: which of several queues and counters have something new. Deprecated in libfabric 2,
/// used by 1.x programs. A set uses its members and not the domain: Chapel leaves an empty one open when it closes the domain.
#pragma once

#include <rdma/fi_eq.h>

#include <mutex>
#include <vector>

namespace uet::provider {

class PollSet final : public fid_poll {
 public:
  static int open(const fi_poll_attr* attr, fid_poll** out);
  static PollSet& of(fid_poll* f) { return *static_cast<PollSet*>(f); }
  static PollSet& of(fid_t f) { return of(reinterpret_cast<fid_poll*>(f)); }

  int poll(void** contexts, int count);
  int add(fid_t member, std::uint64_t flags);
  int remove(fid_t member);
  int close();

 private:
  PollSet();
  ~PollSet() = default;
  std::mutex mutex_;
  std::vector<fid_t> members_;
};

}  // namespace uet::provider
