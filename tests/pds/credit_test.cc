// What the demand of unproven peers may cost. [PDS 15, PDS 19, CC 5.4]
#include "pds/tx_poll.h"
#include "tests/pds/life_parts.h"
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

WorldOptions credit_world() {
  return software_world([](auto& o) { o.cc.algorithm = cc::Algorithm::kRccc; });
}

wire::PdsRequestCcSyn opening(std::uint16_t id, std::uint8_t ccc_id, std::uint32_t target) {
  wire::PdsRequestCcSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  h.psn = Psn(5000);
  h.spdcid = id;
  h.ccc_id = ccc_id;
  h.credit_target = target;
  return h;
}

/// ACKs and Credit packets bring no more than the first of them did.
World::Rule without_grants() {
  return [first = std::optional<std::uint32_t>()](const Seen& s, Fate& f) mutable {
    f.drop = s.is_control(ControlType::kCredit);
    if (s.type != PdsType::kAckCc) return;
    f.edit = [&first](std::vector<std::uint8_t>& bytes) {
      auto ack = wire::parse<wire::PdsAckCcCredit>(bytes);
      ASSERT_TRUE(ack);
      if (!first) first = ack->credit;
      ack->credit = *first;
      wire::emit(*ack, bytes.data());
    };
  };
}

constexpr std::uint32_t kFarAhead = 20'000;  // within what the pacer believes at once

// A turn of the pacer is a wake-up, and its time is taken from honest sources: an unproven opening gets as many as it hears of, and
// the others when its peer has proved itself.
TEST(Credit, one_forged_opening_takes_next_to_no_turns) {
  World w(credit_world());
  const auto stranger = net::FabricAddress::from_v4(0x0b000001);
  int steps = 0;
  w.after_step = [&] { ++steps; };
  w.inject(1, stranger, opening(9, 1, kFarAhead), w.segment_bytes(900, 0, 30));
  w.run_for(ms(50));
  EXPECT_LE(w.host(1).count(EventId::kCreditGranted), 3u);
  EXPECT_LE(steps, 10);
  const std::uint16_t id = w.acks(1).at(0).spdcid;
  w.log.clear();
  wire::PdsControl probe;
  probe.ctl_type = ControlType::kProbe;
  probe.spdcid = 9;
  probe.dpdcid = id;
  w.inject(1, stranger, probe);
  w.run_for(ms(1));
  EXPECT_GT(w.host(1).count(EventId::kCreditGranted), 100u);
  EXPECT_FALSE(w.controls(1, ControlType::kCredit).empty());
}

// The PDC on which a source was heard last is gone, and another one is not heard: turns would be taken in vain.
TEST(Credit, a_source_that_lost_its_voice_takes_no_turns_until_it_is_heard) {
  World w(credit_world());
  const auto stranger = net::FabricAddress::from_v4(0x0b000001);
  const auto control = [&](ControlType type, std::uint16_t id, std::uint16_t dpdcid) {
    wire::PdsControl h;
    h.ctl_type = type;
    h.ar = true;
    h.psn = Psn(5001);
    h.spdcid = id;
    h.dpdcid = dpdcid;
    h.payload = type == ControlType::kCreditRequest ? 1u << 24 | kFarAhead : 0;
    w.inject(1, stranger, h);
    w.pump();
  };
  std::vector<std::uint16_t> ids;
  for (const std::uint16_t id : {9, 10}) {
    w.inject(1, stranger, opening(id, 1, 0), w.segment_bytes(900, 0, 30));
    w.pump();
    ids.push_back(w.acks(1).back().spdcid);
    control(ControlType::kCreditRequest, id, ids.back());
  }
  control(ControlType::kCloseCommand, 10, ids[1]);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 1u);
  int steps = 0;
  w.after_step = [&] { ++steps; };
  w.run_for(ms(10));
  EXPECT_LE(steps, 10);
  control(ControlType::kCreditRequest, 9, ids[0]);
  w.run_for(ms(10));
  EXPECT_GT(steps, 100);
}

