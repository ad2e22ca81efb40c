/// Runs every committed input of the fuzzers, and a few thousand seeded ones, as an ordinary test.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "lib/base/rng.h"
#include "tests/fuzz/targets.h"

namespace uet::fuzz {
namespace {

using Target = void (*)(Bytes);

std::vector<std::vector<std::uint8_t>> corpus(const char* name) {
  std::vector<std::vector<std::uint8_t>> out;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(UET_CORPUS_DIRECTORY) / name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return out;
}

/// Every input, every prefix of it, and damaged copies of it.
void run(const char* name, Target target) {
  const auto inputs = corpus(name);
  EXPECT_GE(inputs.size(), 4U) << name;
  base::Rng rng(4793);
  for (const auto& input : inputs) {
    target(input);
    for (std::size_t n = 0; n < input.size(); n += 1 + input.size() / 128)
      target(Bytes(input).first(n));
    auto damaged = input;
    for (int i = 0; i < 200 && !damaged.empty(); ++i) {
      damaged[rng.below(static_cast<std::uint32_t>(damaged.size()))] =
          static_cast<std::uint8_t>(rng.next_u32());
      target(damaged);
      if (i % 8 == 7) damaged = input;
    }
  }
}

TEST(FuzzCorpus, frame) {
  run("frame", frame);
}
TEST(FuzzCorpus, uet) {
  run("uet", uet);
}
TEST(FuzzCorpus, headers) {
  run("headers", headers);
}
TEST(FuzzCorpus, capture) {
  run("capture", capture);
}

// Covers: TSS-T55
TEST(FuzzCorpus, sealed) {
  run("sealed", sealed);
}
TEST(FuzzCorpus, key_file) {
  run("key_file", key_file);
}

TEST(FuzzRandom, bytes_never_break_an_invariant) {
  base::Rng rng(20251121);
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 20000; ++i) {
    bytes.resize(rng.below(160));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next_u32());
    frame(bytes);
    uet(bytes);
    headers(bytes);
    capture(bytes);
    if (i % 16 == 0) sealed(bytes);
    key_file(bytes);
  }
}

}  // namespace
}  // namespace uet::fuzz
