#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/base/sanitizers.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class ObjectsTest : public PairTest {
 protected:
  void open_objects(std::uint64_t caps = 0, int mr_mode = 0) {
    const Info hints = make_hints();
    hints->caps = caps;
    hints->domain_attr->mr_mode = mr_mode;
    a.open(address_of(2), *hints);
  }
};

TEST_F(ObjectsTest, two_endpoints__have_different_names) {
  open_objects();
  a.open_endpoint();
  const auto first = a.name;
  fid_ep* ep = std::exchange(a.ep, nullptr);
  a.open_endpoint();
  EXPECT_NE(first, a.name);
  EXPECT_EQ(fi_close(&ep->fid), 0);
}

// Covers: FI-21
TEST_F(ObjectsTest, resource_indices__are_used_again) {
  open_objects();
  a.open_endpoint();
  fid_ep* const kept = std::exchange(a.ep, nullptr);
  const auto name = a.name;
  for (int i = 0; i < 5000; ++i) {
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &ep, nullptr), 0) << i;
    ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep), 0) << i;
    std::uint8_t other[32];
    std::size_t length = sizeof other;
    ASSERT_EQ(fi_getname(&ep->fid, other, &length), 0);
    ASSERT_NE(std::memcmp(other, name.data(), sizeof other), 0);
    ASSERT_EQ(fi_close(&ep->fid), 0);
  }
  EXPECT_EQ(fi_close(&kept->fid), 0);
}

TEST_F(ObjectsTest, enable__waits_for_a_service_whose_endpoint_was_closed) {
  const Info hints = make_hints();
  a.open(address_of(2), *hints);
  a.info = get_info(hints.get(), nullptr, FI_VERSION(1, 17), address_of(2).c_str(), "7",
                    FI_SOURCE | FI_NUMERICHOST);
  a.open_endpoint();
  const auto name = a.name;
  fid_ep* second = nullptr;
  ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &second, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(second, &a.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(second, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(second), -FI_EADDRINUSE);
  ASSERT_EQ(fi_close(&std::exchange(a.ep, nullptr)->fid), 0);
  EXPECT_EQ(fi_enable(second), 0);
  ASSERT_EQ(fi_close(&second->fid), 0);
  a.open_endpoint();
  EXPECT_EQ(a.name, name);
}

// Covers: FI-22
TEST_F(ObjectsTest, enable__says_what_is_missing) {
  open_objects();
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &ep, nullptr), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOAV);
  ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOCQ);
  EXPECT_EQ(fi_close(&ep->fid), 0);

  const Info target(fi_dupinfo(a.info.get()));
  target->caps = FI_RMA | FI_REMOTE_WRITE;
  fi_cntr_attr attr{};
  fid_cntr* cntr = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &cntr, nullptr), 0);
  ASSERT_EQ(fi_endpoint(a.domain, target.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &cntr->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(fi_enable(ep), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&cntr->fid), 0);
}

