#include "lib/udp/descriptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <memory>
#include <utility>

#include "lib/udp/udp_port.h"

namespace uet::udp::test {
namespace {

int refusals = 0;                  ///< of bind(), because an address is in use
std::function<void()> on_refusal;  /// after each of them
std::function<void()> on_binding;  /// before the next binding, once

}  // namespace
}  // namespace uet::udp::test

extern "C" {

int __real_bind(int fd, const sockaddr* address, socklen_t length);
int __wrap_bind(int fd, const sockaddr* address, socklen_t length);

int __wrap_bind(int fd, const sockaddr* address, socklen_t length) {
  using namespace uet::udp::test;
  if (const auto call = std::exchange(on_binding, nullptr)) call();
  const int status = __real_bind(fd, address, length);
  if (status == 0 || errno != EADDRINUSE) return status;
  ++refusals;
  if (on_refusal) on_refusal();
  errno = EADDRINUSE;
  return status;
}
}

namespace uet::udp::test {
namespace {

enum class Handlers { kRun, kDoNotRun };

/// A child of this process, until release(). Without its handlers of fork() it is as one that has not run yet: it has all that was open.
class Child {
 public:
  explicit Child(Handlers handlers, bool lacks_descriptors = false) {
    int ready[2];
    EXPECT_EQ(pipe(life_) | pipe(ready), 0);
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    if (lacks_descriptors) set_limit({.rlim_cur = 0, .rlim_max = before.rlim_max});
    pid_ = handlers == Handlers::kRun ? fork() : _Fork();
    char byte = 0;
    if (pid_ == 0) {
      alarm(60);
      close(life_[1]);
      if (write(ready[1], &byte, 1) == 1) (void)!read(life_[0], &byte, 1);
      _exit(0);
    }
    set_limit(before);
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    for (const int fd : {ready[0], ready[1], life_[0]}) close(fd);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { release(); }

  /// And has ended when this returns.
  void release() {
    if (pid_ < 0) return;
    close(life_[1]);
    EXPECT_EQ(waitpid(std::exchange(pid_, -1), nullptr, 0) > 0, true);
  }

 private:
  static void set_limit(const rlimit& limit) { setrlimit(RLIMIT_NOFILE, &limit); }

  int life_[2] = {-1, -1};
  pid_t pid_ = -1;
};

class DescriptorTest : public ::testing::Test {
 protected:
  DescriptorTest() { refusals = 0; }
  ~DescriptorTest() override { on_refusal = on_binding = nullptr; }

  std::unique_ptr<net::Port> open() {
    net::PortRequest request;
    request.spec = "udp:127.0.0.1";
    request.udp_port = 14794;
    request.packets = 64;
    error_.clear();
    return open_udp_port(request, trace_, error_);
  }
  /// Closes the port and opens it again. False where that says nothing: this thread stood still for so long in between that no child was
  /// waited for any more.
  bool reopens_in_time(std::unique_ptr<net::Port>& port) {
    refusals = 0;
    const auto begin = std::chrono::steady_clock::now();
    port.reset();
    port = open();
    const auto took = std::chrono::steady_clock::now() - begin;
    on_refusal = nullptr;
    return port != nullptr || refusals > 1 || took < kChildPatience;
  }
  static constexpr int kAttempts = 10;

  base::Trace trace_;
  std::string error_;
};

TEST_F(DescriptorTest, port__is_waited_for_while_a_child_has_not_run_yet) {
  bool in_time = false;
  for (int attempt = 0; attempt < kAttempts && !in_time; ++attempt) {
    auto port = open();
    ASSERT_TRUE(port) << error_;
    Child child(Handlers::kDoNotRun);
    on_refusal = [&child] { child.release(); };
    in_time = reopens_in_time(port);
    if (!in_time) continue;
    EXPECT_TRUE(port) << error_;
    EXPECT_EQ(refusals, 1);
  }
  EXPECT_TRUE(in_time);
}

TEST_F(DescriptorTest, port__that_a_child_keeps_is_refused) {
  bool in_time = false;
  for (int attempt = 0; attempt < kAttempts && !in_time; ++attempt) {
    auto port = open();
    ASSERT_TRUE(port) << error_;
    const Child child(Handlers::kDoNotRun);
    in_time = reopens_in_time(port);
    if (!in_time) continue;
    EXPECT_FALSE(port);
    EXPECT_NE(error_.find("a child of this process"), std::string::npos) << error_;
    EXPECT_GT(refusals, 1);
    refusals = 0;
    EXPECT_FALSE(open());
    EXPECT_EQ(refusals, 1) << "waited once more";
  }
  EXPECT_TRUE(in_time);
}

TEST_F(DescriptorTest, port__that_this_process_has_is_refused_at_once) {
  ASSERT_TRUE(open()) << error_;
  const auto port = open();
  ASSERT_TRUE(port) << error_;
  EXPECT_FALSE(open());
  EXPECT_EQ(refusals, 1);
  EXPECT_EQ(error_.find("a child"), std::string::npos) << error_;
}

TEST_F(DescriptorTest, port__has_no_trace_in_a_child_that_was_made_while_it_was_opened) {
  std::unique_ptr<Child> child;
  on_binding = [&child] { child = std::make_unique<Child>(Handlers::kRun); };
  auto port = open();
  ASSERT_TRUE(port) << error_;
  ASSERT_TRUE(child);
  port.reset();
  EXPECT_TRUE(open()) << error_;
  EXPECT_EQ(refusals, 0);
}

TEST_F(DescriptorTest, port__is_let_go_by_a_child_that_may_have_no_further_descriptor) {
  auto port = open();
  ASSERT_TRUE(port) << error_;
  const Child child(Handlers::kRun, true);
  port.reset();
  EXPECT_TRUE(open()) << error_;
  EXPECT_EQ(refusals, 0);
}

// In a child, which alarm() ends where the handler waits for the thread that it runs in.
TEST_F(DescriptorTest, open__is_not_interrupted_by_a_handler_that_closes_another) {
  const auto make_socket = [] { return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    static Descriptor held = Descriptor::open(make_socket);
    signal(SIGUSR1, [](int) { held = Descriptor(); });
    const auto opened = Descriptor::open([&] {
      raise(SIGUSR1);
      return make_socket();
    });
    _exit(opened && !held ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(DescriptorTest, error_text__says_what_helps_where_descriptors_are_missing) {
  EXPECT_NE(error_text(EMFILE).find("ulimit -n"), std::string::npos);
  EXPECT_NE(error_text(ENFILE).find("fs.file-max"), std::string::npos);
  EXPECT_EQ(error_text(EACCES), "Permission denied");
}

}  // namespace
}  // namespace uet::udp::test
