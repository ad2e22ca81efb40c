// Random schedules: whatever the link does, every message ends exactly once, and nothing stays behind. [PDS 21.11]
#include <cstdio>
#include <cstdlib>
#include <set>

#include "tests/pds/harness.h"

namespace uet::pds::test {
namespace {

struct Schedule {
  explicit Schedule(std::uint64_t seed_) : seed(seed_), rng(seed_) {
    static constexpr std::uint16_t kWindows[] = {128, 256, 1024};
    o.seed = seed;
    o.pds.local_mp_range = kWindows[rng.below(3)];
    o.pds.default_mpr = static_cast<std::uint8_t>(1 + rng.below(8));
    if (rng.chance(0.5)) o.pds.forced_start_psn = 0u - (1 + rng.below(200));
    o.pds.max_rto_retx_cnt = 15;
    o.pds.max_nack_retx_cnt = 31;
    o.pds.rto_max = ms(20);
    o.pds.ack_on_ecn = rng.chance(0.5);
    o.pds.enb_ack_per_pkt = rng.chance(0.1);
    o.pds.ack_gen_trigger = rng.chance(0.2) ? 0 : 16384;
    o.pds.rod_reorder = rng.chance(0.3);
    o.pds.sack_loss_thresh = rng.chance(0.3) ? 3 : 0;
    if (rng.chance(0.3)) o.pds.tail_loss_time = us(300);
    if (rng.chance(0.3)) o.pds.gtd_store_max = 8 + rng.below(40);
    if (rng.chance(0.3)) o.pds.pdc_idle_time = ms(3);
    if (rng.chance(0.2)) o.pds.max_rx_trackers = 2;
    if (rng.chance(0.2)) o.pds.ack_queue_max = 4;
    if (rng.chance(0.2)) o.pds.max_pdc = 3;
    static constexpr cc::Algorithm kAlgorithms[] = {cc::Algorithm::kNscc, cc::Algorithm::kNscc,
                                                    cc::Algorithm::kNone, cc::Algorithm::kBoth,
                                                    cc::Algorithm::kRccc};
    o.cc.algorithm = kAlgorithms[rng.below(5)];
    o.cc.idle_grant = false;  // thousands of credit packets without use
    o.buffers = rng.chance(0.2) ? 300 : 2048;
    loss = rng.chance(0.2) ? 0 : rng.unit() * 0.2;
    duplicate = rng.chance(0.5) ? 0 : rng.unit() * 0.1;
    reorder = rng.chance(0.3) ? 0 : rng.unit() * 0.3;
    trim = rng.chance(0.6) ? 0 : rng.unit() * 0.1;
    mark = rng.chance(0.5) ? 0 : rng.unit() * 0.3;
    late = rng.chance(0.5) ? 0 : rng.unit() * 0.3;
    guaranteed = rng.chance(0.4) ? 0 : rng.unit();
    refuse = rng.chance(0.6) ? 0 : rng.unit() * 0.1;
  }
  std::uint64_t seed;
  base::Rng rng;
  WorldOptions o;
  double loss, duplicate, reorder, trim, mark, late, guaranteed, refuse;
};

struct LateAnswer {
  Instant at;
  int host;
  RxHandle handle;
  bool guaranteed;
};

/// The last events of an endpoint, for a seed that is run alone.
void dump(const Host& host) {
  const auto events = host.trace.recorded();
  const std::size_t from = events.size() > 60 ? events.size() - 60 : 0;
  for (std::size_t i = from; i < events.size(); ++i) {
    const base::Event& e = events[i];
    const auto& d = base::describe(e.id);
    std::printf("host %d %10.3f us pdc %5u psn %08x %.*s a=%llu b=%llu\n", host.index,
                static_cast<double>(e.at.ns()) / 1000, e.pdc, e.psn.value(),
                static_cast<int>(d.name.size()), d.name.data(),
                static_cast<unsigned long long>(e.a), static_cast<unsigned long long>(e.b));
  }
}

struct Sent {
  Instant at;
  int from;
  PdsType type;
  Psn psn, clear, cack;
  std::uint16_t entropy;
  bool ar, retx;
  std::size_t size;
  bool operator==(const Sent&) const = default;
};

/// Returns what was sent.
std::vector<Sent> run_schedule(std::uint64_t seed, std::size_t burst = 32) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " (UET_PDS_SEED=" << seed << ")");
  Schedule s(seed);
  s.o.burst = burst;
  World w(s.o);
  base::Rng& rng = s.rng;
  std::vector<LateAnswer> late;
  std::map<MessageToken, Mode> modes;
  std::map<MessageToken, int> sender;
  std::map<std::pair<int, std::uint16_t>, Psn> cacks;