// Covers: FI-23
TEST_F(ObjectsTest, getname__too_small_tells_the_length) {
  open_objects();
  a.open_endpoint();
  std::uint8_t name[16];
  std::size_t length = sizeof name;
  EXPECT_EQ(fi_getname(&a.ep->fid, name, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, 32u);
}

// Covers: FI-24
TEST_F(ObjectsTest, av_insert__goes_on_after_a_malformed_address) {
  open_objects();
  a.open_endpoint();
  std::vector<std::uint8_t> addresses;
  for (int i = 0; i < 3; ++i) addresses.insert(addresses.end(), a.name.begin(), a.name.end());
  addresses[32] = 0x77;  // version of the second
  fi_addr_t out[3];
  EXPECT_EQ(fi_av_insert(a.av, addresses.data(), 3, out, 0, nullptr), 2);
  EXPECT_NE(out[0], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(out[1], FI_ADDR_NOTAVAIL);
  EXPECT_NE(out[2], FI_ADDR_NOTAVAIL);

  fi_av_attr attr{.type = FI_AV_TABLE};
  fid_av* table = nullptr;
  ASSERT_EQ(fi_av_open(a.domain, &attr, &table, nullptr), 0);
  addresses[32] = 0;
  EXPECT_EQ(fi_av_insert(table, addresses.data(), 3, nullptr, 0, nullptr), 3);
  for (fi_addr_t index = 0; index < 3; ++index) {
    std::uint8_t address[32];
    std::size_t length = sizeof address;
    EXPECT_EQ(fi_av_lookup(table, index, address, &length), 0);
    EXPECT_EQ(std::memcmp(address, a.name.data(), 32), 0);
  }
  EXPECT_EQ(fi_close(&table->fid), 0);
}

TEST_F(ObjectsTest, av_remove__later_sends_are_refused) {
  open();
  EXPECT_EQ(fi_av_remove(a.av, &to_b, 1, 0), 0);
  EXPECT_EQ(error_of(a, fi_send(a.ep, nullptr, 0, nullptr, to_b, nullptr)), -FI_EINVAL);
}

// Covers: FI-26
TEST_F(ObjectsTest, close__refuses_while_children_are_open) {
  open_objects();
  a.open_endpoint();
  EXPECT_EQ(fi_close(&a.domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&a.fabric->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&a.cq->fid), -FI_EBUSY);
}

// Covers: PDS-173, FI-26
TEST_F(ObjectsTest, domain__that_is_busy_lives_on_beside_others_that_come_and_go) {
  open();
  const auto sent = pattern(4 << 20, 173);
  std::vector<std::uint8_t> got(sent.size());
  ASSERT_EQ(fi_recv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr), 0);
  fi_cq_read(a.cq, nullptr, 0);
  EXPECT_EQ(fi_close(&a.domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&b.domain->fid), -FI_EBUSY);

  std::size_t open_before = 0;
  for (int i = 0; i < 4; ++i) {
    if (i == 1)
      open_before = fewest_descriptors();  // the process keeps an address that it had once
    Side c;
    const Info hints = make_hints();
    c.open(address_of(4), *hints);
    c.open_endpoint();
    ASSERT_FALSE(HasFatalFailure());
    const fi_addr_t to_self = c.insert(c);
    std::uint32_t out = 1, in = 0;
    ASSERT_EQ(fi_recv(c.ep, &in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_send(c.ep, &out, sizeof out, nullptr, to_self, nullptr), 0);
    int finished = 0;
    EXPECT_TRUE(turn_until([&] {
      while (poll(c)) ++finished;
      return finished == 2;
    }));
    EXPECT_EQ(in, out);
    c.close();
    if (i == 0) continue;

    // Refused when its port was open already: nothing of it may stay.
    fid_domain* refused = nullptr;
    std::uint8_t bad_key[3] = {};
    const Info info = get_info(hints.get(), nullptr, FI_VERSION(1, 17), address_of(4).c_str(),
                               nullptr, FI_SOURCE | FI_NUMERICHOST);
    ASSERT_EQ(fi_fabric(info->fabric_attr, &c.fabric, nullptr), 0);
    info->domain_attr->auth_key = bad_key;
    info->domain_attr->auth_key_size = sizeof bad_key;
    EXPECT_EQ(fi_domain(c.fabric, info.get(), &refused, nullptr), -FI_EINVAL);
    info->domain_attr->auth_key = nullptr;  // not from malloc()
    info->domain_attr->auth_key_size = 0;
  }
  EXPECT_LE(fewest_descriptors(open_before), open_before);

  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, sent);
}

/// The domain of either thread is now and then the first of the process, or the last.
// Covers: FI-26
TEST_F(ObjectsTest, domains__of_two_threads_come_and_go_and_leave_nothing) {
  const auto come_and_go = [](int index, int rounds) {
    const Info hints = make_hints();
    for (int i = 0; i < rounds; ++i) {
      Side side;
      side.open(address_of(index), *hints);
    }
  };
  come_and_go(2, 1);
  come_and_go(3, 1);
  const std::size_t before = fewest_descriptors();
  std::thread other([&] { come_and_go(3, 40); });
  come_and_go(2, 40);
  other.join();
  EXPECT_LE(fewest_descriptors(before), before);
}

/// The IPv4 address in the address of an endpoint.
std::string host_in(const void* address) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, static_cast<const char*>(address) + 16, text, sizeof text);
  return text;
}

/// A program that knows nothing of our locks, with the UDP port of an address.
class Stranger {
 public:
  explicit Stranger(const std::string& host) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(4793);
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << host;
  }
  ~Stranger() { ::close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

 private:
  const int fd_;
};

