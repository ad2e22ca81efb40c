/// Threads that sleep in libfabric calls while other threads of the process work with the same endpoint.
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/base/sanitizers.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using Clock = std::chrono::steady_clock;

bool is_in_ppoll(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/syscall");
  long call = -1;
  return in >> call && call == SYS_ppoll;
}

/// A thread of this process that says when it sleeps in the kernel.
class Watched {
 public:
  template <typename Body>
  explicit Watched(Body body)
      : thread_([this, body] {
          id_ = static_cast<pid_t>(syscall(SYS_gettid));
          body();
          id_ = -1;
        }) {}
  ~Watched() { thread_.join(); }
  /// Until it waits for descriptors, or has ended.
  void wait_until_asleep() const {
    while (id_ != -1 && !(id_ > 0 && is_in_ppoll(id_))) std::this_thread::yield();
  }

  /// How often it went to sleep so far.
  long sleeps() const {
    std::ifstream in("/proc/self/task/" + std::to_string(id_) + "/status");
    const std::string name = "voluntary_ctxt_switches:";
    long count = 0;
    for (std::string word; in >> word;)
      if (word == name) in >> count;
    return count;
  }

 private:
  std::atomic<pid_t> id_{0};
  std::thread thread_;
};

/// Threads that sleep in one call each, on queues where nothing happens.
class Idle {
 public:
  Idle(fid_domain* domain, std::size_t count, int timeout_ms = -1) : timeout_ms_(timeout_ms) {
    for (std::size_t i = 0; i < count; ++i) {
      fi_cq_attr attr{};
      fid_cq* cq = nullptr;
      EXPECT_EQ(fi_cq_open(domain, &attr, &cq, nullptr), 0);
      queues_.push_back(cq);
      threads_.push_back(std::make_unique<Watched>([cq, timeout_ms] {
        fi_cq_entry entry;
        EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, timeout_ms), -FI_EAGAIN);
      }));
      threads_.back()->wait_until_asleep();
    }
  }
  ~Idle() { leave(); }
  /// Each is told to leave, or its time is over.
  void leave() {
    for (fid_cq* cq : queues_) {
      if (timeout_ms_ < 0) {
        EXPECT_EQ(fi_cq_signal(cq), 0);
      }
    }
    threads_.clear();
    for (fid_cq* cq : queues_) EXPECT_EQ(fi_close(&cq->fid), 0);
    queues_.clear();
  }
  long sleeps() const {
    long sum = 0;
    for (const auto& thread : threads_) sum += thread->sleeps();
    return sum;
  }

 private:
  const int timeout_ms_;
  std::vector<fid_cq*> queues_;
  std::vector<std::unique_ptr<Watched>> threads_;
};

