/// Processes that open their sockets while others read, in one folder.
#include "lib/ports/live_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

namespace uet::ports {
namespace {

class LiveSocketTest : public testing::Test {
 protected:
  LiveSocketTest() : folder_(testing::TempDir() + "live_socket_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~LiveSocketTest() override { std::filesystem::remove_all(folder_); }

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
    const int fd = open_live_socket(path);
    EXPECT_GE(fd, 0) << std::strerror(errno);
    EXPECT_EQ(access(path.c_str(), F_OK), 0) << "opening " << i << ", after " << looks << " looks";
    unlink(path.c_str());
    close(fd);
  }
  is_over = true;
  reader.join();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "uet"));
}

TEST_F(LiveSocketTest, what_a_process_left_behind__is_removed_by_a_reader) {
  std::string path;
  close(open_live_socket(path));
  ASSERT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_TRUE(ask_live_processes("stat", 0).empty());
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(LiveSocketTest, processes_of_one_number__have_names_of_their_own) {
  std::string first_path, second_path;
  const int first = open_live_socket(first_path), second = open_live_socket(second_path);
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  EXPECT_NE(first_path, second_path);
  for (const auto& path : {first_path, second_path}) EXPECT_TRUE(path.ends_with(".sock")) << path;
  close(first);
  close(second);
}

}  // namespace
}  // namespace uet::ports
