// One command at a time, and what killed ones left. [TSS 13.2]
#include "keys/file_lock.h"

#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "keys/file_access.h"
#include "tests/base/temp_folder.h"

namespace uet::keys::test {
namespace {

using testing::HasSubstr;
using uet::test::TempFolder;

constexpr auto kNew = FileLock::Of::kNewFile;

/// A mistyped name, or root at the file of a user, who could not lock it any more.
TEST(FileLock, file_that_is_not_there__leaves_nothing_behind) {
  const TempFolder folder;
  { EXPECT_EQ(FileLock(folder / "keys").error(), ""); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FileLock, waits_for_the_one_before_it) {
  const TempFolder folder;
  std::atomic<bool> is_second = false;
  std::thread second;
  {
    const FileLock first(folder / "keys", kNew);
    EXPECT_EQ(first.error(), "");
    second = std::thread([&] {
      const FileLock lock(folder / "keys", kNew);
      is_second = true;
    });
    ::usleep(50'000);
    EXPECT_FALSE(is_second);
  }
  second.join();
  EXPECT_TRUE(is_second);
}

TEST(FileLock, folder_that_is_not_there_is_for_the_command_to_complain_about) {
  EXPECT_EQ(FileLock("/nowhere/keys").error(), "");
  const TempFolder folder;
  std::filesystem::create_directory(folder / "keys.lock");
  EXPECT_THAT(FileLock(folder / "keys", kNew).error(), HasSubstr("keys.lock"));
}

/// And no copy that a person made.
TEST(FileLock, removes_what_killed_commands_left) {
  const TempFolder folder;
  const std::vector<std::string> stay = {
      "keys",       "keys.new", "keys.new.", "keys.new.saved", "keys.new.0123456789abcdef0",
      "other.new.1"};
  for (const std::string& name : stay) folder.write(name, "secret");
  folder.write("keys.new.1", "a copy that a person made");
  folder.write("keys.new.0123456789abcdef", "secret");
  { const FileLock lock(folder / "keys"); }
  for (const std::string& name : stay) EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  EXPECT_TRUE(std::filesystem::exists(folder / "keys.new.1"));
  EXPECT_FALSE(std::filesystem::exists(folder / "keys.new.0123456789abcdef"));
}

TEST(FileLock, leaves_what_another_command_is_writing) {
  const TempFolder folder;
  const std::string name = folder.write("keys.new.0123456789abcdef", "secret");
  const int writer = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  { const FileLock lock(folder / "keys", kNew); }
  EXPECT_TRUE(std::filesystem::exists(name));
  ::close(writer);
  { const FileLock lock(folder / "keys", kNew); }
  EXPECT_FALSE(std::filesystem::exists(name));
}

/// A container gives each process the number that the one before it had.
TEST(WriteSecret, is_not_kept_from_writing_by_what_a_process_of_the_same_number_left) {
  const TempFolder folder;
  const std::string left =
      folder.write("keys.new." + std::to_string(::getpid()), "all keys of before");
  EXPECT_EQ(write_secret(folder / "keys", "one", false), "");
  EXPECT_EQ(read_secret(folder / "keys")->text, "one");
  EXPECT_EQ(write_secret(folder / "keys", "two", true), "");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2) << "and that";
}

/// Killed between two calls, where the file system cannot name a new file in one.
TEST(ReadSecret, names_what_makes_a_second_name) {
  const TempFolder folder;
  folder.write("keys", "one");
  const std::string left = folder / "keys.new.00112233aabbccdd";
  ASSERT_EQ(::link((folder / "keys").c_str(), left.c_str()), 0);
  EXPECT_THAT(read_secret(folder / "keys").error(), HasSubstr("remove " + left));
  { const FileLock lock(folder / "keys"); }
  EXPECT_TRUE(read_secret(folder / "keys"));
}

}  // namespace
}  // namespace uet::keys::test
