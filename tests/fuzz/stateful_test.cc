/// Plays committed inputs of one stateful fuzzer, and seeded ones, as an ordinary test; UET_FUZZ_TARGET names the function.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "lib/base/rng.h"
#include "tests/fuzz/targets.h"

namespace uet::fuzz {
namespace {

TEST(FuzzStateful, committed_inputs_and_their_prefixes) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(UET_CORPUS_DIRECTORY)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<std::uint8_t> input(std::istreambuf_iterator<char>(file), {});
    constexpr std::size_t kPrefixes = 4;
    for (std::size_t i = 1; i <= kPrefixes; ++i)
      UET_FUZZ_TARGET(Bytes(input).first(input.size() * i / kPrefixes));
    ++inputs;
  }
  EXPECT_GE(inputs, 4u);
}

TEST(FuzzStateful, random_inputs) {
  base::Rng rng(20251122);
  std::vector<std::uint8_t> input;
  for (int i = 0; i < 150; ++i) {
    input.resize(100 + rng.below(1200));
    for (auto& b : input) b = static_cast<std::uint8_t>(rng.next_u32());
    UET_FUZZ_TARGET(input);
  }
}

}  // namespace
}  // namespace uet::fuzz
