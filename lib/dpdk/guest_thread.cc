#include "lib/dpdk/guest_thread.h"

#include <pthread.h>

#include <exception>
#include <mutex>
#include <thread>

#include "lib/base/thread_signals.h"

namespace uet::dpdk {

namespace {

// Read on slow paths of the data path: a plain flag that is written once, while the child has one thread.
bool forked = false;

/// Makes a thread that takes no asynchronous signals; not joinable when there are no more threads, or no memory, to be had.
std::thread make_thread(std::function<void()> work) {
  const base::WithoutSignals without_signals;
  try {
    return std::thread(std::move(work));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

void run_on_guest_thread(const std::function<void()>& work) {
  std::exception_ptr thrown;
  std::thread thread = make_thread([&] {
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (!thread.joinable()) return work();  // the caller's own does, signals or not
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

bool start_guest_thread(const char* name, std::function<void()> work) {
  std::thread thread = make_thread([name, work = std::move(work)] {
    pthread_setname_np(pthread_self(), name);
    work();
  });
  if (!thread.joinable()) return false;
  thread.detach();
  return true;
}

bool is_forked_child() {
  return forked;
}

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { forked = true; }); });
}

}  // namespace uet::dpdk
