#include "provider/workers.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "provider/live_view.h"
#include "provider/patient_lock.h"
#include "provider/worker.h"

namespace uet::provider {
namespace {

/// Leaked on purpose: used until the very end of the process. [FI 2.5.7]
///
/// An entry without a living worker belongs to a thread that opens it, or that closes it and still
/// has its port.
struct Registry {
  std::mutex mutex;
  std::condition_variable changed;
  struct Entry {
    std::weak_ptr<Worker> worker;
    // For fork(). A thread that ends one waits until all are nothing.
    net::Port* port = nullptr;
    Worker* at_work = nullptr;
    fep::TraceFile* trace_file = nullptr;
    fep::PathLog* path_log = nullptr;
  };
  std::map<net::FabricAddress, Entry> workers;

  void leave(net::FabricAddress address) {
    {
      const std::lock_guard guard(mutex);
      workers.erase(address);
    }
    changed.notify_all();
  }
};
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

/// The thread that ends the process may itself be in the middle of opening or closing.
constexpr base::Duration kExitPatience = base::Duration::from_ms(1000);

}  // namespace

base::Result<std::shared_ptr<Worker>, WorkerRefusal> Workers::open(const fep::Settings& settings,
                                                                   const PortChoice& choice,
                                                                   std::uint32_t job) {
  Registry& r = registry();
  std::unique_lock held(r.mutex);
  std::shared_ptr<Worker> running;
  r.changed.wait(held, [&] {
    const auto at = r.workers.find(choice.address);
    return at == r.workers.end() || (running = at->second.worker.lock()) != nullptr;
  });
  if (running != nullptr) {
    held.unlock();  // what follows waits for the worker
    if (running->covers(job)) return running;
    return WorkerRefusal{.why = "job " + std::to_string(job) +
                                " is not in the secure domain that " + choice.address.to_string() +
                                " is used for in this process"};
  }
  Registry::Entry& entry = r.workers[choice.address];
  held.unlock();
  std::unique_ptr<Worker, void (*)(Worker*)> fresh(nullptr, &retire);
  try {
    fresh.reset(new Worker(settings, choice.address));
  } catch (...) {
    r.leave(choice.address);
    throw;
  }
  std::string error;
  if (!fresh->start(choice, job, error))
    return WorkerRefusal{error, fresh->port_ == nullptr && is_held_by_stranger(choice, settings)};
  std::shared_ptr<Worker> worker(std::move(fresh));
  held.lock();
  entry.worker = worker;
  held.unlock();
  r.changed.notify_all();
  return worker;
}

void Workers::retire(Worker* worker) {
  if (worker->is_abandoned_) return;  // what its end would close, or wait for, is the parent's
  const net::FabricAddress address = worker->address_;
  delete worker;
  registry().leave(address);
}

void Workers::note_port(net::FabricAddress address, net::Port* port) {
  const std::lock_guard guard(registry().mutex);
  registry().workers[address].port = port;
}

void Workers::note_files(net::FabricAddress address, fep::TraceFile* trace_file,
                         fep::PathLog* path_log) {
  const std::lock_guard guard(registry().mutex);
  registry().workers[address].trace_file = trace_file;
  registry().workers[address].path_log = path_log;
}

void Workers::note_at_work(net::FabricAddress address, Worker* worker) {
  const std::lock_guard guard(registry().mutex);
  registry().workers[address].at_work = worker;
}

/// In the order of their addresses. No thread that has a worker's lock waits for another one's, or for the registry's.
void Workers::lock_all() {
  registry().mutex.lock();
  for (const auto& [address, entry] : registry().workers) {
    if (entry.at_work != nullptr) entry.at_work->lock().lock_before_fork();
  }
}

void Workers::unlock_all() {
  for (const auto& [address, entry] : registry().workers) {
    if (entry.at_work != nullptr) entry.at_work->lock().unlock_in_parent();
  }
  registry().mutex.unlock();
}

void Workers::abandon_all_in_child() {
  for (const auto& [address, entry] : registry().workers) {
    if (entry.port != nullptr) entry.port->abandon_in_child();
    if (entry.trace_file != nullptr) entry.trace_file->abandon_in_child();
    if (entry.path_log != nullptr) entry.path_log->abandon_in_child();
    if (entry.at_work != nullptr) entry.at_work->abandon_in_child();
  }
  registry().mutex.unlock();
}

void Workers::stop_all() {
  LiveView::stop();
  Registry& r = registry();
  // Never let go: the last pointer would close the worker, and the process is about to end.
  auto* const all = new std::vector<std::shared_ptr<Worker>>;
  {
    const auto guard = lock_within(r.mutex, kExitPatience);
    if (!guard) return;
    for (const auto& [address, entry] : r.workers) all->push_back(entry.worker.lock());
  }
  for (const auto& worker : *all) {
    if (worker != nullptr) worker->stop_thread();
  }
}

}  // namespace uet::provider
