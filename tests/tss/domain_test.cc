// What a secure domain does with packets: forms, modes, keys. [TSS 5, 7, 10, 12]
#include <gtest/gtest.h>

#include "tests/tss/fake_keys.h"

namespace uet::tss::test {
namespace {

/// No packet is overtaken by more than `distance` others.
void reorder(std::vector<Bytes>& packets, std::uint32_t distance) {
  base::Rng rng(3);
  std::vector<std::pair<std::size_t, Bytes>> keyed;
  for (std::size_t i = 0; i < packets.size(); ++i)
    keyed.emplace_back(i + rng.below(distance), std::move(packets[i]));
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i] = std::move(keyed[i].second);
}

// Covers: TSS-T8
TEST(TssHeader, every_form_goes_both_ways) {
  for (const bool sp : {false, true}) {
    for (const bool an : {false, true}) {
      for (const std::uint32_t sdi : {0u, 1u, 0xffffffu}) {
        for (const std::uint64_t tsc : {std::uint64_t{0}, kCounterMax, ~std::uint64_t{0}}) {
          const Header h{.sp = sp, .an = an, .sdi = sdi, .ssi = sp ? 0xa1b2c3d4u : 0, .tsc = tsc};
          Bytes bytes(h.size());
          emit_header(h, bytes.data());
          EXPECT_EQ(bytes[0], 0x08 | (sp ? 4 : 0) | (an ? 1 : 0));
          const auto back = parse_header(bytes);
          ASSERT_TRUE(back.has_value());
          EXPECT_EQ(back->sp, sp);
          EXPECT_EQ(back->an, an);
          EXPECT_EQ(back->sdi, sdi);
          EXPECT_EQ(back->ssi, h.ssi);
          EXPECT_EQ(back->tsc, tsc);
          bytes.pop_back();
          EXPECT_FALSE(parse_header(bytes).has_value());
        }
      }
    }
  }
}

// Covers: TSS-T16, TSS-T18, TSS-T31
TEST(SecureDomain, every_size_goes_both_ways_in_every_mode) {
  for (const Mode mode : {Mode::kDirect, Mode::kCluster}) {
    for (const bool ssi : {false, true}) {
      for (const bool v6 : {false, true}) {
        if (v6 && mode == Mode::kDirect && !ssi) continue;
        for (const bool udp : {true, false}) {
          DomainConfig c = direct_config();
          c.mode = mode;
          c.ssi_mode = ssi;
          c.ssi = ssi ? 17 : 0;
          const auto a = v6 ? host6(1) : host(1), b = v6 ? host6(2) : host(2);
          Node sender(c, a, nullptr, {.is_udp = udp});
          c.ssi = ssi ? 18 : 0;
          Node receiver(c, b, nullptr, {.is_udp = udp});
          for (const std::size_t size : {4u, 12u, 13u, 27u, 28u, 29u, 4111u, 4112u, 8208u}) {
            const Bytes text = text_of(size);
            const auto sealed = sender.seal(text, b);
            ASSERT_TRUE(sealed.has_value());
            EXPECT_EQ(sealed->size(), size + (ssi ? 32 : 28));
            EXPECT_EQ(sealed->size(), size + sender.domain.overhead());
            EXPECT_EQ(receiver.open(*sealed, a), text);
          }
        }
      }
    }
  }
}

/// Bursts of every length, with keys that are derived and replaced in the middle of one.
TEST(SecureDomain, packets_of_a_burst_are_those_that_are_sealed_one_by_one) {
  for (const CipherLibrary* ciphers : {&openssl_ciphers(), &best_ciphers()}) {
    DomainConfig c = cluster_config();
    c.rekey = {.mask = 0xfff8, .shift = 3};  // a new key every eight packets
    Node burst(c, host(1), nullptr, {}, *ciphers), single(c, host(1)), receiver(c, host(2));
    net::HeapPacketPool pool(80, 9000);
    for (std::size_t length = 0; length <= 70; ++length) {
      std::vector<net::Packet> packets;
      for (std::size_t i = 0; i < length; ++i) {
        const Bytes text = text_of(4 + (i * 997 + length) % (length % 5 == 0 ? 8000 : 300), i);
        packets.push_back(pool.allocate());
        std::copy(text.begin(), text.end(), packets.back().append(text.size()));
        ASSERT_FALSE(burst.domain.seal_later(packets.back(), receiver.address, 7));
      }
      burst.domain.seal_pending();
      for (std::size_t i = 0; i < length; ++i) {
        const Bytes text = text_of(4 + (i * 997 + length) % (length % 5 == 0 ? 8000 : 300), i);
        const Bytes sealed(packets[i].bytes().begin(), packets[i].bytes().end());
        ASSERT_EQ(sealed, single.seal(text, receiver.address)) << i << " of " << length;
        ASSERT_EQ(receiver.open(sealed, burst.address), text);
      }
    }
  }
}

/// A key that goes takes no packet with it that was given a counter under it.
TEST(SecureDomain, burst_is_sealed_before_its_key_is_removed) {
  Node a(direct_config(), host(1)), b(direct_config(), host(2));
  net::HeapPacketPool pool(2, 500);
  net::Packet packet = pool.allocate();
  const Bytes text = text_of(100);
  std::copy(text.begin(), text.end(), packet.append(text.size()));
  ASSERT_FALSE(a.domain.seal_later(packet, b.address, 7));
  a.domain.remove(false);
  EXPECT_EQ(b.open(Bytes(packet.bytes().begin(), packet.bytes().end()), a.address), text);
}

// Covers: TSS-T19
TEST(SecureDomain, same_packet_twice_has_two_ivs) {
  Node a(direct_config(), host(1)), b(direct_config(), host(2));
  const Bytes text = text_of(100);
  const auto first = a.seal(text, b.address), second = a.seal(text, b.address);
  EXPECT_EQ(parse_header(*first)->tsc + 1, parse_header(*second)->tsc);
  EXPECT_NE(Bytes(first->begin() + 12, first->end()), Bytes(second->begin() + 12, second->end()));
  EXPECT_TRUE(b.open(*second, a.address));
  EXPECT_TRUE(b.open(*first, a.address));
}

TEST(SecureDomain, open__address_and_entropy_are_authenticated) {
  Node a(direct_config(), host(1)), b(direct_config(), host(2)), c(direct_config(), host(3));
  const auto sealed = a.seal(text_of(100), b.address);
  EXPECT_FALSE(b.open(*sealed, host(9)));
  EXPECT_FALSE(b.open(*sealed, a.address, 8));
  EXPECT_FALSE(c.open(*sealed, a.address));
  EXPECT_EQ(b.domain.stats().in_auth_fail_pkts, 2u);
  EXPECT_TRUE(b.open(*sealed, a.address));
}

TEST(SecureDomain, open__other_key_and_clear_packets_are_refused_and_remembered_nowhere) {
  Node a(direct_config(1), host(1)), b(direct_config(2), host(2));
  EXPECT_FALSE(b.open(*a.seal(text_of(100), b.address), a.address));
  EXPECT_EQ(b.last_refusal, DropReason::kTssBadIcv);
  EXPECT_FALSE(b.open(text_of(100), a.address));
  EXPECT_EQ(b.last_refusal, DropReason::kTssMissing);
  EXPECT_FALSE(b.open({}, a.address));
  EXPECT_EQ(b.domain.sources_known(), 0u);
}

/// [TSS 10.2, step 10] Unverified clear text is not left to the caller.
TEST(SecureDomain, open__refused_text_is_wiped) {
  Node a(direct_config(), host(1)), b(direct_config(), host(2));
  for (const CipherLibrary* library : {&openssl_ciphers(), &best_ciphers()}) {
    const auto seal = library->make(Direction::kSeal), open = library->make(Direction::kOpen);
    for (Cipher* c : {seal.get(), open.get()}) c->set_key(key_number(1));
    Bytes text = text_of(64);
    std::array<std::uint8_t, kIcvBytes> icv;
    seal->seal({}, {}, text, icv.data());
    icv[3] ^= 1;
    EXPECT_FALSE(open->open({}, {}, text, icv.data()));
    EXPECT_EQ(text, Bytes(64, 0));
  }
}

// --- Rotation

DomainConfig two_keys(bool tx_an) {
  DomainConfig c = direct_config(1);
  c.keys.push_back({.an = true, .key = key_number(2)});
  c.tx_an = tx_an;
  return c;
}

// Covers: TSS-T24, TSS-T26
TEST(SecureDomain, rotation_loses_nothing_and_counters_begin_again) {
  Node a(direct_config(1), host(1)), b(direct_config(1), host(2));
  const auto talk = [&](Node& from, Node& to, bool an) {
    const auto sealed = from.seal(text_of(50), to.address);
    ASSERT_TRUE(sealed.has_value());
    EXPECT_EQ(parse_header(*sealed)->an, an);
    EXPECT_TRUE(to.open(*sealed, from.address));
  };
  talk(a, b, false);
  for (Node* n : {&a, &b}) tell(*n, two_keys(false));
  talk(a, b, false);
  const auto late = a.seal(text_of(50), b.address);
  tell(a, two_keys(true));  // b follows later
  EXPECT_EQ(a.domain.slot_state(false), SlotState::kRetiring);
  talk(a, b, true);
  talk(b, a, false);
  EXPECT_TRUE(b.open(*late, a.address));
  tell(b, two_keys(true));
  talk(b, a, true);
  EXPECT_EQ(parse_header(*a.seal(text_of(50), b.address))->tsc, 1u);

  DomainConfig only_new = two_keys(true);
  only_new.keys.erase(only_new.keys.begin());
  const auto old = late;
  for (Node* n : {&a, &b}) tell(*n, only_new);
  EXPECT_FALSE(b.open(*old, a.address));
  EXPECT_EQ(b.last_refusal, DropReason::kTssNoKey);
  talk(a, b, true);
  EXPECT_EQ(a.domain.stats().in_auth_fail_pkts + b.domain.stats().in_auth_fail_pkts, 0u);
  EXPECT_EQ(b.domain.stats().in_invalid_sa, 1u);
}

TEST(SecureDomain, new_key_without_counters_is_sent_under_once_it_has_some) {
  Node a(direct_config(1), host(1)), b(two_keys(false), host(2));
  a.keys.store_is_broken = true;
  a.keys.next = two_keys(true);
  a.domain.service();
  const auto sealed = a.seal(text_of(20), b.address);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_FALSE(parse_header(*sealed)->an);
  EXPECT_GT(a.keys.count(Alarm::kNoReservation), 0u);
  a.keys.store_is_broken = false;
  a.domain.service();
  const auto next = a.seal(text_of(20), b.address);
  EXPECT_TRUE(parse_header(*next)->an);
  EXPECT_TRUE(b.open(*next, a.address));
}

TEST(SecureDomain, change_that_cannot_be_used_changes_nothing) {
  Node a(direct_config(1), host(1));
  DomainConfig bad = two_keys(true);
  bad.keys.pop_back();  // and nothing to send under
  a.keys.next = bad;
  a.domain.service();
  EXPECT_TRUE(a.seal(text_of(20), host(2)));
  EXPECT_EQ(a.domain.slot_state(true), SlotState::kEmpty);
}

TEST(SecureDomain, install__refuses_a_taken_slot_and_a_key_in_both) {
  Node a(direct_config(1), host(1));
  EXPECT_FALSE(a.domain.install({.an = false, .key = key_number(5)}));
  EXPECT_FALSE(a.domain.install({.an = true, .key = key_number(1)}));
  EXPECT_TRUE(a.domain.install({.an = true, .key = key_number(5)}));
}

// Covers: TSS-T28
TEST(SecureDomain, rekey_by_counter_derives_once_for_each_period_and_sender) {
  DomainConfig c = cluster_config();
  c.rekey = {.mask = 0xffff00, .shift = 8};
  Node a(c, host(1)), b(c, host(2));
  std::vector<Bytes> sealed;
  for (int i = 0; i < 256 * 6; ++i) sealed.push_back(*a.seal(text_of(20), b.address));
  EXPECT_EQ(a.domain.stats().keys_derived, 6u);
  // Neighbours of a boundary arrive interleaved.
  reorder(sealed, 100);
  std::size_t opened = 0;
  for (const Bytes& packet : sealed) opened += b.open(packet, a.address).has_value();
  EXPECT_EQ(opened, sealed.size());
  EXPECT_EQ(b.domain.stats().keys_derived, 6u);
}

/// A peer that has switched to the new key begins at epoch 0, one that has not is at the old one, and neither is late.
// Covers: TSS-T24, TSS-T29
TEST(SecureDomain, epochs_are_compared_within_one_key) {
  for (const std::uint16_t epoch : {std::uint16_t{100}, std::uint16_t{65000}}) {
    DomainConfig old_key = two_keys(false), new_key = two_keys(true);
    for (DomainConfig* c : {&old_key, &new_key}) c->reject_old_epochs = true;
    old_key.epoch = epoch;
    Node late(old_key, host(1)), early(old_key, host(2));
    tell(early, new_key);
    EXPECT_TRUE(late.open(*early.seal(text_of(20), late.address), early.address).has_value());
    EXPECT_TRUE(early.open(*late.seal(text_of(20), early.address), late.address).has_value());

    DomainConfig behind = old_key;
    behind.epoch = static_cast<std::uint16_t>(epoch - 17);
    Node forgotten(behind, host(3));
    for (Node* n : {&late, &early}) {
      EXPECT_FALSE(n->open(*forgotten.seal(text_of(20), n->address), forgotten.address)) << epoch;
      EXPECT_EQ(n->domain.stats().in_late_pkts, 1u);
    }
  }
}

/// Packets go on under the old key in its own epoch until the new key has counters.
TEST(SecureDomain, epoch_of_a_new_key_waits_for_it) {
  DomainConfig old_key = direct_config(1);
  old_key.epoch = 7;
  Node a(old_key, host(1));
  a.keys.store_is_broken = true;
  tell(a, two_keys(true));
  EXPECT_EQ(parse_header(*a.seal(text_of(20), host(2)))->epoch(), 7u);
  a.keys.store_is_broken = false;
  a.domain.service();
  EXPECT_EQ(parse_header(*a.seal(text_of(20), host(2)))->epoch(), 0u);
}

// Covers: TSS-T29
TEST(SecureDomain, old_epochs_are_refused_in_serial_arithmetic) {
  const auto accepts = [](std::uint16_t own, std::uint16_t theirs) {
    DomainConfig c = direct_config();
    c.epoch = theirs;
    Node a(c, host(1));
    c.epoch = own;
    c.reject_old_epochs = true;
    Node b(c, host(2));
    const bool opened = b.open(*a.seal(text_of(20), b.address), a.address).has_value();
    if (!opened) {
      EXPECT_EQ(b.domain.stats().in_late_pkts, 1u);
    }
    return opened;
  };
  EXPECT_TRUE(accepts(20, 20));
  EXPECT_TRUE(accepts(20, 4));
  EXPECT_FALSE(accepts(20, 3));
  EXPECT_TRUE(accepts(20, 21));
  EXPECT_TRUE(accepts(1, 0xffff));
  EXPECT_FALSE(accepts(1, 0xfff0));
  EXPECT_TRUE(accepts(0xffff, 1));
}

// --- Modes

// Covers: TSS-T33
TEST(SecureDomain, cluster_over_ipv6_with_ssi__both_settings_of_the_kdf) {
  DomainConfig c = cluster_config();
  c.ssi_mode = true;
  c.ssi = 4;
  DomainConfig other = c;
  other.kdf_ipv6_ignores_ssi = true;
  Node a(c, host6(1)), b(c, host6(2)), a2(other, host6(1)), b2(other, host6(2));
  EXPECT_TRUE(b.open(*a.seal(text_of(60), b.address), a.address));
  EXPECT_TRUE(b2.open(*a2.seal(text_of(60), b.address), a.address));
  EXPECT_FALSE(b2.open(*a.seal(text_of(60), b.address), a.address));
}

// Covers: TSS-T37
TEST(SecureDomain, packets_of_another_domain_are_refused) {
  Node a(direct_config(1), host(1));
  DomainConfig other = direct_config(1);
  other.sdi = 0x00a1b3;
  Node b(other, host(2));
  EXPECT_FALSE(b.open(*a.seal(text_of(60), b.address), a.address));
  EXPECT_EQ(b.last_refusal, DropReason::kTssUnknownDomain);
}

TEST(SecureDomain, strangers_with_the_key_are_refused_where_members_are_listed) {
  DomainConfig c = direct_config();
  c.members = {{0, host(1)}, {0, host(2)}};
  Node a(c, host(1)), b(c, host(2)), stranger(c, host(3));
  EXPECT_TRUE(b.open(*a.seal(text_of(60), b.address), a.address));
  EXPECT_FALSE(b.open(*stranger.seal(text_of(60), b.address), stranger.address));
  EXPECT_EQ(b.domain.stats().in_binding_failure_pkts, 1u);
}

TEST(SecureDomain, readable_part_is_authenticated) {
  DomainConfig c = direct_config();
  c.clear_bytes = 12;
  Node a(c, host(1)), b(c, host(2));
  const Bytes text = text_of(60);
  auto sealed = *a.seal(text, b.address);
  EXPECT_TRUE(std::equal(text.begin(), text.begin() + 12, sealed.begin() + 12));
  sealed[20] ^= 1;
  EXPECT_FALSE(b.open(sealed, a.address));
  sealed[20] ^= 1;
  EXPECT_EQ(b.open(sealed, a.address), text);
  sealed[0] ^= 2;  // reserved bit: part of what is authenticated
  EXPECT_FALSE(b.open(sealed, a.address));
}

// --- Replay, floods

// Covers: TSS-T48
TEST(SecureDomain, replay_window_accepts_each_packet_once) {
  DomainConfig c = direct_config();
  c.replay_window = 4096;
  Node a(c, host(1)), b(c, host(2));
  std::vector<Bytes> sealed;
  for (int i = 0; i < 10'000; ++i) sealed.push_back(*a.seal(text_of(20), b.address));
  reorder(sealed, 2000);
  std::size_t opened = 0;
  for (const Bytes& p : sealed) opened += b.open(p, a.address).has_value();
  EXPECT_EQ(opened, sealed.size());
  for (const Bytes& p : sealed) EXPECT_FALSE(b.open(p, a.address));
  EXPECT_EQ(b.domain.stats().in_replay_pkts, sealed.size());
}

// Covers: TSS-T48
TEST(SecureDomain, without_a_window_a_copy_is_opened_again_within_the_floor) {
  DomainConfig c = direct_config();
  c.tsc_floor_window = 100;
  Node a(c, host(1)), b(c, host(2));
  const auto old = *a.seal(text_of(20), b.address);
  EXPECT_TRUE(b.open(old, a.address));
  EXPECT_TRUE(b.open(old, a.address));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(b.open(*a.seal(text_of(20), b.address), a.address));
  EXPECT_TRUE(b.open(old, a.address));
  EXPECT_TRUE(b.open(*a.seal(text_of(20), b.address), a.address));
  EXPECT_FALSE(b.open(old, a.address));
  EXPECT_EQ(b.last_refusal, DropReason::kTssReplayed);
}

/// By counter under one key, and from one key to the next.
TEST(SecureDomain, packet_that_others_overtook_is_told_from_the_newest) {
  Node a(direct_config(1), host(1)), b(direct_config(1), host(2)), other(direct_config(1), host(3));
  Node late(two_keys(false), host(2));  // has both keys from the beginning
  const auto is_newest = [&](const std::optional<Bytes>& packet, const Node& from) {
    EXPECT_TRUE(packet && b.open(*packet, from.address));
    return b.domain.was_newest();
  };
  const auto first = a.seal(text_of(20), b.address), second = a.seal(text_of(20), b.address);
  EXPECT_TRUE(is_newest(second, a));
  EXPECT_FALSE(is_newest(first, a));
  EXPECT_TRUE(is_newest(other.seal(text_of(20), b.address), other))
      << "counters are a sender's own";
  const auto third = a.seal(text_of(20), b.address);
  for (Node* n : {&a, &b}) tell(*n, two_keys(false));
  tell(a, two_keys(true));
  const auto under_new = a.seal(text_of(20), b.address);
  EXPECT_TRUE(is_newest(under_new, a));
  EXPECT_FALSE(is_newest(third, a)) << "sealed under the key of before";
  EXPECT_TRUE(is_newest(under_new, a)) << "which takes nothing from what is under the new one";
  for (const auto& packet : {third, under_new}) EXPECT_TRUE(late.open(*packet, a.address));
  EXPECT_FALSE(late.domain.was_newest()) << "which key is the new one, it cannot tell";

  DomainConfig unordered = direct_config();
  unordered.tsc_floor = false;
  Node c(unordered, host(1)), d(unordered, host(2));
  EXPECT_TRUE(d.open(*c.seal(text_of(20), d.address), c.address));
  EXPECT_FALSE(d.domain.was_newest());
}

TEST(ReplayFilter, agrees_with_a_set_of_all_values) {
  base::Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    ReplayFilter filter;
    std::vector<std::uint64_t> bits(std::size_t{1} << rng.below(4));
    const std::uint64_t window = 64 * bits.size();
    const ReplayFilter::Limits limits{.window = static_cast<std::uint32_t>(window)};
    std::set<std::uint64_t> seen;
    // Begins anywhere, across the end of an epoch and of the number space.
    std::uint64_t newest = rng.chance(0.5) ? ~std::uint64_t{0} - rng.below(300) : rng.next_u64();
    bool any = false;
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t tsc = newest + rng.below(rng.chance(0.05) ? 700 : 80) - rng.below(150);
      const auto behind = static_cast<std::int64_t>(newest - tsc);
      const bool expected = !any || behind < 0 ||
                            (static_cast<std::uint64_t>(behind) < window && !seen.contains(tsc));
      ASSERT_EQ(filter.accept(tsc, limits, bits), expected) << round << " " << i;
      if (!expected) continue;
      seen.insert(tsc);
      if (!any || behind < 0) newest = tsc;
      any = true;
    }
  }
}

