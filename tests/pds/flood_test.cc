// Many packets from many addresses: bounded memory, bounded answers, and the living are not harmed. [PDS 19 R14, R19, R20]
#include <cstdlib>
#include <iostream>
#include <set>
#include <string_view>

#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

/// A million source addresses in the long suite, a tenth of that otherwise.
std::uint32_t sources() {
  const char* depth = std::getenv("UET_TEST_DEPTH");
  return depth != nullptr && std::string_view(depth) == "long" ? 1'000'000 : 100'000;
}

/// What the flood costs and what it draws, with the frame around each packet.
struct Account {
  static constexpr std::uint64_t kFrame = 32;  // IPv4, UDP, CRC
  std::uint64_t bytes_in = 0, bytes_out = 0, packets_in = 0, packets_out = 0;
};

/// Host 1 is flooded while host 0 talks to it. `strike` sends one packet of the i-th source.
class Flood {
 public:
  using Strike = std::function<void(Flood&, std::uint32_t i, const net::FabricAddress& from)>;

  explicit Flood(std::function<void(WorldOptions&)> change = [](auto&) {})
      : w_(software_world([&](auto& o) {
          o.pds.max_pdc = 256;
          change(o);
        })) {
    w_.add_rule([this](const Seen& s, Fate&) {
      if (s.from == 0) honest_ids_.insert(s.spdcid);
      if (s.from != 1 || honest_ids_.contains(s.dpdcid)) return;
      ++account_.packets_out;
      account_.bytes_out += Account::kFrame + s.size;
    });
  }

  void run(const Strike& strike) {
    Host& victim = w_.host(1);
    w_.send(0, 1, 2, 1000);
    w_.run_for(us(50));
    for (std::uint32_t i = 0; i < sources(); ++i) {
      strike(*this, i, net::FabricAddress::from_v4(0x0b000000u + i));
      if (i % 16 != 15) continue;
      w_.run_for(us(10));
      if (i % 64 == 63) honest_ += offer() ? 1 : 0;
      w_.log.clear();
      const auto g = victim.pds->gauges();
      ASSERT_LE(g.pdcs_open, 256u);
      ASSERT_LE(g.tombstones, 4096u + 256u);
      ASSERT_LE(g.openings_remembered, 65536u);
      ASSERT_GE(victim.pool.available(), victim.pool.capacity() - 600);
    }
    w_.run_for(Duration::from_seconds(70));
    EXPECT_TRUE(w_.host(0).ses.failures.empty());
    EXPECT_TRUE(w_.host(1).ses.failures.empty());
    EXPECT_EQ(w_.host(0).ses.responses.size(), 2u + 2u * honest_);
    EXPECT_GT(honest_, sources() / 64 * 9 / 10);
    // Nothing stays behind.
    const auto g = victim.pds->gauges();
    EXPECT_EQ(g.pdcs_open, 0u);
    EXPECT_EQ(g.stored_responses, 0u);
    EXPECT_EQ(victim.pool.available(), victim.pool.capacity());
    std::cout << account_.packets_in << " packets in, " << account_.packets_out << " out; "
              << account_.bytes_in << " bytes in, " << account_.bytes_out << " out\n";
    EXPECT_LE(account_.bytes_out, account_.bytes_in * 2);
  }

  template <typename H>
  void send(const net::FabricAddress& from, const H& header, std::size_t body = 0) {
    static const std::vector<std::uint8_t> kBody(64, 0x55);
    ++account_.packets_in;
    account_.bytes_in += Account::kFrame + H::kSize + body;
    w_.inject(1, from, header, std::span(kBody).first(body));
  }
  const Account& account() const { return account_; }
  Host& victim() { return w_.host(1); }

 private:
  bool offer() {
    SubmitResult r{};
    w_.send(0, w_.message(1, 2, 1000), &r);
    return r == SubmitResult::kQueued;
  }

  World w_;
  Account account_;
  std::set<std::uint16_t> honest_ids_;
  std::uint64_t honest_ = 0;
};

