// Files that settings name have one writer each.
#include "lib/net/output_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace uet::net {
namespace {

struct OutputFileTest : ::testing::Test {
  OutputFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "uet-output-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  ~OutputFileTest() override { std::filesystem::remove_all(folder); }

  std::string at(const std::string& name) const { return (folder / name).string(); }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void put(const OutputFile& out, const char* text) {
    std::fputs(text, out.file);
    std::fclose(out.file);
  }

  std::filesystem::path folder;
};

TEST_F(OutputFileTest, is_emptied) {
  const std::string path = at("log");
  std::ofstream(path) << "what was there before";
  put(*open_output_file(path), "new");
  EXPECT_EQ(content(path), "new");
}

TEST_F(OutputFileTest, names_the_process_wherever_asked) {
  const std::string id = std::to_string(getpid());
  EXPECT_EQ(with_process_id("/tmp/a-%p-%p.pcapng"), "/tmp/a-" + id + "-" + id + ".pcapng");
  EXPECT_EQ(with_process_id("plain"), "plain");
  const auto out = open_output_file(at("%p.json"));
  EXPECT_EQ(out->path, at(id + ".json"));
  std::fclose(out->file);
}

TEST_F(OutputFileTest, one_that_has_a_writer_is_left_alone) {
  const auto first = open_output_file(at("a.b/../x.pcapng"));
  ASSERT_FALSE(first) << "there is no such folder";
  const auto one = open_output_file(at("x.pcapng"));
  const auto two = open_output_file(at("x.pcapng"));
  const auto three = open_output_file(at("x.pcapng"));
  EXPECT_EQ(one->path, at("x.pcapng"));
  EXPECT_EQ(two->path, at("x-2.pcapng"));
  EXPECT_EQ(three->path, at("x-3.pcapng"));
  put(*two, "two");
  put(*one, "one");
  put(*three, "three");
  EXPECT_EQ(content(at("x.pcapng")), "one");
  EXPECT_EQ(content(at("x-2.pcapng")), "two");
  const auto again = open_output_file(at("x.pcapng"));
  EXPECT_EQ(again->path, at("x.pcapng"));
  std::fclose(again->file);
}

TEST_F(OutputFileTest, numbers_stand_before_the_ending_if_there_is_one) {
  std::filesystem::create_directory(folder / "a.b");
  for (const auto& [name, second] :
       {std::pair{"plain", "plain-2"}, {".hidden", ".hidden-2"}, {"a.b/plain", "a.b/plain-2"}}) {
    const auto one = open_output_file(at(name));
    const auto two = open_output_file(at(name));
    EXPECT_EQ(two->path, at(second));
    std::fclose(one->file);
    std::fclose(two->file);
  }
}

TEST_F(OutputFileTest, writer_in_another_process_counts) {
  int ready[2], over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto out = open_output_file(at("log"));
    char byte = out ? 1 : 0;
    (void)!::write(ready[1], &byte, 1);
    ::close(over[1]);
    (void)!::read(over[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 1);
  const auto out = open_output_file(at("log"));
  EXPECT_EQ(out->path, at("log-2"));
  std::fclose(out->file);
  ::close(over[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  const auto behind = open_output_file(at("log"));
  EXPECT_EQ(behind->path, at("log")) << "its writer has ended";
  std::fclose(behind->file);
  for (const int fd : {ready[0], ready[1], over[0]}) ::close(fd);
}

TEST_F(OutputFileTest, devices_have_any_number_of_writers) {
  const auto one = open_output_file("/dev/null");
  const auto two = open_output_file("/dev/null");
  EXPECT_EQ(two->path, "/dev/null");
  std::fclose(one->file);
  std::fclose(two->file);
}

TEST_F(OutputFileTest, what_cannot_be_written_says_why) {
  EXPECT_FALSE(open_output_file(at("none/log")));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(open_output_file(folder.string()));
  EXPECT_EQ(errno, EISDIR);
}

}  // namespace
}  // namespace uet::net
