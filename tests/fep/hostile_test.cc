/// Whatever arrives, an endpoint keeps its state and the traffic of honest peers stays exact.

#include <cstdlib>

#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

/// Rounds of injected packets between pieces of honest traffic.
int rounds() {
  const char* depth = std::getenv("UET_TEST_DEPTH");
  return depth != nullptr && std::string_view(depth) == "long" ? 4000 : 60;
}

/// Honest traffic with captured copies of its packets: sends one message of `size` and waits for
/// it.
class HostileTest : public testing::Test {
 protected:
  HostileTest() : pair_(make_link()), rng_(kSeed) { RecordProperty("seed", kSeed); }

  LinkConfig make_link() {
    LinkConfig config{.loss = 0.01, .seed = kSeed};
    config.drop = [this](std::size_t from, std::span<const std::uint8_t> bytes) {
      auto& slot = captured_[next_captured_++ % captured_.size()];
      slot.from = from;
      slot.bytes.assign(bytes.begin(), bytes.end());
      return false;
    };
    return config;
  }

  void honest_message(std::size_t size) {
    auto out = pattern(size, size);
    std::vector<std::uint8_t> in(size);
    const iovec out_iov = iov(out), in_iov = iov(in);
    for (std::size_t i = 0; i < 2; ++i) pair_.completions(i).clear();
    ASSERT_TRUE(pair_.ses(1).receive(
        pair_.now, pair_.sides[1].endpoint,
        ses::ReceiveRequest{.tagged = true, .tag = size, .iov = {&in_iov, 1}}));
    ASSERT_TRUE(pair_.ses(0).send(
        pair_.now, pair_.sides[0].endpoint,
        ses::SendRequest{
            .peer = pair_.sides[0].peer, .tagged = true, .tag = size, .iov = {&out_iov, 1}}));
    ASSERT_TRUE(pair_.run_until(
        [&] { return pair_.completions(1).count() >= 1 && pair_.completions(0).count() >= 1; },
        Duration::from_seconds(60)));
    EXPECT_EQ(pair_.completions(0).errors() + pair_.completions(1).errors(), 0u);
    EXPECT_EQ(in, out);
  }

  void inject(std::size_t side, std::span<const std::uint8_t> bytes, net::FabricAddress from) {
    const auto tos =
        net::TosByte{static_cast<std::uint8_t>(rng_.chance(0.2) ? rng_.next_u32() : 0)};
    pair_.link.inject(pair_.now, side, bytes, from, static_cast<std::uint16_t>(rng_.next_u32()),
                      tos);
  }
  std::vector<std::uint8_t> random_bytes() {
    std::vector<std::uint8_t> bytes(rng_.below(rng_.chance(0.8) ? 128 : 9000));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng_.next_u32());
    // A known type half of the time, so that more than the first check is reached.
    if (!bytes.empty() && rng_.chance(0.5))
      bytes[0] = static_cast<std::uint8_t>(rng_.below(16) << 3 | rng_.below(8));
    return bytes;
  }
  std::vector<std::uint8_t> mutated(std::vector<std::uint8_t> bytes) {
    if (bytes.empty()) return bytes;
    switch (rng_.below(3)) {
      case 0:
        bytes.resize(rng_.below(static_cast<std::uint32_t>(bytes.size())));
        break;
      case 1:
        for (std::uint32_t i = 0; i <= rng_.below(6); ++i)
          bytes[rng_.below(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 64)))] ^=
              static_cast<std::uint8_t>(1 << rng_.below(8));
        break;
      case 2:
        bytes.insert(bytes.end(), rng_.below(64), 0xa5);
        break;
    }
    return bytes;
  }

  static constexpr std::uint64_t kSeed = 20;
  struct Captured {
    std::size_t from = 0;
    std::vector<std::uint8_t> bytes;
  };
  std::array<Captured, 64> captured_;
  std::size_t next_captured_ = 0;
  FepPair pair_;
  base::Rng rng_;
};