TEST(Flood, syns) {
  Flood f;
  f.run([](Flood& flood, std::uint32_t i, const net::FabricAddress& from) {
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(i * 7919);
    h.spdcid = static_cast<std::uint16_t>(30000 + i % 30000);
    flood.send(from, h, 44);
  });
}

// It had nothing to say since its first message, and so has never named the target's PDCID.
TEST(Flood, syns__do_not_push_out_an_honest_peer_that_idles) {
  World w(software_world([](auto& o) { o.pds.max_pdc = 256; }));
  w.send(0, 1, 1, 1000);
  w.run_for(Duration::from_ms(1));
  ASSERT_EQ(w.host(1).pds->gauges().pdcs_unproven, 1u);
  wire::PdsRequestSyn h;
  h.next_hdr = NextHdr::kRequestStd;
  const std::vector<std::uint8_t> body(44, 0x55);
  for (std::uint32_t i = 0; i < 8'000; ++i) {
    h.psn = Psn(i * 7919);
    h.spdcid = static_cast<std::uint16_t>(30000 + i % 30000);
    w.inject(1, net::FabricAddress::from_v4(0x0b000000u + i), h, body);
    w.run_for(us(50));
    w.log.clear();
  }
  EXPECT_GT(w.host(1).pds->gauges().unproven_evicted, 50u);
  w.send(0, 1, 2, 1000);
  w.run_for(Duration::from_seconds(1));
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  EXPECT_EQ(w.host(0).ses.responses.size(), 3u);
}

TEST(Flood, requests_for_pdcs_that_do_not_exist) {
  Flood f;
  f.run([](Flood& flood, std::uint32_t i, const net::FabricAddress& from) {
    wire::PdsRequest h;
    h.next_hdr = NextHdr::kRequestStd;
    h.ar = true;
    h.psn = Psn(i);
    h.spdcid = static_cast<std::uint16_t>(30000 + i % 30000);
    h.dpdcid = static_cast<std::uint16_t>(i * 31);
    flood.send(from, h, 44);
  });
  EXPECT_LE(f.account().packets_out, f.account().packets_in);
}

TEST(Flood, requests_of_one_source_are_answered_at_a_limited_rate) {
  Flood f;
  f.run([](Flood& flood, std::uint32_t i, const net::FabricAddress&) {
    wire::PdsRequest h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(i);
    h.spdcid = 30000;
    h.dpdcid = static_cast<std::uint16_t>(i * 31);
    flood.send(net::FabricAddress::from_v4(0x0b000001), h, 44);
  });
  // 1000 a second and a burst of 64, over the time that the flood takes.
  const std::uint64_t seconds = sources() / 16 / 100'000 + 1;
  EXPECT_LE(f.account().packets_out, 64 + 1000 * seconds);
  EXPECT_GT(f.victim().drops(DropReason::kNackRateLimited), 0u);
}

TEST(Flood, answers_to_nothing_are_not_answered) {
  Flood f;
  f.run([](Flood& flood, std::uint32_t i, const net::FabricAddress& from) {
    const auto id = static_cast<std::uint16_t>(i * 31);
    if (i % 3 == 0) {
      wire::PdsAck h;
      h.cack_psn = Psn(i);
      h.spdcid = 30000;
      h.dpdcid = id;
      flood.send(from, h);
    } else if (i % 3 == 1) {
      wire::PdsNack h;
      h.nack_code = static_cast<NackCode>(i % 256);
      h.nack_psn = Psn(i);
      h.spdcid = 30000;
      h.dpdcid = id;
      flood.send(from, h);
    } else {
      wire::PdsRudi h;
      h.type = PdsType::kRudiResp;
      h.next_hdr = NextHdr::kResponse;
      h.pkt_id = i;
      flood.send(from, h);
    }
  });
  EXPECT_EQ(f.account().packets_out, 0u);
}

