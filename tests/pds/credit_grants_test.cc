// Credit that an endpoint grants as a destination: who is a source, which PDC carries its grants. No Pds. [PDS 15, CC 5]
#include "pds/credit_grants.h"

#include <gtest/gtest.h>

#include "tests/pds/parts.h"

namespace uet::pds::test {
namespace {

constexpr std::uint32_t kDemand = 1000;  // units of 256 bytes
constexpr std::uint32_t request_of(std::uint8_t ccc_id, std::uint32_t target = kDemand) {
  return std::uint32_t{ccc_id} << 24 | target;
}

PdsConfig grants_config() {
  PdsConfig config;
  config.max_ccc = 2;
  return config;
}
cc::CcConfig credit_config(cc::Algorithm algorithm = cc::Algorithm::kRccc) {
  cc::CcConfig config;
  config.algorithm = algorithm;
  return derived(config);
}

struct Granting {
  explicit Granting(const cc::CcConfig& config = credit_config())
      : cc_config(config),
        env(grants_config(), cc_config, facts_of_port(), pool, rng, trace, ses),
        pdcs(8, Duration{}, 0, rng, env.hash_key),
        credit(env, pdcs, scheduler, cc_config) {}
  ~Granting() {
    for (Pdc* pdc : opened) close(*pdc);
  }
  Pdc& open(std::uint32_t peer, bool is_proven = true) {
    Pdc& pdc = *pdcs.allocate(kNow);
    pdc.peer = address_of(peer);
    pdc.peer_id = 9;
    pdc.is_proven = is_proven;
    opened.push_back(&pdc);
    return pdc;
  }
  void close(Pdc& pdc) {
    credit.leave(pdc);
    scheduler.forget(pdc);
    pdcs.release(kNow, pdc, Psn{});
  }
  /// All grants that are due within a while; true when this PDC carries one.
  bool is_granted(Pdc& pdc, Duration within = Duration::from_ms(1)) {
    pdc.pending_control = 0;
    for (Instant now = kNow; now < kNow + within; now = now + Duration::from_us(1)) credit.run(now);
    return (pdc.pending_control & kSendCredit) != 0;
  }

