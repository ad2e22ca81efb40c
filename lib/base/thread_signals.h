/// What threads that a library starts in an application's process do with its signals.
#pragma once

#include <signal.h>

namespace uet::base {

/// While it lives the calling thread takes no asynchronous signal, nor does any thread that it starts, to the end. What a thread's own
/// instructions raise is not blocked: blocked, it would end the process past the application's handlers. [decision 120]
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t asynchronous;
    sigfillset(&asynchronous);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      sigdelset(&asynchronous, own);
    pthread_sigmask(SIG_BLOCK, &asynchronous, &before_);
  }
  ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace uet::base