/// What one forged packet draws until everything about it is forgotten.
struct Drawn {
  std::size_t packets = 0, bytes = 0, in = 0;
};

template <typename H>
Drawn drawn_by(const H& header, std::size_t body, const std::function<void(World&)>& arrange) {
  World w(software_world());
  arrange(w);
  const std::vector<std::uint8_t> bytes(body, 0x55);
  w.inject(1, net::FabricAddress::from_v4(0x0b000001), header, bytes);
  w.run_for(Duration::from_seconds(200));
  Drawn d;
  d.in = Account::kFrame + H::kSize + body;
  for (const Seen& s : w.sent(1, [](auto&) { return true; })) {
    ++d.packets;
    d.bytes += Account::kFrame + s.size;
  }
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  return d;
}

// A SYN in the name of another host: three packets and twice the bytes are the most that it draws. Where it asks for data, whose
// sender has to know a memory key, questions for its proof go on for a minute.
TEST(Flood, one_forged_packet_draws_next_to_nothing) {
  const auto nothing = [](World&) {};
  const auto keeps = [](World& w) {
    w.host(1).ses.answer = [](auto&, auto&) { return ScriptedSes::respond(true); };
  };
  const auto reads = [](World& w) {
    w.host(1).ses.answer = [&w](const RxRequest& r, auto&) {
      const TxMessage m = w.message(0, 16, 4096);
      w.host(1).ses.messages[m.token] = m;
      EXPECT_EQ(w.host(1).pds->submit_return(w.now(), r.handle, m), SubmitResult::kQueued);
      return ScriptedSes::respond();
    };
  };
  const auto reads_on_the_ack = [](World& w) {
    w.host(1).ses.answer = [](auto&, auto&) {
      static const std::vector<std::uint8_t> kData(16, 1);
      return ScriptedSes::respond(true, kData);
    };
  };
  wire::PdsControlSyn noop;
  noop.ctl_type = ControlType::kNoop;
  noop.ar = true;
  noop.psn = Psn(5000);
  noop.spdcid = 9;
  wire::PdsRequestSyn request;
  request.next_hdr = NextHdr::kRequestStd;
  request.psn = Psn(5000);
  request.spdcid = 9;
  const std::vector<Drawn> all = {drawn_by(noop, 0, nothing), drawn_by(request, 0, nothing),
                                  drawn_by(request, 0, keeps), drawn_by(request, 44, keeps),
                                  drawn_by(request, 44, reads_on_the_ack)};
  for (const Drawn& d : all) {
    EXPECT_GE(d.packets, 1u);
    EXPECT_LE(d.packets, 3u);
    EXPECT_LE(d.bytes, d.in * 2);
  }
  const Drawn read = drawn_by(request, 44, reads);
  EXPECT_LE(read.packets, 16u);
  EXPECT_LE(read.bytes, read.in * 10);
}

/// A forged request whose answer has 1,000 bytes of read data, for an ACK.
struct LongAnswer : World {
  LongAnswer() : World(software_world([](auto& o) { o.pds.max_ack_data_size = 1024; })) {
    host(1).ses.answer = [this](auto&, auto&) { return ScriptedSes::respond(true, data); };
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(5000);
    h.spdcid = 9;
    inject(1, net::FabricAddress::from_v4(0x0b000001), h, std::vector<std::uint8_t>(44));
  }
  const std::vector<std::uint8_t> data = std::vector<std::uint8_t>(1000, 7);
};

// Read data that is longer waits on the ACK too, and comes with the proof.
TEST(Flood, long_answers_wait_for_the_proof) {
  LongAnswer w;
  w.run_for(ms(500));
  for (const Seen& s : w.sent(1, [](auto&) { return true; })) EXPECT_LT(s.size, 100u);
  EXPECT_GE(w.controls(1, ControlType::kProbe).size(), 2u);
  w.send(0, 1);  // an honest peer answers the Probe
  w.run_for(ms(500));
  ASSERT_EQ(w.host(0).ses.responses.size(), 1u);
  EXPECT_EQ(w.host(0).ses.responses[0].bytes.size(), 12u + 1000u);
}

