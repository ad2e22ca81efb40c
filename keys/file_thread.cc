#include "keys/file_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "lib/base/thread_signals.h"

namespace uet::keys {
namespace {

/// A process ends although a file system does not answer.
constexpr std::chrono::seconds kExitPatience{1};

}  // namespace

struct FileThread::State {
  void turn();
  void ask_to_stop() {
    const std::lock_guard guard(mutex);
    stops = true;
    changed.notify_all();
  }

  const pid_t process = ::getpid();
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool stops = false, has_ended = false;
  std::thread thread;

  /// Those at work in this process. Libraries that a job uses are taken down when the process exits; none is at hand then.
  struct All {
    std::mutex mutex;
    std::set<State*> states;
  };
  static All& all() {
    static auto* const a = new All;
    return *a;
  }
  static int watch_process();
  static void at_exit();
};

int FileThread::State::watch_process() {
  return std::atexit(at_exit) |
         ::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                          [] {
                            all().states.clear();  // the threads are its parent's
                            all().mutex.unlock();
                          });
}

void FileThread::State::turn() {
  std::unique_lock held(mutex);
  while (true) {
    changed.wait(held, [this] { return stops || !jobs.empty(); });
    if (stops) break;
    const std::function<void()> job = std::move(jobs.front());
    jobs.pop_front();
    held.unlock();
    job();
    held.lock();
  }
  has_ended = true;
  changed.notify_all();
}

void FileThread::State::at_exit() {
  const std::lock_guard guard(all().mutex);
  const auto end = std::chrono::steady_clock::now() + kExitPatience;
  for (State* state : all().states) {
    state->ask_to_stop();
    std::unique_lock held(state->mutex);
    state->changed.wait_until(held, end, [state] { return state->has_ended; });
  }
}

FileThread::FileThread(const char* name) : name_(name) {}

FileThread::~FileThread() {
  if (state_ == nullptr) return;
  if (::getpid() != state_->process) {
    (void)state_.release();  // its thread is the parent's, and may hold or await anything in it
    return;
  }
  {
    const std::lock_guard guard(State::all().mutex);
    State::all().states.erase(state_.get());
  }
  state_->ask_to_stop();
  state_->thread.join();
}

void FileThread::run(std::function<void()> job) {
  if (state_ == nullptr) {
    auto state = std::make_unique<State>();
    const base::WithoutSignals without_signals;
    try {
      state->thread = std::thread([s = state.get()] { s->turn(); });
    } catch (const std::system_error&) {
      return job();
    }
    pthread_setname_np(state->thread.native_handle(), name_);
    state_ = std::move(state);
    static const int once = State::watch_process();
    (void)once;
    const std::lock_guard guard(State::all().mutex);
    State::all().states.insert(state_.get());
  }
  const std::lock_guard guard(state_->mutex);
  state_->jobs.push_back(std::move(job));
  state_->changed.notify_all();
}

}  // namespace uet::keys
