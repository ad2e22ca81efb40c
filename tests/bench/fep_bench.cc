/// What an endpoint as a whole costs: two of them on a link in memory and on virtual time, so that everything between the
/// operation and the port is measured and nothing of a kernel or a device. The link itself costs a copy for each packet.
/// Instruction counts: valgrind --tool=callgrind fep_bench --benchmark_filter=... --benchmark_min_time=0
#include <benchmark/benchmark.h>

#include "tests/bench/write_loop.h"

namespace uet::test {
namespace {

LinkConfig fast_link() {
  return {.delay = Duration::from_us(1), .rate = base::BitRate::from_gbps(100)};
}

/// One tagged message of `range(0)` bytes to a receive that waits for it: request, response, completions at both ends.
void tagged_message(benchmark::State& state) {
  FepPair pair(fast_link());
  for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(state.range(0)), 1), in(out.size());
  const iovec out_iov = iov(out), in_iov = iov(in);
  std::size_t n = 0;
  for (auto _ : state) {
    ++n;
    if (!pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                             ses::ReceiveRequest{.tagged = true, .tag = n, .iov = {&in_iov, 1}}) ||
        !pair.ses(0).send(
            pair.now, pair.sides[0].endpoint,
            ses::SendRequest{
                .peer = pair.sides[0].peer, .tagged = true, .tag = n, .iov = {&out_iov, 1}}) ||
        !pair.run_until(
            [&] { return pair.completions(1).count() == n && pair.completions(0).count() == n; }))
      return state.SkipWithError("a message was not delivered");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(tagged_message)->Arg(8)->Arg(64)->Arg(4096);

/// A write of `range(0)` bytes; the rate is that of payload.
void write_message(benchmark::State& state) {
  FepPair pair(fast_link());
  write_messages(state, pair, static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(write_message)->Arg(64)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace uet::test

BENCHMARK_MAIN();
