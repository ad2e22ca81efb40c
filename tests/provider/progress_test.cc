#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>
#include <thread>

#include "tests/base/sanitizers.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMegabyte = 1 << 20;

/// CPU time so far of this process's threads of that name, in nanoseconds; -1 when there is none.
std::int64_t cpu_time_of(std::string_view name) {
  std::int64_t sum = -1;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    std::int64_t on_cpu = 0;
    if (comm == name && std::ifstream(task.path() / "schedstat") >> on_cpu)
      sum = std::max<std::int64_t>(sum, 0) + on_cpu;
  }
  return sum;
}

/// Signals that this process's threads of one name have blocked, a bit each.
struct Blocked {
  std::uint64_t by_all = ~std::uint64_t{0}, by_any = 0;
};

Blocked blocked_in(std::string_view name) {
  Blocked blocked;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line, comm;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:\t")) comm = line.substr(6);
      if (!line.starts_with("SigBlk:\t") || comm != name) continue;
      const std::uint64_t mask = std::stoull(line.substr(8), nullptr, 16);
      blocked.by_all &= mask;
      blocked.by_any |= mask;
    }
  }
  return blocked;
}

/// Side a works on memory of side b, whose program makes no call.
class SilentPeerTest : public PairTest {
 protected:
  void open_with_memory(fi_progress progress) {
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = 0;
    hints->domain_attr->data_progress = progress;
    open(hints.get());
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(fi_mr_reg(b.domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                        42, 0, &mr, nullptr),
              0);
  }
  ~SilentPeerTest() override {
    if (mr != nullptr) {
      EXPECT_EQ(fi_close(&mr->fid), 0);
    }
  }
  void write_and_read() {
    ASSERT_EQ(fi_write(a.ep, sent.data(), sent.size(), nullptr, to_b, 0, fi_mr_key(mr), nullptr),
              0);
    ASSERT_EQ(
        fi_read(a.ep, got.data(), got.size(), nullptr, to_b, kMegabyte, fi_mr_key(mr), nullptr), 0);
  }
  /// Completions that side a sees within this time; b is not touched.
  int completions_within(std::chrono::milliseconds time, int enough) {
    int n = 0;
    for (const auto end = Clock::now() + time; n < enough && Clock::now() < end;) {
      if (const auto one = poll(a)) {
        EXPECT_FALSE(one->failed) << fi_strerror(one->error.err);
        ++n;
      }
    }
    return n;
  }
  std::vector<std::uint8_t> memory = pattern(2 * kMegabyte, 1), sent = pattern(kMegabyte, 2),
                            got = std::vector<std::uint8_t>(kMegabyte);
  fid_mr* mr = nullptr;
};

// Covers: FI-37
TEST_F(SilentPeerTest, automatic_progress__peers_reach_its_memory_and_idling_is_free) {
  open_with_memory(FI_PROGRESS_AUTO);
  write_and_read();
  EXPECT_EQ(completions_within(std::chrono::seconds(10), 2), 2);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin()));
  EXPECT_TRUE(std::equal(got.begin(), got.end(), memory.begin() + kMegabyte));

  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // last timers of the transfers
  ASSERT_GE(cpu_time_of("uet-progress"), 0) << "no progress thread";
  // The least of a few: what a thread costs at its start or in the caches of others is no idling.
  constexpr std::int64_t kDomains = 2;
  double least = 1;
  for (int attempt = 0; attempt < 5 && least >= 0.01; ++attempt) {
    const auto begin = Clock::now();
    const std::int64_t before = cpu_time_of("uet-progress");
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const std::int64_t used = cpu_time_of("uet-progress") - before;
    const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
    least = std::min(least, static_cast<double>(used) / (kDomains * time.count()));
  }
  EXPECT_LT(least, 0.01) << "more than 1 % of a core for each idle domain";
}

// Covers: FI-37
TEST_F(SilentPeerTest, manual_progress__waits_without_failing_and_goes_on_with_the_next_call) {
  const Variable manual("FI_UET_PROGRESS", "manual");
  open_with_memory(FI_PROGRESS_MANUAL);
  EXPECT_EQ(cpu_time_of("uet-progress"), -1) << "manual means that no thread is there";
  const char* const depth = std::getenv("UET_TEST_DEPTH");
  const bool thorough = depth != nullptr && std::string_view(depth) == "long";
  // The shortest of a few: a busy machine makes some longer.
  constexpr std::chrono::seconds kSoon{1};
  auto shortest = Clock::duration::max();
  for (int attempt = 0; attempt < 5 && shortest >= kSoon; ++attempt) {
    write_and_read();
    EXPECT_EQ(completions_within(std::chrono::seconds(thorough ? 30 : 3), 1), 0);
    const auto first_call = Clock::now();
    for (int completed = 0; completed < 2;) {
      ASSERT_LT(Clock::now() - first_call, 30 * kSoon) << completed << " of 2 completed";
      fi_cq_read(b.cq, nullptr, 0);
      if (const auto one = poll(a)) {
        EXPECT_FALSE(one->failed);
        ++completed;
      }
    }
    shortest = std::min(shortest, Clock::now() - first_call);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), memory.begin()));
  }
  EXPECT_LT(shortest, kSoon);
}

