#include "fep/report/path_log.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using fep::PathLog;

class PathLogTest : public testing::Test {
 protected:
  ~PathLogTest() override { std::remove(path_.c_str()); }

  /// Sends `bytes` from side 0 to side 1.
  void send(std::size_t bytes) {
    auto out = pattern(bytes, 1), in = std::vector<std::uint8_t>(bytes);
    const iovec out_iov = iov(out), in_iov = iov(in);
    ASSERT_TRUE(pair_.ses(1).receive(pair_.now, pair_.sides[1].endpoint, {.iov = {&in_iov, 1}}));
    ASSERT_TRUE(pair_.ses(0).send(pair_.now, pair_.sides[0].endpoint,
                                  {.peer = pair_.sides[0].peer, .iov = {&out_iov, 1}}));
    ASSERT_TRUE(pair_.run_until([&] { return pair_.completions(0).count() > 0; }));
    pair_.completions(0).clear();
  }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  std::string path_ = testing::TempDir() + "path_log_test." + std::to_string(getpid());
  FepPair pair_{LinkConfig{}, {{"PATHS", "16"}}};
};

TEST_F(PathLogTest, a_line__holds_every_path_that_was_used) {
  std::string error;
  const auto log = PathLog::open(testing::TempDir() + "path_log_test.%p", error);
  ASSERT_NE(log, nullptr) << error;
  send(1 << 20);
  log->on_turn(pair_.now, *pair_.sides[0].fep);
  ASSERT_EQ(lines().size(), 1u);
  const auto line = lines()[0];
  EXPECT_EQ(line["t"], pair_.now.ns());
  EXPECT_GT(line["window"], 0);
  EXPECT_FALSE(line["peer"].get<std::string>().empty());
  std::uint64_t sent = 0;
  ASSERT_FALSE(line["paths"].empty());
  for (const auto& path : line["paths"]) {
    EXPECT_EQ(path["state"], "good");
    EXPECT_GT(path["sent"], 0u);
    EXPECT_EQ(path["losses"], 0u);
    sent += path["sent"].get<std::uint64_t>();
  }
  EXPECT_GE(sent, (1u << 20) / pair_.sides[0].fep->payload_mtu());
}

TEST_F(PathLogTest, turns__are_logged_once_a_second) {
  std::string error;
  const auto log = PathLog::open(path_, error);
  ASSERT_NE(log, nullptr) << error;
  send(1000);
  for (const int ms : {0, 400, 999, 1000, 1500, 2000})
    log->on_turn(pair_.now + Duration::from_ms(ms), *pair_.sides[0].fep);
  EXPECT_EQ(lines().size(), 3u);
}

TEST_F(PathLogTest, a_full_disk__is_told_and_its_lines_are_counted) {
  std::string error;
  const auto log = PathLog::open("/dev/full", error);
  ASSERT_NE(log, nullptr) << error;
  send(1 << 20);
  testing::internal::CaptureStderr();
  for (int second = 0; second < 10; ++second)
    log->on_turn(pair_.now + Duration::from_seconds(second), *pair_.sides[0].fep);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cannot write /dev/full: No space left on device"), std::string::npos)
      << said;
  EXPECT_GT(net::not_written().front().records, 0u);
}

TEST_F(PathLogTest, a_file_that_cannot_be_written__is_named_by_its_setting) {
  std::string error;
  EXPECT_EQ(PathLog::open("/does/not/exist/x", error), nullptr);
  EXPECT_NE(error.find("FI_UET_PATH_LOG"), std::string::npos);
  EXPECT_NE(error.find("/does/not/exist/x"), std::string::npos);
}

}  // namespace
}  // namespace uet::test
