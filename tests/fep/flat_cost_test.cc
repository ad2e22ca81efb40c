// A message costs the same however many receives are posted.
#include "tests/base/instruction_count.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

constexpr std::uint64_t kMessages = 4;

/// Instructions of a tagged message at both ends together, with its receive, while so many other receives wait for other tags.
std::optional<double> cost_of_message(std::uint64_t posted) {
  FepPair pair({.delay = Duration::from_us(1), .rate = base::BitRate::from_gbps(100)});
  std::vector<std::uint8_t> out(64, 1), in(64);
  const iovec out_iov{out.data(), out.size()}, in_iov{in.data(), in.size()};
  std::uint64_t tag = 0;
  const auto post = [&] {
    ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                                    {.tagged = true, .tag = ++tag, .iov = {&in_iov, 1}}));
  };
  for (std::uint64_t n = 0; n < posted; ++n) post();
  const auto exchange = [&](std::uint64_t messages) {
    for (std::uint64_t n = 0; n < messages; ++n) {
      post();
      ASSERT_TRUE(pair.ses(0).send(
          pair.now, pair.sides[0].endpoint,
          {.peer = pair.sides[0].peer, .tagged = true, .tag = tag, .iov = {&out_iov, 1}}));
      const std::size_t done = pair.completions(0).count() + 1;
      pair.run_until([&] { return pair.completions(0).count() == done; });
    }
  };
  for (std::size_t side : {0u, 1u}) pair.completions(side).keep(false);
  exchange(kMessages);  // what only a first message costs is behind us
  const auto none = instructions_of([&] { exchange(0); });
  const auto all = instructions_of([&] { exchange(kMessages); });
  if (!none || !all) return std::nullopt;
  return static_cast<double>(*all - *none) / kMessages;
}

TEST(FlatCost, a_message_costs_the_same_however_many_receives_wait) {
  const auto alone = cost_of_message(0);
  if (!alone) GTEST_SKIP() << "instructions cannot be counted here";
  constexpr std::uint64_t kPosted = 1'000;
  const auto cost = cost_of_message(kPosted);
  ASSERT_TRUE(cost.has_value());
  std::cout << kPosted << " receives posted: " << *cost
            << " instructions a message, both ends; none: " << *alone << "\n";
  EXPECT_LE(*cost, *alone * 1.2);
}

}  // namespace
}  // namespace uet::test
