// A tool tries to write its output before it begins, and leaves no trace of that.
#include "apps/output_path.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/base/temp_folder.h"

namespace uet::apps {
namespace {

struct OutputPath : ::testing::Test {
  const test::TempFolder folder;
};

TEST_F(OutputPath, what_is_there_stays_and_what_is_not_there_is_not_made) {
  std::ofstream(folder / "notes") << "mine";
  EXPECT_TRUE(can_write(folder / "notes"));
  EXPECT_EQ(std::filesystem::file_size(folder / "notes"), 4U);
  EXPECT_TRUE(can_write(folder / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
  EXPECT_FALSE(can_write(folder / "none/new"));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(OutputPath, a_link_to_a_file_that_is_not_there_stays_and_its_target_is_not_made) {
  std::filesystem::create_symlink("target", folder / "link");
  std::filesystem::create_symlink("link", folder / "link-to-link");
  EXPECT_TRUE(can_write(folder / "link-to-link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link-to-link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_FALSE(std::filesystem::exists(folder / "target"));
}

}  // namespace
}  // namespace uet::apps