  bool calm = false;  // the link behaves, so that everything can end
  w.add_rule([&](const Seen& p, Fate& f) {
    EXPECT_FALSE((p.is_request() || p.is_ack()) && p.spdcid == 0);
    if (p.is_ack()) {  // CACK never goes back
      auto [at, fresh] = cacks.try_emplace({p.from, p.spdcid}, p.cack);
      if (!fresh) {
        const bool same_pdc = std::abs(p.cack.distance_from(at->second)) < (1 << 16);
        EXPECT_TRUE(!same_pdc || p.cack.is_at_or_after(at->second) || s.o.pds.forced_start_psn != 0)
            << "CACK went back";
        at->second = p.cack;
      }
    }
    if (calm) return;
    if (rng.chance(s.loss)) f.drop = true;
    if (rng.chance(s.duplicate)) f.copies = 2;
    if (rng.chance(s.reorder)) f.extra_delay = us(rng.below(200));
    if (p.is_request() && rng.chance(s.trim)) (rng.chance(0.5) ? f.trim : f.trim_last_hop) = true;
    if (p.is_request() && rng.chance(s.mark)) f.mark_ce = true;
  });
  for (int h = 0; h < 2; ++h) {
    w.host(h).ses.answer = [&, h](const RxRequest& r, const Delivery&) -> Answer {
      if (r.mode == Mode::kRudi || r.mode == Mode::kUud) return ScriptedSes::respond();
      if (!calm && rng.chance(s.refuse)) return ScriptedSes::refuse();
      const bool g = rng.chance(s.guaranteed);
      if (rng.chance(s.late)) {
        late.push_back({w.now() + us(rng.below(3000)), h, r.handle, g});
        return ScriptedSes::later();
      }
      static const std::uint8_t data[16] = {};
      return ScriptedSes::respond(g, g && rng.chance(0.3) ? std::span<const std::uint8_t>(data)
                                                          : std::span<const std::uint8_t>{});
    };
  }
  const auto answer_late = [&] {
    for (std::size_t i = 0; i < late.size();) {
      if (late[i].at > w.now()) {
        ++i;
        continue;
      }
      const LateAnswer a = late[i];
      late.erase(late.begin() + static_cast<std::ptrdiff_t>(i));
      const Answer answer = ScriptedSes::respond(a.guaranteed);
      w.host(a.host).pds->respond(w.now(), a.handle, answer.response, a.guaranteed);
      w.pump();
    }
  };
  w.after_step = answer_late;

  std::vector<MessageToken> refused;
  const int count = 5 + static_cast<int>(rng.below(40));
  for (int i = 0; i < count; ++i) {
    const int from = static_cast<int>(rng.below(2));
    static constexpr Mode kModes[] = {Mode::kRud, Mode::kRud, Mode::kRod, Mode::kRudi, Mode::kUud};
    const Mode mode = kModes[rng.below(5)];
    const std::uint32_t segments =
        mode == Mode::kUud ? 1 : 1 + rng.below(rng.chance(0.1) ? 600 : 20);
    TxMessage m = w.message(1 - from, segments, 1 + rng.below(2000), mode);
    SubmitResult r{};
    w.send(from, m, &r);
    if (r == SubmitResult::kQueued) {
      modes[m.token] = mode;
      sender[m.token] = from;
    }
    if (rng.chance(0.5)) w.run_for(us(rng.below(2000)));
  }
  w.run_for(ms(30));
  calm = true;
  for (int i = 0; i < 400; ++i) {
    w.run_for(ms(5));
    if (late.empty() && w.host(0).pds->is_idle() && w.host(1).pds->is_idle()) break;
  }
  for (int h = 0; h < 2; ++h) w.host(h).pds->close_all(w.now());
  for (int i = 0; i < 400; ++i) {
    w.run_for(ms(5));
    if (w.host(0).pds->gauges().pdcs_open == 0 && w.host(1).pds->gauges().pdcs_open == 0) break;
  }

