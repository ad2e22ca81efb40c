#include "lib/dpdk/guest_thread.h"

#include <pthread.h>

#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

namespace uet::dpdk {

namespace {

// Read on slow paths of the data path: a plain flag that is written once, while the child has one thread.
bool forked = false;

/// All but those that the thread's own instructions raise: blocked, these would end the process past the application's handlers.
sigset_t asynchronous_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&set, own);
  return set;
}

/// Makes a thread that has these signals blocked; not joinable when there are no more threads to be had.
std::thread make_thread(std::function<void()> work) {
  const sigset_t blocked = asynchronous_signals();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
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
