// Two secured endpoints: messages pass, and of what an outsider does nothing remains. [TSS 10-12]
#include "tests/fep/secure_pair.h"

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "fep/report/live_state.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "pds/pdc_state.h"

namespace uet::test {
namespace {

using base::DropReason;
using tss::Alarm;
using tss::test::cluster_config;
using tss::test::direct_config;
using tss::test::key_number;

const std::map<std::string, std::string> kShortLives = {{"PDC_IDLE", "2ms"}};

void no_tombstones(std::size_t, fep::FepConfig& config) {
  config.pds.tombstone_time = Duration{};  // not they shall stop what is replayed
  config.pds.pdcid_quarantine = Duration{};
}

// Covers: TSS-T18, TSS-T38
TEST(SecurePair, everything_on_the_wire_is_sealed) {
  auto challenges = direct_config();
  challenges.opening = tss::OpeningMethod::kChallenge;
  for (const auto& domain : {direct_config(), cluster_config(), challenges}) {
    SecurePair x(domain, {.loss = 0.05, .reorder = 0.05, .seed = 3}, kShortLives);
    for (const std::size_t size : {0u, 1u, 3000u, 100'000u}) {
      EXPECT_TRUE(x.send(0, size));
      EXPECT_TRUE(x.send(1, size));
    }
    x.run_for(Duration::from_ms(200));  // and the closing
    EXPECT_EQ(x.open_pdcs(0) + x.open_pdcs(1), 0u);
    ASSERT_GT(x.seen.size(), 80u);
    const bool has_nacks = domain.opening == tss::OpeningMethod::kChallenge;
    EXPECT_EQ(x.pair.count(0, base::EventId::kNackSent) > 0, has_nacks);
    for (const OnLink& p : x.seen) {
      ASSERT_EQ(p.bytes[0] >> 3, 1);
      EXPECT_EQ(tss::parse_header(p.bytes)->sdi, domain.sdi);
    }
    EXPECT_EQ(x.ciphers.repeats(), 0u);
    EXPECT_EQ(x.ciphers.sealed(), x.seen.size());
    EXPECT_EQ(x.domain(0).stats().in_auth_fail_pkts + x.domain(1).stats().in_auth_fail_pkts, 0u);
  }
}

TEST(SecurePair, a_snapshot_and_the_opening_line__tell_the_domain_and_the_key) {
  SecurePair x(cluster_config());
  ASSERT_TRUE(x.send(0, 1000));
  fep::Settings settings;
  settings.chosen_by["KEYS"] = "FI_UET_KEYS";
  fep::Fep& fep = *x.pair.sides[0].fep;
  auto told = nlohmann::json::parse(fep::snapshot(x.pair.now, fep, settings, {}));
  EXPECT_EQ(told["protection"], "tss");
  EXPECT_EQ(told["chosen_by"]["protection"], "FI_UET_KEYS");
  const std::string sdi = std::to_string(cluster_config().sdi);
  EXPECT_EQ(told["sdi"], sdi);
  EXPECT_EQ(told["an"], "0");
  EXPECT_EQ(told["gauges"]["keys_derived"], x.domain(0).stats().keys_derived);
  EXPECT_GT(told["gauges"]["keys_derived"], 0);

  ASSERT_TRUE(x.domain(0).install({.an = true, .key = key_number(100)}));
  ASSERT_TRUE(x.domain(0).select(true));
  const std::string line = fep::describe_opening(fep, settings);
  const std::string wanted =
      "protection tss (FI_UET_KEYS), sdi " + sdi + " (FI_UET_KEYS), an 1 (FI_UET_KEYS)";
  EXPECT_NE(line.find(wanted), std::string::npos) << line;
}

TEST(SecurePair, no_byte_of_a_payload_is_in_clear) {
  SecurePair x(direct_config());
  ASSERT_TRUE(x.send(0, 64'000));
  const auto payload = pattern(64'000, 1);
  for (const OnLink& p : x.seen) {
    for (std::size_t at = 0; at + 8 <= payload.size(); at += 1024) {
      EXPECT_EQ(std::search(p.bytes.begin(), p.bytes.end(),
                            payload.begin() + static_cast<std::ptrdiff_t>(at),
                            payload.begin() + static_cast<std::ptrdiff_t>(at + 8)),
                p.bytes.end());
    }
  }
}

/// A tag and a key that could be found in a SES header, and are in clear endpoints' packets.
TEST(SecurePair, no_byte_of_a_ses_header_is_in_clear) {
  constexpr std::uint64_t kTag = 0x7a91'c3e5'8b24'd60f;
  std::array<std::uint8_t, 8> wanted{};
  base::store_be(wanted.data(), kTag);
  for (const bool is_secured : {false, true}) {
    SecurePair x({direct_config(), direct_config()}, {}, {}, [&](std::size_t, fep::FepConfig& c) {
      if (is_secured) return;
      c.protection = fep::DataProtection::kCrc;
      c.security.reset();
    });
    std::vector<std::uint8_t> out(100), in(100);
    const iovec out_iov = iov(out), in_iov = iov(in);
    ASSERT_TRUE(x.pair.ses(1).receive(
        x.pair.now, x.pair.sides[1].endpoint,
        ses::ReceiveRequest{.tagged = true, .tag = kTag, .iov = {&in_iov, 1}}));
    ASSERT_TRUE(x.pair.ses(0).send(
        x.pair.now, x.pair.sides[0].endpoint,
        ses::SendRequest{
            .peer = x.pair.sides[0].peer, .tagged = true, .tag = kTag, .iov = {&out_iov, 1}}));
    ASSERT_TRUE(x.pair.run_until([&] { return x.pair.completions(1).count() == 1; },
                                 Duration::from_seconds(1)));
    std::size_t found = 0;
    for (const OnLink& p : x.seen)
      found += std::search(p.bytes.begin(), p.bytes.end(), wanted.begin(), wanted.end()) !=
               p.bytes.end();
    EXPECT_EQ(found, is_secured ? 0u : 1u);
  }
}

// Covers: TSS-T19
TEST(SecurePair, retransmissions_are_sealed_again) {
  SecurePair x(direct_config(), {.loss = 0.1, .seed = 8});
  ASSERT_TRUE(x.send(0, 500'000));
  EXPECT_GT(x.pair.count(0, base::EventId::kPacketRetransmitted), 10u);
  EXPECT_EQ(x.ciphers.repeats(), 0u);
  EXPECT_EQ(x.ciphers.sealed(), x.seen.size()) << "each of them by itself";
}

TEST(SecurePair, largest_payload_fits_the_mtu_with_header_and_icv) {
  SecurePair x(direct_config(), {.ip_mtu = 4096 + 20 + 8 + 12 + 44 + 28});
  // With this MTU a payload of 4096 would just fit without the margin that payload_mtu_for() keeps.
  ASSERT_TRUE(x.send(0, 50'000));
  for (const OnLink& p : x.seen) EXPECT_LE(p.bytes.size() + 28, x.pair.link.port(0).facts().ip_mtu);
}

// --- Peers without the key

TEST(SecurePair, another_key_gets_nothing_and_harms_nothing) {
  SecurePair x({direct_config(1), direct_config(2)}, {}, {{"PEER_TIMEOUT", "1s"}}, {});
  x.begin_send();
  ASSERT_TRUE(x.pair.run_until([&] { return x.pair.completions(0).count() == 1; }));
  EXPECT_EQ(x.pair.completions(0).errors(), 1u);
  EXPECT_EQ(x.pair.completions(1).count(), 0u);
  EXPECT_GT(x.drops(1, DropReason::kTssBadIcv), 0u);
  // Silence: the side without the key never hears that it was noticed.
  for (const OnLink& p : x.seen) EXPECT_EQ(p.from, 0u);
  EXPECT_EQ(x.open_pdcs(1), 0u);
  EXPECT_EQ(x.domain(1).sources_known(), 0u);
}

// Covers: TSS-T35, TSS-T36
TEST(SecurePair, clear_packets_touch_nothing) {
  SecurePair x(direct_config());
  ASSERT_TRUE(x.send(0, 1000));
  const std::size_t sent_by_1 = x.seen.size();
  base::Rng rng(4);
  // What packet delivery would make of each kind is known; here none reaches it.
  for (int type = 2; type < 32; ++type) {
    for (int i = 0; i < 40; ++i) {
      OnLink p{.source = MemoryLink::address(0), .entropy = 5};
      p.bytes.resize(12 + rng.below(60));
      for (auto& b : p.bytes) b = static_cast<std::uint8_t>(rng.next_u32());
      p.bytes[0] = static_cast<std::uint8_t>(type << 3 | rng.below(8));
      x.inject(p, 1);
    }
  }
  x.run_for(Duration::from_ms(20));
  EXPECT_EQ(x.drops(1, DropReason::kTssMissing), 30u * 40);
  EXPECT_EQ(x.domain(1).stats().in_rx_encryption_bypass_pkts, 30u * 40);
  std::size_t answers = 0;
  for (std::size_t i = sent_by_1; i < x.seen.size(); ++i) answers += x.seen[i].from == 1 ? 1 : 0;
  EXPECT_EQ(answers, 0u);
  EXPECT_TRUE(x.send(0, 1000));
}

// Covers: TSS-T50
TEST(SecurePair, trimmed_packets_are_dropped_and_repaired) {
  SecurePair x(direct_config(), {.seed = 5}, {{"TRIMMING", "1"}});
  int cut = 0;
  x.pair.link.config().drop = [&](std::size_t from, std::span<const std::uint8_t> bytes) {
    if (from != 0 || bytes.size() < 3000 || ++cut % 7 != 0) return false;
    OnLink p = x.seen.back();
    p.bytes.resize(12 + 16);
    p.tos = net::TosByte::of(26, 0);
    x.inject(p, 1);
    return true;
  };
  ASSERT_TRUE(x.send(0, 300'000));
  EXPECT_GT(x.drops(1, DropReason::kTssTrimmed), 5u);
  EXPECT_EQ(x.domain(1).stats().in_auth_fail_pkts, 0u);
}

/// A sealed request from side 0 is kept from side 1, which gets `bytes` of it as from a switch that trims.
struct TrimmedLink {
  TrimmedLink(SecurePair& secured, int each) : x(secured) {
    x.pair.link.config().drop = [this, each](std::size_t from,
                                             std::span<const std::uint8_t> bytes) {
      if (from != 0 || bytes.size() < 3000 || ++seen % each != 0) return false;
      last = x.seen.back();
      last.bytes.resize(12 + 16);
      last.tos = net::TosByte::of(26, 0);
      x.inject(last, 1);
      return true;
    };
  }
  SecurePair& x;
  OnLink last;
  int seen = 0;
};

tss::DomainConfig with_hints() {
  auto domain = cluster_config();
  domain.trim_hints = true;
  return domain;
}

// Covers: TSS-T49
TEST(SecurePair, trim_hints_repair_without_a_timeout) {
  SecurePair x(with_hints(), {.seed = 5}, {{"TRIMMING", "1"}});
  ASSERT_TRUE(x.send(0, 100));  // the sender is known from now on
  TrimmedLink link(x, 7);
  ASSERT_TRUE(x.send(0, 300'000));
  EXPECT_GT(x.domain(1).stats().in_trim_hint_pkts, 5u);
  EXPECT_EQ(x.drops(1, DropReason::kTssTrimmed), 0u);
  EXPECT_EQ(x.pair.count(0, base::EventId::kTimeout), 0u);
  EXPECT_EQ(x.pair.count(1, base::EventId::kNackSent), x.drops(1, DropReason::kTrimmed));
  for (const OnLink& p : x.seen) EXPECT_EQ(p.bytes[0] >> 3, 1);
}

// Covers: TSS-T49
TEST(SecurePair, trim_hints_ask_only_for_what_is_missing_on_an_open_pdc) {
  SecurePair x(with_hints(), {.seed = 5}, {{"TRIMMING", "1"}, {"PDC_IDLE", "20ms"}});
  ASSERT_TRUE(x.send(0, 100));
  TrimmedLink link(x, 3);
  ASSERT_TRUE(x.send(0, 50'000));
  ASSERT_GT(link.seen, 3);
  const auto answers_to = [&](const OnLink& hint, int times) {
    const std::uint64_t before = x.pair.count(1, base::EventId::kNackSent);
    for (int i = 0; i < times; ++i) x.inject(hint, 1);
    x.run_for(Duration::from_us(50));
    return x.pair.count(1, base::EventId::kNackSent) - before;
  };
  EXPECT_EQ(answers_to(link.last, 10), 0u) << "its PSN has arrived meanwhile";
  // A hint whose PSN was changed asks for packets that were never sent: few answers, which change nothing.
  OnLink forged = link.last;
  forged.bytes[12 + 7] = static_cast<std::uint8_t>(forged.bytes[12 + 7] ^ 0x7f);
  const auto retransmitted = x.pair.count(0, base::EventId::kPacketRetransmitted);
  EXPECT_LE(answers_to(forged, 1000), 32u);
  EXPECT_EQ(x.pair.count(0, base::EventId::kPacketRetransmitted), retransmitted);
  x.pair.link.config().drop = nullptr;
  EXPECT_TRUE(x.send(0, 50'000));
  x.run_for(Duration::from_ms(500));
  ASSERT_EQ(x.open_pdcs(1), 0u);
  EXPECT_EQ(answers_to(link.last, 10), 0u) << "no PDC";
  EXPECT_EQ(x.open_pdcs(1), 0u);
}

/// The memory that keys were in is zeros there. Neither the provider nor libuet closes what a child inherited; what does ends all the same.
TEST(SecurePair, child_made_by_fork_can_close_its_endpoints) {
  auto x = std::make_unique<SecurePair>(cluster_config());
  ASSERT_TRUE(x->send(0, 100));
  const pid_t child = ::fork();
  if (child == 0) {
    for (FepPair::Side& side : x->pair.sides) {
      side.fep->ses().close_endpoint(x->pair.now, side.endpoint);
      side.fep->pds().close_all(x->pair.now);
    }
    x.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(x->send(0, 100));
}

// --- Openings

// Covers: TSS-T39
TEST(SecureOpening, fresh_keys_open_at_once_and_again_where_the_close_said) {
  SecurePair x(direct_config(), {}, kShortLives);
  ASSERT_TRUE(x.send(0, 10));
  x.run_for(Duration::from_ms(100));
  EXPECT_EQ(x.open_pdcs(1), 0u);
  ASSERT_TRUE(x.send(0, 10));
  for (const std::size_t side : {0u, 1u}) {
    EXPECT_EQ(x.pair.count(side, base::EventId::kNackSent), 0u);
    std::vector<base::Psn> starts;
    for (const base::Event& e : x.pair.sides[side].trace.recorded())
      if (e.id == base::EventId::kPdcOpened) starts.push_back(e.psn);
    ASSERT_EQ(starts.size(), 2u);
    EXPECT_EQ(starts[1], starts[0] + 1) << "the Expected_PSN of the closing ACK";
  }
}

// Covers: TSS-T40, TSS-T42, TSS-T43, PDS-49
TEST(SecureOpening, used_keys_cost_each_opening_one_round_trip) {
  // Side 0 challenges every opening, side 1 those under keys that an earlier process has used.
  auto every = direct_config();
  every.opening = tss::OpeningMethod::kChallenge;
  SecurePair x({every, direct_config()}, {}, kShortLives, {}, true);
  for (int i = 0; i < 6; ++i) {
    const std::size_t from = i % 2;
    const std::uint64_t before = x.pair.count(1 - from, base::EventId::kNackSent);
    ASSERT_TRUE(x.send(from, i == 0 ? 60'000 : 10));
    EXPECT_GT(x.pair.count(1 - from, base::EventId::kNackSent), before);
    x.run_for(Duration::from_ms(100));
  }
}

/// Everything that was sent is sent again, with the same bytes, addresses and entropy.
void replay_all(SecurePair& x, std::size_t times) {
  const auto seen = x.seen;
  for (std::size_t i = 0; i < times; ++i) {
    for (const OnLink& p : seen) x.inject(p, 1 - p.from);
    x.run_for(Duration::from_ms(20));
  }
}

// Covers: TSS-T40, TSS-T45
TEST(SecureOpening, recorded_packets_open_nothing_and_leave_nothing) {
  for (const std::uint32_t window : {0u, 65536u}) {
    for (const auto method : {tss::OpeningMethod::kExpected, tss::OpeningMethod::kChallenge}) {
      auto domain = direct_config();
      domain.replay_window = window;
      domain.opening = method;
      SecurePair x(domain, {}, kShortLives, no_tombstones);
      for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(x.send(0, 3000));
        x.run_for(Duration::from_ms(50));
      }
      ASSERT_EQ(x.open_pdcs(1), 0u);
      const auto delivered = x.pair.count(1, base::EventId::kMessageDelivered) +
                             x.pair.count(1, base::EventId::kMessageUnexpected);
      replay_all(x, 3);
      EXPECT_EQ(x.pair.count(1, base::EventId::kMessageDelivered) +
                    x.pair.count(1, base::EventId::kMessageUnexpected),
                delivered);
      x.run_for(Duration::from_ms(200));  // New_PDC_Time
      EXPECT_EQ(x.open_pdcs(1), 0u);
      EXPECT_EQ(x.open_pdcs(0), 0u);
      EXPECT_EQ(x.drops(1, DropReason::kTssReplayed) > 0, window != 0);
      EXPECT_TRUE(x.send(0, 3000));
    }
  }
}

/// Whatever PDCIDs and PSNs a later PDC has: packet delivery does not see what was recorded of the one before.
// Covers: TSS-T41
TEST(SecureOpening, packets_of_a_closed_pdc_are_refused_before_its_successor) {
  for (const bool has_window : {false, true}) {
    auto domain = direct_config();
    domain.replay_window = has_window ? 65536 : 0;
    domain.tsc_floor_window = 32;
    SecurePair x(domain, {}, kShortLives, no_tombstones);
    ASSERT_TRUE(x.send(0, 100'000));
    x.run_for(Duration::from_ms(50));
    ASSERT_EQ(x.open_pdcs(1), 0u);
    std::vector<OnLink> recorded = x.seen;
    std::erase_if(recorded, [](const OnLink& p) { return p.from != 0; });
    ASSERT_GT(recorded.size(), 20u);
    ASSERT_TRUE(x.send(0, 200'000));  // more packets than the floor lets overtake one
    ASSERT_EQ(x.open_pdcs(1), 1u);
    const auto all_drops = [&] {
      std::uint64_t sum = 0;
      for (std::size_t r = 0; r < static_cast<std::size_t>(DropReason::kCount); ++r)
        sum += x.drops(1, static_cast<DropReason>(r));
      return sum;
    };
    const std::uint64_t before = all_drops();
    const auto seen_by_delivery = [&] {
      return x.pair.count(1, base::EventId::kRequestDelivered) +
             x.pair.count(1, base::EventId::kDuplicateReceived) +
             x.pair.count(1, base::EventId::kControlReceived);
    };
    const std::uint64_t seen_before = seen_by_delivery();
    for (const OnLink& p : recorded) x.inject(p, 1);
    x.run_for(Duration::from_us(100));
    EXPECT_EQ(x.domain(1).stats().in_replay_pkts, recorded.size());
    EXPECT_EQ(x.drops(1, DropReason::kTssReplayed), recorded.size());
    EXPECT_EQ(all_drops() - before, recorded.size());
    EXPECT_EQ(seen_by_delivery(), seen_before);
  }
}

/// What a SYN carries may have come another way while it was held back: only one that nothing overtook opens at once.
// Covers: TSS-T40, TSS-T43
TEST(SecureOpening, syn_behind_what_was_sealed_later__has_to_start_where_it_is_told) {
  for (const bool is_overtaken : {false, true}) {
    bool is_cut = true;
    SecurePair x(direct_config(),
                 {.drop = [&](std::size_t from, auto) { return from == 0 && is_cut; }});
    std::vector<std::uint8_t> out = pattern(100, 1), in(100);
    const iovec out_iov = iov(out), in_iov = iov(in);
    ASSERT_TRUE(x.pair.ses(1).receive(x.pair.now, x.pair.sides[1].endpoint,
                                      {.tagged = true, .tag = 1, .iov = {&in_iov, 1}}));
    const auto send = [&](ses::SendRequest request) {
      request.peer = x.pair.sides[0].peer;
      request.iov = {&out_iov, 1};
      ASSERT_TRUE(x.pair.ses(0).send(x.pair.now, x.pair.sides[0].endpoint, request));
      x.run_for(Duration::from_us(20));
    };
    send({.tagged = true, .tag = 1});
    const OnLink syn = x.seen.back();
    is_cut = false;
    if (is_overtaken) send({.delivery = ses::Delivery::kDatagram});
    x.inject(syn, 1);
    x.run_for(Duration::from_us(2));
    EXPECT_EQ(x.pair.count(1, base::EventId::kPdcOpened), is_overtaken ? 0u : 1u);
    EXPECT_EQ(x.pair.count(1, base::EventId::kNackSent), is_overtaken ? 1u : 0u);
    EXPECT_EQ(in == out, !is_overtaken);
    x.run_for(Duration::from_ms(50));
    EXPECT_EQ(in, out);
    EXPECT_EQ(x.pair.completions(0).errors() + x.pair.completions(1).errors(), 0u);
    EXPECT_EQ(x.pair.count(1, base::EventId::kMessageDelivered), 1u);
  }
}

/// A burst of SYNs is overtaken, and challenged while its initiator hears nothing. What it sends again opens one PSN further on, so PSNs of the
/// burst are used again while the PDC is established, and the challenges of then speak of packets that are out. Its initiator is one whose
/// counters tell no order, so that nothing else says that they are old.
// Covers: TSS-T44
TEST(SecureOpening, recorded_challenge_does_not_move_an_established_pdc) {
  auto initiator = direct_config();
  initiator.tsc_floor = false;
  std::array<bool, 2> is_cut = {true, false};
  SecurePair x({initiator, direct_config()},
               {.drop = [&](std::size_t from, auto) { return is_cut[from]; }}, {}, {});
  std::vector<std::uint8_t> out = pattern(60'000, 1), in(out.size()), small(100);
  const iovec out_iov = iov(out), in_iov = iov(in);
  ASSERT_TRUE(x.pair.ses(1).receive(x.pair.now, x.pair.sides[1].endpoint,
                                    {.tagged = true, .tag = 1, .iov = {&in_iov, 1}}));
  const auto send = [&](ses::SendRequest request) {
    request.peer = x.pair.sides[0].peer;
    ASSERT_TRUE(x.pair.ses(0).send(x.pair.now, x.pair.sides[0].endpoint, request));
    x.run_for(Duration::from_us(20));
  };
  send({.tagged = true, .tag = 1, .iov = {&out_iov, 1}});
  const auto burst = x.seen;
  ASSERT_GT(burst.size(), 3u);
  is_cut[0] = false;
  const iovec datagram = iov(small);
  send({.delivery = ses::Delivery::kDatagram, .iov = {&datagram, 1}});
  is_cut[1] = true;
  for (const OnLink& syn : burst) x.inject(syn, 1);
  x.run_for(Duration::from_us(20));
  std::vector<OnLink> challenges;
  std::copy_if(x.seen.begin(), x.seen.end(), std::back_inserter(challenges),
               [](const OnLink& p) { return p.from == 1; });
  ASSERT_EQ(challenges.size(), burst.size());
  x.run_for(Duration::from_ms(150));  // New_PDC_Time: the target waits for nothing any more
  is_cut[1] = false;

  const auto is_established = [&] {
    const auto events = x.pair.sides[0].trace.recorded();
    return std::any_of(events.begin(), events.end(), [](const base::Event& e) {
      return e.id == base::EventId::kPdcStateChanged &&
             e.b == static_cast<std::uint64_t>(pds::PdcState::kEstablished);
    });
  };
  x.run_until(is_established, Duration::from_seconds(5));
  ASSERT_TRUE(is_established());
  is_cut[1] = true;
  for (const OnLink& challenge : challenges) x.inject(challenge, 0);
  x.run_for(Duration::from_us(5));
  EXPECT_GT(x.drops(0, DropReason::kReservedNack), 0u);
  is_cut[1] = false;
  x.run_until([&] { return x.pair.completions(1).count() == 1; }, Duration::from_seconds(5));
  EXPECT_EQ(in, out);
  EXPECT_EQ(x.pair.completions(0).errors() + x.pair.completions(1).errors(), 0u);
  EXPECT_EQ(x.pair.count(1, base::EventId::kPdcOpened), 1u);
}

/// The SYN from before the challenge has another start than the PDC that came of it. Decision 102 would let it replace a PDC whose
/// peer does not answer.
TEST(SecureOpening, recorded_syn_ends_no_pdc_whose_peer_is_silent) {
  auto domain = direct_config();
  domain.opening = tss::OpeningMethod::kChallenge;
  SecurePair x(domain, {}, {{"PDC_IDLE", "2ms"}, {"RTO_INIT", "1ms"}});
  ASSERT_TRUE(x.send(0, 10));
  const OnLink syn = x.seen.front();
  x.pair.link.config().drop = [](std::size_t from, std::span<const std::uint8_t>) {
    return from == 0;
  };
  x.run_for(Duration::from_ms(150));  // asked to close, five times and more
  ASSERT_EQ(x.open_pdcs(1), 1u);
  const std::uint64_t answers = x.pair.count(1, base::EventId::kNackSent);
  x.inject(syn, 1);
  x.run_for(Duration::from_us(100));
  EXPECT_EQ(x.pair.count(1, base::EventId::kPdcClosed), 0u);
  EXPECT_EQ(x.pair.count(1, base::EventId::kNackSent), answers + 1);
  x.pair.link.config().drop = nullptr;
  x.run_for(Duration::from_seconds(1));
  EXPECT_EQ(x.open_pdcs(1), 0u);
  EXPECT_EQ(x.pair.completions(0).errors() + x.pair.completions(1).errors(), 0u);
  EXPECT_TRUE(x.send(0, 10));
}

// --- Rotation

// Covers: TSS-T25
TEST(SecureRotation, retransmission_is_sealed_under_the_key_of_its_moment) {
  tss::DomainConfig domain = direct_config(1);
  domain.keys.push_back({.an = true, .key = key_number(100)});
  bool is_cut = true;
  SecurePair x(domain, {.drop = [&](std::size_t from, auto) { return is_cut && from == 0; }});
  x.begin_send();
  x.run_for(Duration::from_us(1));
  ASSERT_GE(x.seen.size(), 1u) << "sent once, under the old key";
  domain.tx_an = true;
  x.keys[0]->next = domain;
  x.run_for(Duration::from_seconds(2));  // a look at the keys
  is_cut = false;
  x.run_until([&] { return x.pair.completions(1).count() == 1; }, Duration::from_seconds(5));
  EXPECT_EQ(x.pair.completions(1).count(), 1u);
  EXPECT_GT(x.pair.count(0, base::EventId::kPacketRetransmitted), 0u);

  std::array<std::uint64_t, 2> next{};
  bool an = false;
  for (const OnLink& p : x.seen) {
    if (p.from != 0) continue;
    const auto header = tss::parse_header(p.bytes);
    EXPECT_TRUE(header->an || !an) << "back to the old key";
    an = header->an;
    EXPECT_EQ(header->tsc, next[an]++);
  }
  EXPECT_TRUE(an);
  EXPECT_GE(next[0], 1u);
  EXPECT_EQ(x.ciphers.repeats(), 0u);
}

// Covers: TSS-T24
TEST(SecureRotation, under_load_nothing_fails_to_verify) {
  SecurePair x(cluster_config(1), {.loss = 0.01, .reorder = 0.05, .seed = 6});
  tss::DomainConfig now = cluster_config(1);
  const auto tell = [&](std::size_t side) { x.keys[side]->next = now; };
  std::uint64_t next_key = 100;
  for (int round = 0; round < 6; ++round) {
    const bool spare = !now.tx_an;
    now.keys.push_back({.an = spare, .key = key_number(next_key++)});
    for (std::size_t side : {0u, 1u}) tell(side);
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(x.send(i % 2, 40'000));
      x.run_for(Duration::from_ms(40));
    }
    now.tx_an = spare;
    tell(0);
    for (int i = 0; i < 20; ++i) {  // half a second and more of skew
      ASSERT_TRUE(x.send(i % 2, 40'000));
      x.run_for(Duration::from_ms(60));
    }
    tell(1);
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(x.send(i % 2, 40'000));
      x.run_for(Duration::from_ms(40));
    }
    std::erase_if(now.keys, [&](const tss::KeyConfig& k) { return k.an != spare; });
    for (std::size_t side : {0u, 1u}) tell(side);
    x.run_for(Duration::from_ms(1500));
    for (std::size_t side : {0u, 1u}) {
      EXPECT_EQ(x.domain(side).stats().in_auth_fail_pkts, 0u);
      EXPECT_EQ(x.domain(side).stats().in_invalid_sa, 0u);
      EXPECT_EQ(x.domain(side).slot_state(!spare), tss::SlotState::kEmpty);
    }
  }
  EXPECT_EQ(x.ciphers.repeats(), 0u);
}

TEST(SecureRotation, counters_are_reserved_long_before_they_run_out) {
  SecurePair x(direct_config());
  for (auto& k : x.keys) k->block = 1000;  // of what is reserved from now on
  ASSERT_TRUE(x.send(0, 100'000));
  x.run_for(Duration::from_seconds(3));
  EXPECT_EQ(x.drops(0, DropReason::kTssCounterSpent), 0u);
}

/// At ten million packets a second the first reservation is gone in a tenth of the time between two services.
TEST(SecureRotation, counters_are_reserved_at_once_when_half_are_spent) {
  SecurePair x(direct_config());
  std::uint64_t& reserved = x.stores[0][fingerprint_of(direct_config().keys[0].key)];
  net::HeapPacketPool pool(1, 256);
  while (!x.domain(0).is_due_early()) {
    net::Packet packet = pool.allocate();
    packet.append(16)[0] = 0x10;
    ASSERT_FALSE(x.domain(0).seal(packet, tss::test::host(9), 7));
  }
  EXPECT_EQ(reserved, tss::TxCounter::kFirstReservation);
  x.run_for(Duration::from_us(1));
  EXPECT_EQ(reserved, 3 * tss::TxCounter::kFirstReservation);
}

TEST(SecureRotation, manager_that_is_busy_is_asked_again_soon_then_less_and_less_often) {
  SecurePair x(direct_config());
  auto looks_in = [&, before = 0](Duration time) mutable {
    x.run_for(time);
    return x.keys[0]->looks - std::exchange(before, x.keys[0]->looks);
  };
  EXPECT_EQ(looks_in(Duration::from_ms(3500)), 3);
  x.keys[0]->busy = true;
  EXPECT_EQ(looks_in(Duration::from_ms(520)), 2);  // at 4 s, 10 ms later
  EXPECT_EQ(looks_in(Duration::from_ms(80)), 2);
  EXPECT_LE(looks_in(Duration::from_seconds(10)), 16);
  EXPECT_EQ(looks_in(Duration::from_seconds(10)), 10);
  x.keys[0]->busy = false;
  looks_in(Duration::from_ms(1500));
  EXPECT_EQ(looks_in(Duration::from_seconds(10)), 10);
}

}  // namespace
}  // namespace uet::test
