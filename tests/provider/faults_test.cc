/// A program whose system refuses something: every call fails cleanly or works, nothing is lost, and all can be closed.
#include "tests/provider/faults.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "lib/udp/descriptor.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

/// What an endpoint does in its life: opened, talking to itself, writing to its own memory, closed. Any step may be refused;
/// what was opened is closed, and that may fail for want of memory, but not for ever.
class Session {
 public:
  explicit Session(const std::string& address) : address_(address) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// False when some step was refused.
  bool run() {
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    info_ = get_info(hints.get(), nullptr, FI_VERSION(1, 17), address_.c_str(), nullptr,
                     FI_SOURCE | FI_NUMERICHOST);
    return info_ != nullptr && open() && talk();
  }
  void close() {
    close_one(mr_);
    close_one(ep_);
    close_one(av_);
    close_one(cntr_);
    close_one(cq_);
    close_one(domain_);
    close_one(fabric_);
  }

 private:
  bool open() {
    fi_av_attr av{};
    fi_cq_attr cq{.size = 16, .format = FI_CQ_FORMAT_TAGGED};
    fi_cntr_attr cntr{};
    if (fi_fabric(info_->fabric_attr, &fabric_, nullptr) != 0 ||
        fi_domain(fabric_, info_.get(), &domain_, nullptr) != 0 ||
        fi_av_open(domain_, &av, &av_, nullptr) != 0 ||
        fi_cq_open(domain_, &cq, &cq_, nullptr) != 0 ||
        fi_cntr_open(domain_, &cntr, &cntr_, nullptr) != 0 ||
        fi_endpoint(domain_, info_.get(), &ep_, nullptr) != 0 ||
        fi_ep_bind(ep_, &av_->fid, 0) != 0 ||
        fi_ep_bind(ep_, &cq_->fid, FI_TRANSMIT | FI_RECV) != 0 ||
        fi_ep_bind(ep_, &cntr_->fid, FI_SEND) != 0 || fi_enable(ep_) != 0 ||
        fi_mr_reg(domain_, memory_, sizeof memory_, FI_REMOTE_WRITE, 0, 0, 0, &mr_, nullptr) != 0) {
      return false;
    }
    std::uint8_t name[32];
    std::size_t length = sizeof name;
    return fi_getname(&ep_->fid, name, &length) == 0 &&
           fi_av_insert(av_, name, 1, &self_, 0, nullptr) == 1;
  }
  /// More completions than the queue was opened for, which has to grow.
  bool talk() {
    for (int i = 0; i < 40; ++i) {
      if (fi_trecv(ep_, in_, sizeof in_, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr) != 0) return false;
    }
    for (int i = 0; i < 10; ++i) {
      if (fi_tsend(ep_, "message", 8, nullptr, self_, 1, nullptr) != 0) return false;
    }
    const auto target = reinterpret_cast<std::uint64_t>(memory_);
    if (fi_write(ep_, "written", 8, nullptr, self_, target, fi_mr_key(mr_), nullptr) != 0) {
      return false;
    }
    fi_cntr_read(cntr_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (int completed = 0; completed < 21;) {
      fi_cq_tagged_entry entry;
      const ssize_t n = fi_cq_sread(cq_, &entry, 1, nullptr, 1000);
      if (n == 1) ++completed;
      if (n != 1 && n != -FI_EAGAIN) return false;  // told: overrun, or no memory
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << completed << " of 21 operations completed";
        return false;
      }
    }
    return true;
  }
  template <typename Object>
  void close_one(Object*& object) {
    if (object == nullptr) return;
    int ret = fi_close(&object->fid);
    if (ret == -FI_ENOMEM) ret = fi_close(&object->fid);
    EXPECT_EQ(ret, 0);
    object = nullptr;
  }

  const std::string address_;
  Info info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_cntr* cntr_ = nullptr;
  fid_ep* ep_ = nullptr;
  fid_mr* mr_ = nullptr;
  fi_addr_t self_ = FI_ADDR_UNSPEC;
  char memory_[64] = {}, in_[64] = {};
};

