// Packets chosen by an enemy. [PDS 19, 21.10]
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

/// A peer made by hand that has opened a PDC to host 1 and used its identifier.
struct Stranger {
  static constexpr std::uint16_t kOwnId = 77;
  static constexpr std::uint32_t kStart = 5000;

  explicit Stranger(World& world, Mode mode = Mode::kRud) : w(world), is_rod(mode == Mode::kRod) {
    wire::PdsControlSyn syn;
    syn.ctl_type = ControlType::kNoop;
    syn.isrod = is_rod;
    syn.ar = true;
    syn.psn = Psn(kStart);
    syn.spdcid = kOwnId;
    arrive(syn);
    id = w.acks(1).back().spdcid;
    arrive(control(ControlType::kNoop, Psn(kStart + 1)));
  }
  wire::PdsControl control(ControlType type, Psn psn, std::uint32_t payload = 0) const {
    wire::PdsControl h;
    h.ctl_type = type;
    h.isrod = is_rod;
    h.ar = true;
    h.psn = psn;
    h.spdcid = kOwnId;
    h.dpdcid = id;
    h.payload = payload;
    return h;
  }
  template <typename H>
  void arrive(const H& header, std::span<const std::uint8_t> body = {}) {
    w.inject(1, address, header, body);
    w.run_for(us(20));
  }
  World& w;
  bool is_rod;
  net::FabricAddress address = net::FabricAddress::from_v4(0x0b000001);
  std::uint16_t id = 0;
};

// A target that has sent no read data has no congestion context; its Close Request is outstanding all the same.
TEST(Hostile, ordering_nacks_about_a_close_request) {
  for (const std::uint16_t spdcid : {Stranger::kOwnId, std::uint16_t{0}}) {
    World w(software_world());
    Stranger s(w, Mode::kRod);
    w.run_for(Duration::from_seconds(3));
    ASSERT_FALSE(w.controls(1, ControlType::kCloseRequest).empty());
    wire::PdsNack h;
    h.nack_code = NackCode::kRodOoo;
    h.nack_psn = Psn(Stranger::kStart);
    h.payload = Stranger::kStart;
    h.spdcid = spdcid;
    h.dpdcid = s.id;
    for (int i = 0; i < 3; ++i) s.arrive(h);
    EXPECT_GT(w.host(1).drops(DropReason::kStaleNack), 0u);
    w.send(0, 1);
    w.run_for(ms(100));
    EXPECT_EQ(w.host(0).ses.responses.size(), 1u);
  }
}

// The same by a sender that sees nothing of what is answered: it forges the address and tries every identifier.
TEST(Hostile, ordering_nacks_from_off_the_path) {
  World w(software_world());
  Stranger s(w, Mode::kRod);
  w.run_for(Duration::from_seconds(3));
  wire::PdsNack h;
  h.nack_code = NackCode::kRodOoo;
  h.nack_psn = Psn(Stranger::kStart);
  h.payload = Stranger::kStart;
  for (unsigned id = 1; id < 65536; ++id)
    for (int twice = 0; twice < 2; ++twice) {
      h.dpdcid = static_cast<std::uint16_t>(id);
      w.inject(1, s.address, h);
      w.pump();
    }
  EXPECT_GT(w.host(1).drops(DropReason::kStaleNack), 0u);
}

/// Host 0 has opened a PDC and host 1 has delivered, but has not been turned since: its ACK is not there yet.
struct Unanswered {
  Unanswered() : w(software_world()) {
    w.add_rule([this](const Seen& s, Fate& f) {
      if (s.from == 1) f.extra_delay = is_asleep ? ms(5) : Duration{};
    });
    token = w.send(0, 1, 4);
    w.run_for(us(100));
    const Seen first = w.requests(0).at(0);
    id = first.spdcid;
    start = first.psn - first.psn_offset;
  }
  /// Every message once, everything acknowledged, no peer taken for another.
  void expect_unharmed() {
    const std::uint64_t mismatches = w.host(0).drops(DropReason::kPeerMismatch);
    w.run_for(ms(200));
    w.send(0, 1, 2);
    w.run_for(ms(200));
    EXPECT_TRUE(w.host(0).ses.failures.empty());
    EXPECT_EQ(w.host(0).ses.responses.size(), 6u);
    EXPECT_EQ(w.host(1).ses.delivered.size(), 6u);
    EXPECT_EQ(w.host(0).drops(DropReason::kPeerMismatch), mismatches);
    EXPECT_TRUE(w.nacks(1).empty());
  }
  World w;
  bool is_asleep = true;
  MessageToken token = 0;
  std::uint16_t id = 0;
  Psn start;
};

