// Goodput under loss, and completion under everything at once. [PDS 13]
#include <iomanip>
#include <iostream>
#include <set>

#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

constexpr std::uint32_t kSegment = 4096;
constexpr std::uint32_t kSegmentsPerMessage = 256;

/// A link of 25 Gb/s and 5 us between two hosts, which loses packets of both directions.
struct Link {
  Link(World& w, double loss, std::uint64_t seed) : rng(seed) {
    w.add_rule([this, &w, loss](const Seen& s, Fate& f) {
      constexpr std::int64_t kPsPerByte = 320;
      Instant& free = free_at[s.from];
      const auto bytes = static_cast<std::int64_t>(s.body + 32 + 66);
      free = std::max(free, w.now()) + Duration::from_ns(bytes * kPsPerByte / 1000);
      f.extra_delay = free - w.now();
      f.drop = rng.chance(loss);
    });
  }
  base::Rng rng;
  std::array<Instant, 2> free_at{};
};

/// Gigabits of payload per second in the steady state.
double goodput(double loss, const std::function<void(WorldOptions&)>& change,
               Mode mode = Mode::kRud) {
  World w(with([&](auto& o) {
    o.pds.max_rto_retx_cnt = 15;
    o.cc.link_rate = base::BitRate::from_gbps(25);
    o.cc.config_base_rtt = us(12);
    o.pds.pdc_spread_bytes = 1 << 30;
    change(o);
  }));
  Link link(w, loss, 7);
  const Duration warm_up = ms(2), measured = ms(10);
  std::size_t first = 0;
  const Instant begin = w.now() + warm_up, end = begin + measured;
  while (w.now() < end) {
    while (w.host(0).pds->gauges().queued_messages < 4)
      w.send(0, 1, kSegmentsPerMessage, kSegment, mode);
    if (w.now() < begin) first = w.host(1).ses.delivered.size();
    w.run_for(us(50));
    w.log.clear();
  }
  EXPECT_TRUE(w.host(0).ses.failures.empty());
  const auto bytes = static_cast<double>((w.host(1).ses.delivered.size() - first) * kSegment);
  return bytes * 8 / static_cast<double>(measured.ns());
}

TEST(Goodput, table_by_loss) {
  struct Profile {
    const char* name;
    std::function<void(WorldOptions&)> change;
  };
  const Profile profiles[] = {
      {"timeouts only (defaults)", [](auto&) {}},
      {"reordering window 50 us", [](auto& o) { o.pds.reorder_window = us(50); }},
      {"and questions (real ports)",
       [](auto& o) {
         o.pds.reorder_window = us(50);
         o.pds.tail_loss_time = ms(1);
         o.pds.tail_loss_asks = true;
       }},
  };
  std::cout
      << "Gb/s of payload on 25 Gb/s, 4 KiB packets, base RTT 12 us, NSCC; share of loss-free\n"
      << std::setw(28) << "loss";
  constexpr double kLoss[] = {0, 0.0001, 0.001, 0.01, 0.05, 0.1};
  for (const double loss : kLoss) std::cout << std::setw(15) << loss * 100 << '%';
  std::cout << '\n';
  for (const Profile& p : profiles) {
    std::cout << std::setw(28) << p.name;
    double clean = 0, at_one_percent = 0, at_ten_percent = 0;
    for (const double loss : kLoss) {
      const double rate = goodput(loss, p.change);
      if (loss == 0) clean = rate;
      if (loss == 0.01) at_one_percent = rate;
      if (loss == 0.1) at_ten_percent = rate;
      std::cout << std::setw(8) << std::fixed << std::setprecision(2) << rate << std::setw(7)
                << std::setprecision(1) << rate / clean * 100 << '%';
      std::cout.unsetf(std::ios::fixed);
    }
    std::cout << '\n';
    if (&p == &profiles[1]) {
      EXPECT_GE(at_one_percent, clean * 0.95 * 0.99);
    }
    if (&p == &profiles[2]) {
      EXPECT_GE(at_ten_percent, clean * 0.3);
    }
  }
}

/// What fep/ sets for every endpoint on a real port: no limits but time, noise of software hosts, and a base RTT that is a guess.
void as_on_a_real_port(WorldOptions& o) {
  o.pds.reorder_window = us(50);
  o.pds.tail_loss_time = ms(1);
  o.pds.tail_loss_asks = true;
  o.pds.rod_reorder = true;
  o.pds.rto_init_time = ms(20);
  o.pds.rto_max = ms(100);
  o.pds.max_nack_retx_cnt = 31;
  o.cc.config_base_rtt = us(100);
  o.cc.timing_noise = us(50);
}

TEST(Goodput, with_the_settings_of_a_real_port) {
  const double clean = goodput(0, as_on_a_real_port);
  std::cout << "settings of a real port, Gb/s\n" << std::setw(28) << "loss";
  constexpr double kLoss[] = {0.01, 0.05, 0.1};
  for (const double loss : kLoss) std::cout << std::setw(7) << loss * 100 << '%';
  double unordered = 0, ordered = 0;
  std::cout << '\n' << std::setw(28) << "RUD";
  for (const double loss : kLoss)
    std::cout << std::setw(8) << (unordered = goodput(loss, as_on_a_real_port));
  std::cout << '\n' << std::setw(28) << "ROD";
  for (const double loss : kLoss)
    std::cout << std::setw(8) << (ordered = goodput(loss, as_on_a_real_port, Mode::kRod));
  std::cout << '\n';
  EXPECT_GE(unordered, clean * 0.8) << "10 % loss";
  EXPECT_GE(ordered, clean * 0.5) << "10 % loss";
}

TEST(Goodput, everything_completes_under_loss_reordering_and_duplication) {
  for (const Mode mode : {Mode::kRud, Mode::kRod, Mode::kRudi}) {
    World w(with([](auto& o) {
      o.pds.max_rto_retx_cnt = 15;
      o.pds.max_nack_retx_cnt = 31;
    }));
    base::Rng rng(static_cast<std::uint64_t>(mode) + 1);
    w.add_rule([&](const Seen&, Fate& f) {
      f.drop = rng.chance(0.1);
      if (rng.chance(0.1)) f.extra_delay = us(rng.below(100));
      if (rng.chance(0.02)) {
        f.copies = 2;
        f.copy_delay = us(rng.below(200));
      }
    });
    std::vector<MessageToken> tokens;
    for (int i = 0; i < 50; ++i) {
      tokens.push_back(w.send(0, 1, 1 + rng.below(40), 1 + rng.below(4096), mode));
      tokens.push_back(w.send(1, 0, 1 + rng.below(40), 1 + rng.below(4096), mode));
      w.run_for(us(rng.below(500)));
    }
    w.run_until_quiet(Duration::from_seconds(60));
    for (int h : {0, 1}) {
      EXPECT_TRUE(w.host(h).ses.failures.empty());
      std::set<std::pair<MessageToken, std::uint32_t>> seen;
      for (const Delivery& d : w.host(h).ses.delivered) {
        const bool is_new = seen.emplace(d.token, d.segment).second;
        EXPECT_TRUE(is_new || mode == Mode::kRudi) << "message " << d.token << " twice";
      }
      std::size_t wanted = 0;
      for (const auto& [token, m] : w.host(1 - h).ses.messages) wanted += m.segments;
      EXPECT_EQ(seen.size(), wanted);
      EXPECT_EQ(w.host(1 - h).ses.responses.size(), wanted);
    }
  }
}

}  // namespace
}  // namespace uet::pds::test