/// Runs sessions, in each of which the next thing of its kind fails, until one needs no more of them. Then one without faults.
template <typename Fail, typename HasFailed>
void fail_each(Fail fail, HasFailed has_failed) {
  setenv("FI_UET_ADDR", address_of(1).c_str(), 1);
  for (std::uint64_t n = 1;; ++n) {
    SCOPED_TRACE(n);
    Session session(address_of(2));
    fail(n);
    const bool worked = session.run();
    const bool did_fail = has_failed();
    fail(0);
    session.close();
    if (!did_fail) {
      EXPECT_TRUE(worked) << "refused without a reason";
      return;
    }
    if (::testing::Test::HasFailure()) return;
    ASSERT_LT(n, 100'000u);
  }
}

class FaultsTest : public PairTest {};

// Covers: FI-26
TEST_F(FaultsTest, allocation__each_may_fail_and_everything_can_be_closed) {
  for (const char* mode : {"manual", "thread"}) {
    SCOPED_TRACE(mode);
    const Variable progress("FI_UET_PROGRESS", mode);
    fail_each(fail_allocation, has_failed_allocation);
  }
}

// Covers: FI-26
TEST_F(FaultsTest, allocation__each_of_a_registration_that_is_told_may_fail) {
  open();
  ASSERT_FALSE(HasFatalFailure());
  fi_eq_attr attr{};
  fid_eq* events = nullptr;
  ASSERT_EQ(fi_eq_open(a.fabric, &attr, &events, nullptr), 0);
  ASSERT_EQ(fi_domain_bind(a.domain, &events->fid, FI_REG_MR), 0);
  char memory[64];
  int ret = -FI_ENOMEM;
  for (std::uint64_t n = 1; ret != 0 && n < 1000; ++n) {
    fid_mr* mr = nullptr;
    fail_allocation(n);
    ret = fi_mr_reg(a.domain, memory, sizeof memory, FI_REMOTE_WRITE, 0, 0, 0, &mr, nullptr);
    fail_allocation(0);
    EXPECT_TRUE(ret == 0 || ret == -FI_ENOMEM || ret == -FI_ENOSPC) << ret;
    if (ret == 0) {
      EXPECT_EQ(fi_close(&mr->fid), 0);
    }
  }
  EXPECT_EQ(ret, 0);
  EXPECT_EQ(fi_close(&std::exchange(a.ep, nullptr)->fid), 0);
  EXPECT_EQ(fi_close(&std::exchange(a.av, nullptr)->fid), 0);
  EXPECT_EQ(fi_close(&std::exchange(a.cq, nullptr)->fid), 0);
  EXPECT_EQ(fi_close(&std::exchange(a.domain, nullptr)->fid), 0) << "a region is still there";
  EXPECT_EQ(fi_close(&events->fid), 0);
  a.close();
  b.close();
}

/// Files in a folder of their own into which endpoints write what they do.
class Records {
 public:
  Records() { std::filesystem::create_directories(path_); }
  ~Records() { std::filesystem::remove_all(path_); }
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("uet-records-" + std::to_string(getpid()));
  const Variable trace_{"FI_UET_TRACE", (path_ / "trace").string()},
      capture_{"FI_UET_PCAP", (path_ / "capture").string()},
      path_log_{"FI_UET_PATH_LOG", (path_ / "paths").string()};
};

// What ends then are destructors, which write the last lines of records.
TEST_F(FaultsTest, allocation__each_of_closing_may_fail_with_records) {
  const Records records;
  const Variable progress("FI_UET_PROGRESS", "manual");
  for (std::uint64_t n = 1; !HasFailure(); ++n) {
    SCOPED_TRACE(n);
    Session session(address_of(2));
    EXPECT_TRUE(session.run());
    fail_allocation(n);
    session.close();
    const bool did_fail = has_failed_allocation();
    fail_allocation(0);
    if (!did_fail) return;
    ASSERT_LT(n, 10'000u);
  }
}

// Covers: FI-26
TEST_F(FaultsTest, socket_descriptor_or_thread__each_may_be_refused) {
  const auto run = [] { fail_each(fail_opening, has_failed_opening); };
  run();  // what a process opens once, it keeps
  const std::size_t before = fewest_descriptors();
  sigset_t signals_before, signals_after;
  pthread_sigmask(SIG_SETMASK, nullptr, &signals_before);
  run();
  pthread_sigmask(SIG_SETMASK, nullptr, &signals_after);
  EXPECT_LE(fewest_descriptors(before), before);
  for (int s = 1; s < SIGRTMAX; ++s) {
    EXPECT_EQ(sigismember(&signals_before, s), sigismember(&signals_after, s)) << strsignal(s);
  }
}

/// A child of this process that has what was open when it was made: its handlers of fork() do not run.
class HoldingChild {
 public:
  HoldingChild() {
    EXPECT_EQ(pipe(life_), 0);
    pid_ = _Fork();
    if (pid_ == 0) {
      alarm(60);
      ::close(life_[1]);
      char none;
      (void)!read(life_[0], &none, 1);
      _exit(0);
    }
    ::close(life_[0]);
    latest = this;
    refusals = 0;
    when_address_in_use([] { ++refusals; });
  }
  HoldingChild(const HoldingChild&) = delete;
  HoldingChild& operator=(const HoldingChild&) = delete;
  ~HoldingChild() {
    when_address_in_use(nullptr);
    release();
  }

  /// Ends with the first call that finds an address in use.
  void release_when_in_use() {
    when_address_in_use([] {
      ++refusals;
      latest->release();
    });
  }
  static int refusals_met() { return refusals; }

 private:
  void release() {
    if (pid_ < 0) return;
    ::close(life_[1]);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

  static inline HoldingChild* latest = nullptr;
  static inline int refusals = 0;
  int life_[2] = {-1, -1};
  pid_t pid_ = -1;
};

/// One that no remark has named yet: each remark is made once in a process, and tests may be repeated there.
std::string fresh_address() {
  static int index = 9;
  return address_of(++index);
}

class FaultsPortTest : public ::testing::Test {
 protected:
  static constexpr int kAttempts = 10;

  ~FaultsPortTest() override { close(); }
  /// A domain, and nothing else.
  void open(const std::string& address) {
    info_ = get_info(make_hints().get(), nullptr, FI_VERSION(1, 17), address.c_str(), nullptr,
                     FI_SOURCE | FI_NUMERICHOST);
    ASSERT_NE(info_, nullptr);
    ASSERT_EQ(fi_fabric(info_->fabric_attr, &fabric_, nullptr), 0);
    ASSERT_EQ(open_domain(), 0);
  }
  int open_domain() { return fi_domain(fabric_, info_.get(), &domain_, nullptr); }
  /// Closes the domain and opens it again, which says `said`. False where that tells nothing: this thread stood still for so long in
  /// between that no child was waited for any more.
  bool reopens_in_time(int& said) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fi_close(&std::exchange(domain_, nullptr)->fid), 0);
    said = open_domain();
    const auto took = std::chrono::steady_clock::now() - begin;
    return said == 0 || HoldingChild::refusals_met() > 1 || took < udp::kChildPatience;
  }
  void close() {
    if (domain_ != nullptr) fi_close(&std::exchange(domain_, nullptr)->fid);
    if (fabric_ != nullptr) fi_close(&std::exchange(fabric_, nullptr)->fid);
  }

 private:
  Info info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
};

TEST_F(FaultsPortTest, is_waited_for_while_a_child_has_not_run_yet) {
  open(fresh_address());
  bool in_time = false;
  for (int attempt = 0; attempt < kAttempts && !in_time; ++attempt) {
    ASSERT_FALSE(HasFatalFailure());
    HoldingChild child;
    child.release_when_in_use();
    int said = 0;
    in_time = reopens_in_time(said);
    if (in_time) {
      EXPECT_EQ(said, 0);
      EXPECT_EQ(HoldingChild::refusals_met(), 1);
    } else {
      open_domain();
    }
  }
  EXPECT_TRUE(in_time);
}

TEST_F(FaultsPortTest, that_a_child_keeps__is_refused_and_the_child_is_named) {
  bool in_time = false;
  for (int attempt = 0; attempt < kAttempts && !in_time; ++attempt) {
    const std::string address = fresh_address();
    open(address);
    ASSERT_FALSE(HasFatalFailure());
    {
      const HoldingChild child;
      int said = 0;
      ::testing::internal::CaptureStderr();
      in_time = reopens_in_time(said);
      const std::string told = ::testing::internal::GetCapturedStderr();
      if (in_time) {
        EXPECT_EQ(said, -FI_ENODEV);
        EXPECT_NE(told.find(address + " is used by a child of this process"), std::string::npos)
            << told;
        EXPECT_EQ(told.find(std::to_string(getpid())), std::string::npos) << told;
        EXPECT_GT(HoldingChild::refusals_met(), 1);
      }
    }
    EXPECT_EQ(open_domain(), 0);
    close();
  }
  EXPECT_TRUE(in_time);
}

/// In a process of its own, as the remark is made once.
TEST_F(FaultsTest, getinfo__without_a_descriptor_says_so) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ask = [] {
    const Variable address("FI_UET_ADDR", address_of(5));
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    const Info info = get_info(make_hints().get());
    setrlimit(RLIMIT_NOFILE, &before);
    std::_Exit(info == nullptr ? 0 : 1);
  };
  EXPECT_EXIT(ask(), ::testing::ExitedWithCode(0),
              ::testing::AllOf(
                  ::testing::HasSubstr("cannot list the network interfaces: Too many open files"),
                  ::testing::Not(::testing::HasSubstr("ip addr add"))));
}