// An ACK says who the target is, so one that acknowledges nothing that was sent must say nothing.
TEST(Hostile, acks_of_what_was_never_sent_teach_nothing) {
  for (const std::int64_t cack : {-1'000'000LL, -(1LL << 31) + 16, -2LL, -1LL, 4LL, 1LL << 20}) {
    Unanswered x;
    wire::PdsAckCcNscc h;
    h.cack_psn = x.start + static_cast<std::int32_t>(cack);
    h.mpr = 1;
    h.service_time = 0xfffe;
    h.spdcid = 999;
    h.dpdcid = x.id;
    x.w.inject(0, x.w.host(1).address, h);
    h.p = true;
    x.w.inject(0, x.w.host(1).address, h);
    EXPECT_EQ(x.w.host(0).drops(DropReason::kAckNeverSent), 2u) << cack;
    x.expect_unharmed();
  }
}

// Off the path: every identifier, and two numbers that stand for half of the PSNs each.
TEST(Hostile, blind_acks_teach_nothing) {
  Unanswered x;
  wire::PdsAck h;
  h.spdcid = 999;
  for (unsigned id = 1; id < 65536; ++id)
    for (const std::uint32_t cack : {x.start.value() - 77'777, x.start.value() + 0x7000'0000}) {
      h.dpdcid = static_cast<std::uint16_t>(id);
      h.cack_psn = Psn(cack);
      x.w.inject(0, x.w.host(1).address, h);
    }
  x.expect_unharmed();
}

// Nor does a packet of the return direction whose PSN is far ahead, or any control packet.
TEST(Hostile, blind_return_packets_and_control_packets_teach_nothing) {
  Unanswered x;
  wire::PdsRequest request;
  request.next_hdr = NextHdr::kResponseData;
  request.psn = x.start + 0x4000'0000;
  request.spdcid = 999;
  request.dpdcid = x.id;
  x.w.inject(0, x.w.host(1).address, request, x.w.segment_bytes(1, 0, 1));
  for (const ControlType type :
       {ControlType::kNoop, ControlType::kAckRequest, ControlType::kClearCommand,
        ControlType::kClearRequest, ControlType::kCloseCommand, ControlType::kCloseRequest,
        ControlType::kProbe, ControlType::kCredit, ControlType::kCreditRequest,
        ControlType::kNegotiation}) {
    wire::PdsControl h;
    h.ctl_type = type;
    h.psn = x.start + 0x4000'0000;
    h.payload = x.start.value() + 0x4000'0000;
    h.spdcid = 999;
    h.dpdcid = x.id;
    x.w.inject(0, x.w.host(1).address, h);
  }
  x.w.log.clear();
  x.expect_unharmed();
}

/// Opens a PDC whose ACK never comes back, with the table full of others, so that it makes place; then the sender wakes up.
struct Sleeper {
  Sleeper() : w(software_world([](auto& o) { o.pds.max_pdc = 80; })) {
    w.add_rule([this](const Seen& s, Fate& f) {
      f.drop = (s.from == 1 && is_deaf) || (s.from == 0 && is_mute);
    });
    w.send(0, 1, 1);
    w.run_for(us(50));
    is_mute = true;
  }
  void open_others(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::PdsRequestSyn h;
      h.next_hdr = NextHdr::kRequestStd;
      h.psn = Psn(9000 + i);
      h.spdcid = 5;
      w.inject(1, net::FabricAddress::from_v4(0x0b000000u + serial++), h, w.segment_bytes(9, 0, 1));
    }
  }
  World w;
  bool is_deaf = true, is_mute = false;
  std::uint32_t serial = 0;
};

// What was delivered for a sender that has not heard of it is not delivered again, however long the sender sleeps.
TEST(Hostile, a_sleeper_whose_pdc_made_place_is_not_served_twice) {
  for (const int seconds : {1, 3, 10, 59}) {
    Sleeper x;
    x.w.run_for(ms(300));
    x.open_others(80);
    ASSERT_GT(x.w.host(1).pds->gauges().unproven_evicted, 0u);
    x.w.run_for(Duration::from_seconds(seconds));
    x.is_mute = x.is_deaf = false;
    x.w.run_for(Duration::from_seconds(2));
    std::size_t mine = 0;
    for (const Delivery& d : x.w.host(1).ses.delivered) mine += d.token == 1 ? 1 : 0;
    EXPECT_EQ(mine, 1u) << seconds;
    // It is told that this cannot be mended, and no later than it could have found out by itself.
    ASSERT_EQ(x.w.host(0).ses.failures.size(), 1u) << seconds;
    EXPECT_FALSE(is_retryable(x.w.host(0).ses.failures[0].error));
  }
}

