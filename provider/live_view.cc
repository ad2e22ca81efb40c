#include "provider/live_view.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "fep/report/live_report.h"
#include "lib/ports/live_socket.h"
#include "provider/clock.h"
#include "provider/patient_lock.h"
#include "provider/peer_fit.h"
#include "provider/provider.h"
#include "provider/worker.h"

namespace uet::provider {
namespace {

constexpr int kPatienceMs = 2000;  ///< with a client
constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr auto kCheckEvery = base::Duration::from_ms(1000);
/// Far longer than any holder needs, unless the process ends with the lock held.
constexpr auto kWorkerPatience = base::Duration::from_ms(100);
constexpr auto kExitPatience = base::Duration::from_ms(1000);

/// Leaked on purpose, as the workers' registry: used until the very end of the process.
class Server {
 public:
  static Server& instance() {
    static auto* server = new Server;
    return *server;
  }

  void add(Worker& worker) {
    const std::lock_guard guard(mutex_);
    workers_[&worker];
    if (!thread_.joinable()) start();
  }

  void remove(Worker& worker) {
    bool is_last = false;
    {
      const std::lock_guard guard(mutex_);
      workers_.erase(&worker);
      is_last = workers_.empty();
    }
    if (is_last) stop();
  }

  void stop() {
    std::thread ending;
    {
      const auto guard = lock_within(mutex_, kExitPatience);
      if (!guard || !thread_.joinable()) return;
      ending = std::move(thread_);
      const std::uint64_t one = 1;
      if (owner_ == getpid() && write(stop_fd_, &one, sizeof one) < 0) {
        // Full, hence readable already.
      }
    }
    if (owner_ != getpid())
      return ending.detach();  // a child made by fork(): the thread is the parent's
    ending.join();
    close_socket();
  }

 private:
  void start() {
    listen_fd_ = ports::open_live_socket(path_);
    if (listen_fd_ < 0)
      return log_info("no socket for uet-stat: there is no folder of this user for it");
    stop_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (stop_fd_ < 0 || !start_thread()) {
      log_info("no live view for uet-stat: no thread or descriptor is left for it");
      close_socket();
    }
  }

  bool start_thread() {
    owner_ = getpid();
    // The thread takes none of the application's signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this, listen = listen_fd_, stop = stop_fd_] { run(listen, stop); });
      pthread_setname_np(thread_.native_handle(), "uet-stat");
    } catch (const std::exception&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread_.joinable();
  }

  void close_socket() {
    unlink(path_.c_str());
    close(listen_fd_);
    if (stop_fd_ >= 0) close(stop_fd_);
    listen_fd_ = stop_fd_ = -1;
  }

  void run(int listen_fd, int stop_fd) {
    base::Instant check_at = clock_now() + kCheckEvery;
    for (;;) {
      pollfd fds[2] = {{.fd = listen_fd, .events = POLLIN, .revents = 0},
                       {.fd = stop_fd, .events = POLLIN, .revents = 0}};
      const auto left =
          std::clamp((check_at - clock_now()).ns(), std::int64_t{0}, kCheckEvery.ns());
      poll(fds, 2, static_cast<int>((left + kNsPerMs - 1) / kNsPerMs));
      if (fds[1].revents != 0) return;
      if (fds[0].revents != 0) serve(listen_fd);
      if (clock_now() < check_at) continue;  // PeerFit counts its looks, however often users look
      check();
      check_at = clock_now() + kCheckEvery;
    }
  }

  void serve(int listen_fd) {
    const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const std::string request = ports::read_live_request(fd, kPatienceMs);
    if (!request.empty()) ports::write_live_answer(fd, answer(request), kPatienceMs);
    close(fd);
  }

  std::string answer(const std::string& request) {
    fep::LiveReport report(request, getpid(), ports::program_name());
    const std::lock_guard guard(mutex_);
    for (auto& [worker, fit] : workers_) {
      const auto turn = lock_within(worker->lock(), kWorkerPatience);
      if (turn) report.add(clock_now(), worker->fep(), worker->settings());
    }
    return report.text();
  }

  void check() {
    const std::lock_guard guard(mutex_);
    for (auto& [worker, fit] : workers_) {
      const auto turn = lock_within(worker->lock(), kWorkerPatience);
      if (turn) fit.look(clock_now(), worker->fep(), worker->settings());
    }
  }

  std::mutex mutex_;  ///< taken before a worker's lock, never behind it
  std::map<Worker*, PeerFit> workers_;
  std::thread thread_;
  pid_t owner_ = 0;
  int listen_fd_ = -1, stop_fd_ = -1;
  std::string path_;
};

}  // namespace

LiveView::Entry::~Entry() {
  Server::instance().remove(worker_);
}

std::unique_ptr<LiveView::Entry> LiveView::show(Worker& worker) {
  log_info("opened: " + fep::describe_opening(worker.fep(), worker.settings()));
  auto entry =
      std::make_unique<Entry>(worker);  // takes the worker out again, whatever fails behind it
  Server::instance().add(worker);
  return entry;
}

void LiveView::stop() {
  Server::instance().stop();
}

}  // namespace uet::provider
