/// uetdrill FILE...: runs packet scripts on virtual time, prints TAP.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "apps/drill/interpreter.h"
#include "tests/drill/virtual_testbed.h"

namespace {

/// What stands behind "not ok" and "# SKIP".
std::string text_of(const uet::drill::Outcome& outcome) {
  std::string text = outcome.why;
  if (outcome.line != 0)
    text = fmt::format("line {}: {}\n    {}", outcome.line, outcome.step, outcome.why);
  for (const std::string& packet : outcome.got) text += "\n    sent: " + packet;
  return text;
}

/// True unless it failed.
bool run(int number, const char* path) {
  using uet::drill::Verdict;
  std::ifstream file(path);
  if (!file) {
    fmt::print("not ok {} - {}\n# cannot be opened\n", number, path);
    return false;
  }
  const uet::drill::Script script = uet::drill::read_script(file, path);
  const auto testbed = std::make_unique<uet::drill::VirtualTestbed>();
  const auto outcome = uet::drill::run_script(script, *testbed);
  const bool failed = outcome.verdict == Verdict::kFail;
  fmt::print("{} {} - {}{}\n", failed ? "not ok" : "ok", number, path,
             outcome.verdict == Verdict::kSkip ? " # SKIP " + outcome.why : "");
  if (failed) fmt::print("# {}\n", text_of(outcome));
  return !failed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: uetdrill SCRIPT...\n");
    return 2;
  }
  bool all_passed = true;
  fmt::print("1..{}\n", argc - 1);
  for (int i = 1; i < argc; ++i) all_passed &= run(i, argv[i]);
  return all_passed ? 0 : 1;
}
