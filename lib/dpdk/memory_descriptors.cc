#include "lib/dpdk/memory_descriptors.h"

#include <fcntl.h>
#include <rte_memory.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace uet::dpdk {

namespace {

struct Kept {
  int number;
  int copy;
};

struct Descriptors {
  std::mutex mutex;
  std::vector<Kept> kept;
};

Descriptors& descriptors() {
  static auto* const instance = new Descriptors;
  return *instance;
}

int keep_that_of(const rte_memseg_list*, const rte_memseg* segment, void* list) {
  auto& kept = *static_cast<std::vector<Kept>*>(list);
  const int number = rte_memseg_get_fd_thread_unsafe(segment);
  if (number < 0 || std::any_of(kept.begin(), kept.end(),
                                [&](const Kept& each) { return each.number == number; }))
    return 0;
  const int copy = fcntl(number, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0) kept.push_back({number, copy});
  return 0;
}

bool restore(const Kept& kept) {
  struct stat own {
  }, now{};
  if (fstat(kept.copy, &own) != 0) return false;
  if (fstat(kept.number, &now) == 0) return now.st_dev == own.st_dev && now.st_ino == own.st_ino;
  const int fd = fcntl(kept.copy, F_DUPFD_CLOEXEC, kept.number);
  if (fd != kept.number && fd >= 0) close(fd);
  return fd == kept.number;
}

}  // namespace

void keep_memory_descriptors() {
  Descriptors& d = descriptors();
  const std::lock_guard lock(d.mutex);
  rte_memseg_walk(keep_that_of, &d.kept);
}

bool restore_memory_descriptors() {
  Descriptors& d = descriptors();
  const std::lock_guard lock(d.mutex);
  return std::all_of(d.kept.begin(), d.kept.end(), restore);
}

}  // namespace uet::dpdk
