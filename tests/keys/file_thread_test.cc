// No loop waits for a file. [TSS 13.2]
#include "keys/file_thread.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "keys/counter_state.h"
#include "keys/file_keys.h"
#include "lib/net/heap_packet_pool.h"
#include "tests/base/temp_folder.h"
#include "tests/keys/slow_files.h"
#include "tss/secure_domain.h"

namespace uet::keys::test {
namespace {

using uet::test::TempFolder;

std::string file_with(int keys, int tx_an) {
  std::string list;
  for (int an = 0; an < keys; ++an)
    list += std::string(an == 0 ? "" : ",") + R"({"an":)" + std::to_string(an) + R"(,"key":")" +
            (an == 0 ? "0f" : "1e") + std::string(62, 'a') + R"("})";
  return R"({"format":"uet-sdkdb/1","node":{"state_dir":"state"},"secure_domains":[{"sdi":7,)"
         R"("mode":"direct","tx_an":)" +
         std::to_string(tx_an) + R"(,"keys":[)" + list + "]}]}";
}

tss::Fingerprint print_of(int an) {
  tss::Key key;
  std::fill_n(key.data(), key.size(), std::uint8_t{0xaa});
  key.data()[0] = an == 0 ? 0x0f : 0x1e;
  return fingerprint_of(key);
}

/// An endpoint's security at work under the keys of a file.
struct AtWork {
  AtWork() {
    put(file_with(1, 0));
    for (const int an : {0, 1}) {
      std::string error;
      EXPECT_TRUE(CounterState(folder / "state").create(print_of(an), error)) << error;
    }
    std::string error;
    keys = FileKeys::open(folder / "keys", 1, "", error);
    EXPECT_NE(keys, nullptr) << error;
    domain =
        std::make_unique<tss::SecureDomain>(*keys, tss::Carrier{}, net::FabricAddress::from_v4(1));
    EXPECT_EQ(domain->why_not_usable(), "");
  }
  void put(const std::string& text) const {
    EXPECT_EQ(write_secret(folder / "keys", SecretText(text.begin(), text.end()), true), "");
  }
  bool seals() {
    net::Packet packet = pool.allocate();
    std::fill_n(packet.append(100), 100, std::uint8_t{0x10});
    return !domain->seal(packet, net::FabricAddress::from_v4(2), 7);
  }
  template <typename Done>
  void service_until(Done&& done) {
    for (int i = 0; !done() && i < 5000; ++i) {
      domain->service();
      ::usleep(1000);
    }
    EXPECT_TRUE(done());
  }

  TempFolder folder;
  std::unique_ptr<FileKeys> keys;
  std::unique_ptr<tss::SecureDomain> domain;
  net::HeapPacketPool pool{2, 2048};
};

/// What holds the counters of a key.
class Held {
 public:
  explicit Held(const TempFolder& folder, int an) {
    for (const auto& entry : std::filesystem::directory_iterator(folder / "state"))
      if (entry.path().extension() == ".tsc" && entry.path().stem() == name_of(an))
        fd_ = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::flock(fd_, LOCK_EX), 0);
  }
  ~Held() {
    ::flock(fd_, LOCK_UN);
    ::close(fd_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  static std::string name_of(int an) {
    std::string out;
    const tss::Fingerprint print = print_of(an);
    for (const std::uint8_t byte : std::span(print).first(16)) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", byte);
      out += digits;
    }
    return out;
  }
  int fd_ = -1;
};

TEST(FileKeysAtWork, look_that_does_not_return_holds_nothing_up) {
  AtWork w;
  w.put(file_with(2, 1));
  {
    const StalledLooks stalled;
    EXPECT_TRUE(w.domain->service());
    stalled.await_one();
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(w.domain->service());
      EXPECT_TRUE(w.seals());
    }
    EXPECT_EQ(w.domain->slot_state(true), tss::SlotState::kEmpty);
  }
  w.service_until([&] { return w.domain->slot_state(true) == tss::SlotState::kActive; });
  EXPECT_TRUE(w.seals());
}

/// The old key stays in use, although the new file has it no more, until counters of the new one are there.
TEST(FileKeysAtWork, counters_that_do_not_come_hold_nothing_up) {
  AtWork w;
  w.put(file_with(2, 1));
  {
    const Held held(w.folder, 1);
    w.service_until([&] { return w.domain->slot_state(true) == tss::SlotState::kReady; });
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(w.domain->service());
      EXPECT_TRUE(w.seals());
    }
    EXPECT_EQ(w.domain->slot_state(false), tss::SlotState::kActive);
  }
  w.service_until([&] { return w.domain->slot_state(true) == tss::SlotState::kActive; });
  EXPECT_TRUE(w.domain->are_keys_fresh());
  EXPECT_TRUE(w.seals());
}