// Where there is room its PDC stays, and answers.
TEST(Hostile, a_sleeper_finds_its_pdc) {
  for (const int seconds : {1, 3, 10, 59}) {
    Sleeper x;
    x.w.run_for(Duration::from_seconds(seconds));
    x.is_mute = x.is_deaf = false;
    x.w.run_for(Duration::from_seconds(2));
    EXPECT_EQ(x.w.host(0).ses.responses.size(), 1u) << seconds;
    EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u) << seconds;
  }
}

// Covers: PDS-190, PDS-191, PDS-192
TEST(Hostile, wrong_ids_are_refused) {
  Open x;
  auto h = x.request(x.next);
  for (const std::uint16_t id : {std::uint16_t{0}, std::uint16_t{65535}}) {
    h.dpdcid = id;
    x.arrive(h);
    EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kInvDpdcid);
  }
  h = x.request(x.next);
  x.w.inject(1, net::FabricAddress::from_v4(0x01010101), h, x.w.segment_bytes(1, 0, 1));
  x.w.pump();
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kPdcHdrMismatch);
  h.type = PdsType::kRodReq;
  x.arrive(h);
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kPdcModeMismatch);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u);
}

/// Bytes of the headers that a packet of this type has at least; none where the type does not exist.
std::optional<std::size_t> least_size(unsigned type) {
  switch (static_cast<PdsType>(type)) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
      return wire::PdsRequest::kSize;
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      return wire::PdsRequestCc::kSize;
    case PdsType::kAck:
      return wire::PdsAck::kSize;
    case PdsType::kAckCc:
      return wire::PdsAckCcNscc::kSize;
    case PdsType::kAckCcx:
      return wire::PdsAckCcx::kSize;
    case PdsType::kNack:
      return wire::PdsNack::kSize;
    case PdsType::kNackCcx:
      return wire::PdsNackCcx::kSize;
    case PdsType::kControl:
      return wire::PdsControl::kSize;
    case PdsType::kRudiReq:
    case PdsType::kRudiResp:
      return wire::PdsRudi::kSize;
    case PdsType::kUudReq:
      return wire::PdsUud::kSize;
    default:
      return std::nullopt;
  }
}

// Covers: PDS-193
TEST(Hostile, truncated_headers_are_dropped) {
  Open x;
  Host& target = x.w.host(1);
  for (unsigned type = 0; type < 32; ++type)
    for (std::size_t size = 0; size < least_size(type).value_or(40); ++size) {
      std::vector<std::uint8_t> bytes(size, 0xff);
      if (size > 0) bytes[0] = static_cast<std::uint8_t>(type << 3);
      const bool shows_type = size >= wire::PdsUud::kSize;
      const auto reason =
          shows_type && !least_size(type) ? DropReason::kBadType : DropReason::kTruncated;
      const std::uint64_t before = target.drops(reason);
      x.w.inject_bytes(1, x.w.host(0).address, bytes);
      x.w.pump();
      EXPECT_EQ(target.drops(reason), before + 1) << "type " << type << ", " << size << " bytes";
    }
  EXPECT_EQ(target.ses.delivered.size(), 1u);  // what opened the PDC
  EXPECT_TRUE(x.w.log.empty());                // no answer to any
  const MessageToken token = x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_EQ(target.ses.delivered.size(), 2u);
  EXPECT_EQ(x.w.host(0).ses.responses_of(token), 1u);
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

/// Honest messages of several packets between hosts, while packets with damaged delivery headers arrive among theirs.
struct Damage {
  static constexpr std::size_t kPayload = 100;

  explicit Damage(int hosts) : x(with([hosts](auto& o) { o.hosts = hosts; })) {
    for (int i = 0; i < hosts; ++i)
      x.w.host(i).ses.answer = [this, i](const RxRequest& request, const Delivery& d) {
        const auto is = [&](const Sent& s) {
          return s.to == i && s.token == d.token && x.w.host(s.from).address == request.source;
        };
        const auto at = std::ranges::find_if(sent, is);
        const auto bytes = x.w.segment_bytes(d.token, d.segment, kPayload);
        if (at != sent.end() && std::ranges::equal(request.bytes, bytes))
          ++at->arrived[d.segment];
        else
          ++foreign;
        return ScriptedSes::respond();
      };
  }
  /// One message of up to eight packets, if there is room for it.
  void send(int from, int to) {
    const TxMessage m = x.w.message(to, 1 + rng.below(8), kPayload);
    SubmitResult result{};
    x.w.send(from, m, &result);
    if (result == SubmitResult::kQueued) sent.push_back({from, to, m.token, m.segments, {}});
  }
  void change(std::vector<std::uint8_t>& bytes) {
    const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 16));
    for (int i = 0; i < 3; ++i) bytes[rng.below(size)] = static_cast<std::uint8_t>(rng.next_u32());
    ++changed;
  }
  struct Sent {
    int from, to;
    MessageToken token;
    std::uint32_t segments;
    std::map<std::uint32_t, int> arrived;  // intact, by segment
  };
  /// Every packet arrived once with its bytes, and was answered once.
  void expect_whole(const Sent& s) {
    EXPECT_EQ(s.arrived.size(), s.segments) << "message " << s.token << " from " << s.from;
    for (const auto& [segment, times] : s.arrived)
      EXPECT_EQ(times, 1) << "message " << s.token << ", segment " << segment;
    EXPECT_EQ(x.w.host(s.from).ses.responses_of(s.token), s.segments) << "message " << s.token;
  }
  Open x;
  base::Rng rng{7};
  std::vector<Sent> sent;
  std::size_t changed = 0;
  std::size_t foreign = 0;  // delivered, and none of those sent
};

