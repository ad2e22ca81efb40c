/// uetdrill FILE...: runs packet scripts, prints TAP.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "tests/drill/drill.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: uetdrill SCRIPT...\n");
    return 2;
  }
  bool all_passed = true;
  fmt::print("1..{}\n", argc - 1);
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    const std::string failure = file ? uet::drill::run_script(file) : "cannot be opened";
    fmt::print("{} {} - {}\n", failure.empty() ? "ok" : "not ok", i, argv[i]);
    if (!failure.empty()) fmt::print("# {}\n", failure);
    all_passed &= failure.empty();
  }
  return all_passed ? 0 : 1;
}