/// A key that has some is not waited for.
TEST(FileKeysAtWork, more_counters_that_do_not_come_keep_no_key_from_being_retired) {
  AtWork w;
  w.put(file_with(2, 0));
  w.service_until([&] { return w.domain->slot_state(true) == tss::SlotState::kReady; });
  w.service_until([&] { return !w.keys->is_busy(); });
  const Held held(w.folder, 0);
  while (!w.domain->is_due_early()) ASSERT_TRUE(w.seals());
  w.put(file_with(1, 0));
  w.service_until([&] { return w.domain->slot_state(true) == tss::SlotState::kEmpty; });
  EXPECT_TRUE(w.keys->is_busy()) << "still waiting for the lock";
  EXPECT_TRUE(w.seals());
}

TEST(FileKeysAtWork, half_a_reservation_spent_has_more_reserved) {
  AtWork w;
  while (!w.domain->is_due_early()) ASSERT_TRUE(w.seals());
  w.domain->service();
  EXPECT_FALSE(w.domain->is_due_early());
  w.service_until([&] {
    return CounterState(w.folder / "state").status(print_of(0))->reserved ==
           3 * tss::TxCounter::kFirstReservation;
  });
  w.service_until([&] { return !w.keys->is_busy(); });
}

TEST(FileKeysAtWork, end_waits_for_the_job_at_hand_and_gives_counters_back) {
  auto w = std::make_unique<AtWork>();
  ASSERT_TRUE(w->seals());
  ASSERT_TRUE(w->seals());
  {
    const StalledLooks stalled;
    w->domain->service();
    stalled.await_one();
  }
  w->domain.reset();
  w->keys.reset();
  EXPECT_EQ(CounterState(w->folder / "state").status(print_of(0))->reserved, 2u);
}

TEST(FileKeysAtWork, child_made_by_fork_neither_waits_nor_gives_back) {
  AtWork w;
  ASSERT_TRUE(w.seals());
  const StalledLooks stalled;
  w.domain->service();
  stalled.await_one();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    w.keys->give_back(print_of(0), {1, tss::TxCounter::kFirstReservation});
    w.keys.reset();
    ::exit(0);  // with what was registered for it
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(CounterState(w.folder / "state").status(print_of(0))->reserved,
            tss::TxCounter::kFirstReservation);
}

TEST(FileThread, jobs_are_done_in_order_by_one_thread_without_signals) {
  std::vector<int> done;
  std::set<std::thread::id> threads;
  std::atomic<bool> is_over = false;
  bool takes_signals = true;
  FileThread thread("test");
  for (int i = 0; i < 3; ++i) {
    thread.run([&, i] {
      done.push_back(i);
      threads.insert(std::this_thread::get_id());
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      takes_signals = sigismember(&blocked, SIGTERM) == 0;
      is_over = i == 2;
    });
  }
  while (!is_over) ::usleep(1000);
  EXPECT_THAT(done, testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
  EXPECT_FALSE(takes_signals);
}

/// A process that exits in the middle of a job waits for a second.
TEST(FileThread, exit_does_not_wait_for_ever) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    auto* const thread = new FileThread("test");
    std::atomic<bool> has_begun = false;
    thread->run([&] {
      has_begun = true;
      ::pause();
    });
    while (!has_begun) ::usleep(1000);
    ::exit(7);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7) << status;
}

/// The child has the descriptor that the lock is on, and keeps it.
TEST(CounterState, fork_in_the_middle_of_a_reservation_keeps_no_lock) {
  AtWork w;
  auto held = std::make_unique<Held>(w.folder, 0);
  std::thread other([&] { EXPECT_TRUE(CounterState(w.folder / "state").reserve(print_of(0), 1)); });
  const auto opened = [&] {
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      n += std::filesystem::read_symlink(entry.path(), gone).extension() == ".tsc";
    }
    return n;
  };
  while (opened() < 2) ::usleep(1000);
  int life[2];
  ASSERT_EQ(::pipe(life), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(life[1]);
    char end = 0;
    (void)!::read(life[0], &end, 1);
    ::_exit(0);
  }
  ::close(life[0]);
  held.reset();
  other.join();
  ::alarm(20);
  EXPECT_TRUE(CounterState(w.folder / "state").reserve(print_of(0), 1));
  ::alarm(0);
  ::close(life[1]);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace uet::keys::test