// Covers: TSS-T51
TEST(SecureDomain, forgeries_raise_an_alarm_or_stop_the_domain) {
  for (const bool stops : {false, true}) {
    DomainConfig c = direct_config(1);
    c.auth_fail_threshold = 50;
    c.stop_at_auth_fail_threshold = stops;
    Node a(c, host(1)), b(c, host(2));
    const auto good = *a.seal(text_of(20), b.address);
    Bytes bad = good;
    bad.back() ^= 1;
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(b.open(bad, a.address));
    EXPECT_EQ(b.keys.count(Alarm::kForgedPackets), 1u);
    EXPECT_EQ(b.keys.count(Alarm::kDomainStopped), stops ? 1u : 0u);
    EXPECT_EQ(b.open(good, a.address).has_value(), !stops);
    // Another change of the file does not end it, a new key does, and so does who asks for it.
    c.members = {{0, a.address}};
    tell(b, c);
    EXPECT_EQ(b.open(good, a.address).has_value(), !stops);
    DomainConfig two = two_keys(false);
    two.auth_fail_threshold = c.auth_fail_threshold;
    two.stop_at_auth_fail_threshold = stops;
    tell(b, two);
    EXPECT_TRUE(b.open(good, a.address));
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(b.open(bad, a.address));
    EXPECT_EQ(b.open(good, a.address).has_value(), !stops);
    b.keys.goes_on = true;
    b.domain.service();
    EXPECT_TRUE(b.open(good, a.address));
    b.domain.service();
    for (int i = 0; i < 50; ++i) EXPECT_FALSE(b.open(bad, a.address));
    b.domain.service();
    EXPECT_EQ(b.open(good, a.address).has_value(), !stops) << "asked once is no leave for ever";
  }
}

