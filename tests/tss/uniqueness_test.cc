// No pair of key and IV is ever used twice. [TSS 5, 7]
#include <gtest/gtest.h>

#include "tests/tss/recording_ciphers.h"

namespace uet::tss::test {
namespace {

using Nodes = std::vector<std::unique_ptr<Node>>;

// Covers: TSS-T20
TEST(TssUniqueness, senders_with_one_identity_share_their_counters) {
  RecordingCiphers ciphers;
  CounterStore store;
  DomainConfig c = direct_config();
  c.ssi_mode = true;
  c.ssi = 3;
  Nodes nodes;
  for (int i = 0; i < 4; ++i)
    nodes.push_back(std::make_unique<Node>(c, host(1), &store, Carrier{}, ciphers));
  const Bytes text = text_of(16);
  for (int i = 0; i < 40'000; ++i)
    for (auto& node : nodes) ASSERT_TRUE(node->seal(text, host(2)));
  EXPECT_EQ(ciphers.sealed(), 160'000u);
  EXPECT_EQ(ciphers.repeats(), 0u);
}

// Covers: TSS-T32
TEST(TssUniqueness, partition_keeps_servers_and_client_apart) {
  RecordingCiphers ciphers;
  DomainConfig server;
  server.sdi = 1;
  server.mode = Mode::kServer;
  server.role = Role::kServer;
  server.ssi_mode = true;
  server.keys = {{.an = false, .key = key_number(1)}};
  server.members = {{77, host(2)}};
  const DerivedKey key =
      KeyDerivation(key_number(1)).derive(Label::kServer, {.identity = Identity::of_ssi(77)});
  DomainConfig client = server;
  client.role = Role::kClient;
  client.ssi = 77;
  client.members.clear();
  client.keys = {{.an = false, .key = key.key, .mask = key.mask}};
  Nodes nodes;  // each on a host of its own: no store is shared
  for (const std::uint32_t id : {0u, 2u, 3u}) {
    DomainConfig c = id == 0 ? client : server;
    c.partition = {.bits = 2, .id = id};
    nodes.push_back(
        std::make_unique<Node>(c, id == 0 ? host(2) : host(10 + id), nullptr, Carrier{}, ciphers));
  }
  for (int i = 0; i < 1000; ++i)
    for (auto& node : nodes) ASSERT_TRUE(node->seal(text_of(16), host(2)));
  EXPECT_EQ(ciphers.repeats(), 0u);
}

TEST(TssUniqueness, recorder_would_notice) {
  RecordingCiphers ciphers;
  Node a(direct_config(), host(1), nullptr, {}, ciphers);
  Node b(direct_config(), host(1), nullptr, {}, ciphers);  // forgot what a did
  ASSERT_TRUE(a.seal(text_of(16), host(2)) && b.seal(text_of(16), host(2)));
  EXPECT_EQ(ciphers.repeats(), 1u);
}

/// One host's life: processes start and are killed, keys come and go, counters near their end.
struct RandomLife {
  RandomLife(std::uint64_t seed, RecordingCiphers& all) : rng(seed), ciphers(all) {
    config.mode = rng.chance(0.5) ? Mode::kDirect : Mode::kCluster;
    config.sdi = 9;
    config.ssi_mode = rng.chance(0.5);
    config.ssi = config.ssi_mode ? 5 : 0;
    if (config.mode == Mode::kCluster && rng.chance(0.5)) config.rekey = {.mask = 0xf0, .shift = 4};
    if (rng.chance(0.3)) config.partition = {.bits = 3, .id = rng.below(8)};
    if (rng.chance(0.3)) config.counter_fatal = 20 + rng.below(2000);
    config.keys = {{.an = false, .key = new_key()}};
    near_the_end = rng.chance(0.2);
  }

  Key new_key() {
    const Key key = key_number(rng.next_u64());
    // Some keys come to us when others on the host have nearly used them up.
    if (near_the_end) store[fingerprint_of(key)] = kCounterMax - rng.below(3000);
    return key;
  }
  void start() {
    auto node = std::make_unique<FakeKeys>(config, &store);
    node->block = rng.chance(0.1) ? UINT64_MAX : 1 + rng.below(60);
    auto domain = std::make_unique<SecureDomain>(*node, Carrier{}, host(1), ciphers);
    if (domain->why_not_usable().empty()) {
      keys.push_back(std::move(node));
      domains.push_back(std::move(domain));
    }
  }
  void kill() {
    if (domains.empty()) return;
    const std::size_t i = rng.below(static_cast<std::uint32_t>(domains.size()));
    keys[i]->store_is_broken = rng.chance(0.5);  // crashes: gives nothing back
    domains.erase(domains.begin() + static_cast<std::ptrdiff_t>(i));
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void change_keys() {
    if (config.keys.size() == 1) {
      config.keys.push_back({.an = !config.keys[0].an, .key = new_key()});
    } else if (rng.chance(0.5)) {
      config.tx_an = !config.tx_an;  // forth and back again
    } else {
      std::erase_if(config.keys, [&](const KeyConfig& k) { return k.an != config.tx_an; });
    }
    if (rng.chance(0.2)) ++config.epoch;
    for (auto& k : keys)
      if (rng.chance(0.8)) k->next = config;  // some miss a change and see the next one
  }
  void send() {
    if (domains.empty()) return;
    SecureDomain& domain = *domains[rng.below(static_cast<std::uint32_t>(domains.size()))];
    for (std::uint32_t n = rng.below(40); n-- > 0;) {
      net::Packet packet = pool.allocate();
      packet.append(16)[0] = 0x10;
      (void)domain.seal(packet, host(2), 7);
    }
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (rng.below(8)) {
        case 0:
          if (domains.size() < 4) start();
          break;
        case 1:
          kill();
          break;
        case 2:
          change_keys();
          break;
        case 3:
          for (auto& d : domains) d->service();
          break;
        default:
          send();
      }
    }
  }

  base::Rng rng;
  RecordingCiphers& ciphers;
  DomainConfig config;
  CounterStore store;
  bool near_the_end = false;
  net::HeapPacketPool pool{4, 256};
  std::vector<std::unique_ptr<FakeKeys>> keys;
  std::vector<std::unique_ptr<SecureDomain>> domains;
};

// Covers: TSS-T23
TEST(TssUniqueness, random_lives_of_hosts_repeat_nothing) {
  std::size_t sealed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RecordingCiphers ciphers;
    RandomLife(seed, ciphers).run(300);
    sealed += ciphers.sealed();
    ASSERT_EQ(ciphers.repeats(), 0u) << "seed " << seed;
  }
  EXPECT_GT(sealed, 100'000u);
}

}  // namespace
}  // namespace uet::tss::test
