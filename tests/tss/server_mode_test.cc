// A secure domain in server mode: each client has a key of its own, and the server all of them. [TSS 5, 11; decision 173]
#include <gtest/gtest.h>

#include "tests/tss/fake_keys.h"

namespace uet::tss::test {
namespace {

struct ServerDomain {
  explicit ServerDomain(bool ssi, bool v6 = false)
      : server_address(v6 ? host6(1) : host(1)), client_address(v6 ? host6(2) : host(2)) {
    server.sdi = 0x3e57a6;
    server.mode = Mode::kServer;
    server.role = Role::kServer;
    server.ssi_mode = ssi;
    server.epoch = 7;
    if (ssi) server.partition = {.bits = 1, .id = 1};
    server.keys = {{.an = false, .key = key_number(9)}};
    client = add_client(ssi ? 0x0c11e002 : 0, client_address);
  }
  /// Where there are SSIs, the server lists it.
  DomainConfig add_client(std::uint32_t ssi, const net::FabricAddress& address) {
    const bool by_address = !server.ssi_mode || (server.kdf_ipv6_ignores_ssi && !address.is_v4());
    const Context context{
        .epoch = 7, .identity = by_address ? Identity::of_address(address) : Identity::of_ssi(ssi)};
    const DerivedKey key = KeyDerivation(key_number(9)).derive(Label::kServer, context);
    DomainConfig c = server;
    c.role = Role::kClient;
    c.ssi = ssi;
    c.partition.id = 0;
    c.epoch = 0;
    c.members.clear();
    c.keys = {{.an = false, .key = key.key, .mask = key.mask, .epoch = 7}};
    if (server.ssi_mode) {
      server.members.push_back({ssi, address});
      std::sort(server.members.begin(), server.members.end());
    }
    return c;
  }
  /// Of the client that is there, too.
  void set_kdf_ipv6_ignores_ssi(bool on) {
    server.kdf_ipv6_ignores_ssi = on;
    server.members.clear();
    client = add_client(client.ssi, client_address);
  }
  net::FabricAddress server_address, client_address;
  DomainConfig server, client;
};

// Covers: TSS-T30
TEST(SecureDomain, server_mode_works_both_ways_with_an_epoch) {
  for (const bool v6 : {false, true}) {
    for (const bool ssi : {false, true}) {
      if (v6 && !ssi) continue;
      ServerDomain d(ssi, v6);
      Node server(d.server, d.server_address), client(d.client, d.client_address);
      const Bytes text = text_of(60);
      EXPECT_EQ(server.open(*client.seal(text, server.address), client.address), text);
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(client.open(*server.seal(text, client.address), server.address), text);
      EXPECT_EQ(server.domain.stats().keys_derived, 2u);
    }
  }
}

TEST(SecureDomain, server_mode__server_speaks_first_to_a_member_only) {
  ServerDomain d(true);
  Node server(d.server, d.server_address), client(d.client, d.client_address);
  EXPECT_TRUE(client.open(*server.seal(text_of(60), client.address), server.address));
  EXPECT_FALSE(server.seal(text_of(60), host(9)));
  EXPECT_EQ(server.last_refusal, DropReason::kTssNoTxKey);
}

TEST(SecureDomain, server_mode__clients_cannot_speak_for_each_other) {
  ServerDomain d(false);
  Node server(d.server, d.server_address), client(d.client, d.client_address);
  Node impostor(d.client, host(3));
  EXPECT_FALSE(server.open(*impostor.seal(text_of(60), server.address), host(3)));
  EXPECT_FALSE(server.open(*impostor.seal(text_of(60), server.address), client.address));
  EXPECT_EQ(server.domain.stats().in_auth_fail_pkts, 2u);
}

/// A client can write any address and any SSI into its packets, and has the key of one SSI. The second server is the first one after a
/// restart, which hears the impostor before its clients.
TEST(SecureDomain, server_mode__clients_with_ssi_cannot_speak_for_each_other) {
  for (const bool v6 : {false, true}) {
    for (const bool by_address : {false, true}) {
      ServerDomain d(true, v6);
      d.set_kdf_ipv6_ignores_ssi(by_address);
      const auto address = v6 ? host6(3) : host(3);
      const DomainConfig other = d.add_client(0x0c11e003, address);
      Node victim(d.client, d.client_address), impostor(other, address);
      Node forger(other, victim.address);
      DomainConfig liar_config = other;
      liar_config.ssi = d.client.ssi;
      Node liar(liar_config, victim.address), liar_at_home(liar_config, address);
      const Bytes text = text_of(60);
      for (int restarts = 0; restarts < 2; ++restarts) {
        Node server(d.server, d.server_address);
        EXPECT_FALSE(server.open(*forger.seal(text, server.address), victim.address));
        EXPECT_EQ(server.last_refusal, DropReason::kTssNotMember);
        EXPECT_FALSE(server.open(*liar_at_home.seal(text, server.address), address));
        EXPECT_EQ(server.last_refusal, DropReason::kTssNotMember);
        EXPECT_EQ(server.domain.stats().in_binding_failure_pkts, 2u);
        EXPECT_FALSE(server.open(*liar.seal(text, server.address), victim.address));
        EXPECT_EQ(server.last_refusal, DropReason::kTssBadIcv);
        EXPECT_EQ(server.domain.sources_known(), 0u);

        const auto answer = server.seal(text, victim.address);
        ASSERT_TRUE(answer.has_value());
        EXPECT_EQ(parse_header(*answer)->ssi, d.client.ssi);
        EXPECT_FALSE(forger.open(*answer, server.address)) << "under the key of another";
        EXPECT_EQ(victim.open(*answer, server.address), text);
        for (Node* client : {&victim, &impostor})
          EXPECT_EQ(server.open(*client->seal(text, server.address), client->address), text);
        EXPECT_FALSE(server.open(*forger.seal(text, server.address), victim.address));
        EXPECT_EQ(victim.open(*server.seal(text, victim.address), server.address), text);
      }
    }
  }
}

TEST(SecureDomain, server_mode__one_client_is_one_source) {
  for (const bool by_address : {false, true}) {
    ServerDomain d(true, true);
    d.set_kdf_ipv6_ignores_ssi(by_address);
    d.server.max_sources = 2;
    const DomainConfig other = d.add_client(0x0c11e003, host6(3));
    Node server(d.server, d.server_address), client(d.client, d.client_address);
    for (std::uint8_t n = 3; n < 100; ++n) {
      DomainConfig c = other;
      c.ssi += n - 3u;
      const auto address = by_address ? host6(3) : host6(n);
      if (!by_address) c.ssi = other.ssi;
      Node invented(c, address);
      EXPECT_EQ(server.open(*invented.seal(text_of(60), server.address), address).has_value(),
                n == 3);
    }
    EXPECT_EQ(server.domain.sources_known(), 1u);
    EXPECT_TRUE(server.open(*client.seal(text_of(60), server.address), client.address));
    EXPECT_EQ(server.domain.stats().in_source_table_full_pkts, 0u);
  }
}

TEST(SecureDomain, server_with_ssi_needs_members) {
  ServerDomain d(true);
  d.server.members.clear();
  EXPECT_EQ(why_unusable(d.server), "") << "uet-keys has to read the file to list the first client";
  FakeKeys keys(d.server);
  SecureDomain server(keys, {}, d.server_address, openssl_ciphers());
  const std::string why = server.why_not_usable();
  EXPECT_NE(why.find("members: there is none"), std::string::npos) << why;
  EXPECT_NE(why.find("uet-keys derive"), std::string::npos) << why;

  // Nor does a running one that loses its list believe everyone.
  ServerDomain good(true);
  Node running(good.server, good.server_address), client(good.client, good.client_address);
  EXPECT_TRUE(running.open(*client.seal(text_of(60), running.address), client.address));
  tell(running, d.server);
  EXPECT_FALSE(running.open(*client.seal(text_of(60), running.address), client.address));
  EXPECT_EQ(running.last_refusal, DropReason::kTssNotMember);
  EXPECT_FALSE(running.seal(text_of(60), client.address));
  EXPECT_EQ(running.last_refusal, DropReason::kTssNoTxKey);
}

/// What was heard under the list of before says nothing under a new one.
TEST(SecureDomain, server_mode__changed_members_hold_at_once_both_ways) {
  ServerDomain d(true);
  Node server(d.server, d.server_address), before(d.client, d.client_address);
  const Bytes text = text_of(60);
  EXPECT_TRUE(server.open(*before.seal(text, server.address), before.address));
  d.server.members.clear();
  const DomainConfig other = d.add_client(0x0c11e009, d.client_address);
  tell(server, d.server);
  Node now(other, d.client_address);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(server.open(*before.seal(text, server.address), before.address));
    EXPECT_EQ(now.open(*server.seal(text, now.address), server.address), text);
    EXPECT_EQ(server.open(*now.seal(text, server.address), now.address), text);
  }
  EXPECT_EQ(server.domain.stats().in_binding_failure_pkts, 2u);
}

// Covers: TSS-T34
TEST(SecureDomain, ipv6_without_ssi_needs_cluster_mode) {
  FakeKeys direct(direct_config());
  EXPECT_NE(SecureDomain(direct, {}, host6(1), openssl_ciphers()).why_not_usable().find("IPv6"),
            std::string::npos);
  ServerDomain d(false);
  FakeKeys server(d.server);
  EXPECT_NE(SecureDomain(server, {}, host6(1), openssl_ciphers()).why_not_usable(), "");
  FakeKeys cluster(cluster_config());
  EXPECT_EQ(SecureDomain(cluster, {}, host6(1), openssl_ciphers()).why_not_usable(), "");
}

/// Peers are known by address, so two clients at one could not be told apart; one client may have several.
TEST(DomainConfig, server_with_ssi_has_one_client_at_each_address) {
  ServerDomain d(true);
  d.add_client(d.client.ssi, host(3));
  EXPECT_EQ(why_unusable(d.server), "");
  d.add_client(0x0c11e001, host(3));
  EXPECT_NE(why_unusable(d.server).find("10.0.0.3 stands twice"), std::string::npos);
  DomainConfig peers = direct_config();
  peers.ssi_mode = true;
  peers.members = d.server.members;
  EXPECT_EQ(why_unusable(peers), "");
}

}  // namespace
}  // namespace uet::tss::test
