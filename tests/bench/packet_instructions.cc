/// Operations between two endpoints in memory and on virtual time, for counting instructions; tools/packet_instructions.py does.
///
///     packet_instructions tagged|ordered|sprayed|write|large|read|large-read OPERATIONS [IN-FLIGHT]
///
/// tagged: messages of 64 bytes to receives that wait; ordered: by ROD; sprayed: ordered ones over all paths. write: writes of
/// 4 KiB. large: of 256 KiB, where each packet of 4 KiB counts as an operation. read, large-read: the same the other way. Operations are posted IN-FLIGHT at a time, 64 or 16 unless given, and the next ones when these are complete. What
/// each end executes lies in a function of its own, so that a profile tells the ends apart.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fep/fep_pair.h"

namespace uet::test {

// Named in the tool that reads the profile: not to be inlined, and with names that no namespace hides.
[[gnu::noinline]] void initiator_posts(FepPair& pair, const ses::SendRequest& request) {
  FepPair::Side& side = pair.sides[0];
  if (!side.fep->ses().send(pair.now, side.endpoint, request)) std::abort();
}
[[gnu::noinline]] void initiator_writes(FepPair& pair, const ses::RmaRequest& request) {
  FepPair::Side& side = pair.sides[0];
  if (!side.fep->ses().rma(pair.now, side.endpoint, request)) std::abort();
}
[[gnu::noinline]] bool initiator_turns(FepPair& pair) {
  return pair.sides[0].fep->turn(pair.now);
}
[[gnu::noinline]] void target_posts(FepPair& pair, const ses::ReceiveRequest& request) {
  FepPair::Side& side = pair.sides[1];
  if (!side.fep->ses().receive(pair.now, side.endpoint, request)) std::abort();
}
[[gnu::noinline]] bool target_turns(FepPair& pair) {
  return pair.sides[1].fep->turn(pair.now);
}

namespace {

/// The loops do not look at the link more often than this, so that packets come in bursts, as they do to a loop that is busy.
constexpr Duration kBetweenTurns = Duration::from_us(1);

/// Until both ends have `count` completions: both loops, and time goes on when neither has anything to do.
void run_until_complete(FepPair& pair, std::size_t count, bool at_target) {
  while (pair.completions(0).count() < count ||
         (at_target && pair.completions(1).count() < count)) {
    const bool here = initiator_turns(pair);
    const bool there = target_turns(pair);
    if (here || there) continue;
    const Instant next = std::min({pair.link.next_arrival(), pair.sides[0].fep->next_deadline(),
                                   pair.sides[1].fep->next_deadline()});
    if (next.is_never()) std::abort();
    pair.now = std::max(next, pair.now + kBetweenTurns);
  }
}

void send_tagged(FepPair& pair, std::size_t operations, std::size_t in_flight) {
  std::vector<std::uint8_t> out(64, 1), in(64);
  const iovec out_iov = iov(out), in_iov = iov(in);
  for (std::size_t n = 0; n < operations;) {
    const std::size_t end = std::min(operations, n + in_flight);
    for (std::size_t tag = n; tag < end; ++tag)
      target_posts(pair, {.tagged = true, .tag = tag, .iov = {&in_iov, 1}});
    for (; n < end; ++n)
      initiator_posts(pair,
                      {.peer = pair.sides[0].peer, .tagged = true, .tag = n, .iov = {&out_iov, 1}});
    run_until_complete(pair, end, true);
  }
}

/// Writes or reads of `bytes` each.
void access_memory(FepPair& pair, bool reads, std::size_t operations, std::size_t in_flight,
                   std::size_t bytes) {
  std::vector<std::uint8_t> here(bytes, 1), there(bytes, 2);
  const iovec local = iov(here), remote = iov(there);
  const auto key = pair.ses(1).register_memory(ses::MemoryRequest{
      .iov = {&remote, 1}, .remote_read = true, .remote_write = true, .virtual_addressing = false});
  if (!key) std::abort();
  for (std::size_t n = 0; n < operations;) {
    const std::size_t end = std::min(operations, n + in_flight);
    for (; n < end; ++n)
      initiator_writes(
          pair, {.peer = pair.sides[0].peer, .read = reads, .iov = {&local, 1}, .key = *key});
    run_until_complete(pair, end, false);
  }
}

}  // namespace
}  // namespace uet::test

int main(int argc, char** argv) {
  using namespace uet::test;
  if (argc != 3 && argc != 4) return 2;
  const std::string_view kind = argv[1];
  const bool sprayed = kind == "sprayed", ordered = sprayed || kind == "ordered";
  FepPair pair({.delay = Duration::from_us(1), .rate = uet::base::BitRate::from_gbps(100)},
               {{"SPRAY_ORDERED", sprayed ? "1" : "0"}}, ordered);
  for (std::size_t side : {0u, 1u}) pair.completions(side).keep(false);
  const auto operations = static_cast<std::size_t>(std::atol(argv[2]));
  constexpr std::size_t kPacket = 4096, kPacketsOfLarge = 64;
  const bool reads = kind == "read" || kind == "large-read";
  const bool is_large = kind == "large" || kind == "large-read";
  const bool is_tagged = kind != "write" && !reads && !is_large;
  const std::size_t in_flight = argc == 4   ? static_cast<std::size_t>(std::atol(argv[3]))
                                : is_tagged ? 64
                                            : 16;
  if (is_tagged)
    send_tagged(pair, operations, in_flight);
  else if (is_large)
    access_memory(pair, reads, operations / kPacketsOfLarge, in_flight, kPacket * kPacketsOfLarge);
  else
    access_memory(pair, reads, operations, in_flight, kPacket);
  return testing::Test::HasFailure() ? 1 : 0;
}