  for (const auto& [token, mode] : modes) {
    const int from = sender[token];
    Host& src = w.host(from);
    Host& dst = w.host(1 - from);
    std::map<std::uint32_t, int> per_segment;
    for (const Delivery& d : dst.ses.delivered)
      if (d.token == token) ++per_segment[d.segment];
    const std::uint32_t segments = src.ses.messages[token].segments;
    if (mode == Mode::kUud) continue;
    EXPECT_EQ(per_segment.size(), segments)
        << "message " << token << " mode " << static_cast<int>(mode);
    if (mode != Mode::kRudi) {
      for (const auto& [seg, n] : per_segment) {
        EXPECT_EQ(n, 1) << "message " << token << " segment " << seg;
      }
    }
    std::map<std::uint32_t, int> answered;
    for (const Response& r : src.ses.responses)
      if (r.token == token) ++answered[r.segment];
    EXPECT_EQ(answered.size(), segments) << "message " << token;
    for (const auto& [seg, n] : answered) EXPECT_EQ(n, 1);
  }
  for (int h = 0; h < 2; ++h) {
    for (const Failure& f : w.host(h).ses.failures)
      ADD_FAILURE() << "host " << h << " message " << f.token << " error "
                    << static_cast<int>(f.error) << "; at the target "
                    << w.host(1 - h).pds->gauges().unproven_evicted << " evicted, "
                    << w.host(1 - h).pds->gauges().clear_breaks << " ended for not clearing";
    // ROD: in the order of submission.
    MessageToken last_token = 0;
    std::uint32_t last_segment = 0;
    for (const Delivery& d : w.host(h).ses.delivered) {
      if (d.mode != Mode::kRod) continue;
      if (d.token == last_token) {
        EXPECT_EQ(d.segment, last_segment + 1);
      } else {
        EXPECT_GT(d.token, last_token);
      }
      last_token = d.token;
      last_segment = d.segment;
    }
    const auto g = w.host(h).pds->gauges();
    if (g.pdcs_open != 0 && std::getenv("UET_PDS_SEED") != nullptr) dump(w.host(h));
    EXPECT_EQ(g.pdcs_open, 0u);
    EXPECT_EQ(g.outstanding_packets, 0u);
    EXPECT_EQ(g.queued_messages, 0u);
    EXPECT_EQ(g.stored_responses, 0u);
    EXPECT_EQ(g.rudi_outstanding, 0u);
    EXPECT_EQ(g.ccc_count, 0u);
    EXPECT_EQ(w.host(h).pool.available(), w.host(h).pool.capacity());
  }
  std::vector<Sent> sent;
  for (const Seen& p : w.log)
    sent.push_back({p.at, p.from, p.type, p.psn, p.clear, p.cack, p.entropy, p.ar, p.retx, p.size});
  return sent;
}

// Packets that leave in a row are built in one go.
TEST(Random, packets_are_the_same_however_many_are_asked_for_at_a_time) {
  for (std::uint64_t seed = 1; seed <= 40 && !testing::Test::HasFailure(); ++seed) {
    const auto singly = run_schedule(seed, 1);
    EXPECT_TRUE(singly == run_schedule(seed, 32)) << "seed " << seed;
    EXPECT_TRUE(singly == run_schedule(seed, 5)) << "seed " << seed;
  }
}

// Covers: PDS-199
TEST(Random, every_message_ends_exactly_once) {
  if (const char* one = std::getenv("UET_PDS_SEED")) {
    run_schedule(std::strtoull(one, nullptr, 10));
    return;
  }
  std::uint64_t seeds = 150;  // more with UET_PDS_SEEDS
  if (const char* n = std::getenv("UET_PDS_SEEDS")) seeds = std::strtoull(n, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed)
    run_schedule(seed);
}

}  // namespace
}  // namespace uet::pds::test