/// The process keeps what it had once, but its port is free as long as no domain is open.
// Covers: FI-6
TEST_F(ObjectsTest, domain__whose_port_another_program_took_has_the_next_of_our_proposals) {
  const Info hints = make_hints();
  const std::string own = host_in(get_info(hints.get())->src_addr), next = address_of(6);
  const Variable addresses("FI_UET_ADDR", own + "|" + next);
  Side& c = a;
  c.info = get_info(hints.get());
  ASSERT_NE(c.info, nullptr);
  ASSERT_EQ(host_in(c.info->src_addr), own);
  ASSERT_EQ(fi_fabric(c.info->fabric_attr, &c.fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(c.fabric, c.info.get(), &c.domain, nullptr), 0);
  ASSERT_EQ(fi_close(&std::exchange(c.domain, nullptr)->fid), 0);
  const Stranger stranger(own);
  ASSERT_EQ(fi_domain(c.fabric, c.info.get(), &c.domain, nullptr), 0);
  fi_av_attr av{};
  ASSERT_EQ(fi_av_open(c.domain, &av, &c.av, nullptr), 0);
  ASSERT_EQ(fi_cq_open(c.domain, &c.cq_attr, &c.cq, nullptr), 0);
  c.open_endpoint();
  EXPECT_EQ(host_in(c.name.data()), next);
  // Hints with what was proposed, and with the open domain.
  const Info again(fi_dupinfo(c.info.get()));
  again->domain_attr->domain = c.domain;
  ASSERT_EQ(host_in(again->src_addr), own);
  const Info answer = get_info(again.get());
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(host_in(answer->src_addr), next);
}

// Covers: FI-6
TEST_F(ObjectsTest, domain__of_an_address_that_the_application_named_waits_for_its_port) {
  open_objects();
  ASSERT_EQ(fi_close(&std::exchange(a.av, nullptr)->fid), 0);
  ASSERT_EQ(fi_close(&std::exchange(a.cq, nullptr)->fid), 0);
  ASSERT_EQ(fi_close(&std::exchange(a.domain, nullptr)->fid), 0);
  {
    const Stranger stranger(address_of(2));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(fi_domain(a.fabric, a.info.get(), &a.domain, nullptr), -FI_ENODEV);
  }
  EXPECT_EQ(fi_domain(a.fabric, a.info.get(), &a.domain, nullptr), 0);
}

/// What a child made by fork() inherits is good for nothing but closing.
class ForkTest : public PairTest {
 protected:
  /// Has a child close all; its exit status, or -1 when it had to be killed.
  int status_of_closing_child() {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      a.close();
      b.close();
      _exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

/// A daemon asks what there is before it detaches. In a process of its own: this one has opened domains.
TEST(ForkDeathTest, child_of_a_parent_that_never_opened_a_domain__is_served) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("FI_UET_ADDR", address_of(1).c_str(), 1);
        if (get_info(make_hints().get()) == nullptr) _exit(2);
        const pid_t pid = fork();
        if (pid == 0) {
          alarm(20);
          Side side;
          side.open(address_of(2), *make_hints());
          if (side.domain == nullptr) _exit(3);
          side.open_endpoint();
          side.close();
          _exit(HasFailure() ? 4 : 0);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

/// Most forks meet a thread in the middle of a turn.
TEST_F(ForkTest, child__closes_what_it_inherited_while_other_threads_of_its_parent_call) {
  open();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Side* side : {&a, &b})
    threads.emplace_back([side, &stop] {
      while (!stop) fi_cq_read(side->cq, nullptr, 0);
    });
  for (int i = 0; i < 20 && !HasFailure(); ++i) EXPECT_EQ(status_of_closing_child(), 0);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  expect_message();
}

/// Their stacks are the child's to use anew.
TEST_F(ForkTest, child__closes_queues_on_which_threads_of_its_parent_sleep) {
#if UET_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer ends a child that starts threads";
#endif
  open();
  constexpr int kThreads = 12;
  std::atomic<int> begun{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      ++begun;
      fi_cq_tagged_entry entry;
      EXPECT_EQ(fi_cq_sread(b.cq, &entry, 1, nullptr, 1500), -FI_EAGAIN);
    });
  while (begun != kThreads) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    for (int i = 0; i < 3; ++i)
      std::thread([] {
        volatile char stack[100'000];
        for (volatile char& byte : stack) byte = 1;
      }).join();
    a.close();
    b.close();
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (std::thread& thread : threads) thread.join();
  expect_message();
}

TEST_F(ForkTest, child__does_not_wake_its_parent) {
  b.cq_attr.wait_obj = FI_WAIT_FD;
  open();
  pollfd waited{.fd = -1, .events = POLLIN, .revents = 0};
  ASSERT_EQ(fi_control(&b.cq->fid, FI_GETWAIT, &waited.fd), 0);
  fid_t fids[] = {&b.cq->fid};
  ASSERT_EQ(fi_trywait(b.fabric, fids, 1), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    fi_cq_signal(b.cq);
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(::poll(&waited, 1, 0), 0);
}

/// It neither sends what its parent has to send nor waits for the answers.
TEST_F(ForkTest, child__leaves_what_is_on_its_way_to_the_parent) {
  const Variable progress("FI_UET_PROGRESS", "manual");
  open();
  const auto sent = pattern(1 << 20, 7);
  std::vector<std::uint8_t> got(sent.size());
  ASSERT_EQ(fi_recv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, sent.data(), sent.size(), nullptr, to_b, nullptr), 0);
  ASSERT_EQ(fi_inject(a.ep, sent.data(), 64, to_b), 0);
  // The shortest of a few: a busy machine makes some longer.
  constexpr std::chrono::seconds kInjectLinger{2};
  auto shortest = std::chrono::steady_clock::duration::max();
  for (int attempt = 0; attempt < 5 && shortest >= kInjectLinger; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(status_of_closing_child(), 0);
    shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(shortest, kInjectLinger);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, sent);
}

/// What the parent has not written yet is in the child's buffers, too, and its locks are on files that the child has open.
TEST_F(ForkTest, child__leaves_files_to_its_parent) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("uet-fork-" + std::to_string(getpid()));
  fs::create_directory(folder);
  const auto sizes = [&] {
    std::map<std::string, std::uintmax_t> all;
    for (const auto& entry : fs::directory_iterator(folder))
      all[entry.path().filename()] = entry.file_size();
    return all;
  };
  {
    const Variable progress("FI_UET_PROGRESS", "manual");
    const Variable trace("FI_UET_TRACE", (folder / "trace").c_str());
    const Variable capture("FI_UET_PCAP", (folder / "capture").c_str());
    const Variable paths("FI_UET_PATH_LOG", (folder / "paths").c_str());
    open();
    expect_message();
    const auto before = sizes();
    EXPECT_EQ(before.size(), 6u);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(sizes(), before) << "what the child wrote";

    int life[2];
    ASSERT_EQ(pipe(life), 0);
    child = fork();
    if (child == 0) {
      ::close(life[1]);
      char end = 0;
      (void)!read(life[0], &end, 1);
      _exit(0);
    }
    ::close(life[0]);
    a.close();
    b.close();
    EXPECT_GT(sizes()["trace"], before.at("trace")) << "there was nothing to write";
    open();
    EXPECT_EQ(sizes().size(), 6u) << "other names, since the child keeps the locks";
    ::close(life[1]);
    waitpid(child, nullptr, 0);
  }
  fs::remove_all(folder);
}

class BoundRegionTest : public ObjectsTest {
 protected:
  void SetUp() override {
    open_objects(FI_RMA | FI_MSG, FI_MR_ENDPOINT);
    ASSERT_FALSE(HasFatalFailure());
    a.open_endpoint();
    ASSERT_EQ(fi_mr_reg(a.domain, bytes, sizeof bytes, FI_REMOTE_WRITE, 0, 7, 0, &mr, nullptr), 0);
  }
  const Variable per_endpoint{"FI_UET_MR_ENDPOINT", "1"};
  char bytes[64];
  fid_mr* mr = nullptr;
};

// Covers: FI-26, FI-29
TEST_F(BoundRegionTest, close__of_its_endpoint_is_refused_until_it_is_closed) {
  ASSERT_EQ(fi_mr_bind(mr, &a.ep->fid, 0), 0);
  EXPECT_EQ(fi_close(&a.ep->fid), -FI_EBUSY);
  EXPECT_EQ(fi_mr_enable(mr), 0);
  EXPECT_EQ(fi_close(&a.ep->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&mr->fid), 0);
}

TEST_F(BoundRegionTest, bind__of_a_counter_is_done_as_a_whole_or_not_at_all) {
  fi_cntr_attr attr{};
  fid_cntr *first = nullptr, *second = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, &attr, &first, nullptr), 0);
  ASSERT_EQ(fi_cntr_open(a.domain, nullptr, &second, nullptr), 0) << "no attributes: the defaults";
  EXPECT_EQ(fi_mr_bind(mr, &first->fid, FI_REMOTE_READ), 0);
  EXPECT_EQ(fi_mr_bind(mr, &second->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), -FI_EBUSY);
  EXPECT_EQ(fi_mr_bind(mr, &first->fid, FI_REMOTE_WRITE), 0) << "left half bound";
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

// Covers: FI-27, FI-28
TEST_F(ObjectsTest, user_keys__are_unique_and_have_48_bits_for_rma) {
  open_objects(FI_RMA | FI_MSG, 0);
  char bytes[64];
  fid_mr *first = nullptr, *second = nullptr;
  const auto reg = [&](std::uint64_t key, fid_mr** out) {
    return fi_mr_reg(a.domain, bytes, sizeof bytes, FI_REMOTE_WRITE, 0, key, 0, out, nullptr);
  };
  ASSERT_EQ(reg(7, &first), 0);
  EXPECT_EQ(fi_mr_key(first), 7u);
  EXPECT_EQ(reg(7, &second), -FI_ENOKEY);
  EXPECT_EQ(reg(std::uint64_t{1} << 48, &second), -FI_EINVAL);
  EXPECT_EQ(reg(std::uint64_t{1} << 62, &second), -FI_EINVAL);

  // The bit by which a key says that its region stands repetition is the user's, and makes it another key.
  constexpr std::uint64_t kStandsRepetition = std::uint64_t{1} << 63;
  ASSERT_EQ(reg(kStandsRepetition | 7, &second), 0);
  EXPECT_EQ(fi_mr_key(second), kStandsRepetition | 7);
  fid_mr* third = nullptr;
  EXPECT_EQ(reg(kStandsRepetition | 7, &third), -FI_ENOKEY);
  EXPECT_EQ(fi_close(&second->fid), 0);
  EXPECT_EQ(fi_close(&first->fid), 0);

  const Info hints = make_hints();
  hints->caps = FI_TAGGED;
  b.open(address_of(3), *hints);
  ASSERT_EQ(fi_mr_reg(b.domain, bytes, 64, FI_SEND, 0, 0, 0, &first, nullptr), 0);
  ASSERT_EQ(fi_mr_reg(b.domain, bytes, 64, FI_SEND, 0, 0, 0, &second, nullptr), 0);
  EXPECT_EQ(fi_close(&first->fid), 0);
  EXPECT_EQ(fi_close(&second->fid), 0);
}

/// LCI says what it will do with the memory, by FI_RMA beside the rights.
TEST_F(ObjectsTest, access_of_a_region__may_name_capabilities) {
  open_objects(FI_RMA, 0);
  std::vector<std::uint8_t> memory(64);
  constexpr std::uint64_t kRights =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_WRITE | FI_REMOTE_READ;
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(a.domain, memory.data(), memory.size(),
                      kRights | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, 0, 1, 0, &mr, nullptr),
            0);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  EXPECT_EQ(
      fi_mr_reg(a.domain, memory.data(), memory.size(), kRights | FI_FENCE, 0, 1, 0, &mr, nullptr),
      -FI_EINVAL);
}

