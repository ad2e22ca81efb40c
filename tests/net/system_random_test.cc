#include "lib/ports/system_random.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uet::ports {
namespace {

TEST(SystemRandom, without_a_seed_no_two_endpoints_share_their_numbers) {
  base::Rng one = make_rng(0), other = make_rng(0);
  EXPECT_NE(one.next_u64(), other.next_u64());
}

TEST(SystemRandom, with_a_seed_they_are_those_of_the_seed) {
  EXPECT_EQ(make_rng(7).next_u64(), base::Rng(7).next_u64());
}

// [decision 168]
TEST(NumberOfProcess, stays_for_as_long_as_the_process_lives) {
  EXPECT_EQ(number_of_process(0), number_of_process(0));
  EXPECT_EQ(number_of_process(7), number_of_process(7));
  EXPECT_NE(number_of_process(7), number_of_process(8));
}

TEST(NumberOfProcess, is_another_one_in_a_forked_child) {
  const std::uint32_t ours = number_of_process(0);
  int numbers[2];
  ASSERT_EQ(pipe(numbers), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::uint32_t first = number_of_process(0), second = number_of_process(0);
    const bool is_told = first == second && write(numbers[1], &first, sizeof first) == sizeof first;
    _exit(is_told ? 0 : 1);
  }
  close(numbers[1]);
  std::uint32_t theirs = 0;
  EXPECT_EQ(read(numbers[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
  close(numbers[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(theirs, ours);
}

}  // namespace
}  // namespace uet::ports