// Questions go on while data waits, since their answers may be lost; but a host in whose name it was asked for gets few of them, and
// one word in the end.
TEST(Flood, questions_while_data_waits_are_few) {
  LongAnswer w;
  w.run_for(Duration::from_seconds(70));
  const auto asked = w.controls(1, ControlType::kProbe);
  EXPECT_GE(asked.size(), 10u);
  EXPECT_LE(asked.size(), 20u);
  for (std::size_t i = 2; i < asked.size(); ++i)
    EXPECT_GE(asked[i].at - asked[i - 1].at, (asked[i - 1].at - asked[i - 2].at) * 2 - us(1));
  ASSERT_EQ(w.nacks(1).size(), 1u);
  EXPECT_EQ(w.nacks(1)[0].code, NackCode::kClosingInErr);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
}

// 960 places for targets. A new peer is served while forged SYNs keep coming, and when they already stand in the table.
TEST(Flood, newcomers_open_while_forged_syns_arrive) {
  constexpr int kNewcomers = 4;
  World w(software_world([](auto& o) { o.hosts = 2 + kNewcomers; }));
  std::uint32_t forged = 0;
  const auto strike = [&] {
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(forged * 7919);
    h.spdcid = static_cast<std::uint16_t>(1 + forged % 60000);
    w.inject(1, net::FabricAddress::from_v4(0x0b000000u + forged++), h,
             std::vector<std::uint8_t>(44));
  };
  std::size_t said = 0;
  const auto flood_for = [&](int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      if (i % 25 != 24) strike();  // 960 a second
      if (i % 100 == 0) {          // and a peer that was there before
        w.send(0, 1, 2);
        said += 2;
      }
      w.run_for(ms(1));
      w.log.clear();
    }
    EXPECT_EQ(w.host(0).ses.responses.size(), said);
    EXPECT_LE(w.host(1).pds->gauges().pdcs_unproven, 480u);
  };
  flood_for(10);
  for (int i = 0; i < 960; ++i) strike();
  w.log.clear();
  for (int i = 0; i < kNewcomers; ++i) {
    const int host = 2 + i;
    w.send(host, 1, 20);
    flood_for(1000);
    EXPECT_EQ(w.host(host).ses.responses.size(), 20u) << i;
    flood_for(i < 2 ? 500 : 20000);
  }
  EXPECT_GT(w.host(1).pds->gauges().unproven_evicted, 10'000u);
}

TEST(Flood, challenged_syns_hold_nothing_for_long) {
  struct Guard final : OpeningGuard {
    Challenge on_opening(const Opening& o) override { return o.start + 0x10000; }
    bool is_confirmed(const Opening& o, Psn announced) override { return o.start == announced; }
    std::optional<Psn> on_target_closed(const net::FabricAddress&, Psn) override { return {}; }
    void on_half_open_limit() override { ++limits; }
    std::optional<Psn> expected_by(const net::FabricAddress&) override { return {}; }
    void on_expected_psn(const net::FabricAddress&, Psn) override {}
    int limits = 0;
  } guard;
  World w(with([](auto& o) {
    o.pds.max_pdc = 256;
    o.hosts = 2;
  }));
  w.host(1).pds->set_opening_guard(guard);
  for (std::uint32_t i = 0; i < sources(); ++i) {
    wire::PdsRequestSyn h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = Psn(i);
    h.spdcid = 9;
    w.inject(1, net::FabricAddress::from_v4(0x0b000000u + i), h, w.segment_bytes(1, 0, 1));
    if (i % 16 == 15) w.run_for(us(100));
    w.log.clear();
  }
  EXPECT_TRUE(w.host(1).ses.delivered.empty());
  w.run_for(ms(6));
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 0u);
  EXPECT_GT(guard.limits, 0);
}

}  // namespace
}  // namespace uet::pds::test
