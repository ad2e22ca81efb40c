#include "provider/last_words.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace uet::provider {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

struct Promise {
  std::atomic<bool> is_taken{false};
  std::atomic<const base::Trace*> trace{nullptr};
  std::atomic<int> descriptor{-1};
};
/// More endpoints than this in one process end without last words.
constinit std::array<Promise, 16> promises;

/// One handler speaks at a time: a crash in it must not come back, and the end of an endpoint waits for it.
std::atomic<bool> is_speaking{false};

/// A line of JSON put together without allocation or locks.
class Line {
 public:
  void clear() { size_ = 0; }
  void text(std::string_view t) {
    const std::size_t n = t.size() < sizeof bytes_ - size_ ? t.size() : sizeof bytes_ - size_;
    std::memcpy(bytes_ + size_, t.data(), n);
    size_ += n;
  }
  void number(std::uint64_t value) {
    char digits[20];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    text({digits + at, sizeof digits - at});
  }
  void member(bool& is_first, std::string_view name, std::uint64_t value) {
    if (value == 0) return;
    text(is_first ? "\"" : ",\"");
    is_first = false;
    text(name);
    text("\":");
    number(value);
  }
  void write_to(int descriptor) const {
    if (write(descriptor, bytes_, size_) < 0) {
      // Nothing more can be done.
    }
  }

 private:
  char bytes_[8192] = {};
  std::size_t size_ = 0;
};

/// Not on the stack: that of a signal handler may be small.
constinit Line line;

/// Begins with the end of a line: where the file is a pipe or a device, the system may have taken a part of an event.
void say(int descriptor, const base::Trace& trace, int signal_number) {
  line.clear();
  line.text("\n{\"signal\":");
  line.number(static_cast<std::uint64_t>(signal_number));
  line.text(",\"events\":{");
  bool is_first = true;
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const auto id = static_cast<base::EventId>(i);
    line.member(is_first, base::describe(id).name, trace.count(id));
  }
  line.text("},\"drops\":{");
  is_first = true;
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    line.member(is_first, base::name_of(reason), trace.drops(reason));
  }
  line.text("}}\n");
  line.write_to(descriptor);
}

/// What handled each signal before us: libraries install handlers, too.
std::array<struct sigaction, NSIG> before;

void say_all(int number) {
  if (is_speaking.exchange(true)) return;
  const int before_us = errno;
  for (Promise& promise : promises)
    if (const base::Trace* trace = promise.trace) say(promise.descriptor, *trace, number);
  errno = before_us;
  is_speaking = false;
}

void on_signal(int number, siginfo_t* info, void* context) {
  say_all(number);
  const struct sigaction& next = before[static_cast<std::size_t>(number)];
  if ((next.sa_flags & SA_SIGINFO) != 0) return next.sa_sigaction(number, info, context);
  if (next.sa_handler != SIG_DFL) return next.sa_handler(number);
  signal(number, SIG_DFL);
  raise(number);  // delivered when this handler returns
}

/// Once in a process. A signal that is ignored ends nothing.
void listen_for_signals() {
  static std::atomic<bool> is_done{false};
  if (is_done.exchange(true)) return;
  for (const int number : kSignals) {
    struct sigaction& old = before[static_cast<std::size_t>(number)];
    const bool is_ignored = sigaction(number, nullptr, &old) != 0 ||
                            ((old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_IGN);
    if (is_ignored) continue;
    struct sigaction ours {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | (old.sa_flags & (SA_RESTART | SA_ONSTACK | SA_NODEFER));
    ours.sa_mask = old.sa_mask;
    sigaction(number, &ours, nullptr);
  }
}

}  // namespace

LastWords::LastWords(int descriptor, const base::Trace& trace) : slot_(-1) {
  for (std::size_t i = 0; i < promises.size() && slot_ < 0; ++i) {
    if (promises[i].is_taken.exchange(true)) continue;
    promises[i].descriptor = descriptor;
    promises[i].trace = &trace;
    slot_ = static_cast<int>(i);
  }
  if (slot_ >= 0) listen_for_signals();
}

LastWords::~LastWords() {
  if (slot_ < 0) return;
  Promise& promise = promises[static_cast<std::size_t>(slot_)];
  promise.trace = nullptr;
  // It may speak of the trace that goes; one that crashed stays in the middle.
  for (int i = 0; is_speaking && i < 1000; ++i) usleep(100);
  promise.is_taken = false;
}

}  // namespace uet::provider