// Grants of a source stay with a PDC that hears us, whatever is forged in its name.
TEST(Credit, a_forged_opening_takes_neither_grants_nor_turns_of_an_honest_source) {
  World w(credit_world());
  w.send(0, 1, 4);
  w.run_for(ms(1));
  const Seen honest = w.requests(0).at(0);
  wire::PdsControl ask;
  ask.ctl_type = ControlType::kCreditRequest;
  ask.spdcid = honest.spdcid;
  ask.dpdcid = w.acks(1).at(0).spdcid;
  const std::uint32_t ccc = 3;
  ask.payload = ccc << 24 | 1000;
  w.inject(1, w.host(0).address, ask);
  w.run_for(ms(1));
  const auto granted = w.host(1).count(EventId::kCreditGranted);
  w.log.clear();
  w.inject(1, w.host(0).address, opening(honest.spdcid + 1, ccc, kFarAhead),
           w.segment_bytes(900, 0, 30));
  w.run_for(ms(1));
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 2u);
  EXPECT_EQ(w.host(1).count(EventId::kCreditGranted), granted);
  ask.payload = ccc << 24 | 2000;
  w.inject(1, w.host(0).address, ask);
  w.run_for(ms(1));
  const auto grants = w.controls(1, ControlType::kCredit);
  ASSERT_FALSE(grants.empty());
  for (const Seen& s : grants) EXPECT_EQ(s.dpdcid, honest.spdcid);
}

// Credit Requests to a PDC that its target has given up are dropped without a word, and without credit nothing else leaves that
// the target would refuse.
TEST(Credit, a_source_without_credit_learns_that_its_target_has_given_up_the_pdc) {
  Open x(credit_world());
  x.w.add_rule(without_grants());
  const MessageToken token = x.w.send(0, 1, 100);
  x.w.run_for(ms(1));
  const std::size_t answered = x.w.host(0).ses.responses_of(token);
  ASSERT_LT(answered, 100u);
  wire::PdsControl close;
  close.ctl_type = ControlType::kCloseCommand;
  close.ar = true;
  close.psn = x.w.requests(0).back().psn + 1;
  close.spdcid = x.id0;
  close.dpdcid = x.id1;
  x.w.inject(1, x.w.host(0).address, close);
  x.w.run_for(us(100));
  x.w.log.clear();
  x.w.clear_rules();
  x.w.run_for(ms(100));
  EXPECT_GE(x.w.controls(0, ControlType::kCreditRequest).size(), 1u);
  EXPECT_EQ(x.w.controls(0, ControlType::kNoop).size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures.size(), 1u);
}

// One that is only slow to grant is asked by one Noop, which it acknowledges.
TEST(Credit, a_target_that_grants_late_keeps_the_pdc) {
  Open x(credit_world());
  x.w.add_rule(without_grants());
  const MessageToken token = x.w.send(0, 1, 100);
  x.w.run_for(ms(100));
  EXPECT_GE(x.w.controls(0, ControlType::kNoop).size(), 1u);
  EXPECT_LE(x.w.controls(0, ControlType::kNoop).size(), 5u);
  EXPECT_LT(x.w.host(0).ses.responses_of(token), 100u);
  x.w.clear_rules();
  x.w.run_for(ms(400));
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 100u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// It answers everything but never grants: after the time in which a silent one would be given up, so is this one.
TEST(Credit, a_target_that_never_grants_is_given_up) {
  Open x(credit_world());
  x.w.add_rule(without_grants());
  x.w.send(0, 1, 100);
  const Duration patience = software_profile().peer_timeout;
  x.w.run_for(patience - Duration::from_seconds(5));
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
  x.w.run_for(Duration::from_seconds(10));
  ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u);
  EXPECT_EQ(x.w.host(0).ses.failures[0].error, PdsError::kPeerSilent);
}

