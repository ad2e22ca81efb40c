// What a host remembers of the keys that it had. [TSS 7.6]
#include "keys/prepared_keys.h"

#include <gmock/gmock.h>

#include "tests/base/temp_folder.h"

namespace uet::keys::test {
namespace {

using testing::HasSubstr;
using uet::test::TempFolder;

const tss::Fingerprint kFirst{1, 2, 3, 4}, kSecond{5, 6};

TEST(PreparedKeys, are_there_the_next_time) {
  const TempFolder folder;
  auto keys = PreparedKeys::read(folder / "keys");
  ASSERT_TRUE(keys);
  EXPECT_FALSE(keys->has(kFirst));
  EXPECT_EQ(keys->folder_of(kFirst), "");
  keys->add(kFirst, "/a/./b/../c");
  EXPECT_EQ(keys->write(), "");
  auto again = PreparedKeys::read(folder / "keys");
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->folder_of(kFirst), "/a/c");
  again->add(kSecond, "/d");
  EXPECT_EQ(again->write(), "");
  EXPECT_EQ(PreparedKeys::read(folder / "keys")->folder_of(kFirst), "/a/c");
  EXPECT_EQ(PreparedKeys::read(folder / "keys")->folder_of(kSecond), "/d");
}

TEST(PreparedKeys, write__of_nothing_new_needs_no_disk) {
  auto keys = PreparedKeys::read("/nowhere/keys");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->write(), "");
  keys->add(kFirst, "/a");
  EXPECT_THAT(keys->write(), HasSubstr("/nowhere"));
}

TEST(PreparedKeys, damaged_file_is_not_taken_for_an_empty_one) {
  const TempFolder folder;
  for (const char* text :
       {"", "{}", "[]", R"({"format":"uet-prepared/1"})",
        R"({"format":"uet-prepared/1","keys":[]})",
        R"({"format":"uet-prepared/1","keys":{"0a":"/a"}})", R"({"format":"other/1","keys":{}})"}) {
    folder.write("keys.prepared", text);
    const auto keys = PreparedKeys::read(folder / "keys");
    ASSERT_FALSE(keys) << text;
    EXPECT_THAT(keys.error(), HasSubstr("keys.prepared: is damaged"));
  }
  folder.write("keys.prepared", R"({"format":"uet-prepared/1","keys":{}})", 0644);
  EXPECT_FALSE(PreparedKeys::read(folder / "keys"));
}

}  // namespace
}  // namespace uet::keys::test
