/// Two secured endpoints on a link, and all that an attacker without a key has: every packet that was
/// on it.
#pragma once

#include "fep/secure_guard.h"
#include "fep/security.h"
#include "tests/fep/fep_pair.h"
#include "tests/tss/fake_keys.h"
#include "tests/tss/recording_ciphers.h"

namespace uet::test {

using tss::test::FakeKeys;

/// A packet that was on the link.
struct OnLink {
  std::size_t from = 0;
  std::vector<std::uint8_t> bytes;
  net::FabricAddress source;
  std::uint16_t entropy = 0;
  net::TosByte tos;
};

class SecurePair {
 public:
  using Change = std::function<void(std::size_t side, fep::FepConfig&)>;

  explicit SecurePair(const tss::DomainConfig& domain, LinkConfig link = {},
                      std::map<std::string, std::string> variables = {}, Change change = {})
      : SecurePair({domain, domain}, std::move(link), std::move(variables), std::move(change)) {}
  SecurePair(const std::array<tss::DomainConfig, 2>& domains, LinkConfig link,
             std::map<std::string, std::string> variables, Change change,
             bool keys_were_used = false)
      : stores(keys_were_used ? used(domains) : decltype(stores){}),
        pair(tapped(std::move(link)), std::move(variables), false, std::nullopt, false,
             [&](std::size_t side, const net::PortFacts& facts, fep::FepConfig& config) {
               keys[side] = std::make_shared<FakeKeys>(domains[side], &stores[side]);
               auto security = fep::Security::open(keys[side], facts, ciphers);
               EXPECT_TRUE(security.has_value()) << security.error();
               config.protection = fep::DataProtection::kTss;
               config.security = *security;
               config.pds.new_pdc_time = domains[side].new_pdc_time;
               if (change) change(side, config);
             }) {}

  /// One message of pseudo-random bytes; true when it arrived whole.
  bool send(std::size_t from, std::size_t size) {
    auto out = pattern(size, ++sent_);
    std::vector<std::uint8_t> in(size);
    const iovec out_iov = iov(out), in_iov = iov(in);
    const std::size_t to = 1 - from;
    for (std::size_t i = 0; i < 2; ++i) pair.completions(i).clear();
    EXPECT_TRUE(pair.ses(to).receive(
        pair.now, pair.sides[to].endpoint,
        ses::ReceiveRequest{.tagged = true, .tag = sent_, .iov = {&in_iov, 1}}));
    EXPECT_TRUE(pair.ses(from).send(
        pair.now, pair.sides[from].endpoint,
        ses::SendRequest{
            .peer = pair.sides[from].peer, .tagged = true, .tag = sent_, .iov = {&out_iov, 1}}));
    const bool done = pair.run_until(
        [&] { return pair.completions(0).count() >= 1 && pair.completions(1).count() >= 1; },
        Duration::from_seconds(30));
    return done && pair.completions(0).errors() + pair.completions(1).errors() == 0 && in == out;
  }
  /// Begins a message of 100 bytes from side 0 to side 1, which has a receive for it.
  void begin_send() {
    const iovec out_iov = iov(begun_out_), in_iov = iov(begun_in_);
    EXPECT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                                    ses::ReceiveRequest{.iov = {&in_iov, 1}}));
    EXPECT_TRUE(
        pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                         ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&out_iov, 1}}));
  }
  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }
  /// As FepPair::run_until(), but time passes even when nothing happens, and its end is no failure.
  template <typename Done>
  void run_until(Done&& done, Duration limit) {
    const Instant end = pair.now + limit;
    for (int turns = 0; !done(); ++turns) {
      bool did = false;
      for (FepPair::Side& s : pair.sides) did |= s.fep->turn(pair.now);
      if (did && turns < 10'000) continue;
      ASSERT_LT(turns, 10'000) << "the loop never rests at one instant";
      turns = 0;
      const Instant next = std::min({pair.link.next_arrival(), pair.sides[0].fep->next_deadline(),
                                     pair.sides[1].fep->next_deadline()});
      if (pair.now >= end) return;
      pair.now = std::clamp(next, pair.now + Duration::from_ns(100), end);
    }
  }
  void inject(const OnLink& packet, std::size_t to) {
    pair.link.inject(pair.now, to, packet.bytes, packet.source, packet.entropy, packet.tos);
  }
  tss::SecureDomain& domain(std::size_t side) { return pair.sides[side].fep->security()->domain(); }
  std::uint64_t drops(std::size_t side, base::DropReason reason) {
    return pair.sides[side].trace.drops(reason);
  }
  std::size_t open_pdcs(std::size_t side) { return pair.sides[side].fep->pds().gauges().pdcs_open; }

  std::array<tss::test::CounterStore, 2> stores;  ///< of two hosts
  tss::test::RecordingCiphers ciphers;
  std::array<std::shared_ptr<FakeKeys>, 2> keys;
  std::vector<OnLink> seen;
  FepPair pair;

 private:
  static std::array<tss::test::CounterStore, 2> used(
      const std::array<tss::DomainConfig, 2>& domains) {
    std::array<tss::test::CounterStore, 2> out;
    for (std::size_t i = 0; i < 2; ++i)
      for (const tss::KeyConfig& k : domains[i].keys) out[i][tss::fingerprint_of(k.key)] = 1000;
    return out;
  }
  LinkConfig tapped(LinkConfig link) {
    link.tap = [this](std::size_t from, const net::TxPacket& tx) {
      const auto bytes = tx.packet.bytes();
      seen.push_back(
          {from, {bytes.begin(), bytes.end()}, MemoryLink::address(from), tx.entropy, tx.tos});
    };
    return link;
  }
  std::uint64_t sent_ = 0;
  std::vector<std::uint8_t> begun_out_ = std::vector<std::uint8_t>(100), begun_in_ = begun_out_;
};

}  // namespace uet::test