/// Sends far more than leaves without an answer of the destination's congestion control.
void expect_to_get_through(cc::Algorithm source, cc::Algorithm destination, Mode mode) {
  World w(software_world([&](auto& o) { o.algorithms = {source, destination}; }));
  const MessageToken token = w.send(0, 1, 5000, 4000, mode);
  const MessageToken back = w.send(1, 0, 5000, 4000, mode);
  w.run_for(ms(200));
  EXPECT_EQ(w.host(0).ses.responses_of(token), 5000u);
  EXPECT_EQ(w.host(1).ses.responses_of(back), 5000u);
}

/// Many PDCs to one peer that has given no credit for what they have to send.
struct Blocked : Life {
  Blocked() : Life({}, credit()) {
    for (int i = 0; i < 100; ++i) {
      Pdc& pdc = established(2);
      submit(pdc);
      all.push_back(&pdc);
      ccc_of(pdc).ccc->on_new_data(kNow, 4000);
      scheduler.wake(pdc);
    }
    while (poll() > 0) continue;
  }
  static cc::CcConfig credit() {
    cc::CcConfig config;
    config.algorithm = cc::Algorithm::kRccc;
    config.spec_window = 1;  // one packet
    return config;
  }
  static Congestion& ccc_of(Pdc& pdc) { return *pdc.tx.cc.if_any(); }
  /// As after an ACK that brings nothing.
  std::size_t poll() {
    scheduler.wake(ccc_of(*all[0]));
    std::array<net::TxPacket, 1> out;
    return data.poll(kNow, Planes{}, out);
  }
  std::vector<Pdc*> all;
  DataSender sender{env, scheduler, sending};
  DataPoll data{env, scheduler, window, sender};
};

TEST(CreditExemption, is_looked_for_only_after_a_pdc_has_become_exempt) {
  Blocked t;
  const std::uint64_t before = t.data.looked();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(t.poll(), 0u);
  EXPECT_EQ(t.data.looked(), before);
  t.all[90]->tx.has_credit_exemption = true;
  t.scheduler.wake(*t.all[90]);
  EXPECT_EQ(t.poll(), 1u);
  EXPECT_EQ(t.all[90]->tx.unacked, 1u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(t.poll(), 0u);
  EXPECT_GT(t.data.looked(), before);
  EXPECT_LE(t.data.looked(), before + 200);
}

// The destination reports what the packets of its source ask for, not what it runs as a source itself. [CC 3.8]
TEST(MixedControl, endpoints_with_different_congestion_control_talk) {
  constexpr std::array kAll{cc::Algorithm::kNscc, cc::Algorithm::kRccc, cc::Algorithm::kBoth};
  for (const cc::Algorithm source : kAll)
    for (const cc::Algorithm destination : kAll)
      for (const Mode mode : {Mode::kRud, Mode::kRod}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(source)) + " to " +
                     std::to_string(static_cast<int>(destination)));
        expect_to_get_through(source, destination, mode);
      }
}

// A source with a window needs the count of bytes, whatever the destination runs.
TEST(MixedControl, a_source_that_speaks_of_no_credit_is_told_of_its_bytes) {
  World w(software_world([](auto& o) {
    o.algorithms = {cc::Algorithm::kNscc, cc::Algorithm::kRccc};
  }));
  int of_window = 0, of_credit = 0;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (s.from != 1 || s.type != PdsType::kAckCc) return;
    f.edit = [&](std::vector<std::uint8_t>& bytes) {
      const bool is_credit = bytes.at(12) >> 4 == 1;
      ++(is_credit ? of_credit : of_window);
    };
  });
  w.send(0, 1, 200);
  w.run_for(ms(10));
  EXPECT_GT(of_window, 0);
  EXPECT_EQ(of_credit, 0);
}

}  // namespace
}  // namespace uet::pds::test