// Covers: TSS-T52
TEST(SecureDomain, flood_of_invented_senders_leaves_nothing_behind) {
  DomainConfig c = cluster_config();
  c.ssi_mode = true;
  c.ssi = 1;
  c.max_sources = 8;
  Node a(c, host(1)), b(c, host(2));
  ASSERT_TRUE(b.open(*a.seal(text_of(64), b.address), a.address));
  const std::uint64_t derived = b.domain.stats().keys_derived;
  Bytes forged = *a.seal(text_of(64), b.address);
  base::Rng rng(1);
  constexpr std::uint64_t kForged = 50'000;
  for (std::uint64_t i = 0; i < kForged; ++i) {
    for (std::size_t at = 4; at < forged.size(); ++at)
      forged[at] = static_cast<std::uint8_t>(rng.next_u32());
    EXPECT_FALSE(b.open(forged, host(rng.next_u32() % 1000)));
  }
  EXPECT_EQ(b.domain.sources_known(), 1u);
  EXPECT_EQ(b.domain.stats().keys_derived, derived + kForged);
  EXPECT_TRUE(b.open(*a.seal(text_of(64), b.address), a.address));
  EXPECT_EQ(b.domain.stats().keys_derived, derived + kForged) << "the known sender's key was lost";
}

TEST(SecureDomain, full_table_refuses_new_senders_until_a_key_goes) {
  DomainConfig c = direct_config(1);
  c.max_sources = 3;
  Node b(c, host(100));
  const auto packet_of = [&](std::uint32_t n, const DomainConfig& config) {
    return *Node(config, host(n)).seal(text_of(20), b.address);
  };
  for (std::uint32_t n = 1; n <= 3; ++n) EXPECT_TRUE(b.open(packet_of(n, c), host(n)));
  EXPECT_FALSE(b.open(packet_of(4, c), host(4)));
  EXPECT_EQ(b.last_refusal, DropReason::kTssSourcesFull);
  EXPECT_TRUE(b.open(packet_of(2, c), host(2)));
  EXPECT_EQ(b.keys.count(Alarm::kSourcesFull), 1u);

  DomainConfig next = two_keys(true);
  next.max_sources = 3;
  b.keys.next = next;
  b.domain.service();
  EXPECT_FALSE(b.open(packet_of(4, next), host(4))) << "the old key is still accepted";
  next.keys.erase(next.keys.begin());
  b.keys.next = next;
  b.domain.service();
  for (std::uint32_t n = 4; n <= 6; ++n) EXPECT_TRUE(b.open(packet_of(n, next), host(n)));
}