/// A thread that posts again and again, and takes nothing in: receives without room, until one is refused.
class Poster {
 public:
  explicit Poster(fid_ep* ep)
      : thread_([this, ep] {
          for (auto last = Clock::now(); !stop_; ++posts_) {
            while (Clock::now() < last + kInterval) continue;
            if (fi_recv(ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, nullptr) != 0) return;
            const auto now = Clock::now();
            if (now > last + kAbsence) ++absences_;
            last = now;
          }
        }) {}
  ~Poster() {
    stop_ = true;
    thread_.join();
  }
  /// Whether `work` was done between posts that followed each other sooner than a progress thread takes for silence.
  bool is_beside_posts(const std::function<void()>& work) const {
    constexpr int kPostsOfTwoSeconds = 20'000;
    const int absences = absences_, before = posts_;
    work();
    const int posts = posts_;
    EXPECT_LT(posts - before, kPostsOfTwoSeconds) << "it waited until the posts ended";
    for (const auto end = Clock::now() + std::chrono::seconds(1); posts_ < posts + 2;)
      if (Clock::now() > end) return false;
    return absences_ == absences;
  }

 private:
  static constexpr auto kInterval = std::chrono::microseconds(100),
                        kAbsence = std::chrono::microseconds(800);
  std::atomic<bool> stop_{false};
  std::atomic<int> posts_{0}, absences_{0};
  std::thread thread_;
};

// Covers: FI-37
TEST_F(SilentPeerTest, posts_alone__do_not_keep_peers_from_its_memory) {
  const Variable many("FI_UET_RX_SIZE", "65536");  // a post that is refused takes packets in
  open_with_memory(FI_PROGRESS_AUTO);
  const Poster poster(b.ep);
  int done = 0;
  for (const auto end = Clock::now() + std::chrono::seconds(20); done < 2 && Clock::now() < end;)
    done += poster.is_beside_posts([&] {
      EXPECT_EQ(fi_write(a.ep, sent.data(), 1, nullptr, to_b, 0, fi_mr_key(mr), nullptr), 0);
      EXPECT_EQ(completions_within(std::chrono::seconds(10), 1), 1);
    });
  if (done != 2) GTEST_SKIP() << "other programs have the processors";
}

/// The application's signals reach its own threads; its handler of faults hears of one in ours, as on memory that it gave us.
// Covers: FI-37
TEST_F(SilentPeerTest, threads_of_ours__take_no_signals_but_their_own_faults) {
  open_with_memory(FI_PROGRESS_AUTO);
  const auto has = [](std::uint64_t set, int signal) { return (set >> (signal - 1) & 1) != 0; };
  for (const char* name : {"uet-progress", "uet-stat"}) {
    SCOPED_TRACE(name);
    ASSERT_GE(cpu_time_of(name), 0) << "no such thread";
    Blocked blocked = blocked_in(name);
    // The C library blocks all until a thread begins.
    for (const auto end = Clock::now() + std::chrono::seconds(10);
         has(blocked.by_any, SIGSEGV) && Clock::now() < end; blocked = blocked_in(name))
      std::this_thread::yield();
    for (const int asynchronous : {SIGTERM, SIGINT, SIGALRM, SIGPIPE, SIGUSR1, SIGCHLD})
      EXPECT_TRUE(has(blocked.by_all, asynchronous)) << strsignal(asynchronous);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
      EXPECT_FALSE(has(blocked.by_any, own)) << strsignal(own);
  }
}

class HeldAcksTest : public PairTest {
 protected:
  static constexpr int kRow = 200;  ///< long enough for ACKs to be held at its end
  static constexpr auto kComputing = std::chrono::milliseconds(20);

  void post_receive() { EXPECT_EQ(fi_recv(b.ep, &in_, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0); }
  /// Takes a row of messages in promptly, then computes.
  void receive_rows(int rows) {
    for (int row = 0; row < rows; ++row) {
      for (int n = 0; n < kRow;) {
        if (!poll(b)) continue;
        post_receive();
        ++n;
      }
      std::this_thread::sleep_for(kComputing);
    }
  }
  /// Sends a row, each message when the one before was acknowledged. How long that took for the last one.
  Clock::duration send_row() {
    auto begin = Clock::now();
    for (int i = 0; i < kRow; ++i) {
      begin = Clock::now();
      EXPECT_EQ(fi_send(a.ep, &out_, 1, nullptr, to_b, nullptr), 0);
      while (!poll(a)) continue;
    }
    return Clock::now() - begin;
  }

 private:
  std::uint8_t in_ = 0;
  const std::uint8_t out_ = 1;
};

// The progress thread, which looks every 5 ms as a rule, has to know of ACKs before the first one is held. A busy machine may hide that.
TEST_F(HeldAcksTest, application_that_computes_after_a_prompt_row__keeps_no_peer_waiting) {
  constexpr int kRounds = 30, kAttempts = 20;
  open();
  for (int i = 0; i < kRow; ++i) post_receive();
  int soon = 0;
  for (int attempt = 0; attempt < kAttempts && soon < kRounds / 3; ++attempt) {
    soon = 0;
    std::thread receiver([&] { receive_rows(kRounds); });
    for (int round = 0; round < kRounds; ++round) {
      if (send_row() < std::chrono::microseconds(500)) ++soon;
      std::this_thread::sleep_for(kComputing + kComputing / 4);
    }
    receiver.join();
  }
  EXPECT_GE(soon, kRounds / 3);
}

/// How often this process's threads of that name have run so far.
std::int64_t runs_of(std::string_view name) {
  std::int64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    std::int64_t on_cpu = 0, waited = 0, runs = 0;
    if (comm == name && std::ifstream(task.path() / "schedstat") >> on_cpu >> waited >> runs)
      sum += runs;
  }
  return sum;
}