TEST_F(ObjectsTest, everything_of_a_memory_region__needs_a_setting) {
  open_objects(FI_RMA, 0);
  fid_mr* mr = nullptr;
  EXPECT_EQ(fi_mr_reg(a.domain, nullptr, SIZE_MAX, FI_REMOTE_READ, 0, 1, 0, &mr, nullptr),
            -FI_EINVAL);
}

// Covers: FI-30
TEST_F(ObjectsTest, empty_queue__says_try_again) {
  open_objects();
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
  const ssize_t n = fi_cq_read(a.cq, nullptr, 0);
  EXPECT_TRUE(n == 0 || n == -FI_EAGAIN);
  fi_cq_err_entry error;
  EXPECT_EQ(fi_cq_readerr(a.cq, &error, 0), -FI_EAGAIN);
}

TEST_F(ObjectsTest, operations_outside_the_capabilities__are_refused) {
  open_objects(FI_TAGGED);
  a.open_endpoint();
  EXPECT_EQ(fi_send(a.ep, nullptr, 0, nullptr, 0, nullptr), -FI_EOPNOTSUPP);
  EXPECT_EQ(fi_write(a.ep, nullptr, 0, nullptr, 0, 0, 0, nullptr), -FI_EOPNOTSUPP);
}

TEST_F(ObjectsTest, straddr__prints_the_parts) {
  open_objects();
  a.open_endpoint();
  char text[128];
  std::size_t length = sizeof text;
  ASSERT_NE(fi_av_straddr(a.av, a.name.data(), text, &length), nullptr);
  EXPECT_EQ(std::string(text).find("uet://" + address_of(2) + "/pid0/ri"), 0u) << text;
}

}  // namespace
}  // namespace uet::provider::testing
