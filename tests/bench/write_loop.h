/// Writes from one endpoint of a pair to the other, one after the other: what the benchmarks of whole endpoints measure.
#pragma once

#include <benchmark/benchmark.h>

#include "tests/fep/fep_pair.h"

namespace uet::test {

/// Each iteration writes `bytes`; the rate is that of payload.
inline void write_messages(benchmark::State& state, FepPair& pair, std::size_t bytes) {
  for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
  std::vector<std::uint8_t> from(bytes, 1), to(bytes);
  const iovec local = iov(from), remote = iov(to);
  const auto key = pair.ses(1).register_memory(
      ses::MemoryRequest{.iov = {&remote, 1}, .remote_write = true, .virtual_addressing = false});
  if (!key) return state.SkipWithError("memory was not registered");
  std::size_t n = 0;
  for (auto _ : state) {
    ++n;
    if (!pair.ses(0).rma(
            pair.now, pair.sides[0].endpoint,
            ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&local, 1}, .key = *key}) ||
        !pair.run_until([&] { return pair.completions(0).count() == n; }))
      return state.SkipWithError("a write did not complete");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

}  // namespace uet::test
