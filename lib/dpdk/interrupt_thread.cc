#include "lib/dpdk/interrupt_thread.h"

#include <rte_alarm.h>

#include <chrono>
#include <exception>
#include <future>

#include "lib/dpdk/interrupt_gate.h"

namespace uet::dpdk {

namespace {

constexpr std::uint64_t kSoonUs = 1;
constexpr std::chrono::microseconds kAskAgain{100};

struct Job {
  const std::function<void()>* work;
  std::promise<void> done;
};

void run_job(void* argument) {
  auto* job = static_cast<Job*>(argument);
  try {
    (*job->work)();
    job->done.set_value();
  } catch (...) {
    job->done.set_exception(std::current_exception());
  }
}

}  // namespace

void run_on_interrupt_thread(const std::function<void()>& work) {
  Job job{.work = &work, .done = {}};
  auto done = job.done.get_future();
  if (rte_eal_alarm_set(kSoonUs, run_job, &job) != 0) return work();
  do {
    InterruptGate::instance().let_through();
  } while (done.wait_for(kAskAgain) != std::future_status::ready);
  done.get();
}

bool post_to_interrupt_thread(void (*function)(void*), void* argument) {
  return rte_eal_alarm_set(kSoonUs, function, argument) == 0;
}

void cancel_on_interrupt_thread(void (*function)(void*), void* argument) {
  rte_eal_alarm_cancel(function, argument);
}

}  // namespace uet::dpdk
