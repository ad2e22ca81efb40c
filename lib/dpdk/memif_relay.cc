#include "lib/dpdk/memif_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

namespace {

/// Clients of the process that may be connected; more wait before the listener. All are taken from there at once: a client that gives up
/// and comes again would fill it while our program does not turn its loop, and then wait in connect(), where its driver can do nothing else.
constexpr std::size_t kConnectionsMax = 64;

/// A message of memif's control protocol has 128 bytes and at most one descriptor.
struct Message {
  static constexpr std::size_t kBytesMax = 256;
  static constexpr std::size_t kDescriptorsMax = 4;

  std::array<std::uint8_t, kBytesMax> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control;
  iovec part{};
  msghdr header{};

  Message() {
    part = {bytes.data(), bytes.size()};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  ~Message() {
    const cmsghdr* const c = CMSG_FIRSTHDR(&header);
    if (!is_received_ || c == nullptr || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      return;
    std::array<int, kDescriptorsMax> fds;
    const std::size_t size = c->cmsg_len - CMSG_LEN(0);
    std::memcpy(fds.data(), CMSG_DATA(c), size);
    for (std::size_t i = 0; i < size / sizeof(int); ++i) close(fds[i]);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  bool receive(int from) {
    const ssize_t n = recvmsg(from, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    is_received_ = n >= 0;
    if (n <= 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return false;
    part.iov_len = static_cast<std::size_t>(n);
    return true;
  }
  bool send(int to) const { return sendmsg(to, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0; }

 private:
  bool is_received_ = false;
};

/// False: one of the ends is gone, or does not read.
bool pass_on(int from, int to) {
  Message message;
  return message.receive(from) && message.send(to);
}

struct Served {
  std::unique_ptr<MemifListener> listener;
  unsigned servers = 0;
  /// A client reached the driver and was not greeted yet. The driver's own backlog is short: one at a time.
  bool is_greeting = false;
};

struct Connection {
  SocketPlace place;
  int client = -1;  ///< -1: gone
  int driver = -1;  ///< -1: the driver greets another client of this place first
  bool is_greeted = false;
};

/// The driver's listener. Reached by no other process: a name of the network namespace could be, by any user of this host, so a server
/// on a file, which has permissions, has its driver on a file too, of which only a descriptor is left once the driver listens.
struct DriverPlace {
  SocketPlace place;
  int file = -1;

  bool take_file() {
    if (place.is_abstract || file >= 0) return true;
    file = ::open(place.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return file >= 0 && unlink(place.path.c_str()) == 0;
  }
  int connect() const {
    return connect_to(file < 0 ? place
                               : SocketPlace{.path = "/proc/self/fd/" + std::to_string(file),
                                             .is_abstract = false});
  }
};

class Relay {
 public:
  static Relay& instance() {
    static auto* const relay = new Relay;
    return *relay;
  }

  SocketPlace driver_place_for(const SocketPlace& place) {
    const std::lock_guard lock(mutex_);
    SocketPlace& driver = drivers_[place].place;
    if (driver.path.empty()) {
      std::uint32_t random = 0;
      if (getrandom(&random, sizeof random, 0) < 0)
        random = static_cast<std::uint32_t>(drivers_.size());
      const std::string suffix = std::to_string(getpid()) + "-" + std::to_string(random);
      driver = {.path = (place.is_abstract ? "uet-memif-" : place.path + ".") + suffix,
                .is_abstract = place.is_abstract};
    }
    return driver;
  }

  bool start(const DeviceSpec& spec, std::string& error) {
    const SocketPlace place = SocketPlace::of(spec);
    (void)driver_place_for(place);
    const std::lock_guard lock(mutex_);
    if (!drivers_[place].take_file()) {
      error = drivers_[place].place.path + " cannot be opened: " + std::strerror(errno);
      return false;
    }
    Served& served = served_[place];
    if (served.listener == nullptr) {
      served.listener = MemifListener::open(place, error);
      if (served.listener != nullptr && !served.listener->give_to(spec)) {
        error = place.path + " cannot be given to that owner: " + std::strerror(errno);
        served.listener.reset();
      }
      if (served.listener == nullptr || !run_thread(error)) {
        served_.erase(place);
        return false;
      }
    }
    ++served.servers;
    return true;
  }

  void stop(const DeviceSpec& spec) {
    const SocketPlace place = SocketPlace::of(spec);
    std::unique_lock lock(mutex_);
    const auto served = served_.find(place);
    if (served == served_.end() || --served->second.servers != 0) return;
    // As long as the thread waits for it, the listener is there.
    ++holders_;
    wake();
    parted_.wait(lock, [this] { return !is_polling_; });
    // Meanwhile another server of the place may have started, or stopped.
    const auto left = served_.find(place);
    if (left != served_.end() && left->second.servers == 0) served_.erase(left);
    --holders_;
    parted_.notify_all();
  }

 private:
  bool run_thread(std::string& error) {
    if (wakeup_ < 0) wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!is_running_) is_running_ = start_guest_thread("uet-dpdk-memif", [this] { run(); });
    wake();
    if (!is_running_) error = "no thread can be made";
    return is_running_;
  }

  void wake() {
    const std::uint64_t one = 1;
    if (write(wakeup_, &one, sizeof one) < 0) return;  // it is awake
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (introduce(); !served_.empty() || !connections_.empty(); introduce()) {
      std::vector<pollfd> waits = what_to_wait_for();
      is_polling_ = true;
      lock.unlock();
      poll(waits.data(), waits.size(), -1);
      lock.lock();
      is_polling_ = false;
      parted_.notify_all();
      parted_.wait(lock, [this] { return holders_ == 0; });
      std::uint64_t count = 0;
      if (read(wakeup_, &count, sizeof count) > 0) continue;  // what is waited for may have changed
      handle(waits);
    }
    is_running_ = false;
  }

  std::vector<pollfd> what_to_wait_for() const {
    std::vector<pollfd> waits = {{.fd = wakeup_, .events = POLLIN, .revents = 0}};
    const bool has_room = connections_.size() < kConnectionsMax;
    for (const auto& [place, served] : served_) {
      waits.push_back(
          {.fd = has_room ? served.listener->fd() : -1, .events = POLLIN, .revents = 0});
    }
    for (const Connection& c : connections_) {
      // A client has nothing to say before it is greeted; that it is gone is heard anyway.
      waits.push_back(
          {.fd = c.client, .events = static_cast<short>(c.is_greeted ? POLLIN : 0), .revents = 0});
      waits.push_back({.fd = c.driver, .events = POLLIN, .revents = 0});
    }
    return waits;
  }

  /// `waits` is what what_to_wait_for() made of the same lists.
  void handle(const std::vector<pollfd>& waits) {
    auto wait = waits.begin() + 1;
    std::vector<std::map<SocketPlace, Served>::iterator> called;
    for (auto served = served_.begin(); served != served_.end(); ++served)
      if ((wait++)->revents != 0) called.push_back(served);
    for (auto c = connections_.begin(); c != connections_.end();) {
      const bool client_calls = (wait++)->revents != 0;
      const bool driver_calls = (wait++)->revents != 0;
      const bool goes_on =
          (!driver_calls || on_driver(*c)) && (!client_calls || c->client < 0 || on_client(*c));
      c = goes_on ? std::next(c) : end(c);
    }
    for (const auto& served : called)
      if (const int client = served->second.listener->accept(); client >= 0)
        connections_.push_back({.place = served->first, .client = client});
  }

  /// Connects to the driver's listener for each client that waits, one of a place at a time. A client whose server is closed, or whose
  /// server's driver does not take it, loses its connection; its own driver connects again.
  void introduce() {
    for (auto c = connections_.begin(); c != connections_.end();) {
      const auto served = served_.find(c->place);
      const bool waits = c->driver < 0 && served != served_.end();
      if (waits && !served->second.is_greeting) {
        c->driver = drivers_[c->place].connect();
        served->second.is_greeting = c->driver >= 0;
      }
      const bool goes_on = c->driver >= 0 || (waits && served->second.is_greeting);
      c = goes_on ? std::next(c) : end(c);
    }
  }

  bool on_driver(Connection& c) {
    if (!c.is_greeted) note_greeting(c);
    return c.client >= 0 && pass_on(c.driver, c.client);
  }

  bool on_client(Connection& c) {
    if (c.is_greeted) return pass_on(c.client, c.driver);
    if (c.driver < 0) return false;
    close(c.client);
    c.client = -1;
    return true;
  }

  void note_greeting(Connection& c) {
    c.is_greeted = true;
    if (const auto served = served_.find(c.place); served != served_.end())
      served->second.is_greeting = false;
  }

  std::list<Connection>::iterator end(std::list<Connection>::iterator c) {
    for (const int fd : {c->client, c->driver})
      if (fd >= 0) close(fd);
    return connections_.erase(c);
  }

  std::mutex mutex_;  ///< of all below but connections_, which is the thread's
  std::condition_variable parted_;
  std::map<SocketPlace, DriverPlace>
      drivers_;  ///< never fewer: the driver closes none of its listeners
  std::map<SocketPlace, Served> served_;
  std::list<Connection> connections_;
  bool is_running_ = false;
  bool is_polling_ = false;
  unsigned holders_ = 0;  ///< threads for which it is to stay out of poll()
  int wakeup_ = -1;
};

}  // namespace

SocketPlace driver_place_for(const SocketPlace& place) {
  return Relay::instance().driver_place_for(place);
}

bool start_relay(const DeviceSpec& spec, std::string& error) {
  return Relay::instance().start(spec, error);
}

void stop_relay(const DeviceSpec& spec) {
  Relay::instance().stop(spec);
}

}  // namespace uet::dpdk
