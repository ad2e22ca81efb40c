// DPDK 22.11 has no other way to put a descriptor of one's own before its interrupt thread.
#define ALLOW_EXPERIMENTAL_API

#include "lib/dpdk/closing_numbers.h"

#include <dirent.h>
#include <fcntl.h>
#include <rte_interrupts.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace uet::dpdk {

namespace {

struct Connection {
  int fd;
  ino_t identity;
};

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/// Open descriptors of the kind that memif's connections are.
std::vector<Connection> connections() {
  std::vector<Connection> found;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    struct stat info {};
    if (entry->d_name[0] != '.' && option_of(fd, SO_DOMAIN) == AF_UNIX &&
        option_of(fd, SO_TYPE) == SOCK_SEQPACKET && fstat(fd, &info) == 0)
      found.push_back({fd, info.st_ino});
  }
  closedir(folder);
  return found;
}

/// Numbers that are kept from being used, and an event of ours by which the interrupt thread tells how far it is.
class TakenNumbers {
 public:
  static TakenNumbers& instance() {
    static auto* const numbers = new TakenNumbers;
    return *numbers;
  }

  /// Takes those of `closed` that are free.
  void take(const std::vector<Connection>& closed) {
    const std::lock_guard lock(mutex_);
    if (!is_registered_) is_registered_ = add_event();
    if (!is_registered_) return;
    for (const Connection& connection : closed) {
      struct stat info {};
      if (fstat(connection.fd, &info) == 0) continue;
      const int fd = fcntl(event_, F_DUPFD_CLOEXEC, connection.fd);
      // Another thread of the process was faster: EAL does not know what it opened.
      if (fd != connection.fd && fd >= 0) close(fd);
      // An event that was raised before may belong to those that are being gone through; the next one does not.
      if (fd == connection.fd) taken_.push_back({fd, rounds_ + 2});
    }
    if (!taken_.empty()) raise();
  }

 private:
  struct Taken {
    int fd;
    std::uint64_t until;
  };

  bool add_event() {
    event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rte_intr_handle* const handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    const bool is_added = event_ >= 0 && handle != nullptr &&
                          rte_intr_fd_set(handle, event_) == 0 &&
                          rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) == 0 &&
                          rte_intr_callback_register(handle, on_event, this) == 0;
    if (!is_added && event_ >= 0) close(event_);
    rte_intr_instance_free(handle);
    return is_added;
  }

  void raise() {
    const std::uint64_t one = 1;
    if (write(event_, &one, sizeof one) < 0) return;  // it is raised
  }

  /// At most once for each time that the thread asks the kernel for events.
  static void on_event(void* numbers) {
    auto& self = *static_cast<TakenNumbers*>(numbers);
    const std::lock_guard lock(self.mutex_);
    std::uint64_t count = 0;
    if (read(self.event_, &count, sizeof count) < 0) return;
    ++self.rounds_;
    std::erase_if(self.taken_, [&](const Taken& taken) {
      return taken.until <= self.rounds_ && close(taken.fd) == 0;
    });
    if (!self.taken_.empty()) self.raise();
  }

  std::mutex mutex_;
  std::vector<Taken> taken_;
  std::uint64_t rounds_ = 0;
  int event_ = -1;
  bool is_registered_ = false;
};

}  // namespace

void close_connections(const std::function<void()>& work) {
  const std::vector<Connection> before = connections();
  work();
  TakenNumbers::instance().take(before);
}

}  // namespace uet::dpdk
