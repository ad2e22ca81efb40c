// Files that settings name have one writer each.
#include "lib/net/output_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/base/temp_folder.h"
#include "tests/net/full_disk.h"

namespace uet::net {
namespace {

struct OutputFileTest : ::testing::Test {
  std::string at(const std::string& name) const { return folder / name; }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(OutputFile& out, std::string_view text) {
    EXPECT_TRUE(out.write(text));
    out.close();
  }

  const test::TempFolder folder;
};

TEST_F(OutputFileTest, is_emptied) {
  const std::string path = at("log");
  std::ofstream(path) << "what was there before";
  put(*OutputFile::open(path), "new");
  EXPECT_EQ(content(path), "new");
}

TEST_F(OutputFileTest, names_the_process_wherever_asked) {
  const std::string id = std::to_string(getpid());
  EXPECT_EQ(with_process_id("/tmp/a-%p-%p.pcapng"), "/tmp/a-" + id + "-" + id + ".pcapng");
  EXPECT_EQ(with_process_id("plain"), "plain");
  const auto out = OutputFile::open(at("%p.json"));
  EXPECT_EQ(out->path(), at(id + ".json"));
}

TEST_F(OutputFileTest, one_that_has_a_writer_is_left_alone) {
  const auto first = OutputFile::open(at("a.b/../x.pcapng"));
  ASSERT_EQ(first, nullptr) << "there is no such folder";
  const auto one = OutputFile::open(at("x.pcapng"));
  const auto two = OutputFile::open(at("x.pcapng"));
  const auto three = OutputFile::open(at("x.pcapng"));
  EXPECT_EQ(one->path(), at("x.pcapng"));
  EXPECT_EQ(two->path(), at("x-2.pcapng"));
  EXPECT_EQ(three->path(), at("x-3.pcapng"));
  put(*two, "two");
  put(*one, "one");
  put(*three, "three");
  EXPECT_EQ(content(at("x.pcapng")), "one");
  EXPECT_EQ(content(at("x-2.pcapng")), "two");
  const auto again = OutputFile::open(at("x.pcapng"));
  EXPECT_EQ(again->path(), at("x.pcapng"));
}

TEST_F(OutputFileTest, numbers_stand_before_the_ending_if_there_is_one) {
  std::filesystem::create_directory(folder / "a.b");
  for (const auto& [name, second] :
       {std::pair{"plain", "plain-2"}, {".hidden", ".hidden-2"}, {"a.b/plain", "a.b/plain-2"}}) {
    const auto one = OutputFile::open(at(name));
    const auto two = OutputFile::open(at(name));
    EXPECT_EQ(two->path(), at(second));
  }
}

TEST_F(OutputFileTest, writer_in_another_process_counts) {
  int ready[2], over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto out = OutputFile::open(at("log"));
    char byte = out != nullptr ? 1 : 0;
    (void)!::write(ready[1], &byte, 1);
    ::close(over[1]);
    (void)!::read(over[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 1);
  const auto out = OutputFile::open(at("log"));
  EXPECT_EQ(out->path(), at("log-2"));
  ::close(over[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto behind = OutputFile::open(at("log"));
  EXPECT_EQ(behind->path(), at("log")) << "its writer has ended";
  for (const int fd : {ready[0], ready[1], over[0]}) ::close(fd);
}

TEST_F(OutputFileTest, devices_have_any_number_of_writers) {
  const auto one = OutputFile::open("/dev/null");
  const auto two = OutputFile::open("/dev/null");
  EXPECT_EQ(two->path(), "/dev/null");
}

TEST_F(OutputFileTest, what_cannot_be_written_says_why) {
  EXPECT_EQ(OutputFile::open(at("none/log")), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(OutputFile::open(folder.path()), nullptr);
  EXPECT_EQ(errno, EISDIR);
}

constexpr std::string_view kRecord = "a record of thirty-two bytes....";
static_assert(kRecord.size() == 32);

TEST_F(OutputFileTest, a_full_disk__costs_whole_records_and_is_told_once) {
  const auto out = OutputFile::open(at("log"));
  testing::internal::CaptureStderr();
  constexpr std::size_t kWhole = 300, kTried = 4000;
  std::uint64_t refused = 0;
  {
    const FullDisk full(kWhole * kRecord.size() + 7);
    for (std::size_t i = 0; i < kTried; ++i) refused += out->write(kRecord) ? 0 : 1;
    EXPECT_EQ(content(at("log")).size(), kWhole * kRecord.size()) << "no part of a record";
    out->flush();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot write " + at("log") + ": File too large"), std::string::npos) << said;
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_GT(refused, kTried / 2);
  EXPECT_EQ(out->lost(), refused);
}

TEST_F(OutputFileTest, goes_on__when_there_is_room_again) {
  const auto out = OutputFile::open(at("log"));
  testing::internal::CaptureStderr();
  std::uint64_t taken = 0;
  const auto write = [&](std::size_t records) {
    for (std::size_t i = 0; i < records; ++i) taken += out->write(kRecord) ? 1 : 0;
  };
  {
    const FullDisk full(1000);
    write(1000);
  }
  const std::uint64_t before = taken;
  write(2000);
  out->close();
  testing::internal::GetCapturedStderr();
  EXPECT_GT(taken, before + 1500) << "few calls in vain";
  const std::string all = content(at("log"));
  EXPECT_EQ(all.size(), taken * kRecord.size());
  for (std::size_t i = 0; i < all.size(); i += kRecord.size())
    ASSERT_EQ(all.substr(i, kRecord.size()), kRecord);
}

TEST_F(OutputFileTest, what_never_got_there__is_told_and_counted_at_the_end) {
  const auto out = OutputFile::open("/dev/full");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(out->write(kRecord));
  out->close();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/dev/full: No space left on device"),
            std::string::npos);
  EXPECT_EQ(out->lost(), 1U);
  const NotWritten last = not_written().front();
  EXPECT_EQ(last.path, "/dev/full");
  EXPECT_EQ(last.records, 1U);
  EXPECT_EQ(last.error, ENOSPC);
}

TEST_F(OutputFileTest, a_child__writes_nothing_and_opens_nothing) {
  const auto out = OutputFile::open(at("log"));
  EXPECT_TRUE(out->write("parent"));
  const pid_t child = ::fork();
  if (child == 0) {
    out->abandon_in_child();
    const bool is_silent = !out->write("child") && !out->reopen();
    out->close();
    ::_exit(is_silent ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(at("log")), "");
  out->close();
  EXPECT_EQ(content(at("log")), "parent");
}

}  // namespace
}  // namespace uet::net
