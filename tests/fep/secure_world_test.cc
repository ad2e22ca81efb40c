// Random worlds with security on: loss, reordering, contexts that come and go, keys that rotate, and
// an attacker on the link who replays, reorders, splices and flips what was recorded. [TSS 2]
#include <cstdlib>

#include "tests/fep/secure_pair.h"

namespace uet::test {
namespace {

using base::DropReason;
using tss::test::key_number;

std::uint64_t worlds() {
  if (const char* n = std::getenv("UET_TEST_WORLDS")) return std::strtoull(n, nullptr, 10);
  const char* depth = std::getenv("UET_TEST_DEPTH");
  return depth != nullptr && std::string_view(depth) == "long" ? 3000 : 60;
}

tss::DomainConfig random_domain(base::Rng& rng) {
  tss::DomainConfig c;
  c.sdi = 1 + rng.below(0xffffff);
  c.mode = rng.chance(0.5) ? tss::Mode::kDirect : tss::Mode::kCluster;
  if (c.mode == tss::Mode::kCluster && rng.chance(0.5)) c.rekey = {.mask = 0x1c0, .shift = 6};
  if (rng.chance(0.3)) c.replay_window = 64u << rng.below(10);
  if (rng.chance(0.3)) c.clear_bytes = 12;
  if (rng.chance(0.3)) c.opening = tss::OpeningMethod::kChallenge;
  c.epoch = static_cast<std::uint16_t>(rng.next_u32());
  c.new_pdc_time = Duration::from_ms(5);
  c.keys = {{.an = false, .key = key_number(rng.next_u64())}};
  return c;
}

/// Two endpoints that exchange messages of which each says its number, and the attacker.
class World {
 public:
  /// Without `secured` the same world runs with a CRC only.
  World(std::uint64_t seed, bool secured)
      : rng_(seed),
        domain_(random_domain(rng_)),
        x_(
            {domain_, domain_},
            {.loss = rng_.chance(0.5) ? 0.02 : 0,
             .reorder = rng_.chance(0.5) ? 0.1 : 0,
             .duplicate = rng_.chance(0.3) ? 0.05 : 0,
             .seed = seed},
            {{"PDC_IDLE", "2ms"}, {"RTO_INIT", "1ms"}},
            [&](std::size_t, fep::FepConfig& c) {
              c.pds.tombstone_time = c.pds.pdcid_quarantine = Duration{};
              if (secured) return;
              c.protection = fep::DataProtection::kCrc;
              c.security.reset();
            },
            rng_.chance(0.5)),
        is_secured_(secured) {
    for (std::size_t side : {0u, 1u})
      for (std::uint64_t i = 0; i < kSpares; ++i) post_receive(side);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (rng_.below(6)) {
        case 0:
          send(rng_.below(2), rng_.chance(0.2) ? 8 + rng_.below(60'000) : 8 + rng_.below(200));
          break;
        case 1:
          if (is_secured_) rotate();
          break;
        case 2:
          x_.run_for(Duration::from_us(1 + rng_.below(5000)));
          break;
        default:
          for (std::uint32_t n = rng_.below(20); n-- > 0;) attack();
          x_.run_for(Duration::from_us(rng_.below(50)));
      }
    }
    x_.run_until([&] { return completed_sends_ == numbers_[0] + numbers_[1]; },
                 Duration::from_seconds(is_secured_ ? 60 : 1));
    replay_everything();
    x_.run_for(Duration::from_ms(50));
  }

  /// What is wrong at the end; empty when nothing is.
  std::string verdict() const {
    for (std::size_t side : {0u, 1u}) {
      const auto& got = received_[side];
      if (got.size() != numbers_[1 - side])
        return std::to_string(got.size()) + " messages arrived of " +
               std::to_string(numbers_[1 - side]);
      std::set<std::uint64_t> unique(got.begin(), got.end());
      if (unique.size() != got.size()) return "a message arrived twice";
    }
    if (is_damaged_) return "a message arrived with other bytes";
    if (errors_ != 0) return "an operation failed";
    if (x_.ciphers.repeats() != 0) return "a pair of key and IV was used twice";
    return "";
  }
  std::uint64_t attacks() const { return attacks_; }
  /// Every event of both endpoints on standard output, for looking into one world.
  void print_events() {
    for (std::size_t side : {0u, 1u}) {
      printers_[side].side = side;
      x_.pair.sides[side].trace.add_sink(printers_[side]);
    }
  }

 private:
  struct Printer final : base::TraceSink {
    void on_event(const base::Event& e) override {
      std::printf("%zu %lld %s pdc %u psn %u %llu %llu\n", side, static_cast<long long>(e.at.ns()),
                  std::string(base::describe(e.id).name).c_str(), e.pdc, e.psn.value(),
                  static_cast<unsigned long long>(e.a), static_cast<unsigned long long>(e.b));
    }
    std::size_t side = 0;
  };
  static constexpr std::uint64_t kSpares = 400;

  struct Receive {
    std::vector<std::uint8_t> bytes;
    iovec vector{};
  };
  void post_receive(std::size_t side) {
    auto& r = receives_[side].emplace_back(std::make_unique<Receive>());
    r->bytes.resize(64 * 1024);
    r->vector = iov(r->bytes);
    x_.pair.completions(side).on_each = [this, side](const ses::Completion& c) { done(side, c); };
    x_.pair.completions(side).keep(false);
    ASSERT_TRUE(x_.pair.ses(side).receive(
        x_.pair.now, x_.pair.sides[side].endpoint,
        ses::ReceiveRequest{.iov = {&r->vector, 1}, .context = receives_[side].size() - 1}));
  }
  void done(std::size_t side, const ses::Completion& c) {
    if (c.code != ses::ReturnCode::kOk) ++errors_;
    if (c.kind != ses::OpKind::kReceive) {
      ++completed_sends_;
      return;
    }
    const auto& bytes = receives_[side][c.context]->bytes;
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), 8);
    received_[side].push_back(number);
    const auto expected = message(1 - side, number, c.length);
    is_damaged_ |= !std::equal(expected.begin(), expected.end(), bytes.begin());
  }
  static std::vector<std::uint8_t> message(std::size_t from, std::uint64_t number,
                                           std::size_t size) {
    auto bytes = pattern(size, number * 2 + from);
    std::memcpy(bytes.data(), &number, 8);
    return bytes;
  }
  void send(std::size_t from, std::size_t size) {
    if (numbers_[from] + 10 > kSpares) return;
    auto& bytes = sends_.emplace_back(
        std::make_unique<std::vector<std::uint8_t>>(message(from, numbers_[from], size)));
    ++numbers_[from];
    const iovec all = iov(*bytes);
    ASSERT_TRUE(x_.pair.ses(from).send(
        x_.pair.now, x_.pair.sides[from].endpoint,
        ses::SendRequest{.peer = x_.pair.sides[from].peer, .iov = {&all, 1}}));
  }