TEST_F(HostileTest, random_bytes_and_mutated_captures__change_only_drop_counters) {
  honest_message(20'000);
  const auto before = pair_.ses(1).gauges();
  for (int round = 0; round < rounds(); ++round) {
    for (int i = 0; i < 200; ++i) {
      const Captured& capture = captured_[rng_.below(64)];
      inject(1, random_bytes(), MemoryLink::address(0));
      // Bad CRC: dies before packet delivery sees it.
      inject(1 - capture.from, mutated(capture.bytes), MemoryLink::address(capture.from));
      inject(1, capture.bytes, net::FabricAddress::from_v4(rng_.next_u32()));
    }
    honest_message(1 + rng_.below(20'000));
    if (HasFailure()) break;
  }
  EXPECT_GT(pair_.sides[1].trace.drops_total(), 1000u);
  EXPECT_EQ(pair_.ses(1).gauges().memory_regions, before.memory_regions);
}

}  // namespace

/// Without a CRC everything reaches packet delivery: the parsers and the state machines are on
/// their own. What an attacker can do to a live context in this mode is bounded by the checks of
/// addresses and windows, so honest traffic is only required to go on from an address that is not
/// forged.
class UnprotectedTest : public testing::Test {};

TEST_F(UnprotectedTest, random_and_mutated_packets__never_crash_and_fresh_traffic_works) {
  constexpr std::uint64_t kSeed = 21;
  base::Rng rng(kSeed);
  FepPair pair(LinkConfig{.seed = kSeed}, {{"PROTECT", "none"}, {"PEER_TIMEOUT", "2s"}});
  std::vector<std::vector<std::uint8_t>> captured;
  pair.link.config().drop = [&](std::size_t from, std::span<const std::uint8_t> bytes) {
    if (from == 0 && captured.size() < 64) captured.emplace_back(bytes.begin(), bytes.end());
    return false;
  };
  std::uint64_t word = 1;
  const iovec at{&word, 8};
  ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                               ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&at, 1}}));
  ASSERT_TRUE(pair.run_until([&] { return pair.completions(0).count() == 1; }));
  const auto attacker = net::FabricAddress::from_v4(0x0a0000ff);
  for (int round = 0; round < rounds() * 20; ++round) {
    for (int i = 0; i < 50; ++i) {
      std::vector<std::uint8_t> bytes;
      if (rng.chance(0.5) && !captured.empty()) {
        bytes = captured[rng.below(static_cast<std::uint32_t>(captured.size()))];
        for (std::uint32_t n = 0; n <= rng.below(8); ++n)
          bytes[rng.below(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 60)))] =
              static_cast<std::uint8_t>(rng.next_u32());
        bytes.resize(rng.chance(0.3) ? rng.below(static_cast<std::uint32_t>(bytes.size()))
                                     : bytes.size());
      } else {
        bytes.resize(rng.below(200));
        for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next_u32());
        if (!bytes.empty()) bytes[0] = static_cast<std::uint8_t>(rng.below(16) << 3 | rng.below(8));
      }
      pair.link.inject(
          pair.now, 1, bytes, attacker, static_cast<std::uint16_t>(rng.next_u32()),
          net::TosByte{static_cast<std::uint8_t>(rng.chance(0.1) ? rng.next_u32() : 0)});
    }
    for (int i = 0; i < 8; ++i) {
      for (auto& side : pair.sides) side.fep->turn(pair.now);
      pair.now = pair.now + Duration::from_us(100);
    }
  }
  // What the attacker left behind must go away, and honest traffic must work meanwhile.
  std::uint64_t in = 0;
  const iovec in_at{&in, 8};
  pair.completions(0).clear();
  ASSERT_TRUE(
      pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                          ses::ReceiveRequest{.tagged = true, .tag = 99, .iov = {&in_at, 1}}));
  ASSERT_TRUE(pair.ses(0).send(
      pair.now, pair.sides[0].endpoint,
      ses::SendRequest{.peer = pair.sides[0].peer, .tagged = true, .tag = 99, .iov = {&at, 1}}));
  ASSERT_TRUE(pair.run_until([&] { return in == word; }, Duration::from_seconds(60)));
}

}  // namespace uet::test
