// Packet counters: reserved before they are used, never used twice, given back at a clean end. [TSS 7]
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tss/fake_keys.h"

namespace uet::tss::test {
namespace {

// Covers: TSS-T21
TEST(SecureDomain, seal__stops_at_the_limit_and_never_wraps) {
  DomainConfig c = direct_config();
  c.counter_fatal = 1000;
  CounterStore store;
  store[fingerprint_of(c.keys[0].key)] = 998;
  Node a(c, host(1), &store);
  EXPECT_TRUE(a.seal(text_of(20), host(2)));
  const auto last = a.seal(text_of(20), host(2));
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(parse_header(*last)->tsc, 999u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(a.seal(text_of(20), host(2)));
    EXPECT_EQ(a.last_refusal, DropReason::kTssCounterSpent);
    a.domain.service();
  }
  EXPECT_EQ(a.domain.stats().out_invoke_fail, 3u);
  EXPECT_EQ(a.keys.count(Alarm::kCounterSpent), 1u);
}

/// A service that crashed in a loop, or a part of few counters.
TEST(SecureDomain, key_whose_counters_are_spent__is_neither_begun_with_nor_switched_to) {
  DomainConfig c = direct_config();
  c.counter_fatal = 1000;
  CounterStore store;
  store[fingerprint_of(key_number(1))] = 1000;
  Node a(c, host(1), &store);
  c.keys.push_back({.an = true, .key = key_number(1)});
  c.tx_an = true;
  tell(a, c);
  EXPECT_GE(a.keys.count(Alarm::kCounterSpent), 1u);
  EXPECT_EQ(a.domain.slot_state(false), SlotState::kActive);
  EXPECT_TRUE(a.seal(text_of(20), host(2)));

  FakeKeys keys(c, &store);
  EXPECT_THAT(SecureDomain(keys, {}, host(1), openssl_ciphers()).why_not_usable(),
              ::testing::HasSubstr("all its counters are spent"));
}

TEST(SecureDomain, seal__passes_no_reservation) {
  Node a(direct_config(), host(1));
  Node b(direct_config(), host(1), a.keys.store);
  a.keys.block = 10;
  // The first reservation was large; what follows it is small.
  Node c(direct_config(), host(1), a.keys.store);
  EXPECT_EQ(parse_header(*a.seal(text_of(20), host(2)))->tsc, 0u);
  EXPECT_EQ(parse_header(*b.seal(text_of(20), host(2)))->tsc, TxCounter::kFirstReservation);
  EXPECT_EQ(parse_header(*c.seal(text_of(20), host(2)))->tsc, 2 * TxCounter::kFirstReservation);
}

/// A thousand starts a second for years: what a start takes is what it uses.
TEST(SecureDomain, clean_end_gives_back_what_was_not_used) {
  CounterStore store;
  const Fingerprint key = fingerprint_of(direct_config().keys[0].key);
  for (std::uint64_t i = 0; i < 100; ++i) {
    Node a(direct_config(), host(1), &store);
    EXPECT_EQ(parse_header(*a.seal(text_of(20), host(2)))->tsc, i);
    EXPECT_EQ(a.domain.are_keys_fresh(), i == 0);
  }
  EXPECT_EQ(store[key], 100u);
  {
    Node first(direct_config(), host(1), &store), second(direct_config(), host(1), &store);
    EXPECT_EQ(parse_header(*first.seal(text_of(20), host(2)))->tsc, 100u);
    EXPECT_EQ(parse_header(*second.seal(text_of(20), host(2)))->tsc,
              100 + TxCounter::kFirstReservation);
  }  // the second goes first, and with it what it had; the first one's are the last then
  EXPECT_EQ(store[key], 100 + TxCounter::kFirstReservation + 1);
}

TEST(SecureDomain, key_that_sent_nothing_is_not_fresh_at_the_next_start) {
  CounterStore store;
  { Node a(direct_config(), host(1), &store); }
  Node b(direct_config(), host(1), &store);
  EXPECT_FALSE(b.domain.are_keys_fresh());
  EXPECT_EQ(parse_header(*b.seal(text_of(20), host(2)))->tsc, 1u);
}

TEST(SecureDomain, more_counters_are_due_early_when_half_is_spent) {
  Node a(direct_config(), host(1));
  const Bytes text = text_of(16);
  std::uint64_t sealed = 0;
  for (; !a.domain.is_due_early(); ++sealed) ASSERT_TRUE(a.seal(text, host(2)));
  EXPECT_EQ(sealed, TxCounter::kFirstReservation / 2 + 1);
  a.keys.store_is_broken = true;
  a.domain.service();
  EXPECT_FALSE(a.domain.is_due_early()) << "once is enough";
  a.keys.store_is_broken = false;
  a.domain.service();
  EXPECT_FALSE(a.domain.is_due_early());
  EXPECT_EQ((*a.keys.store)[fingerprint_of(direct_config().keys[0].key)],
            3 * TxCounter::kFirstReservation);
}

TEST(TxCounter, reservations_double_where_there_are_many) {
  TxCounter counter({}, kCounterMax), of_few({.bits = 16, .id = 1}, kCounterMax);
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(counter.reservation(),
              std::min(TxCounter::kFirstReservation << i, TxCounter::kLargestReservation));
    EXPECT_EQ(of_few.reservation(), TxCounter::kFirstReservation);
    EXPECT_TRUE(counter.give({i, i + 1}) && of_few.give({i, i + 1}));
  }
}

TEST(TxCounter, unused_is_what_was_given_last) {
  TxCounter counter({}, kCounterMax);
  const auto unused = [&] { return std::pair(counter.unused().first, counter.unused().end); };
  EXPECT_EQ(unused(), std::pair(0ul, 0ul));
  ASSERT_TRUE(counter.give({5, 7}));
  counter.take();
  EXPECT_EQ(unused(), std::pair(6ul, 7ul));
  ASSERT_TRUE(counter.give({7, 20}));
  EXPECT_EQ(unused(), std::pair(6ul, 20ul));
  counter.take();
  counter.take();
  EXPECT_EQ(unused(), std::pair(8ul, 20ul));
  ASSERT_TRUE(counter.give({50, 60}));
  EXPECT_EQ(unused(), std::pair(50ul, 60ul)) << "others may have those between";
}

TEST(TxCounter, takes_one_range_after_the_other_and_stops_between_them) {
  TxCounter counter({}, kCounterMax);
  EXPECT_FALSE(counter.take());
  EXPECT_TRUE(counter.give({5, 7}));
  EXPECT_EQ(counter.take(), 5u);
  EXPECT_FALSE(counter.give({6, 100})) << "given before";
  EXPECT_TRUE(counter.give({100, 101}));
  EXPECT_EQ(counter.take(), 6u);
  EXPECT_EQ(counter.take(), 100u);
  EXPECT_FALSE(counter.take());
  EXPECT_TRUE(counter.wants_more());
  EXPECT_FALSE(counter.give({100, 200}));
  EXPECT_TRUE(counter.give({200, 300}));
  EXPECT_EQ(counter.take(), 200u);
}

TEST(TxCounter, partition_keeps_senders_apart) {
  TxCounter one({.bits = 2, .id = 1}, kCounterMax), two({.bits = 2, .id = 2}, kCounterMax);
  for (TxCounter* c : {&one, &two}) EXPECT_TRUE(c->give({0, kCounterMax}));
  EXPECT_EQ(one.take(), 1ull << 46);
  EXPECT_EQ(two.take(), 2ull << 46);
  EXPECT_EQ(one.left(), (kCounterMax >> 2) - 1);
}

TEST(SecureDomain, without_counter_state_nothing_starts) {
  FakeKeys keys(direct_config());
  keys.store_is_broken = true;
  SecureDomain domain(keys, {}, host(1), openssl_ciphers());
  EXPECT_NE(domain.why_not_usable().find("counters"), std::string::npos);
  FakeKeys none(DomainConfig{.sdi = 5});
  EXPECT_NE(SecureDomain(none, {}, host(1), openssl_ciphers()).why_not_usable().find("no key"),
            std::string::npos);
}

}  // namespace
}  // namespace uet::tss::test
