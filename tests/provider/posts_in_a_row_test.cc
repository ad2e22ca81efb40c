/// Messages that an application posts in a row: their packets wait for its next call, or for the progress thread.
#include <rdma/fi_tagged.h>

#include <array>
#include <cstdlib>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRow = 8;

class PostsInARowTest : public PairTest {
 protected:
  void SetUp() override { open(); }

  void post_receives() {
    for (std::uint64_t& place : received_)
      ASSERT_EQ(fi_trecv(b.ep, &place, sizeof place, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr), 0);
  }
  void post_row() {
    for (int i = 0; i < kRow; ++i, ++number_)
      ASSERT_EQ(fi_tinject(a.ep, &number_, sizeof number_, to_b, 7), 0);
  }
  /// Until the provider has seen that the program is prompt, and its thread that posts may wait.
  void be_prompt() {
    for (const auto end = Clock::now() + std::chrono::milliseconds(20);
         Clock::now() < end && !HasFailure();)
      prompt_row();
  }
  /// All of the row that was posted latest, in any order.
  void expect_row() {
    std::uint64_t sum = 0, expected = 0;
    for (int i = 0; i < kRow; ++i) {
      sum += received_[static_cast<std::size_t>(i)];
      expected += number_ - 1 - static_cast<std::uint64_t>(i);
    }
    EXPECT_EQ(sum, expected);
  }
  /// A program that polls at once after each row.
  void prompt_row() {
    post_receives();
    post_row();
    for (int n = 0; n < kRow;) {
      fi_cq_read(a.cq, nullptr, 0);
      if (poll(b)) ++n;
    }
    expect_row();
  }

  /// Messages of a row that b has, or gets; a makes no call meanwhile.
  int arrived_within_ten_seconds() {
    int n = 0;
    for (const auto end = Clock::now() + std::chrono::seconds(10); n < kRow && Clock::now() < end;)
      if (poll(b)) ++n;
    return n;
  }

  std::uint64_t number_ = 1;
  std::array<std::uint64_t, kRow> received_{};
};

TEST_F(PostsInARowTest, AllArriveFromAProgramThatPolls) {
  for (int i = 0; i < 2000 && !HasFailure(); ++i) prompt_row();
}

TEST_F(PostsInARowTest, AllArriveThoughTheProgramMakesNoOtherCall) {
  for (int away = 0; away < 20 && !HasFailure(); ++away) {
    be_prompt();
    post_receives();
    post_row();
    EXPECT_EQ(arrived_within_ten_seconds(), kRow);
    expect_row();
  }
}

class PostsBeforeSleepTest : public PostsInARowTest {
 protected:
  void SetUp() override {
    a.cq_attr.wait_obj = FI_WAIT_UNSPEC;
    open();
  }
};

TEST_F(PostsBeforeSleepTest, AllArriveWhileTheProgramSleepsInACall) {
  be_prompt();
  post_receives();
  post_row();
  fi_cq_tagged_entry entry;
  EXPECT_EQ(fi_cq_sread(a.cq, &entry, 1, nullptr, 1), -FI_EAGAIN);
  EXPECT_EQ(arrived_within_ten_seconds(), kRow);
  expect_row();
}

TEST_F(PostsInARowTest, AllArriveFromAnEndpointThatIsClosed) {
  be_prompt();
  post_receives();
  post_row();
  a.close();
  EXPECT_EQ(arrived_within_ten_seconds(), kRow);
  expect_row();
}

}  // namespace
}  // namespace uet::provider::testing
