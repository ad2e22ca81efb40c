/// Decode and encode of the headers that most packets carry.
#include <benchmark/benchmark.h>

#include <array>

#include "lib/wire/headers.h"
#include "lib/wire/uet_crc.h"

namespace uet::wire {
namespace {

using Stack = std::array<std::uint8_t, PdsRequest::kSize + SesStandardFirst::kSize>;

Stack example() {
  Stack bytes;
  emit(PdsRequest{.next_hdr = NextHdr::kRequestStd, .psn = base::Psn(7), .spdcid = 1, .dpdcid = 2},
       bytes.data());
  emit(SesStandardFirst{.opcode = SesOpcode::kWrite, .message_id = 3, .request_length = 4096},
       bytes.data() + PdsRequest::kSize);
  return bytes;
}

void decode_request(benchmark::State& state) {
  Stack bytes = example();
  for (auto _ : state) {
    benchmark::DoNotOptimize(bytes);
    auto pds = decode<PdsRequest>(bytes.data());
    auto ses = decode<SesStandardFirst>(bytes.data() + PdsRequest::kSize);
    benchmark::DoNotOptimize(pds);
    benchmark::DoNotOptimize(ses);
  }
}
BENCHMARK(decode_request);

void encode_request(benchmark::State& state) {
  Stack bytes = example();
  auto pds = decode<PdsRequest>(bytes.data());
  auto ses = decode<SesStandardFirst>(bytes.data() + PdsRequest::kSize);
  for (auto _ : state) {
    benchmark::DoNotOptimize(pds);
    benchmark::DoNotOptimize(ses);
    emit(pds, bytes.data());
    emit(ses, bytes.data() + PdsRequest::kSize);
    benchmark::DoNotOptimize(bytes);
  }
}
BENCHMARK(encode_request);

void crc_of_payload(benchmark::State& state) {
  const std::vector<std::uint8_t> payload(static_cast<std::size_t>(state.range(0)), 7);
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(payload));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc_of_payload)->Arg(64)->Arg(1024)->Arg(4096)->Arg(8192);

}  // namespace
}  // namespace uet::wire

BENCHMARK_MAIN();
