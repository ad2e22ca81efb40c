#include "lib/udp/descriptor.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "lib/base/cancellation.h"
#include "lib/base/thread_signals.h"
#include "lib/net/forked_child.h"

namespace uet::udp {

namespace {

using Clock = std::chrono::steady_clock;

struct UdpPlace {
  net::FabricAddress host;
  std::uint16_t port = 0;  ///< 0: none
  bool operator==(const UdpPlace&) const = default;
};

struct Registry {
  struct Entry {
    int fd;
    UdpPlace place;
  };
  struct Closed {
    UdpPlace place;
    Clock::time_point at;
  };

  std::mutex mutex;
  std::vector<Entry> open;
  std::array<Closed, 64> closed;  ///< the latest, in a circle: closing allocates nothing
  std::size_t next_closed = 0;

  void note_closed(const UdpPlace& place) {
    auto at = std::ranges::find(closed, place, &Closed::place);
    if (at == closed.end()) at = closed.begin() + next_closed++ % closed.size();
    *at = {place, Clock::now()};
  }
};

/// A handler of a signal may close descriptors, fork or end the process: none runs while its thread has the mutex.
class Guard {
 public:
  explicit Guard(Registry& registry) : guard_(registry.mutex) {}

 private:
  base::WithoutSignals without_signals_;
  std::lock_guard<std::mutex> guard_;
};

/// Never destroyed: descriptors may live as long as the process.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

/// Safe between fork() and exec().
void after_fork_in_child() {
  for (const Registry::Entry& entry : registry().open) net::make_null(entry.fd);
  registry().open.clear();
  registry().mutex.unlock();
}

}  // namespace

void let_children_go() {
  static const int once = [] {
    registry();
    return pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                          after_fork_in_child);
  }();
  (void)once;
}

Descriptor Descriptor::open(const std::function<int()>& call) {
  let_children_go();
  const base::WithoutCancellation without_cancellation;
  Registry& r = registry();
  const Guard guard(r);
  r.open.push_back({-1, {}});  // before there is anything that could be lost for want of memory
  const int fd = call();
  if (fd < 0)
    r.open.pop_back();
  else
    r.open.back().fd = fd;
  return Descriptor(fd);
}

/// Closes under the mutex: no thread gets the number, or finds the port free, before both are noted as closed.
Descriptor::~Descriptor() {
  if (fd_ < 0) return;
  const base::WithoutCancellation without_cancellation;
  Registry& r = registry();
  const Guard guard(r);
  const auto at = std::ranges::find(r.open, fd_, &Registry::Entry::fd);
  if (at != r.open.end()) {
    if (at->place.port != 0) r.note_closed(at->place);
    *at = r.open.back();
    r.open.pop_back();
  }
  close(fd_);
}

void Descriptor::note_port(const net::FabricAddress& host, std::uint16_t port) const {
  Registry& r = registry();
  const Guard guard(r);
  const auto at = std::ranges::find(r.open, fd_, &Registry::Entry::fd);
  if (at != r.open.end()) at->place = {host, port};
}

std::optional<std::chrono::nanoseconds> closed_for(const net::FabricAddress& host,
                                                   std::uint16_t port) {
  const UdpPlace place{host, port};
  Registry& r = registry();
  const Guard guard(r);
  if (std::ranges::find(r.open, place, &Registry::Entry::place) != r.open.end()) return {};
  const auto at = std::ranges::find(r.closed, place, &Registry::Closed::place);
  if (at == r.closed.end()) return {};
  return Clock::now() - at->at;
}

std::string error_text(int error) {
  std::string text = std::strerror(error);
  if (error == EMFILE)
    text += "; close some, or raise the limit of this process (ulimit -n)";
  else if (error == ENFILE)
    text += "; raise the limit of this host (sysctl fs.file-max)";
  return text;
}

}  // namespace uet::udp
