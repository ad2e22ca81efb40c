/// Operations between two endpoints in memory and on virtual time, for counting instructions; tools/packet_instructions.py does.
///
///     packet_instructions tagged|ordered|sprayed|write OPERATIONS
///
/// tagged: messages of 64 bytes to receives that wait, 64 in flight; ordered: by ROD; sprayed: ordered ones over all paths. write: writes of 4 KiB, 16 in flight.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

void send_tagged(FepPair& pair, std::size_t operations) {
  constexpr std::size_t kInFlight = 64;
  std::vector<std::uint8_t> out(64, 1), in(64);
  const iovec out_iov = iov(out), in_iov = iov(in);
  for (std::size_t n = 0; n < operations; ++n) {
    if (!pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                             ses::ReceiveRequest{.tagged = true, .tag = n, .iov = {&in_iov, 1}}) ||
        !pair.ses(0).send(
            pair.now, pair.sides[0].endpoint,
            ses::SendRequest{
                .peer = pair.sides[0].peer, .tagged = true, .tag = n, .iov = {&out_iov, 1}}))
      std::abort();
    const std::size_t least = n + 1 == operations ? operations : n < kInFlight ? 0 : n - kInFlight;
    pair.run_until([&] {
      return pair.completions(1).count() >= least && pair.completions(0).count() >= least;
    });
  }
}

void write(FepPair& pair, std::size_t operations) {
  constexpr std::size_t kInFlight = 16;
  std::vector<std::uint8_t> from(4096, 1), to(from.size());
  const iovec local = iov(from), remote = iov(to);
  const auto key = pair.ses(1).register_memory(
      ses::MemoryRequest{.iov = {&remote, 1}, .remote_write = true, .virtual_addressing = false});
  if (!key) std::abort();
  for (std::size_t n = 0; n < operations; ++n) {
    if (!pair.ses(0).rma(
            pair.now, pair.sides[0].endpoint,
            ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&local, 1}, .key = *key}))
      std::abort();
    const std::size_t least = n + 1 == operations ? operations : n < kInFlight ? 0 : n - kInFlight;
    pair.run_until([&] { return pair.completions(0).count() >= least; });
  }
}

}  // namespace
}  // namespace uet::test

int main(int argc, char** argv) {
  using namespace uet::test;
  if (argc != 3) return 2;
  const std::string_view kind = argv[1];
  const bool sprayed = kind == "sprayed", ordered = sprayed || kind == "ordered";
  FepPair pair({.delay = Duration::from_us(1), .rate = uet::base::BitRate::from_gbps(100)},
               {{"SPRAY_ORDERED", sprayed ? "1" : "0"}}, ordered);
  for (std::size_t side : {0u, 1u}) pair.completions(side).keep(false);
  const auto operations = static_cast<std::size_t>(std::atol(argv[2]));
  if (kind == "write")
    write(pair, operations);
  else
    send_tagged(pair, operations);
  return testing::Test::HasFailure() ? 1 : 0;
}
