/// `uet-perf copy`: memcpy between two buffers, each as large as the slots of a fabric test.

#include <chrono>
#include <cstring>
#include <vector>

#include "apps/perf/baseline_bench.h"
#include "apps/perf/memory.h"
#include "apps/perf/rounds.h"
#include "lib/base/version.h"

namespace uet::perf {
namespace {

using Clock = std::chrono::steady_clock;

double copy(const Plan& plan, std::uint64_t messages, const std::uint8_t* from, std::uint8_t* to) {
  const auto start = Clock::now();
  for (std::uint64_t n = 0; n < messages; ++n) {
    const std::uint64_t at = (n % plan.window) * plan.size;
    std::memcpy(to + at, from + at, plan.size);
    asm volatile("" : : "r"(to) : "memory");  // the copy has a reader
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

int run_copy(const FabricOptions& o) {
  Report report(o.format, {{"version", base::kVersion}, asked_for(o)});
  for (const std::uint64_t size : o.sizes.empty() ? std::vector{std::uint64_t{1} << 20} : o.sizes) {
    Figure figure;
    figure.provider = "memcpy";
    figure.plan = {"copy", size, o.count.value_or(default_count("copy", size)),
                   o.window.value_or(kDefaultWindow), false};
    if (const std::string why = why_too_much(figure.plan.buffer_bytes(), memory_available());
        !why.empty())
      throw std::runtime_error(why);
    const auto from = make_buffer(figure.plan.window * size, 1);
    auto to = make_buffer(from.size());
    const std::uint64_t warm_up = o.warm_up.value_or(default_warm_up(figure.plan.count));
    std::vector<double> seconds;
    for (Rounds rounds(o, warm_up != 0); rounds.advance();) {
      const std::uint64_t messages = rounds.counts() ? figure.plan.count : warm_up;
      const double took = copy(figure.plan, messages, from.data(), to.data());
      if (rounds.counts()) seconds.push_back(took);
    }
    summarize(figure, seconds, {});
    report.add({figure});
  }
  report.finish();
  return 0;
}

}  // namespace uet::perf