/// Threads sleep beside each other at side b. No thread looks after its loop but them.
class SleepTogetherTest : public PairTest {
 protected:
  explicit SleepTogetherTest(const char* mode = "manual") : progress_("FI_UET_PROGRESS", mode) {}
  void SetUp() override {
    open();
    ASSERT_EQ(fi_recv(b.ep, in_.data(), 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  }
  /// a hears the last word of b.
  void TearDown() override {
    std::atomic<bool> is_closed{false};
    std::thread closes([&] {
      b.close();
      is_closed = true;
    });
    while (!is_closed) poll(a);
    closes.join();
  }
  /// A thread sleeps on b's queue; `what` happens; then a message comes. How long until that thread has it.
  Clock::duration take_message_after(const std::function<void()>& what) {
    Clock::time_point begin, end;
    {
      const Watched receiver([&] {
        fi_cq_tagged_entry entry;
        EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 20'000), 1);
        end = Clock::now();
        EXPECT_EQ(fi_recv(b.ep, in_.data(), 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
      });
      receiver.wait_until_asleep();
      what();
      poll(a);
      begin = Clock::now();
      const std::uint8_t out = 7;
      EXPECT_EQ(fi_inject(a.ep, &out, 1, to_b), 0);
    }
    return end - begin;
  }
  Clock::duration take_message() {
    return take_message_after([] {});
  }
  /// Which of many messages came late. A sleep lasts for up to a second, so that most of those that miss their wake-up do; and on
  /// a crowded machine some others. Where many did, two more rows of messages have to say the same.
  class Late {
   public:
    /// Until a row of so many messages has come.
    bool wants_more(int row) {
      if (all_ < row) return true;
      if (!are_many() || ++rows_ == 3) return false;
      all_ = late_ = 0;
      return true;
    }
    void note(Clock::duration time) {
      ++all_;
      late_ += time > std::chrono::milliseconds(150);
    }
    bool are_many() const { return late_ * 4 > all_; }

   private:
    int all_ = 0, late_ = 0, rows_ = 0;
  };

  const Variable progress_;
  std::vector<std::uint8_t> in_ = std::vector<std::uint8_t>(8);
};

TEST_F(SleepTogetherTest, packet__wakes_few_of_the_threads_that_sleep) {
  constexpr int kThreads = 24, kMessages = 100;
  const Idle idle(b.domain, kThreads);
  const auto begin = Clock::now();
  const long before = idle.sleeps();
  for (int i = 0; i < kMessages; ++i) take_message();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
  // Of each message: its packet, the deadline of its answer, the watch that is handed on, and waits for the lock. If all were woken these
  // would be kThreads at least. Each sleeper looks every second.
  EXPECT_LT(idle.sleeps() - before, kMessages * 10 + kThreads * (seconds.count() + 1));
}

TEST_F(SleepTogetherTest, watch__goes_on_when_others_leave) {
  Late late;
  while (late.wants_more(16)) {
    Idle idle(b.domain, 3);
    late.note(take_message_after([&] { idle.leave(); }));
  }
  EXPECT_FALSE(late.are_many());
}

TEST_F(SleepTogetherTest, watch__goes_on_when_others_time_out) {
  Late late;
  while (late.wants_more(16)) {
    Idle idle(b.domain, 3, 10);
    late.note(take_message_after([&] { idle.leave(); }));
  }
  EXPECT_FALSE(late.are_many());
}

TEST_F(SleepTogetherTest, watch__goes_on_when_the_thread_that_has_it_is_cancelled) {
  // In a thread that is cancelled in a blocking call TSan passes over all synchronization from there on, and reports what a lock guards.
  if (UET_THREAD_SANITIZER) GTEST_SKIP();
  fi_cq_attr attr{};
  fid_cq* cq = nullptr;
  ASSERT_EQ(fi_cq_open(b.domain, &attr, &cq, nullptr), 0);
  const auto sleep = [](void* queue) -> void* {
    fi_cq_entry entry;
    fi_cq_sread(static_cast<fid_cq*>(queue), &entry, 1, nullptr, -1);
    return nullptr;
  };
  Late late;
  while (late.wants_more(16)) {
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, nullptr, sleep, cq), 0);
    usleep(5000);
    late.note(take_message_after([&] {
      void* result = nullptr;
      EXPECT_EQ(pthread_cancel(thread), 0);
      EXPECT_EQ(pthread_join(thread, &result), 0);
      EXPECT_EQ(result, PTHREAD_CANCELED);
    }));
  }
  EXPECT_FALSE(late.are_many());
  EXPECT_EQ(fi_close(&cq->fid), 0);
}

TEST_F(SleepTogetherTest, watch__stays_in_the_parent_of_a_fork) {
  const Idle idle(b.domain, 3);
  Late late;
  while (late.wants_more(12)) {
    pid_t child = -1;
    late.note(take_message_after([&] {
      child = fork();
      if (child == 0) _exit(0);
    }));
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
  EXPECT_FALSE(late.are_many());
}

/// A thread that polls takes packets in before the one that watches, and goes.
TEST_F(SleepTogetherTest, watch__goes_on_beside_a_thread_that_polls) {
  fi_cq_attr attr{};
  fid_cq* other = nullptr;
  ASSERT_EQ(fi_cq_open(b.domain, &attr, &other, nullptr), 0);
  Late late;
  while (late.wants_more(16)) {
    Idle idle(b.domain, 3);
    late.note(take_message_after([&] {
      fi_cq_entry entry;
      for (int k = 0; k < 10; ++k) EXPECT_EQ(fi_cq_read(other, &entry, 1), -FI_EAGAIN);
      idle.leave();
    }));
  }
  EXPECT_FALSE(late.are_many());
  EXPECT_EQ(fi_close(&other->fid), 0);
}

class SleepBesideProgressTest : public SleepTogetherTest {
 protected:
  SleepBesideProgressTest() : SleepTogetherTest("auto") {}
};

/// The progress thread looks after the port for a program that sleeps in poll(), and leaves it to threads that sleep in calls.
TEST_F(SleepBesideProgressTest, watch__goes_on_beside_a_program_that_polls_a_descriptor) {
  fi_cq_attr attr{.wait_obj = FI_WAIT_FD};
  fid_cq* other = nullptr;
  ASSERT_EQ(fi_cq_open(b.domain, &attr, &other, nullptr), 0);
  int fd = -1;
  ASSERT_EQ(fi_control(&other->fid, FI_GETWAIT, &fd), 0);
  Late late;
  while (late.wants_more(16)) {
    Idle idle(b.domain, 3);
    fid_t fids[] = {&other->fid};
    ASSERT_EQ(fi_trywait(b.fabric, fids, 1), 0);
    {
      const Watched poller([fd] {
        pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
        EXPECT_EQ(::poll(&p, 1, 10'000), 1);
      });
      late.note(take_message_after([&] { idle.leave(); }));
      EXPECT_EQ(fi_cq_signal(other), 0);
    }
    fi_cq_entry entry;
    EXPECT_EQ(fi_cq_sread(other, &entry, 1, nullptr, 0), -FI_EAGAIN);
  }
  EXPECT_FALSE(late.are_many());
  EXPECT_EQ(fi_close(&other->fid), 0);
}

/// Side a with a queue for what it receives, and its own address in its AV.
class SleepersTest : public PairTest {
 protected:
  void TearDown() override { close_all(); }
  void open_self(fi_progress progress = FI_PROGRESS_UNSPEC) {
    const Info hints = make_hints();
    hints->domain_attr->data_progress = progress;
    a.open(address_of(2), *hints);
    ASSERT_FALSE(HasFatalFailure());
    fi_cq_attr attr{.format = FI_CQ_FORMAT_TAGGED};
    ASSERT_EQ(fi_cq_open(a.domain, &attr, &received, nullptr), 0);
    ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &a.ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(a.ep, &a.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT), 0);
    ASSERT_EQ(fi_ep_bind(a.ep, &received->fid, FI_RECV), 0);
    ASSERT_EQ(fi_enable(a.ep), 0);
    a.name.resize(32);
    std::size_t length = a.name.size();
    ASSERT_EQ(fi_getname(&a.ep->fid, a.name.data(), &length), 0);
    to_self = a.insert(a);
  }
  void close_all() {
    if (a.ep != nullptr) {
      EXPECT_EQ(fi_close(&std::exchange(a.ep, nullptr)->fid), 0);
    }
    if (received != nullptr) {
      EXPECT_EQ(fi_close(&std::exchange(received, nullptr)->fid), 0);
    }
    a.close();
  }
  /// A thread sleeps in fi_cq_sread with a minute; this one posts, and never turns the loop.
  void expect_post_ends_the_sleep(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      std::uint8_t in = 0;
      const std::uint8_t out = 7;
      ASSERT_EQ(fi_trecv(a.ep, &in, 1, nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
      const auto begin = Clock::now();
      {
        const Watched sleeper([&] {
          fi_cq_tagged_entry entry;
          EXPECT_EQ(fi_cq_sread(received, &entry, 1, nullptr, 60'000), 1);
        });
        sleeper.wait_until_asleep();
        EXPECT_EQ(fi_tinject(a.ep, &out, 1, to_self, 5), 0);
      }
      ASSERT_LT(Clock::now() - begin, std::chrono::seconds(30)) << "woken by its own timeout";
      EXPECT_EQ(in, 7);
    }
  }
  fid_cq* received = nullptr;
  fi_addr_t to_self = FI_ADDR_UNSPEC;
};

// Covers: FI-35
TEST_F(SleepersTest, post_to_itself__wakes_a_sleeper_in_every_mode) {
  for (const char* mode : {"manual", "auto", "thread"}) {
    SCOPED_TRACE(mode);
    const Variable progress("FI_UET_PROGRESS", mode);
    open_self();
    ASSERT_FALSE(HasFatalFailure());
    expect_post_ends_the_sleep(4);
    close_all();
  }
  SCOPED_TRACE("FI_PROGRESS_AUTO");
  open_self(FI_PROGRESS_AUTO);
  ASSERT_FALSE(HasFatalFailure());
  expect_post_ends_the_sleep(4);
}

/// The only one who turns a's loop sleeps on a queue where nothing happens. What is lost is sent again in time.
// Covers: FI-35
TEST_F(SleepersTest, lost_packets__are_sent_again_on_behalf_of_other_threads) {
  const Variable progress("FI_UET_PROGRESS", "manual");
  const Variable bad_network("FI_UET_IMPAIR", "loss=0.3,seed=11");
  open();
  fi_cq_attr attr{};
  fid_cq* idle = nullptr;
  ASSERT_EQ(fi_cq_open(a.domain, &attr, &idle, nullptr), 0);
  std::uint8_t byte = 0;
  const auto begin = Clock::now();
  {
    const Watched sleeper([&] {
      fi_cq_entry entry;
      EXPECT_EQ(fi_cq_sread(idle, &entry, 1, nullptr, 60'000), -FI_EAGAIN);
    });
    for (int i = 0; i < 12; ++i) {
      ASSERT_EQ(fi_recv(b.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
      sleeper.wait_until_asleep();
      EXPECT_EQ(fi_inject(a.ep, &byte, 1, to_b), 0);
      while (!poll(b)) std::this_thread::yield();
    }
    EXPECT_EQ(fi_cq_signal(idle), 0);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(fi_close(&idle->fid), 0);
}

/// All wait on one counter; the one whose threshold is reached must not miss it, whichever wakes first.
// Covers: FI-36
TEST_F(SleepersTest, thresholds__each_waiter_of_a_counter_gets_its_own_wake_up) {
  open_self();
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  for (int round = 0; round < 150 && !HasFailure(); ++round) {
    ASSERT_EQ(fi_cntr_set(cntr, 0), 0);
    const auto wait_for_value = [&](std::uint64_t value) {
      return [cntr, value] { EXPECT_EQ(fi_cntr_wait(cntr, value, 20'000), 0) << value; };
    };
    std::vector<std::unique_ptr<Watched>> later;
    for (int i = 0; i < 3; ++i) later.push_back(std::make_unique<Watched>(wait_for_value(2)));
    auto first = std::make_unique<Watched>(wait_for_value(1));
    for (const auto& one : later) one->wait_until_asleep();
    first->wait_until_asleep();
    ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
    const auto begin = Clock::now();
    first.reset();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << "round " << round;
    ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
  }
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

TEST_F(SleepersTest, error__is_told_to_all_who_wait_but_not_where_the_threshold_is_reached) {
  open_self();
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  {
    const auto fail = [&] { EXPECT_EQ(fi_cntr_wait(cntr, 9, 20'000), -FI_EAVAIL); };
    const Watched one(fail), two(fail);
    one.wait_until_asleep();
    two.wait_until_asleep();
    ASSERT_EQ(fi_cntr_adderr(cntr, 1), 0);
  }
  ASSERT_EQ(fi_cntr_adderr(cntr, 1), 0);
  ASSERT_EQ(fi_cntr_set(cntr, 3), 0);
  EXPECT_EQ(fi_cntr_wait(cntr, 3, 0), 0);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

/// A value that fi_cntr_wait has returned does not make fi_trywait say -FI_EAGAIN; one that it has not returned does.
TEST_F(SleepersTest, trywait__of_a_counter_knows_what_a_wait_has_told) {
  open_self();
  fi_cntr_attr attr{.wait_obj = FI_WAIT_FD};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  fid_t fids[] = {&cntr->fid};
  ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
  EXPECT_EQ(fi_trywait(a.fabric, fids, 1), -FI_EAGAIN);
  EXPECT_EQ(fi_cntr_wait(cntr, 1, 0), 0);
  EXPECT_EQ(fi_trywait(a.fabric, fids, 1), 0);
  ASSERT_EQ(fi_cntr_add(cntr, 2), 0);
  EXPECT_EQ(fi_cntr_wait(cntr, 2, 0), 0);
  EXPECT_EQ(fi_trywait(a.fabric, fids, 1), -FI_EAGAIN) << "it is 3";
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

/// The descriptor of a counter is level-triggered for every thread that polls it.
TEST_F(SleepersTest, trywait__does_not_take_the_descriptor_from_another_thread) {
  open_self();
  fi_cntr_attr attr{.wait_obj = FI_WAIT_FD};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  int fd = -1;
  ASSERT_EQ(fi_control(&cntr->fid, FI_GETWAIT, &fd), 0);
  fid_t fids[] = {&cntr->fid};
  ASSERT_EQ(fi_trywait(a.fabric, fids, 1), 0);
  ASSERT_EQ(fi_cntr_add(cntr, 1), 0);
  EXPECT_EQ(fi_trywait(a.fabric, fids, 1), -FI_EAGAIN);  // what another thread does meanwhile
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 0), 1);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

/// Sleeps when everything of the thread that has a destructor is gone, and files of the application have the numbers of what was closed.
TEST_F(SleepersTest, thread_that_ends__sleeps_without_the_descriptor_that_it_had) {
  open_self();
  pthread_key_t key;
  ASSERT_EQ(
      pthread_key_create(&key, [](void* body) { (*static_cast<std::function<void()>*>(body))(); }),
      0);
  std::array<std::array<int, 2>, 16> pairs{};
  std::atomic<pid_t> sleeper{0};
  const auto sleep = [&](int ms) {
    fi_cq_tagged_entry entry;
    return fi_cq_sread(received, &entry, 1, nullptr, ms);
  };
  std::function<void()> at_end = [&] {
    for (auto& pair : pairs)
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()), 0);
    sleeper = static_cast<pid_t>(syscall(SYS_gettid));
    EXPECT_EQ(sleep(20'000), -FI_EAGAIN);
    sleeper = -1;
  };
  const auto begin = Clock::now();
  std::thread ends([&] {
    EXPECT_EQ(sleep(1), -FI_EAGAIN);
    pthread_setspecific(key, &at_end);
  });
  while (sleeper != -1 && !(sleeper > 0 && is_in_ppoll(sleeper))) std::this_thread::yield();
  EXPECT_EQ(fi_cq_signal(received), 0);
  ends.join();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << "woken by its own timeout";
  for (const auto& pair : pairs)
    for (const int fd : pair) {
      char byte;
      EXPECT_EQ(recv(fd, &byte, 1, 0), -1) << "written to a descriptor of the application";
    }
  for (const auto& pair : pairs)
    for (const int fd : pair) ::close(fd);
  pthread_key_delete(key);
}

/// One thread waits for completions, another takes what it can get.
/// The port of a domain that closes is in use until its peers have heard the last word, or could have.
// Covers: FI-26
TEST_F(SleepersTest, domain__opens_while_another_thread_closes_the_last_one) {
  for (int i = 0; i < 5; ++i) {
    open_self();
    ASSERT_FALSE(HasFatalFailure());
    auto absent = a.name;
    absent[19] ^= 0x80;  // the last byte of its IPv4 address
    fi_addr_t to_absent = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insert(a.av, absent.data(), 1, &to_absent, 0, nullptr), 1);
    ASSERT_EQ(fi_tsend(a.ep, nullptr, 0, nullptr, to_absent, 0, nullptr), 0);
    const Info info(fi_dupinfo(a.info.get()));
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    {
      const Watched closes([&] { close_all(); });
      closes.wait_until_asleep();
      EXPECT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
    }
    ASSERT_NE(domain, nullptr);
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
  }
}

// Covers: FI-35
TEST_F(SleepersTest, sread__beside_a_thread_that_polls_never_ends_early) {
  open_self();
  constexpr int kMessages = 20'000;
  std::atomic<int> got{0}, early{0};
  std::atomic<bool> stop{false};
  {
    const Watched waiter([&] {
      fi_cq_tagged_entry entry;
      while (!stop) {
        const ssize_t n = fi_cq_sread(received, &entry, 1, nullptr, 60'000);
        if (n == 1) ++got;
        if (n == -FI_EAGAIN && !stop) ++early;
      }
    });
    const Watched poller([&] {
      fi_cq_tagged_entry entry;
      while (!stop) got += fi_cq_read(received, &entry, 1) == 1;
    });
    for (int i = 0; i < kMessages; ++i) {
      while (fi_trecv(a.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) != 0) {
      }
      while (fi_tinject(a.ep, nullptr, 0, to_self, 0) != 0) {
      }
    }
    while (got < kMessages) std::this_thread::yield();
    stop = true;
    EXPECT_EQ(fi_cq_signal(received), 0);
  }
  EXPECT_EQ(early, 0) << "fi_cq_sread said -FI_EAGAIN before its timeout";
}

}  // namespace
}  // namespace uet::provider::testing
