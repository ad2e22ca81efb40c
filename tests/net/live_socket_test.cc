/// Processes that open their sockets while others read, in one folder.
#include "lib/ports/live_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

namespace uet::ports {
namespace {

class LiveSocketTest : public testing::Test {
 protected:
  LiveSocketTest() : folder_(testing::TempDir() + "live_socket_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~LiveSocketTest() override { std::filesystem::remove_all(folder_); }

  std::ptrdiff_t names() const {
    return std::distance(std::filesystem::directory_iterator(folder_ / "uet"), {});
  }

  std::filesystem::path folder_;
};

TEST_F(LiveSocketTest, a_reader_at_the_moment_of_opening__leaves_the_socket_where_it_is) {
  std::atomic<bool> is_over = false;
  std::atomic<int> looks = 0;
  std::thread reader([&] {
    for (; !is_over; ++looks) ask_live_processes("stat", 0);
  });
  while (looks == 0) std::this_thread::yield();
  for (int i = 0; i < 3000; ++i) {
    std::string path;
    const auto listener = open_live_socket(live_folder(true), path);
    EXPECT_TRUE(listener) << std::strerror(errno);
    EXPECT_EQ(access(path.c_str(), F_OK), 0) << "opening " << i << ", after " << looks << " looks";
    unlink(path.c_str());
  }
  is_over = true;
  reader.join();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "uet"));
}

TEST_F(LiveSocketTest, what_a_process_left_behind__is_removed_by_a_reader) {
  std::string path;
  open_live_socket(live_folder(true), path);
  ASSERT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_TRUE(ask_live_processes("stat", 0).empty());
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(LiveSocketTest, with_a_pid__only_that_process_is_asked) {
  std::vector<std::string> paths(2);
  const auto first = open_live_socket(live_folder(true), paths[0]);
  const auto second = open_live_socket(live_folder(true), paths[1]);
  ASSERT_TRUE(first && second) << "two endpoints of one process";
  EXPECT_EQ(ask_live_processes("stat", 0).size(), 2u);
  EXPECT_EQ(ask_live_processes("stat", 0, getpid()).size(), 2u);
  EXPECT_TRUE(ask_live_processes("stat", 0, getpid() / 10).empty());
  EXPECT_TRUE(ask_live_processes("stat", 0, 10L * getpid()).empty());
}

/// The first process answers when the other one has its question.
TEST_F(LiveSocketTest, processes__are_asked_side_by_side) {
  std::vector<std::string> paths(2);
  std::vector<udp::Descriptor> listeners;
  for (std::string& path : paths) listeners.push_back(open_live_socket(live_folder(true), path));
  std::thread processes([&] {
    std::vector<udp::Descriptor> clients;
    for (const udp::Descriptor& listener : listeners) {
      std::string request;
      while (request.empty()) {  // as a process does that looks whether another has this name
        pollfd ready{.fd = listener.fd(), .events = POLLIN, .revents = 0};
        if (poll(&ready, 1, 20'000) != 1) return;
        clients.push_back(udp::Descriptor::open(
            [&] { return accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC); }));
        request = read_live_request(clients.back().fd(), 10'000);
      }
    }
    for (const udp::Descriptor& client : clients) write_live_answer(client.fd(), "well", 10'000);
  });
  const std::vector<LiveAnswer> answers = ask_live_processes("stat", 10'000);
  processes.join();
  ASSERT_EQ(answers.size(), 2u);
  for (const LiveAnswer& answer : answers) EXPECT_EQ(answer.text + answer.error, "well");
}

TEST_F(LiveSocketTest, names_that_killed_processes_left__are_had_again) {
  std::string first;
  open_live_socket(live_folder(true), first);
  for (int i = 0; i < 20; ++i) {
    std::string path;
    const auto listener = open_live_socket(live_folder(true), path);
    EXPECT_TRUE(listener) << std::strerror(errno) << " in process " << i;
    EXPECT_EQ(path, first);
  }
}

TEST_F(LiveSocketTest, keep__gives_the_process_a_name_again_after_its_folder_vanished) {
  LiveSocket socket;
  ASSERT_GE(socket.fd(), 0);
  ASSERT_EQ(names(), 1);
  std::filesystem::remove_all(folder_ / "uet");
  socket.keep();
  ASSERT_EQ(names(), 1);
  std::filesystem::remove(*std::filesystem::directory_iterator(folder_ / "uet"));
  socket.keep();
  ASSERT_EQ(names(), 1);
  EXPECT_EQ(ask_live_processes("stat", 0).size(), 1u) << "nothing listens under that name";
  const int before = socket.fd();
  socket.keep();
  EXPECT_EQ(socket.fd(), before);
}

/// A server that forks a helper and is killed: while the helper had the socket, it took connections that nothing answers.
TEST_F(LiveSocketTest, child_made_by_fork__lets_go_of_it) {
  int end[2], done[2];
  ASSERT_EQ(pipe(end) | pipe(done), 0);
  const pid_t server = fork();
  if (server == 0) {
    auto* const socket = new LiveSocket;
    const pid_t helper = fork();
    if (helper != 0) _exit(helper > 0 && socket->fd() >= 0 && names() == 1 ? 0 : 1);
    ::close(end[1]);
    delete socket;  // the name is the parent's
    const char is_there = names() == 1 ? 'y' : 'n';
    char none;
    if (write(done[1], &is_there, 1) == 1) (void)!read(end[0], &none, 1);
    _exit(0);
  }
  int status = -1;
  waitpid(server, &status, 0);
  EXPECT_EQ(status, 0);
  char is_there = 0;
  ASSERT_EQ(read(done[0], &is_there, 1), 1);
  EXPECT_EQ(is_there, 'y');
  EXPECT_TRUE(ask_live_processes("stat", 0).empty());
  EXPECT_EQ(names(), 0);
  for (const int fd : {end[0], end[1], done[0], done[1]}) ::close(fd);
}

TEST_F(LiveSocketTest, keep__goes_back_to_the_folder_where_readers_look) {
  const auto folder = folder_ / "uet";
  std::filesystem::remove_all(folder);
  close(::open(folder.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));  // no folder can be made
  LiveSocket socket;
  std::filesystem::remove(folder);
  socket.keep();
  ASSERT_EQ(names(), 1);
}

TEST_F(LiveSocketTest, close__leaves_a_name_that_another_process_has_by_now) {
  std::string path;
  udp::Descriptor other;
  {
    const LiveSocket socket;
    std::filesystem::remove(*std::filesystem::directory_iterator(folder_ / "uet"));
    other = open_live_socket(live_folder(true), path);
    ASSERT_TRUE(other);
  }
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST_F(LiveSocketTest, processes_of_one_number__have_names_of_their_own) {
  std::string first_path, second_path;
  const auto first = open_live_socket(live_folder(true), first_path);
  const auto second = open_live_socket(live_folder(true), second_path);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(first_path, second_path);
  for (const auto& path : {first_path, second_path}) EXPECT_TRUE(path.ends_with(".sock")) << path;
}

TEST_F(LiveSocketTest, many_sockets_of_one_process__have_names_of_their_own) {
  std::vector<std::unique_ptr<LiveSocket>> sockets;
  for (int i = 0; i < 50; ++i) {
    sockets.push_back(std::make_unique<LiveSocket>());
    EXPECT_GE(sockets.back()->fd(), 0) << i;
  }
}

}  // namespace
}  // namespace uet::ports
