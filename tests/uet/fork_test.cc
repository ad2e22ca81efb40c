/// What a child made by fork() leaves to its parent.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/uet/endpoint_fixture.h"

namespace uet {
namespace {

using namespace std::chrono_literals;
using test::EndpointTest;

/// A peer that only listens.
class Listener {
 public:
  explicit Listener(const char* address) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(4793);
    inet_pton(AF_INET, address, &at.sin_addr);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(fd_); }
  /// How many packets have come since the last time.
  int heard() const {
    char packet[9000];
    int n = 0;
    while (recv(fd_, packet, sizeof packet, MSG_DONTWAIT) > 0) ++n;
    return n;
  }

 private:
  int fd_;
};

int status_of_child(const std::function<bool()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A child of this process that does nothing, for as long as this lives.
class IdleChild {
 public:
  IdleChild() {
    EXPECT_EQ(pipe(life_), 0);
    pid_ = fork();
    char end = 0;
    if (pid_ == 0) {
      close(life_[1]);
      (void)!read(life_[0], &end, 1);
      _exit(0);
    }
    close(life_[0]);
  }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;
  ~IdleChild() {
    close(life_[1]);
    waitpid(pid_, nullptr, 0);
  }

 private:
  int life_[2] = {-1, -1};
  pid_t pid_ = -1;
};

/// What it would send for its parent could repeat packet counters of the parent under one key.
TEST_F(EndpointTest, fork__child_sends_nothing_and_its_parent_goes_on) {
  std::string error;
  auto placeholder = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.8"}}, error);
  ASSERT_NE(placeholder, nullptr) << error;
  const auto bytes = placeholder->address();
  placeholder.reset();
  const Listener listener("127.0.77.8");
  const auto to_listener = a_->add_peer(bytes);
  ASSERT_TRUE(to_listener);
  ASSERT_EQ(a_->send(*to_listener, 1, "one", 3, nullptr), Post::kAccepted);  // leaves with a turn
  EXPECT_EQ(status_of_child([&] {
              a_.reset();
              return true;
            }),
            0);
  EXPECT_EQ(listener.heard(), 0) << "the child that only let go of its endpoint";
  EXPECT_EQ(status_of_child([&] {
              const bool is_refused =
                  a_->send(*to_listener, 2, "two", 3, nullptr) == Post::kRefused &&
                  std::string(a_->why_not()) != "" && !a_->add_peer(b_->address()) &&
                  !a_->open_window(this, 1) && !a_->cancel(nullptr) && !a_->remove_peer(b_at_a_) &&
                  a_->may_sleep_for() > 1h;
              a_->wake();
              return !a_->turn() && !a_->wait(10ms) && !a_->poll() && is_refused;
            }),
            0);
  EXPECT_EQ(listener.heard(), 0) << "the child that called";
  a_->turn();
  EXPECT_GT(listener.heard(), 0) << "the parent";
  char buffer[8];
  ASSERT_EQ(b_->receive(3, 0, buffer, sizeof buffer, nullptr), Post::kAccepted);
  ASSERT_EQ(a_->send(b_at_a_, 3, "three", 5, nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*b_).ok);
}

/// What the parent has not written yet is in the child's buffers, too, and its locks are on files that the child has open.
TEST_F(EndpointTest, fork__child_leaves_files_to_its_parent) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("uet-fork-" + std::to_string(getpid()));
  fs::create_directory(folder);
  const auto sizes = [&] {
    std::map<std::string, std::uintmax_t> all;
    for (const auto& entry : fs::directory_iterator(folder))
      all[entry.path().filename()] = entry.file_size();
    return all;
  };
  const std::map<std::string, std::string> settings = {{"port", "udp"},
                                                       {"addr", "127.0.77.10"},
                                                       {"trace", folder / "trace"},
                                                       {"pcap", folder / "capture"},
                                                       {"path_log", folder / "paths"}};
  std::string error;
  auto own = Endpoint::open(settings, error);
  ASSERT_NE(own, nullptr) << error;
  const auto peer = own->add_peer(b_->address());
  ASSERT_TRUE(peer);
  ASSERT_EQ(own->send(*peer, 1, "one", 3, nullptr), Post::kAccepted);
  own->turn();
  const auto before = sizes();
  EXPECT_EQ(before.size(), 3u);
  EXPECT_EQ(status_of_child([] {
              exit(0);
              return true;
            }),
            0);
  EXPECT_EQ(sizes(), before) << "what the child wrote";

  std::optional<IdleChild> child(std::in_place);
  own.reset();
  EXPECT_GT(sizes()["trace"], before.at("trace")) << "there was nothing to write";
  own = Endpoint::open(settings, error);
  ASSERT_NE(own, nullptr) << error;
  EXPECT_EQ(sizes().size(), 3u) << "another name, since the child keeps the lock";
  child.reset();
  own.reset();
  fs::remove_all(folder);
}

TEST_F(EndpointTest, fork__child_opens_endpoints_of_its_own) {
  EXPECT_EQ(status_of_child([&] {
              std::string error;
              auto own = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.6"}}, error);
              if (own == nullptr) return false;
              const auto peer = own->add_peer(b_->address());
              return peer && own->send(*peer, 1, "x", 1, nullptr) == Post::kAccepted && own->turn();
            }),
            0);
}

/// A connection that the child kept would stay in what wakeup_fd() stands for, without a number to take it out by.
TEST(Endpoint, fork__child_keeps_no_client_of_its_parent) {
  namespace fs = std::filesystem;
  const fs::path folder = testing::TempDir() + "uet_client_" + std::to_string(getpid());
  fs::create_directories(folder);
  setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  std::string error;
  auto endpoint = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.4"}}, error);
  ASSERT_NE(endpoint, nullptr) << error;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, fs::directory_iterator(folder / "uet")->path().c_str(),
               sizeof address.sun_path - 1);
  const int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto turn_until = [&](auto&& is_true) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    do {
      endpoint->turn();
      endpoint->may_sleep_for();
      if (is_true()) return true;
      std::this_thread::sleep_for(1ms);
    } while (std::chrono::steady_clock::now() < end);
    return false;
  };
  ASSERT_EQ(write(client, "s", 1), 1);  // the beginning of a request
  EXPECT_TRUE(turn_until([&] {
    int unread = -1;
    return ioctl(client, SIOCOUTQ, &unread) == 0 && unread == 0;
  }));
  const IdleChild child;
  shutdown(client, SHUT_RDWR);
  EXPECT_TRUE(turn_until([&] {
    pollfd fd{.fd = endpoint->wakeup_fd(), .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) == 0;
  })) << "readable after its client has gone";
  close(client);
  endpoint.reset();
  unsetenv("XDG_RUNTIME_DIR");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace uet