/// Everything arrives once and in order, whatever the calls for it say.
TEST_F(FaultsTest, calls_that_move_packets__may_fail_now_and_then) {
  for (const std::uint32_t percent : {2u, 10u, 30u}) {
    SCOPED_TRACE(percent);
    const Info hints = make_hints();
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    open(hints.get());
    ASSERT_FALSE(HasFatalFailure());
    fail_traffic(percent, percent);
    constexpr int kMessages = 60;
    std::vector<std::vector<std::uint8_t>> out, in;
    for (int i = 0; i < kMessages; ++i) {
      out.push_back(pattern(1 + i * 997, static_cast<std::uint8_t>(i)));
      in.emplace_back(out.back().size());
    }
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(fi_recv(b.ep, in[i].data(), in[i].size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
      ASSERT_EQ(fi_send(a.ep, out[i].data(), out[i].size(), nullptr, to_b, nullptr), 0);
    }
    int finished = 0, failed = 0;
    const bool all = turn_until([&] {
      for (Side* side : {&a, &b}) {
        if (const auto got = poll(*side)) {
          ++finished;
          failed += got->failed;
        }
      }
      return finished == 2 * kMessages;
    });
    EXPECT_TRUE(all) << finished;
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(in, out);
    EXPECT_GT(failed_traffic(), 0u);
    fail_traffic(0, 0);
    expect_silence(b, 5);
    a.close();
    b.close();
  }
}

/// In a folder of its own, where uet-stat would look for this process.
class LiveFolder {
 public:
  LiveFolder() : variable_("XDG_RUNTIME_DIR", path_.string()) {
    std::filesystem::create_directories(path_);
  }
  ~LiveFolder() { std::filesystem::remove_all(path_); }
  std::string socket() const {
    return std::filesystem::directory_iterator(path_ / "uet")->path().string();
  }
  void vanish() { std::filesystem::remove_all(path_ / "uet"); }
  bool has_socket() const {
    return std::filesystem::exists(path_ / "uet") && !std::filesystem::is_empty(path_ / "uet");
  }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("uet-faults-" + std::to_string(getpid()));
  const Variable variable_;
};

/// In the AV of `side`: a peer that is not there, at this IPv4 address.
fi_addr_t insert_absent(Side& side, const std::string& address) {
  auto name = side.name;
  inet_pton(AF_INET, address.c_str(), &name[16]);
  fi_addr_t out = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(side.av, name.data(), 1, &out, 0, nullptr), 1);
  return out;
}

