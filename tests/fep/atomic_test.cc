/// Atomics between two whole endpoints on a network that loses, repeats and reorders: executed exactly once.
#include <set>

#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using ses::AmoDatatype;
using ses::AmoOpcode;

struct AtomicCase {
  const char* name;
  bool ordered;
  /// Bytes of old values that an ACK may carry: elements above it go back as read data does.
  const char* ack_data;
};

class AtomicTest : public testing::TestWithParam<AtomicCase> {
 protected:
  static std::map<std::string, std::string> variables() {
    return {{"PDS", std::string("Max_ACK_Data_Size=") + GetParam().ack_data}};
  }
  AtomicTest()
      : pair(LinkConfig{.loss = 0.05, .reorder = 0.05, .duplicate = 0.05, .seed = 7}, variables(),
             GetParam().ordered, {}, GetParam().ordered) {
    const iovec at{memory.data(), sizeof memory};
    ses::MemoryRequest m;
    m.iov = {&at, 1};
    m.remote_read = m.remote_write = true;
    m.virtual_addressing = false;
    key = *pair.ses(1).register_memory(m);
  }

  bool post(AmoOpcode op, std::uint64_t value, std::uint64_t* old, std::uint64_t at = 0) {
    const iovec v{&value, sizeof value}, o{old, sizeof *old};
    ses::AtomicRequest r;
    r.peer = pair.sides[0].peer;
    r.op = op;
    r.type = AmoDatatype::kUint64;
    r.fetching = old != nullptr;
    r.operand = {&v, 1};
    if (old != nullptr) r.result = {&o, 1};
    r.inject = old == nullptr;
    r.remote_offset = at;
    r.key = key;
    return pair.ses(0).atomic(pair.now, pair.sides[0].endpoint, r).has_value();
  }

  FepPair pair;
  alignas(64) std::array<std::uint64_t, 8> memory{};
  std::uint64_t key = 0;
};

INSTANTIATE_TEST_SUITE_P(Weather, AtomicTest,
                         testing::Values(AtomicCase{"rud", false, "16"},
                                         AtomicCase{"rod", true, "16"},
                                         AtomicCase{"rud_return", false, "4"},
                                         AtomicCase{"rod_return", true, "4"}),
                         [](const auto& weather) { return weather.param.name; });

// Covers: SES-73
// Covers: PDS-140
TEST_P(AtomicTest, fetching_sum__counts_once_whatever_is_lost_or_repeated) {
  constexpr std::size_t kCalls = 2000;
  std::vector<std::uint64_t> olds(kCalls);
  std::size_t posted = 0;
  ASSERT_TRUE(pair.run_until(
      [&] {
        while (posted < kCalls && posted - pair.completions(0).count() < 64 &&
               post(AmoOpcode::kSum, 1, &olds[posted]))
          ++posted;
        return pair.completions(0).count() == kCalls;
      },
      Duration::from_seconds(60)));
  EXPECT_EQ(pair.completions(0).errors(), 0u);
  EXPECT_EQ(memory[0], kCalls);
  EXPECT_EQ(std::set<std::uint64_t>(olds.begin(), olds.end()).size(), kCalls);
  if (GetParam().ordered) {
    for (std::size_t i = 0; i < kCalls; ++i) ASSERT_EQ(olds[i], i);
  }
  // The network did what this is about.
  EXPECT_GT(pair.sides[1].trace.count(base::EventId::kDuplicateReceived), 20u);
}

TEST_P(AtomicTest, plain_sum__counts_once) {
  constexpr std::uint64_t kCalls = 5000;
  std::uint64_t posted = 0;
  ASSERT_TRUE(pair.run_until(
      [&] {
        while (posted < kCalls && posted - pair.completions(0).count() < 64 &&
               post(AmoOpcode::kSum, posted, nullptr, 8))
          ++posted;
        return pair.completions(0).count() == kCalls;
      },
      Duration::from_seconds(60)));
  EXPECT_EQ(pair.completions(0).errors(), 0u);
  EXPECT_EQ(memory[1], kCalls * (kCalls - 1) / 2);
}

}  // namespace
}  // namespace uet::test