// --- Configuration

TEST(DomainConfig, contradictions_are_named) {
  const auto why = [](auto change) {
    DomainConfig c = cluster_config();
    change(c);
    return why_unusable(c);
  };
  EXPECT_EQ(why([](auto&) {}), "");
  EXPECT_NE(why([](auto& c) { c.sdi = 1 << 24; }), "");
  EXPECT_NE(why([](auto& c) { c.role = Role::kServer; }), "");
  EXPECT_NE(why([](auto& c) { c.rekey = {.mask = 0xff00, .shift = 7}; }), "");
  EXPECT_NE(why([](auto& c) { c.rekey = {.mask = 1ull << 48, .shift = 48}; }), "");
  EXPECT_NE(why([](auto& c) { c.rekey = {.mask = 0xffff'ffff'ffff, .shift = 0}; }), "");
  EXPECT_NE(why([](auto& c) { c.rekey.shift = 3; }), "");
  EXPECT_EQ(why([](auto& c) { c.rekey = {.mask = 0xffff'0000'0000, .shift = 32}; }), "");
  EXPECT_NE(why([](auto& c) { c.keys.push_back(c.keys[0]); }), "");
  EXPECT_NE(why([](auto& c) { c.tx_an = true; }), "");
  EXPECT_NE(why([](auto& c) { c.keys[0].mask = Mask{}; }), "");
  EXPECT_NE(why([](auto& c) { c.keys[0].key = Key{}; }), "");
  EXPECT_NE(why([](auto& c) { c.partition = {.bits = 1, .id = 2}; }), "");
  const auto partition = [&](Role role, CounterPartition part) {
    return why([&](auto& c) {
      c.mode = Mode::kServer;
      c.role = role;
      c.ssi_mode = true;
      c.keys.clear();
      c.partition = part;
    });
  };
  for (const CounterPartition ours : {CounterPartition{1, 1}, {2, 3}, {5, 16}})
    EXPECT_EQ(partition(Role::kServer, ours), "");
  for (const CounterPartition clients : {CounterPartition{0, 0}, {1, 0}, {2, 1}})
    EXPECT_NE(partition(Role::kServer, clients), "") << clients.bits;
  for (const CounterPartition ours : {CounterPartition{1, 0}, {2, 1}})
    EXPECT_EQ(partition(Role::kClient, ours), "");
  for (const CounterPartition servers : {CounterPartition{0, 0}, {1, 1}, {2, 2}})
    EXPECT_NE(partition(Role::kClient, servers), "") << servers.bits;
  EXPECT_NE(why([](auto& c) { c.replay_window = 192; }), "");
  EXPECT_NE(why([](auto& c) { c.max_sources = 0; }), "");
  EXPECT_NE(why([](auto& c) { c.max_sources = c.replay_window = 1 << 20; }), "");
  EXPECT_NE(why([](auto& c) { c.clear_bytes = 13; }), "");
}

// [WIRE 1.1] They are authenticated as they came; a sender of ours leaves them 0.
TEST(TssAdditionalData, covers_the_reserved_bits_of_the_entropy_header) {
  const auto a = net::FabricAddress::from_v4(0x0a000001),
             b = net::FabricAddress::from_v4(0x0a000002);
  const Bytes packet(20, 0x08);
  const AdditionalData data({.is_udp = false}, false, {a, b, 0xbeef, 0x8001}, packet, 12);
  ASSERT_EQ(data.bytes().size(), 4u + 4 + 4 + 12);
  const auto entropy = data.bytes().subspan(8, 4);
  EXPECT_EQ(Bytes(entropy.begin(), entropy.end()), (Bytes{0xbe, 0xef, 0x80, 0x01}));
}

}  // namespace
}  // namespace uet::tss::test