TEST_F(HeldAcksTest, thread_that_sleeps_in_a_call__lets_the_progress_thread_rest) {
  open();
  for (int i = 0; i < kRow; ++i) post_receive();
  std::thread receiver([&] { receive_rows(1); });
  send_row();
  receiver.join();
  const auto begin = Clock::now();
  const std::int64_t before = runs_of("uet-progress");
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 1000), -FI_EAGAIN);
  const std::chrono::duration<double> time = Clock::now() - begin;
  EXPECT_LT(static_cast<double>(runs_of("uet-progress") - before) / time.count(), 1000)
      << "a second";
}

/// What a program leaves behind that ends without closing. Each runs in a process of its own.
class ExitTest : public SilentPeerTest {
 protected:
  ExitTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void leave_everything_open(fi_progress progress) {
    open_with_memory(progress);
    write_and_read();  // on their way when the process ends
    std::uint8_t byte = 0;
    EXPECT_EQ(fi_recv(b.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  /// Exit status: 0, or 2 when there was nothing to leave open.
  static int status() { return HasFailure() ? 2 : 0; }
};

// Covers: FI-8
TEST_F(ExitTest, exit__without_closing_anything) {
  for (const fi_progress progress : {FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO}) {
    const auto begin = Clock::now();
    EXPECT_EXIT((leave_everything_open(progress), std::exit(status())),
                ::testing::ExitedWithCode(0), "");
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  }
}

// Covers: FI-8
TEST_F(ExitTest, exit__from_another_thread_while_one_is_in_a_call) {
  EXPECT_EXIT(
      {
        leave_everything_open(FI_PROGRESS_AUTO);
        std::thread([] { std::exit(status()); }).detach();
        for (;;) completions_within(std::chrono::seconds(1), 1);
      },
      ::testing::ExitedWithCode(0), "");
}

/// As the handlers of some libraries do: they look around for a while, then end the process.
void exit_after_a_check(int) {
  const timespec longer_than_between_checks{1, 300'000'000};
  nanosleep(&longer_than_between_checks, nullptr);
  std::exit(0);
}

/// Until the time is over; the handler runs in the middle of a call, most likely with its lock held.
void poll_until_a_signal(const std::function<void()>& poll) {
  std::signal(SIGPROF, exit_after_a_check);
  itimerval soon{};
  soon.it_value.tv_usec = 50'000;
  setitimer(ITIMER_PROF, &soon, nullptr);
  alarm(30);  // ends a process that waits for itself
  for (;;) poll();
}

// Covers: FI-8
TEST_F(ExitTest, exit__from_a_signal_handler_that_met_a_call) {
#if UET_THREAD_SANITIZER
  GTEST_SKIP() << "exit() in a signal handler is what the thread sanitizer ends a program for";
#endif
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EXIT((leave_everything_open(FI_PROGRESS_MANUAL),
                 poll_until_a_signal([this] { fi_cq_read(a.cq, nullptr, 0); })),
                ::testing::ExitedWithCode(0), "");
  }
}

/// Has one thread of that name meet a signal as if by its own instructions.
void raise_in(std::string_view name, int signal) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm != name) continue;
    syscall(SYS_tgkill, getpid(), std::stoi(task.path().filename().string()), signal);
    return;
  }
}

// Covers: FI-8
TEST_F(ExitTest, exit__from_a_fault_handler_in_a_thread_of_ours) {
#if UET_THREAD_SANITIZER
  GTEST_SKIP() << "exit() in a signal handler is what the thread sanitizer ends a program for";
#endif
  for (const char* thread : {"uet-progress", "uet-stat"}) {
    EXPECT_EXIT(
        {
          leave_everything_open(FI_PROGRESS_AUTO);
          std::signal(SIGSEGV, [](int) { std::exit(3); });
          alarm(30);
          raise_in(thread, SIGSEGV);
          for (;;) pause();
        },
        ::testing::ExitedWithCode(3), "");
  }
}

}  // namespace
}  // namespace uet::provider::testing
