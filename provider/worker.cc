#include "provider/worker.h"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <map>

#include "lib/ports/open_port.h"
#include "provider/progress.h"
#include "provider/provider.h"

namespace uet::provider {
namespace {

/// The workers of the process by address. Leaked on purpose: used until the very end of the
/// process. [libfabric 2.5-7]
struct Registry {
  std::mutex mutex;
  std::map<net::FabricAddress, std::weak_ptr<Worker>> workers;
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

/// A port without a descriptor to sleep on is looked at this often.
constexpr base::Duration kPollInterval = base::Duration::from_us(20);

/// How long the last object of a worker waits for its peers to hear the last acknowledgements.
constexpr base::Duration kLingerQuiet = base::Duration::from_ms(30);
constexpr base::Duration kLingerMax = base::Duration::from_ms(1500);

timespec to_timespec(base::Duration d) {
  const std::int64_t ns = std::max<std::int64_t>(d.ns(), 0);
  return timespec{ns / 1'000'000'000, ns % 1'000'000'000};
}

}  // namespace

Worker::Worker(const fep::Settings& settings, net::FabricAddress address)
    : settings_(settings),
      address_(address),
      rng_(settings.seed != 0 ? settings.seed : system_seed()) {}

base::Result<std::shared_ptr<Worker>, std::string> Worker::open(const fep::Settings& settings,
                                                                const PortChoice& choice) {
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  std::weak_ptr<Worker>& slot = r.workers[choice.address];
  if (auto running = slot.lock()) return running;
  const std::shared_ptr<Worker> worker(new Worker(settings, choice.address));
  std::string error;
  if (!worker->start(choice, error)) return error;
  slot = worker;
  return worker;
}

bool Worker::start(const PortChoice& choice, std::string& error) {
  if (!settings_.trace.empty()) {
    trace_file_ = fep::TraceFile::open(settings_.trace, trace_, error);
    if (trace_file_ == nullptr) return false;
    last_words_ = std::make_unique<LastWords>(trace_file_->descriptor(), trace_);
  }
  if (!settings_.path_log.empty()) {
    path_log_ = fep::PathLog::open(settings_.path_log, error);
    if (path_log_ == nullptr) return false;
  }
  net::PortRequest request = settings_.port_request(choice.spec, choice.address);
  if (request.mtu == 0) request.mtu = choice.mtu;
  port_ = ports::open_port({.request = request, .impair = settings_.impair, .pcap = settings_.pcap},
                           trace_, error);
  if (port_ == nullptr) return false;
  const auto config = settings_.fep_config(port_->facts());
  if (!config) {
    error = config.error();
    return false;
  }
  fep_ = std::make_unique<fep::Fep>(*config, *port_, rng_, trace_, clock_now());
  if (settings_.progress != fep::Progress::kManual) {
    progress_required_ = settings_.progress == fep::Progress::kThread;
    thread_ = std::make_unique<ProgressThread>(*this);
  }
  live_ = LiveView::show(*this);
  return true;
}

Worker::~Worker() {
  live_.reset();
  thread_.reset();
  if (fep_ != nullptr) linger();
  fep_.reset();
  port_.reset();
}

/// The peers may not have heard our last acknowledgements, and only we can send them again. Stays
/// until every delivery context is closed, or until nothing more comes.
void Worker::linger() {
  const base::Instant begin = clock_now();
  if (path_log_ != nullptr) path_log_->write(begin, *fep_);
  fep_->pds().close_all(begin);
  base::Instant last_packet = begin;
  std::uint64_t packets = trace_.count(base::EventId::kPacketReceived);
  while (true) {
    const base::Instant now = clock_now();
    fep_->turn(now);
    const std::uint64_t seen = trace_.count(base::EventId::kPacketReceived);
    if (seen != packets) last_packet = now;
    packets = seen;
    const bool quiet = now - last_packet > kLingerQuiet;
    if (fep_->is_idle() || quiet || now - begin > kLingerMax) return;
    sleep_for_packets(now + base::Duration::from_ms(5));
  }
}

void Worker::stop_all() {
  LiveView::stop();
  Registry& r = registry();
  const std::lock_guard guard(r.mutex);
  for (auto& [address, slot] : r.workers) {
    if (const auto worker = slot.lock(); worker != nullptr && worker->thread_ != nullptr) {
      worker->thread_->stop();
    }
  }
}

bool Worker::turn_at(base::Instant now) {
  note_application();
  return turn_loop(now);
}

bool Worker::turn_loop(base::Instant now) {
  const bool did = fep_->turn(now);
  if (path_log_ != nullptr) path_log_->on_turn(now, *fep_);
  return did;
}

void Worker::after_post(base::Instant now) {
  note_application();
  fep_->transmit(now);
}

/// The application is at work: the thread may doze, but not sleep by an old alarm.
void Worker::note_application() {
  application_turns_.store(application_turns_.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  if (thread_ != nullptr) thread_->wake_from_deep_sleep();
}

void Worker::require_progress_thread() {
  if (thread_ == nullptr || progress_required_.exchange(true)) return;
  thread_->kick();
}

void Worker::application_sleeps() {
  if (has_progress_thread()) thread_->kick();
}

void Worker::sleep_for_packets(base::Instant end, int extra_fd) {
  base::Instant wake = end;
  {
    const std::lock_guard guard(lock_);
    if (!port_->arm_wakeup()) return;
    wake = std::min(wake, fep_->next_deadline());
  }
  const base::Instant now = clock_now();
  if (wake <= now) return;
  pollfd fds[2];
  nfds_t count = 0;
  for (const int fd : {port_->wakeup_fd(), extra_fd}) {
    if (fd >= 0) fds[count++] = pollfd{.fd = fd, .events = POLLIN, .revents = 0};
  }
  base::Duration time = wake.is_never() ? base::Duration::from_seconds(1) : wake - now;
  if (port_->wakeup_fd() < 0) time = std::min(time, kPollInterval);
  const timespec limit = to_timespec(time);
  application_sleepers_.fetch_add(1, std::memory_order_relaxed);
  ppoll(fds, count, &limit, nullptr);
  application_sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace uet::provider