// What two hosts send each other is damaged on its way, as if each were the other's enemy. All that a third one sends to both arrives,
// and what the two send once that is over and their PDCs are closed.
// Covers: PDS-196
TEST(Hostile, mutated_packets_harm_no_peer) {
  Damage d(3);
  World& w = d.x.w;
  w.add_rule([&](const Seen& s, Fate& f) {
    const bool is_to_third = s.destination == w.host(2).address;
    if (s.from == 2 || is_to_third || !d.rng.chance(0.3)) return;
    f.copies = 2;
    f.edit = [&](std::vector<std::uint8_t>& bytes) { d.change(bytes); };
  });
  for (int i = 0; i < 200; ++i) {
    d.send(0, 1);
    d.send(1, 0);
    d.send(2, i % 2);
    w.run_for(us(300));
  }
  w.run_for(Duration::from_seconds(1));
  EXPECT_GT(d.changed, 200u);
  EXPECT_GT(d.foreign, 0u);
  EXPECT_EQ(std::ranges::count(d.sent, 2, &Damage::Sent::from), 200);
  w.clear_rules();
  w.run_until_quiet();
  // What a PDC was made to believe ends with it.
  for (int i = 0; i < 2; ++i) w.host(i).pds->close_all(w.now());
  w.run_until_quiet();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(w.host(i).pds->is_idle()) << i;
  const std::size_t before = d.sent.size();
  for (int i = 0; i < 20; ++i) {
    d.send(0, 1);
    d.send(1, 0);
    d.send(2, i % 2);
  }
  w.run_until_quiet();
  EXPECT_EQ(d.sent.size(), before + 60);
  for (std::size_t i = 0; i < d.sent.size(); ++i)
    if (i >= before || d.sent[i].from == 2) d.expect_whole(d.sent[i]);
  EXPECT_TRUE(w.host(2).ses.failures.empty());
}

// Copies of what two hosts send each other, damaged and in the name of a third: of the two each message arrives once all the same.
// Covers: PDS-196
TEST(Hostile, mutated_copies_from_elsewhere_change_nothing) {
  Damage d(2);
  World& w = d.x.w;
  std::vector<std::pair<int, std::vector<std::uint8_t>>> overheard;
  w.add_rule([&](const Seen& s, Fate& f) {
    if (!d.rng.chance(0.3)) return;
    f.edit = [&, from = s.from](const std::vector<std::uint8_t>& bytes) {
      overheard.emplace_back(1 - from, bytes);
    };
  });
  w.after_step = [&] {
    auto now = std::exchange(overheard, {});
    for (auto& [to, bytes] : now) {
      d.change(bytes);
      w.inject_bytes(to, net::FabricAddress::from_v4(0x0b000001), bytes);
    }
    w.pump();
  };
  for (int i = 0; i < 200; ++i) {
    d.send(0, 1);
    d.send(1, 0);
    w.run_for(us(300));
  }
  w.run_until_quiet();
  EXPECT_GT(d.changed, 200u);
  EXPECT_GT(d.foreign, 0u);  // some became datagrams, which need no PDC
  ASSERT_EQ(d.sent.size(), 400u);
  for (const Damage::Sent& s : d.sent) d.expect_whole(s);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(w.host(i).ses.failures.empty()) << i;
}

}  // namespace
}  // namespace uet::pds::test
