#include "lib/dpdk/guest_thread.h"

#include <pthread.h>

#include <mutex>
#include <system_error>
#include <thread>

#include "lib/base/thread_signals.h"

namespace uet::dpdk {

namespace {

// Read on slow paths of the data path: a plain flag that is written once, while the child has one thread.
bool forked = false;

/// Makes a thread that takes no asynchronous signals; not joinable when there are no more threads to be had.
std::thread make_thread(std::function<void()> work) {
  const base::WithoutSignals without_signals;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

void run_on_guest_thread(const std::function<void()>& work) {
  std::thread thread = make_thread(work);
  if (thread.joinable())
    thread.join();
  else
    work();  // the caller's own does, signals or not
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