  /// One step of a rotation at one or both sides; keys come a while before they are used, and go
  /// after both sides stopped using them.
  void rotate() {
    switch (rotation_++ % 4) {
      case 0:
        domain_.keys.push_back({.an = !domain_.tx_an, .key = key_number(rng_.next_u64())});
        tell(0), tell(1);
        break;
      case 1:
        domain_.tx_an = !domain_.tx_an;
        domain_.epoch = 0;
        tell(rng_.below(2));
        break;
      case 2:
        tell(0), tell(1);
        break;
      default:
        x_.run_for(Duration::from_ms(5));
        std::erase_if(domain_.keys, [&](const tss::KeyConfig& k) { return k.an != domain_.tx_an; });
        tell(0), tell(1);
    }
  }
  void tell(std::size_t side) {
    x_.keys[side]->next = domain_;
    x_.domain(side).service();
  }

  void attack() {
    if (x_.seen.empty()) return;
    ++attacks_;
    OnLink p = x_.seen[rng_.below(static_cast<std::uint32_t>(x_.seen.size()))];
    const OnLink& other = x_.seen[rng_.below(static_cast<std::uint32_t>(x_.seen.size()))];
    const auto position = [&] { return rng_.below(static_cast<std::uint32_t>(p.bytes.size())); };
    switch (rng_.below(8)) {
      case 0:
      case 1:
      case 2:
        break;  // as it was
      case 3:
        p.bytes[position()] ^= static_cast<std::uint8_t>(1 << rng_.below(8));
        break;
      case 4:  // the head of one and the rest of another
        p.bytes.resize(position());
        if (other.bytes.size() > p.bytes.size())
          p.bytes.insert(p.bytes.end(),
                         other.bytes.begin() + static_cast<std::ptrdiff_t>(p.bytes.size()),
                         other.bytes.end());
        if (p.bytes == other.bytes) return;
        break;
      case 5:
        p.bytes.resize(position());
        break;
      case 6:  // in the name of another, or with another path
        if (rng_.chance(0.5))
          p.source = tss::test::host(rng_.below(4));
        else
          p.entropy = static_cast<std::uint16_t>(rng_.next_u32());
        break;
      default:
        p.tos.value = static_cast<std::uint8_t>(rng_.next_u32());
    }
    x_.inject(p, rng_.chance(0.9) ? 1 - p.from : p.from);
  }
  void replay_everything() {
    const auto all = x_.seen;
    for (std::size_t i = 0; i < all.size(); ++i) {
      x_.inject(all[i], 1 - all[i].from);
      if (i % 500 == 0) x_.run_for(Duration::from_ms(1));
    }
    attacks_ += all.size();
  }

  base::Rng rng_;
  tss::DomainConfig domain_;
  SecurePair x_;
  bool is_secured_;
  int rotation_ = 0;
  std::array<std::vector<std::unique_ptr<Receive>>, 2> receives_;
  std::vector<std::unique_ptr<std::vector<std::uint8_t>>> sends_;
  std::array<std::vector<std::uint64_t>, 2> received_;
  std::array<std::uint64_t, 2> numbers_{};
  std::uint64_t completed_sends_ = 0, errors_ = 0, attacks_ = 0;
  bool is_damaged_ = false;
  std::array<Printer, 2> printers_;
};

// UET_TEST_WORLDS=n plays n worlds; UET_TEST_WORLD=n prints the events of world n.
// Covers: TSS-T10, TSS-T24, TSS-T40, TSS-T41, TSS-T47
TEST(SecureWorld, attacker_without_a_key_delivers_nothing) {
  std::uint64_t attacks = 0;
  const char* only = std::getenv("UET_TEST_WORLD");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + (only != nullptr ? 1 : worlds()); ++seed) {
    World world(seed, true);
    if (only != nullptr) world.print_events();
    world.run(150);
    attacks += world.attacks();
    ASSERT_EQ(world.verdict(), "") << "world " << seed;
  }
  RecordProperty("attacks", static_cast<int>(attacks));
}

/// The same attacker is a danger: with a CRC in place of security he succeeds.
TEST(SecureWorld, attacker_succeeds_without_security) {
  int harmed = 0;
  for (std::uint64_t seed = 1; seed <= 10 && harmed == 0; ++seed) {
    World world(seed, false);
    world.run(60);
    harmed += world.verdict().empty() ? 0 : 1;
  }
  EXPECT_GT(harmed, 0);
}

}  // namespace
}  // namespace uet::test
