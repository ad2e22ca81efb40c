#include "tests/provider/faults.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <span>
#include <string_view>

namespace uet::provider::testing {
namespace {

/// Counts down to the one that fails.
class Nth {
 public:
  void set(std::uint64_t n) {
    failed_ = false;
    left_ = n;
  }
  bool is_now() {
    if (left_.load(std::memory_order_relaxed) == 0 || left_.fetch_sub(1) != 1) return false;
    failed_ = true;
    return true;
  }
  bool has_failed() const { return failed_; }

 private:
  std::atomic<std::uint64_t> left_{0};
  std::atomic<bool> failed_{false};
};

constinit Nth allocations, openings;
constinit std::atomic<std::uint32_t> traffic_percent{0};
constinit std::atomic<std::uint64_t> traffic_random{0}, traffic_failures{0};
constinit std::atomic<bool> loses_arrivals{false};
constinit std::atomic<bool> fails_accepts{false}, hides_live_folders{false};
constinit std::atomic<std::uint64_t> accept_failures{0}, accept_successes{0};
constinit std::atomic<void (*)()> in_use_call{nullptr};

std::uint64_t next_random() {
  std::uint64_t x = traffic_random.fetch_add(0x9e37'79b9'7f4a'7c15);
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

/// Errors that a network or a kernel short of memory has, and goes on.
bool fails_now() {
  static constexpr std::array kErrors = {EAGAIN,      ENOBUFS,      EINTR,         EPERM,
                                         ENETUNREACH, ECONNREFUSED, ENOMEM,        EHOSTUNREACH,
                                         ENETDOWN,    EINVAL,       EADDRNOTAVAIL, EACCES};
  if (traffic_percent == 0) return false;
  const std::uint64_t x = next_random();
  if (x % 100 >= traffic_percent) return false;
  ++traffic_failures;
  errno = kErrors[x / 100 % kErrors.size()];
  return true;
}

/// How many of `count` packets a call moves: now and then not all.
unsigned cut_short(unsigned count) {
  if (traffic_percent == 0 || count < 2) return count;
  const std::uint64_t x = next_random();
  if (x % 100 >= traffic_percent) return count;
  ++traffic_failures;
  return 1 + static_cast<unsigned>(x / 100 % (count - 1));
}

bool is_refused() {
  if (!openings.is_now()) return false;
  errno = EMFILE;
  return true;
}

/// As a preloaded library: this share of the calls that move packets fails, in every process of the test.
[[maybe_unused]] const bool kFromEnvironment = [] {
  const char* const percent = std::getenv("UET_TEST_FAULTS");
  if (percent != nullptr) {
    fail_traffic(static_cast<std::uint32_t>(std::strtoul(percent, nullptr, 10)),
                 static_cast<std::uint64_t>(getpid()));
  }
  return percent != nullptr;
}();

/// While the file that UET_TEST_MUTE names exists, everything that the process sends is lost on its way.
bool is_mute() {
  static const char* const path = std::getenv("UET_TEST_MUTE");
  return path != nullptr && access(path, F_OK) == 0;
}

int lose(mmsghdr* messages, unsigned count) {
  for (mmsghdr& m : std::span(messages, count)) {
    m.msg_len = 0;
    for (const iovec& v : std::span(m.msg_hdr.msg_iov, m.msg_hdr.msg_iovlen))
      m.msg_len += static_cast<unsigned>(v.iov_len);
  }
  return static_cast<int>(count);
}

/// The C library's own.
template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void fail_allocation(std::uint64_t n) {
  allocations.set(n);
}
bool has_failed_allocation() {
  return allocations.has_failed();
}
void fail_opening(std::uint64_t n) {
  openings.set(n);
}
bool has_failed_opening() {
  return openings.has_failed();
}
void when_address_in_use(void (*call)()) {
  in_use_call = call;
}
void fail_accepts(bool fails) {
  accept_failures = 0;
  fails_accepts = fails;
}
std::uint64_t failed_accepts() {
  return accept_failures;
}
std::uint64_t accepts() {
  return accept_successes;
}
void hide_live_folders(bool hides) {
  hides_live_folders = hides;
}
void fail_traffic(std::uint32_t percent, std::uint64_t seed) {
  traffic_random = seed;
  traffic_failures = 0;
  traffic_percent = percent;
}
std::uint64_t failed_traffic() {
  return traffic_failures;
}
void lose_arrivals(bool loses) {
  loses_arrivals = loses;
}

}  // namespace uet::provider::testing

using namespace uet::provider::testing;

#define VISIBLE __attribute__((visibility("default")))

VISIBLE void* operator new(std::size_t bytes) {
  void* const out = allocations.is_now() ? nullptr : std::malloc(bytes);
  if (out == nullptr) throw std::bad_alloc();
  return out;
}
VISIBLE void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
VISIBLE void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto at = static_cast<std::size_t>(alignment);
  const std::size_t whole = (bytes + at - 1) / at * at;
  void* const out = allocations.is_now() ? nullptr : std::aligned_alloc(at, whole);
  if (out == nullptr) throw std::bad_alloc();
  return out;
}
VISIBLE void operator delete(void* p) noexcept {
  std::free(p);
}
VISIBLE void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
VISIBLE void operator delete[](void* p) noexcept {
  std::free(p);
}
VISIBLE void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
VISIBLE void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
VISIBLE void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

extern "C" {

VISIBLE int socket(int domain, int type, int protocol) noexcept {
  static auto* const next = real<int(int, int, int)>("socket");
  return is_refused() ? -1 : next(domain, type, protocol);
}
VISIBLE int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  static auto* const next = real<int(int, const sockaddr*, socklen_t)>("bind");
  if (is_refused()) return -1;
  const int status = next(fd, address, length);
  if (status == 0 || errno != EADDRINUSE) return status;
  if (void (*const call)() = in_use_call) call();
  errno = EADDRINUSE;
  return status;
}
VISIBLE int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  static auto* const next = real<int(int, sockaddr*, socklen_t*, int)>("accept4");
  if (!fails_accepts) {
    const int accepted = next(fd, address, length, flags);
    accept_successes += accepted >= 0;
    return accepted;
  }
  ++accept_failures;
  errno = EMFILE;
  return -1;
}
VISIBLE int lstat(const char* path, struct stat* out) noexcept {
  static auto* const next = real<int(const char*, struct stat*)>("lstat");
  const std::string_view name(path);
  if (!hides_live_folders || (!name.ends_with("/uet") && !name.starts_with("/tmp/uet-")))
    return next(path, out);
  errno = ENOENT;
  return -1;
}
VISIBLE int eventfd(unsigned count, int flags) noexcept {
  static auto* const next = real<int(unsigned, int)>("eventfd");
  return is_refused() ? -1 : next(count, flags);
}
VISIBLE int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                           void* (*start)(void*), void* argument) noexcept {
  static auto* const next =
      real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return is_refused() ? EAGAIN : next(thread, attributes, start, argument);
}
VISIBLE int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  static auto* const next = real<int(int, mmsghdr*, unsigned, int)>("sendmmsg");
  if (is_mute()) return lose(messages, count);
  return fails_now() ? -1 : next(fd, messages, cut_short(count), flags);
}
VISIBLE int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  static auto* const next = real<int(int, mmsghdr*, unsigned, int, timespec*)>("recvmmsg");
  return fails_now() ? -1 : next(fd, messages, cut_short(count), flags, limit);
}
VISIBLE int ppoll(pollfd* fds, nfds_t count, const timespec* limit, const sigset_t* signals) {
  static auto* const next = real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  if (count == 2 && loses_arrivals) fds[1].fd = -1;
  return fails_now() ? -1 : next(fds, count, limit, signals);
}
}
