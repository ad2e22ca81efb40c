/// Threads that are cancelled (pthread_cancel) in libfabric calls.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>

#include "tests/base/sanitizers.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

/// A thread that `body` may be unwound from.
class Cancelled {
 public:
  explicit Cancelled(std::function<void()> body) : body_(std::move(body)) {
    EXPECT_EQ(pthread_create(&thread_, nullptr, &Cancelled::run, this), 0);
  }
  Cancelled(const Cancelled&) = delete;
  Cancelled& operator=(const Cancelled&) = delete;

  /// False where the kernel does not tell, or it never sleeps.
  [[nodiscard]] bool wait_until_asleep() const {
    const auto is_asleep = [this] {
      std::ifstream in("/proc/self/task/" + std::to_string(id_) + "/syscall");
      long call = -1;
      return in >> call && call == SYS_ppoll;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!is_asleep()) {
      if (std::chrono::steady_clock::now() > end) return false;
      usleep(100);
    }
    return true;
  }
  void cancel() { EXPECT_EQ(pthread_cancel(thread_), 0); }
  /// True: it was cancelled, and did not end by itself.
  bool join() {
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread_, &result), 0);
    return result == PTHREAD_CANCELED;
  }

 private:
  static void* run(void* self) {
    auto& me = *static_cast<Cancelled*>(self);
    me.id_ = static_cast<pid_t>(syscall(SYS_gettid));
    me.body_();
    return nullptr;
  }
  std::function<void()> body_;
  std::atomic<pid_t> id_{0};
  pthread_t thread_{};
};

/// Why TSan reports what the lock guards that such a thread takes while it is unwound.
constexpr const char* kUnheard =
    "TSan passes over the synchronization of a thread that is cancelled in a blocking call";

class CancelTest : public PairTest {
 protected:
  ~CancelTest() override { a.close(); }

  /// What a cancelled sleeper left behind would be in the way of the next one.
  void expect_sread() {
    fi_cq_tagged_entry entry;
    EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 20), -FI_EAGAIN);
    expect_message();
  }

  /// Sent from by threads that are unwound, until the endpoint is closed: no completion says when the last send has ended.
  const std::vector<std::uint8_t> out_ = std::vector<std::uint8_t>(3000);
};

TEST_F(CancelTest, cq_sread__of_a_cancelled_thread_ends_and_the_queue_works) {
  if (UET_THREAD_SANITIZER) GTEST_SKIP() << kUnheard;
  open();
  for (int i = 0; i < 3; ++i) {
    Cancelled thread([&] {
      fi_cq_tagged_entry entry;
      fi_cq_sread(b.cq, &entry, 1, nullptr, -1);
    });
    EXPECT_TRUE(thread.wait_until_asleep());
    thread.cancel();
    EXPECT_TRUE(thread.join());
    expect_sread();
  }
}

TEST_F(CancelTest, cntr_wait_and_eq_sread__of_a_cancelled_thread_end) {
  if (UET_THREAD_SANITIZER) GTEST_SKIP() << kUnheard;
  open();
  fid_cntr* cntr = nullptr;
  fi_cntr_attr of_cntr{.wait_obj = FI_WAIT_UNSPEC};
  ASSERT_EQ(fi_cntr_open(b.domain, &of_cntr, &cntr, nullptr), 0);
  fid_eq* eq = nullptr;
  fi_eq_attr of_eq{.flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC};
  ASSERT_EQ(fi_eq_open(b.fabric, &of_eq, &eq, nullptr), 0);
  std::uint32_t event = 0;
  const std::uint64_t text = 5;
  std::uint64_t got = 0;
  for (const bool in_eq : {false, true}) {
    Cancelled thread([&, in_eq] {
      if (in_eq)
        fi_eq_sread(eq, &event, &got, sizeof got, -1, 0);
      else
        fi_cntr_wait(cntr, 1, -1);
    });
    EXPECT_TRUE(thread.wait_until_asleep());
    thread.cancel();
    EXPECT_TRUE(thread.join());
  }
  EXPECT_EQ(fi_cntr_wait(cntr, 1, 20), -FI_ETIMEDOUT);
  EXPECT_EQ(fi_eq_write(eq, FI_NOTIFY, &text, sizeof text, 0), ssize_t{sizeof text});
  EXPECT_EQ(fi_eq_sread(eq, &event, &got, sizeof got, 1000, 0), ssize_t{sizeof got});
  EXPECT_EQ(got, text);
  expect_message();
  EXPECT_EQ(fi_close(&cntr->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

/// A port is asked every half second what the way to a peer carries, in the middle of a post.
TEST_F(CancelTest, calls_that_ask_for_the_way_to_a_peer__are_not_interrupted) {
  open();
  std::atomic<bool> has_begun{false};
  Cancelled thread([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
    while (std::chrono::steady_clock::now() < end) {
      fi_cq_tagged_entry entry;
      fi_send(a.ep, out_.data(), out_.size(), nullptr, to_b, nullptr);
      fi_cq_read(a.cq, &entry, 1);
      has_begun = true;
    }
    while (true) pthread_testcancel();
  });
  while (!has_begun) usleep(100);
  thread.cancel();
  EXPECT_TRUE(thread.join());
}

/// System calls in the middle of a turn are no places to end.
TEST_F(CancelTest, calls_that_do_not_sleep__are_not_interrupted) {
  open();
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> has_begun{false}, is_in_call{false};
    Cancelled thread([&] {
      const std::uint32_t out = 1;
      for (int tries = 0; true; ++tries) {
        fi_cq_tagged_entry entry;
        is_in_call = true;
        if (fi_inject(a.ep, &out, sizeof out, to_b) == 0 || tries > 3) has_begun = true;
        fi_cq_read(a.cq, &entry, 1);
        is_in_call = false;
        pthread_testcancel();
      }
    });
    while (!has_begun) usleep(100);
    thread.cancel();
    EXPECT_TRUE(thread.join());
    EXPECT_FALSE(is_in_call) << "unwound from a call";
  }
  std::uint32_t in = 0;
  ASSERT_EQ(fi_recv(b.ep, &in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_EQ(in, 1u);
}

TEST_F(CancelTest, cq_sread__of_a_thread_that_cannot_be_cancelled_goes_on) {
  open();
  std::atomic<ssize_t> result{1};
  std::atomic<int> state_behind{-1};
  Cancelled thread([&] {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    fi_cq_tagged_entry entry;
    result = fi_cq_sread(b.cq, &entry, 1, nullptr, 60'000);
    int state = -1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    state_behind = state;
  });
  EXPECT_TRUE(thread.wait_until_asleep());
  thread.cancel();
  EXPECT_EQ(fi_cq_signal(b.cq), 0);
  EXPECT_FALSE(thread.join());
  EXPECT_EQ(result, -FI_EAGAIN);
  EXPECT_EQ(state_behind, PTHREAD_CANCEL_DISABLE);
}

}  // namespace
}  // namespace uet::provider::testing
