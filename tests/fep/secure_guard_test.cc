// Which openings are old. [TSS 11]
#include "fep/secure_guard.h"

#include <gtest/gtest.h>

#include "tests/net/colliding_addresses.h"
#include "tests/tss/fake_keys.h"

namespace uet::fep {
namespace {

using base::Psn;
using tss::test::direct_config;
using tss::test::host;

struct Guarded {
  explicit Guarded(const tss::DomainConfig& config = direct_config(), bool keys_were_used = false)
      : keys(config),
        domain(with_used(keys, keys_were_used), {}, host(1), tss::openssl_ciphers()),
        guard(domain) {}
  static tss::KeyManager& with_used(tss::test::FakeKeys& keys, bool used) {
    if (used) keys.own[tss::fingerprint_of(keys.config.keys[0].key)] = 1000;
    return keys;
  }
  pds::OpeningGuard::Challenge open(std::uint32_t from, Psn start) {
    return guard.on_opening({host(from), 7, start});
  }
  tss::test::FakeKeys keys;
  tss::SecureDomain domain;
  SecureGuard guard;
};

TEST(SecureGuard, stranger_opens_at_once_only_under_fresh_keys) {
  EXPECT_FALSE(Guarded().open(2, Psn(5)));
  Guarded used(direct_config(), true);
  const auto challenge = used.open(2, Psn(5));
  ASSERT_TRUE(challenge);
  EXPECT_GE(challenge->value(), 1u << 16);
  EXPECT_LT(challenge->value(), 1u << 31);
  EXPECT_NE(used.open(2, Psn(5)), challenge) << "each challenge is another";
  EXPECT_TRUE(used.guard.is_confirmed({host(2), 7, *challenge}, *challenge));
  EXPECT_FALSE(used.guard.is_confirmed({host(2), 7, *challenge + 1}, *challenge));
}

/// A challenge may lie before the start that it replaces. What was recorded with that start must not pass for new once the PDC
/// from the announced one has closed.
TEST(SecureGuard, closing_after_a_challenge_opens_nothing_to_what_was_recorded) {
  Guarded g(direct_config(), true);
  const Psn refused(0x7000'0000);
  Psn announced = refused;
  while (!announced.is_before(refused)) announced = *g.open(2, refused);
  const auto told = g.guard.on_target_closed(host(2), announced);
  EXPECT_TRUE(g.open(2, refused));
  EXPECT_FALSE(g.guard.is_confirmed({host(2), 7, refused}, announced));
  EXPECT_TRUE(told && told->is_after(refused)) << "the initiator is told to go on behind both";
  // Also starts that only an earlier process has seen.
  EXPECT_TRUE(g.open(2, Psn(0x7fff'0000)));
}

/// Its initiator is told to move: a copy that comes when nothing waits any more must not open where it left.
TEST(SecureGuard, start_that_is_refused_beside_a_challenge_opens_nothing_later) {
  Guarded g;
  EXPECT_EQ(g.guard.on_target_closed(host(2), Psn(99)), Psn(100));
  const auto challenge = g.open(2, Psn(50));
  EXPECT_EQ(challenge, Psn(100));
  EXPECT_FALSE(g.guard.is_confirmed({host(2), 7, Psn(500)}, *challenge)) << "not as it was told";
  EXPECT_EQ(g.open(2, Psn(500)), Psn(501));
  EXPECT_TRUE(g.guard.is_confirmed({host(2), 7, Psn(100)}, *challenge));
}

/// Its message may have come another way since.
TEST(SecureGuard, overtaken_syn_is_challenged_also_under_fresh_keys) {
  Guarded g;
  const pds::OpeningGuard::Opening late{host(2), 7, Psn(500), true};
  const auto challenge = g.guard.on_opening(late);
  ASSERT_TRUE(challenge);
  EXPECT_NE(challenge, Psn(500));
  EXPECT_FALSE(g.guard.is_confirmed(late, *challenge));
  EXPECT_TRUE(g.guard.is_confirmed({host(2), 7, *challenge, true}, *challenge)) << "as it was told";
  EXPECT_EQ(g.open(2, Psn(500)), Psn(501)) << "a copy of it, once it is the newest";
  EXPECT_FALSE(g.open(2, Psn(501)));
}

TEST(SecureGuard, rotation_to_a_new_key_makes_starts_tell_again) {
  Guarded g(direct_config(), true);
  ASSERT_TRUE(g.domain.install({.an = true, .key = tss::test::key_number(9)}));
  ASSERT_TRUE(g.domain.select(true));
  EXPECT_TRUE(g.open(2, Psn(500))) << "what was recorded under the old key still verifies";
  g.domain.remove(false);
  EXPECT_EQ(g.open(2, Psn(500)), Psn(501)) << "it was challenged under the new key";
  EXPECT_FALSE(g.open(2, Psn(501)));
  EXPECT_FALSE(g.open(3, Psn(5)));
}

// Covers: PDS-45, PDS-46, PDS-47
TEST(SecureGuard, known_source_opens_at_or_after_what_is_expected_across_the_wrap) {
  Guarded g;
  EXPECT_EQ(g.guard.on_target_closed(host(2), Psn(0xffff'fffe)), Psn(0xffff'ffff));
  EXPECT_EQ(g.open(2, Psn(0xffff'fffe)), Psn(0xffff'ffff));
  EXPECT_FALSE(g.open(2, Psn(0xffff'ffff)));
  EXPECT_FALSE(g.open(2, Psn(3)));
  EXPECT_FALSE(g.open(3, Psn(0xffff'0000))) << "what one source did says nothing of another";
  // Told twice, and in any order: the expected PSN never goes back.
  EXPECT_EQ(g.guard.on_target_closed(host(2), Psn(4)), Psn(5));
  EXPECT_EQ(g.guard.on_target_closed(host(2), Psn(0xffff'fffe)), Psn(5));
}

TEST(SecureGuard, challenge_method_trusts_no_source) {
  auto config = direct_config();
  config.opening = tss::OpeningMethod::kChallenge;
  Guarded g(config);
  EXPECT_TRUE(g.open(2, Psn(5)));
  EXPECT_FALSE(g.guard.on_target_closed(host(2), Psn(5)));
  EXPECT_TRUE(g.open(2, Psn(6)));
}

// Covers: TSS-T45
TEST(SecureGuard, as_many_wait_as_the_domain_allows) {
  auto config = direct_config();
  config.max_pending = 10;
  config.max_pending_per_source = 4;
  Guarded g(config, true);
  int waiting = 0;
  for (int i = 0; i < 100'000; ++i) waiting += g.guard.may_wait(host(2)) ? 1 : 0;
  EXPECT_EQ(waiting, 4);
  for (std::uint32_t n = 3; n < 10; ++n)
    while (g.guard.may_wait(host(n))) ++waiting;
  EXPECT_EQ(waiting, 10);
  for (int i = 0; i < 4; ++i) g.guard.on_wait_over(host(2));
  EXPECT_EQ(g.guard.waiting(), 6u);
  EXPECT_TRUE(g.guard.may_wait(host(2)));
  g.guard.on_half_open_limit();
  EXPECT_EQ(g.keys.count(tss::Alarm::kPendingFlood), 1u);
}

TEST(SecureGuard, full_table_challenges_the_rest_and_forgets_no_source) {
  auto config = direct_config();
  config.max_sources = 2;
  Guarded g(config);  // fresh keys: trust needs a place to remember
  for (std::uint32_t n : {2u, 3u}) {
    EXPECT_FALSE(g.open(n, Psn(100)));
    EXPECT_EQ(g.guard.on_target_closed(host(n), Psn(100)), Psn(101));
  }
  EXPECT_TRUE(g.open(4, Psn(100)));
  EXPECT_FALSE(g.guard.on_target_closed(host(4), Psn(100)));
  EXPECT_EQ(g.open(2, Psn(100)), Psn(101));
  EXPECT_EQ(g.guard.peers_known(), 2u);
}

// Covers: PDS-45
TEST(SecureGuard, initiator_starts_low_first_and_then_where_it_was_told) {
  Guarded g;
  for (int i = 0; i < 100; ++i) {
    const auto start = g.guard.expected_by(host(2));
    ASSERT_TRUE(start);
    EXPECT_GE(start->value(), 1u << 16);
    EXPECT_LT(start->value(), 1u << 24);
  }
  g.guard.on_expected_psn(host(2), Psn(500));
  g.guard.on_expected_psn(host(2), Psn(400));
  EXPECT_EQ(g.guard.expected_by(host(2)), Psn(500));
}

TEST(SecureGuard, members_that_choose_colliding_addresses_slow_no_look_up) {
  Guarded g;
  for (std::uint32_t i = 0; i < g.domain.config().max_sources; ++i)
    (void)g.guard.on_opening({net::test::colliding(i), 7, Psn(5)});
  ASSERT_EQ(g.guard.peers_known(), g.domain.config().max_sources);
  EXPECT_LE(g.guard.longest_chain(), 64u) << "half of the places are taken, one after another";
}

}  // namespace
}  // namespace uet::fep