  net::HeapPacketPool pool{8, 4200};
  base::Rng rng{1};
  base::Trace trace;
  SilentSes ses;
  cc::CcConfig cc_config;
  Environment env;
  PdcTable pdcs;
  Scheduler scheduler;
  CreditGrants credit;
  std::vector<Pdc*> opened;
};

// What a source runs is its own affair: one that needs credit gets it from a destination that sends without.
TEST(CreditGrants, a_destination_that_runs_nscc_grants_credit_to_those_who_ask) {
  Granting t(credit_config(cc::Algorithm::kNscc));
  Pdc& pdc = t.open(2);
  EXPECT_FALSE(t.is_granted(pdc));
  EXPECT_TRUE(t.credit.next_deadline().is_never());
  t.credit.on_request(kNow, pdc, request_of(1));
  EXPECT_TRUE(t.is_granted(pdc));
  EXPECT_GT(t.credit.units_for(pdc), 0u);
}

TEST(CreditGrants, a_request_is_answered_with_credit_on_its_pdc) {
  Granting t;
  Pdc& pdc = t.open(2);
  Pdc& other = t.open(3);
  t.credit.on_request(kNow, pdc, request_of(1));
  EXPECT_TRUE(t.is_granted(pdc));
  EXPECT_GT(pdc.rx.credit, 0u);
  EXPECT_EQ(pdc.rx.credit, t.credit.units_for(pdc));
  EXPECT_EQ(other.pending_control & kSendCredit, 0);
  EXPECT_EQ(t.credit.units_for(other), 0u);
}

TEST(CreditGrants, pdcs_of_one_ccc_share_a_counter_and_the_one_heard_last_carries_it) {
  Granting t;
  Pdc& first = t.open(2);
  Pdc& second = t.open(2);
  t.credit.on_request(kNow, first, request_of(1));
  t.credit.on_request(kNow, second, request_of(1));
  EXPECT_TRUE(t.is_granted(second));
  EXPECT_EQ(first.pending_control & kSendCredit, 0);
  EXPECT_EQ(t.credit.units_for(first), t.credit.units_for(second));
}

TEST(CreditGrants, a_forged_opening_does_not_take_the_grants_of_a_pdc_that_hears_us) {
  Granting t;
  Pdc& honest = t.open(2);
  Pdc& forged = t.open(2, false);
  t.credit.on_request(kNow, honest, request_of(1));
  t.credit.on_request(kNow, forged, request_of(1));
  EXPECT_TRUE(t.is_granted(honest));
  EXPECT_EQ(forged.pending_control & kSendCredit, 0);
}

TEST(CreditGrants, above_the_bound_of_sources_demand_is_not_heard) {
  Granting t;
  Pdc& first = t.open(2);
  Pdc& second = t.open(3);
  Pdc& third = t.open(4);
  for (Pdc* pdc : {&first, &second, &third}) t.credit.on_request(kNow, *pdc, request_of(1));
  EXPECT_FALSE(t.is_granted(third));
  EXPECT_EQ(third.rx.credit_source, base::kNoIndex);
  t.credit.leave(first);
  t.credit.on_request(kNow, third, request_of(1));
  EXPECT_TRUE(t.is_granted(third));
}

TEST(CreditGrants, leave__of_the_last_pdc_forgets_the_counter) {
  Granting t;
  Pdc& first = t.open(2);
  Pdc& second = t.open(2);
  t.credit.on_request(kNow, first, request_of(1));
  t.credit.on_request(kNow, second, request_of(1));
  ASSERT_TRUE(t.is_granted(second));
  t.credit.leave(second);
  EXPECT_GT(t.credit.units_for(first), 0u);
  EXPECT_EQ(t.credit.units_for(second), 0u);
  t.credit.leave(first);
  t.credit.on_request(kNow, first, request_of(1, 0));
  EXPECT_EQ(t.credit.units_for(first), 0u);
}

TEST(CreditGrants, a_pdc_that_names_another_ccc_moves_to_it) {
  Granting t;
  Pdc& pdc = t.open(2);
  t.credit.on_request(kNow, pdc, request_of(1));
  ASSERT_TRUE(t.is_granted(pdc));
  t.credit.on_request(kNow, pdc, request_of(2));
  Pdc& other = t.open(3);  // has the place of the first source, and there is no third one
  t.credit.on_request(kNow, other, request_of(1));
  EXPECT_NE(other.rx.credit_source, base::kNoIndex);
  Pdc& late = t.open(4);
  t.credit.on_request(kNow, late, request_of(1));
  EXPECT_EQ(late.rx.credit_source, base::kNoIndex);
  EXPECT_TRUE(t.is_granted(pdc));
}

TEST(CreditGrants, resume__tells_a_peer_that_has_proved_itself_what_was_granted_meanwhile) {
  Granting t;
  Pdc& pdc = t.open(2, false);
  t.credit.on_request(kNow, pdc, request_of(1));
  (void)t.is_granted(pdc);
  pdc.pending_control = 0;
  pdc.is_proven = true;
  t.credit.resume(kNow, pdc);
  EXPECT_EQ(pdc.pending_control, kSendCredit);
  EXPECT_EQ(pdc.rx.credit, t.credit.units_for(pdc));
}

TEST(CreditGrants, note_demand__of_a_data_packet_counts_like_a_request) {
  Granting t;
  Pdc& pdc = t.open(2);
  Arrival in;
  in.source = pdc.peer;
  in.spdcid = 9;
  in.dpdcid = pdc.id;
  t.credit.note_demand(kNow, in, 1, kDemand);
  EXPECT_TRUE(t.is_granted(pdc));
}

}  // namespace
}  // namespace uet::pds::test
