#include "provider/live_view.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fep/report/live_report.h"
#include "lib/base/thread_signals.h"
#include "lib/ports/live_socket.h"
#include "lib/udp/descriptor.h"
#include "provider/clock.h"
#include "provider/errors.h"
#include "provider/patient_lock.h"
#include "provider/peer_fit.h"
#include "provider/progress.h"
#include "provider/provider.h"
#include "provider/thread_memory.h"
#include "provider/worker.h"

namespace uet::provider {
namespace {

constexpr int kPatienceMs = 2000;  ///< with a client
constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr auto kCheckEvery = base::Duration::from_ms(1000);
/// Far longer than any holder needs, unless the process ends with the lock held.
constexpr auto kWorkerPatience = base::Duration::from_ms(100);
constexpr auto kExitPatience = base::Duration::from_ms(1000);

/// A socket for uet-stat, and the thread that sleeps on it and checks once a second. Ends both when it goes.
class Run {
 public:
  /// What the thread is for. Neither may wait for the end of the run.
  struct Duties {
    std::function<std::string(const std::string& request)> answer;
    std::function<void()> check;
  };

  /// Null, with a line in the log, when the system has no descriptor or thread for it. Without a socket it checks all the same.
  static std::unique_ptr<Run> begin(Duties duties) {
    std::unique_ptr<Run> run(new Run(std::move(duties)));
    const std::string why_not_found = run->listener_.fd() < 0 ? run->why_not_found() : "";
    if (run->stop_.fd() < 0 || !run->start_thread()) {
      log_warning(
          "uet-stat does not find this process, and peers that do not fit are not looked for: no "
          "thread or descriptor is left; raise \"ulimit -u\", \"ulimit -n\" or \"ulimit -v\"");
      return nullptr;
    }
    if (!why_not_found.empty())
      log_warning("uet-stat does not find this process: " + why_not_found +
                  "; it is tried again every second");
    return run;
  }
  ~Run() {
    if (thread_.joinable()) {
      const std::uint64_t one = 1;
      if (write(stop_.fd(), &one, sizeof one) < 0) {
        // Full, hence readable already.
      }
      join_or_leave(thread_);
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

 private:
  explicit Run(Duties duties)
      : duties_(std::move(duties)),
        stop_(udp::Descriptor::open([] { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); })) {}

  std::string why_not_found() const {
    if (!ports::live_folder(false).empty())
      return "its socket cannot be opened, " + udp::error_text(listen_error_);
    std::string folders;
    for (const std::string& folder : ports::live_folders())
      folders += (folders.empty() ? "" : ", ") + folder;
    return "none of the folders " + folders +
           " can be made, or is one that this user alone can enter";
  }

  bool start_thread() {
    const base::WithoutSignals without_signals;
    try {
      thread_ = std::thread([this] { sleep_and_serve(); });
      pthread_setname_np(thread_.native_handle(), "uet-stat");
    } catch (const std::exception&) {
    }
    return thread_.joinable();
  }

  void sleep_and_serve() {
    prepare_thread_for_exceptions();
    base::Instant check_at = clock_now() + kCheckEvery;
    bool may_accept = true;
    for (;;) {
      pollfd fds[2] = {{.fd = may_accept ? listener_.fd() : -1, .events = POLLIN, .revents = 0},
                       {.fd = stop_.fd(), .events = POLLIN, .revents = 0}};
      const auto left =
          std::clamp((check_at - clock_now()).ns(), std::int64_t{0}, kCheckEvery.ns());
      poll(fds, 2, static_cast<int>((left + kNsPerMs - 1) / kNsPerMs));
      if (fds[1].revents != 0) return;
      if (fds[0].revents != 0) may_accept = accept_and_serve();
      if (clock_now() < check_at) continue;  // PeerFit counts its looks, however often users look
      without_exceptions(duties_.check);
      without_exceptions([this] { listener_.keep(); });
      check_at = clock_now() + kCheckEvery;
      may_accept = true;
    }
  }

  /// For want of memory a client gets no answer, a check is done later.
  template <typename Work>
  static void without_exceptions(const Work& work) {
    (void)guarded([&] {
      work();
      return 0;
    });
  }

  /// False where no descriptor or memory is left: the connection waits, and the listener stays readable meanwhile.
  bool accept_and_serve() {
    const auto client = udp::Descriptor::open(
        [this] { return accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC); });
    if (client) without_exceptions([&] { serve(client.fd()); });
    return static_cast<bool>(client);
  }

  void serve(int client) {
    const std::string request = ports::read_live_request(client, kPatienceMs, stop_.fd());
    if (request.empty()) return;
    ports::write_live_answer(client, duties_.answer(request), kPatienceMs, stop_.fd());
  }

  const Duties duties_;
  ports::LiveSocket listener_;  ///< from its start on the thread's alone
  const int listen_error_ = listener_.fd() < 0 ? errno : 0;
  const udp::Descriptor stop_;
  std::thread thread_;
};

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
    if (run_ == nullptr)
      run_ = Run::begin({.answer = [this](const std::string& request) { return answer(request); },
                         .check = [this] { check(); }});
  }

  void remove(Worker& worker) {
    std::unique_ptr<Run> ending;  // without the lock, for which its thread may wait
    const std::lock_guard guard(mutex_);
    workers_.erase(&worker);
    if (workers_.empty()) ending = std::move(run_);
  }

  void stop() {
    std::unique_ptr<Run> ending;
    const auto guard = lock_within(mutex_, kExitPatience);
    if (guard) ending = std::move(run_);
  }

 private:
  std::string answer(const std::string& request) {
    fep::LiveReport report(request, getpid(), ports::program_name());
    const std::lock_guard guard(mutex_);
    for (auto& [worker, fit] : workers_) {
      const auto turn = lock_within(worker->lock(), kWorkerPatience);
      if (turn) report.add(worker->now(), worker->fep(), worker->settings());
    }
    return report.text();
  }

  void check() {
    for (const std::string& remark : look()) tell_user(remark);
  }

  std::vector<std::string> look() {
    std::vector<std::string> remarks;
    const std::lock_guard guard(mutex_);
    for (auto& [worker, fit] : workers_) {
      const auto turn = lock_within(worker->lock(), kWorkerPatience);
      if (turn)
        std::ranges::move(fit.look(worker->now(), worker->fep(), worker->settings()),
                          std::back_inserter(remarks));
    }
    return remarks;
  }

  std::mutex mutex_;  ///< taken before a worker's lock, never behind it
  std::map<Worker*, PeerFit> workers_;
  std::unique_ptr<Run> run_;  ///< while there are workers, if the system lets it begin
};

}  // namespace

LiveView::Entry::~Entry() {
  if (is_forked_child()) return;  // its lock may be held for ever, and the thread is the parent's
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