int connect_to(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

/// What a process answers at its socket within half a minute.
std::string ask(int fd) {
  const timeval patience{.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(send(fd, "stat\n", 5, MSG_NOSIGNAL), 5);
  char text[4096];
  ssize_t n = -1;
  do n = recv(fd, text, sizeof text, 0);
  while (n < 0 && errno == EINTR);
  return std::string(text, n > 0 ? static_cast<std::size_t>(n) : 0);
}

TEST_F(FaultsTest, uet_stat__finds_no_descriptor_left_and_is_answered_later) {
  const LiveFolder folder;
  open();
  ASSERT_FALSE(HasFatalFailure());
  fail_accepts(true);
  const auto begin = std::chrono::steady_clock::now();
  const int fd = connect_to(folder.socket());
  EXPECT_TRUE(turn_until([] { return failed_accepts() >= 3; }));
  const std::uint64_t tries = failed_accepts();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fail_accepts(false);
  EXPECT_LE(static_cast<double>(tries), 2 + seconds.count()) << "the thread spins";
  EXPECT_NE(ask(fd), "");
  ::close(fd);
  a.close();
  b.close();
}

/// The shortest of a few: a busy machine makes some longer. A client has two seconds to ask.
TEST_F(FaultsTest, uet_stat__that_asks_nothing_does_not_hold_up_the_last_close) {
  constexpr std::chrono::milliseconds kSoon{1000};
  const LiveFolder folder;
  auto shortest = std::chrono::nanoseconds::max();
  for (int attempt = 0; attempt < 10 && shortest >= kSoon; ++attempt) {
    open();
    ASSERT_FALSE(HasFatalFailure());
    a.close();
    const std::uint64_t before = accepts();
    const int fd = connect_to(folder.socket());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (accepts() == before && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_GT(accepts(), before);
    const auto begin = std::chrono::steady_clock::now();
    b.close();
    shortest =
        std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
    ::close(fd);
  }
  EXPECT_LT(shortest, kSoon);
}

TEST_F(FaultsTest, uet_stat__finds_the_process_again_after_its_folder_vanished) {
  LiveFolder folder;
  open();
  ASSERT_FALSE(HasFatalFailure());
  folder.vanish();
  EXPECT_TRUE(turn_until([&] { return folder.has_socket(); }));
  a.close();
  b.close();
}

TEST_F(FaultsTest, peers_that_do_not_fit__are_named_where_uet_stat_has_no_folder) {
  hide_live_folders(true);
  open();
  ASSERT_FALSE(HasFatalFailure());
  const std::string absent = fresh_address();
  const fi_addr_t to_absent = insert_absent(a, absent);
  const std::uint8_t out = 7;
  std::string said;
  const auto is_named = [&] {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 100; ++i) {
      fi_cq_read(a.cq, nullptr, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    said += ::testing::internal::GetCapturedStderr();
    return said.find("nothing is heard from " + absent) != std::string::npos;
  };
  EXPECT_EQ(fi_inject(a.ep, &out, 1, to_absent), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool named = false;
  while (!named && std::chrono::steady_clock::now() < end) named = is_named();
  EXPECT_TRUE(named) << said;
  hide_live_folders(false);
  a.close();
  b.close();
}

/// A standard error that nothing reads, and that is full.
class FullStderr {
 public:
  FullStderr() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe(ends_), 0);
    fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    char bytes[4096] = {};
    while (write(ends_[1], bytes, sizeof bytes) > 0) continue;
    while (write(ends_[1], bytes, 1) > 0) continue;
    fcntl(ends_[1], F_SETFL, 0);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~FullStderr() {
    drain();
    for (const int fd : {ends_[0], ends_[1], before_}) ::close(fd);
  }
  FullStderr(const FullStderr&) = delete;
  FullStderr& operator=(const FullStderr&) = delete;
  /// A thread that waits for it goes on.
  void drain() {
    dup2(before_, STDERR_FILENO);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    char bytes[4096];
    while (read(ends_[0], bytes, sizeof bytes) > 0) continue;
  }

 private:
  const int before_;
  int ends_[2] = {-1, -1};
};

TEST_F(FaultsTest, remark_on_a_standard_error_that_is_full__stops_no_endpoint) {
  open();
  ASSERT_FALSE(HasFatalFailure());
  const fi_addr_t to_absent = insert_absent(a, fresh_address());
  FullStderr full;
  const std::uint8_t out = 7;
  EXPECT_EQ(fi_inject(a.ep, &out, 1, to_absent), 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(4000);
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    expect_message();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  full.drain();
  a.close();
  b.close();
}

/// The kernel, or another thread that turned the loop, has taken the event.
// Covers: FI-35
TEST_F(FaultsTest, arrival__that_a_sleeper_is_not_told_of_is_found_long_before_its_timeout) {
  const Variable progress("FI_UET_PROGRESS", "manual");
  open();
  ASSERT_FALSE(HasFatalFailure());
  std::uint8_t in = 0;
  const std::uint8_t out = 7;
  ASSERT_EQ(fi_recv(b.ep, &in, 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  lose_arrivals(true);
  const auto begin = std::chrono::steady_clock::now();
  std::thread sleeper([&] {
    fi_cq_tagged_entry entry;
    EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 30'000), 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(fi_inject(a.ep, &out, 1, to_b), 0);
  sleeper.join();
  lose_arrivals(false);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(in, out);
}

}  // namespace
}  // namespace uet::provider::testing
