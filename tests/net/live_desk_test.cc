/// Clients of every kind at the desk of a loop that must not wait; the loop's time is the test's.
#include "lib/ports/live_desk.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lib/ports/live_socket.h"
#include "tests/net/no_descriptors.h"

namespace uet::ports {
namespace {

constexpr base::Duration kStep = base::Duration::from_ms(100);

class LiveDeskTest : public testing::Test {
 protected:
  LiveDeskTest() : folder_(testing::TempDir() + "live_desk_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    desk_.emplace();
  }
  ~LiveDeskTest() override {
    desk_.reset();
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "uet")) << "the socket is left behind";
    std::filesystem::remove_all(folder_);
  }

  int connect() {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = std::filesystem::directory_iterator(folder_ / "uet")->path().string();
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  void ask(int fd, const std::string& line) {
    EXPECT_EQ(send(fd, line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
  }
  void turn(base::Duration later = kStep) {
    now_ = now_ + later;
    if (!desk_->is_due(now_)) return;
    desk_->look(now_, [this](const std::string& request) {
      ++answered_;
      return answer_.empty() ? "to " + request : answer_;
    });
  }
  /// What has come, and whether the desk has hung up.
  std::pair<std::string, bool> heard(int fd) {
    std::string text;
    char chunk[65536];
    for (;;) {
      const ssize_t n = recv(fd, chunk, sizeof chunk, 0);
      if (n <= 0) return {text, n == 0};
      text.append(chunk, static_cast<std::size_t>(n));
    }
  }

  std::filesystem::path folder_;
  std::optional<LiveDesk> desk_;
  base::Instant now_;
  std::string answer_;
  int answered_ = 0;
};

TEST_F(LiveDeskTest, a_request__is_answered_in_one_turn) {
  const int fd = connect();
  ask(fd, "stat\n");
  turn();
  EXPECT_EQ(heard(fd), std::pair(std::string("to stat"), true));
  close(fd);
}

TEST_F(LiveDeskTest, a_request_that_comes_later__is_waited_for_without_standing_still) {
  const int fd = connect();
  turn();
  EXPECT_EQ(heard(fd), std::pair(std::string(), false));
  ask(fd, "stat\n");
  EXPECT_EQ(desk_->wakeup().fd >= 0, true);
  desk_->look_soon();
  turn(base::Duration::from_us(1));
  EXPECT_EQ(heard(fd), std::pair(std::string("to stat"), true));
  close(fd);
}

TEST_F(LiveDeskTest, a_silent_client__is_left_after_two_seconds_and_the_next_is_served) {
  const int silent = connect(), next = connect();
  ask(next, "stat\n");
  for (int i = 0; i < 20; ++i) turn();
  EXPECT_EQ(heard(next), std::pair(std::string(), false));
  turn();
  EXPECT_TRUE(heard(silent).second);
  turn();
  EXPECT_EQ(heard(next), std::pair(std::string("to stat"), true));
  close(silent);
  close(next);
}

TEST_F(LiveDeskTest, a_long_answer__goes_in_pieces_as_the_client_takes_it) {
  answer_.assign(5'000'000, 'x');
  const int fd = connect();
  ask(fd, "stat\n");
  std::string all;
  bool is_over = false;
  for (int i = 0; i < 1000 && !is_over; ++i) {
    turn(base::Duration::from_us(50));
    desk_->look_soon();
    const auto [text, end] = heard(fd);
    all += text;
    is_over = end;
  }
  EXPECT_TRUE(is_over);
  EXPECT_EQ(all, answer_);
  EXPECT_EQ(answered_, 1);
  close(fd);
}

TEST_F(LiveDeskTest, a_client_that_takes_nothing__is_left) {
  answer_.assign(5'000'000, 'x');
  const int fd = connect();
  ask(fd, "stat\n");
  for (int i = 0; i < 25; ++i) turn();
  const int next = connect();
  answer_.clear();
  ask(next, "events\n");
  turn();
  EXPECT_EQ(heard(next), std::pair(std::string("to events"), true));
  close(fd);
  close(next);
}

TEST_F(LiveDeskTest, a_client_that_hangs_up__costs_nothing) {
  close(connect());
  turn();
  const int fd = connect();
  ask(fd, "stat\n");
  turn();
  turn();
  EXPECT_EQ(heard(fd), std::pair(std::string("to stat"), true));
  close(fd);
  EXPECT_EQ(answered_, 1);
}

TEST_F(LiveDeskTest, a_socket_that_vanished__is_there_again_within_a_second_of_sleep) {
  turn();
  std::filesystem::remove_all(folder_ / "uet");
  EXPECT_LE(desk_->deadline(), now_ + base::Duration::from_seconds(1));
  turn(desk_->deadline() - now_);
  ASSERT_FALSE(std::filesystem::is_empty(folder_ / "uet"));
  const int fd = connect();
  ask(fd, "stat\n");
  turn();
  EXPECT_EQ(heard(fd), std::pair(std::string("to stat"), true));
  close(fd);
}

TEST_F(LiveDeskTest, a_child_of_the_process__does_not_keep_its_client) {
  const int fd = connect();
  turn();
  int life[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, life), 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    close(life[0]);
    (void)!write(life[1], &byte, 1);
    (void)!read(life[1], &byte, 1);
    _exit(0);
  }
  close(life[1]);
  ASSERT_EQ(read(life[0], &byte, 1), 1);
  ask(fd, "stat\n");
  turn();
  EXPECT_EQ(heard(fd), std::pair(std::string("to stat"), true));
  close(life[0]);
  waitpid(child, nullptr, 0);
  close(fd);
}

TEST_F(LiveDeskTest, a_client_that_finds_no_descriptor_left__wakes_nothing_and_is_served_later) {
  const int fd = connect();
  ask(fd, "stat\n");
  pollfd before = desk_->wakeup();
  EXPECT_EQ(::poll(&before, 1, 0), 1);
  {
    const net::NoDescriptors none;
    turn();
    pollfd meanwhile = desk_->wakeup();
    EXPECT_EQ(::poll(&meanwhile, 1, 0), 0);
    turn();
    EXPECT_EQ(desk_->wakeup().fd, -1);
    EXPECT_LE(desk_->deadline(), now_ + base::Duration::from_seconds(1));
  }
  EXPECT_EQ(heard(fd), std::pair(std::string(), false));
  turn();
  EXPECT_EQ(heard(fd), std::pair(std::string("to stat"), true));
  EXPECT_GE(desk_->wakeup().fd, 0);
  close(fd);
}

}  // namespace
}  // namespace uet::ports
