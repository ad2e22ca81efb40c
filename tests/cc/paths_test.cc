/// The ways of choosing paths, and what becomes of paths that fail.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cc/path_selector.h"
#include "cc/paths_bitmap.h"
#include "cc/paths_reps.h"
#include "tests/cc/ccc_fixture.h"

namespace uet::cc {
namespace {

CcConfig path_config(LoadBalancing lb, std::uint16_t paths) {
  CcConfig c = hand_config();
  c.load_balancing = lb;
  c.paths = paths;
  c.trimming = false;
  c.adaptive_paths = false;
  return c;
}

class PathsTest : public testing::Test {
 protected:
  void make(const CcConfig& config, bool sprayed = true) {
    config_ = derived(config);
    table_ = std::make_unique<PathTable>(config_, path_count_for(config_, sprayed),
                                         evicts_paths(config_, sprayed), rng_, trace_);
    selector_ = make_path_selector(config_, sprayed, *table_, rng_);
  }
  void make(LoadBalancing lb, std::uint16_t paths) { make(path_config(lb, paths)); }

  std::uint32_t next(std::uint8_t free_planes = 1, std::uint32_t open_packets = 1) {
    const auto index = selector_->next({.now = now_,
                                        .free_planes = free_planes,
                                        .avoid_entropy = avoid_,
                                        .open_packets = open_packets,
                                        .base_rtt = config_.config_base_rtt,
                                        .window_packets = 54});
    table_->on_sent(now_, index, table_->wants_answer(index, now_));
    return index;
  }
  void deliver(std::uint32_t index, Instant sent_at) {
    table_->on_delivered(index, sent_at, config_.config_base_rtt);
  }
  void feed(std::uint32_t index, PathFeedback kind) {
    table_->on_feedback(now_, index, kind, config_.config_base_rtt);
    selector_->on_feedback(now_, index, kind);
  }
  std::string take(int packets) {
    std::string out;
    for (int i = 0; i < packets; ++i) out += std::to_string(next()) + " ";
    return out;
  }
  std::string penalties() {
    constexpr const char* kHex = "0123456789ABCDEF";
    std::string out;
    for (std::uint32_t i = 0; i < table_->size(); ++i) out += kHex[table_->entry(i).penalty];
    return out;
  }
  void wait(Duration d) { now_ = now_ + d; }

  Instant now_ = Instant::from_ns(1'000'000'000);
  base::Rng rng_{11};
  base::Trace trace_{64};
  CcConfig config_;
  std::unique_ptr<PathTable> table_;
  std::unique_ptr<PathSelector> selector_;
  std::optional<std::uint16_t> avoid_;
};

TEST_F(PathsTest, bitmap__sequence_of_the_vector) {
  make(LoadBalancing::kBitmap, 4);
  selector_->fix_order_for_test();
  EXPECT_EQ(take(4), "0 1 2 3 ");
  feed(1, PathFeedback::kEcn);
  EXPECT_EQ(take(4), "0 2 3 0 ");
  EXPECT_EQ(penalties(), "0000");
  feed(1, PathFeedback::kNacked);
  feed(2, PathFeedback::kEcn);
  EXPECT_EQ(penalties(), "0410");
  EXPECT_EQ(take(11), "3 0 3 0 3 0 3 0 1 3 0 ");
  EXPECT_EQ(penalties(), "0000");
  feed(3, PathFeedback::kTimeout);
  EXPECT_EQ(penalties(), "000F");
  EXPECT_EQ(take(4), "1 2 0 1 ");
  EXPECT_EQ(penalties(), "000E");
}

TEST_F(PathsTest, bitmap__all_penalised_still_sends) {
  make(LoadBalancing::kBitmap, 4);
  selector_->fix_order_for_test();
  for (std::uint32_t i = 0; i < 4; ++i) feed(i, PathFeedback::kNacked);
  EXPECT_EQ(take(3), "0 1 2 ");
  EXPECT_EQ(penalties(), "3334");
}

TEST_F(PathsTest, bitmap__penalty_saturates) {
  make(LoadBalancing::kBitmap, 4);
  for (int i = 0; i < 30; ++i) feed(2, PathFeedback::kNacked);
  EXPECT_EQ(penalties(), "00F0");
}

// Covers: CC-I11
TEST_F(PathsTest, oblivious__every_path_once_a_round) {
  make(LoadBalancing::kOblivious, 64);
  std::set<std::vector<std::uint32_t>> orders;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> order;
    for (int i = 0; i < 64; ++i) order.push_back(next());
    orders.insert(order);
    std::set<std::uint32_t> distinct(order.begin(), order.end());
    ASSERT_EQ(distinct.size(), 64u) << "round " << round;
    feed(order[3], PathFeedback::kTimeout);  // ignored
  }
  EXPECT_GT(orders.size(), 10u);
  EXPECT_EQ(table_->evicted(), 0u);
}

// Covers: CC-I11
TEST_F(PathsTest, bitmap__clean_paths_are_never_skipped_and_skips_equal_penalties) {
  make(LoadBalancing::kBitmap, 16);
  selector_->fix_order_for_test();
  base::Rng rng(3);
  int given = 0, skipped = 0;
  std::uint32_t expected = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto before = penalties();
    const auto index = next();
    const auto after = penalties();
    for (std::uint32_t p = expected; p != index; p = (p + 1) % 16) ASSERT_NE(before[p], '0') << i;
    skipped += before != after ? 1 : 0;
    expected = (index + 1) % 16;
    if (rng.chance(0.2)) {
      const auto bad = rng.below(7);  // never more than half: not saturated
      if (table_->entry(bad).penalty < 15) {
        feed(bad, PathFeedback::kEcn);
        ++given;
      }
    }
  }
  int left = 0;
  for (std::uint32_t p = 0; p < 16; ++p) left += table_->entry(p).penalty;
  EXPECT_EQ(skipped, given - left);
}

TEST_F(PathsTest, bitmap__small_window_uses_fewer_paths) {
  auto config = path_config(LoadBalancing::kBitmap, 256);
  config.adaptive_paths = true;
  make(config);
  std::set<std::uint32_t> used;
  for (int i = 0; i < 2000; ++i) used.insert(next());
  EXPECT_EQ(used.size(), 128u);  // 2 x 54 packets, rounded up to a power of two
}

TEST_F(PathsTest, reps__good_paths_come_back_in_order_and_bad_ones_do_not) {
  make(LoadBalancing::kReps, 64);
  feed(5, PathFeedback::kGood);
  feed(9, PathFeedback::kEcn);
  feed(7, PathFeedback::kGood);
  EXPECT_EQ(next(), 5u);
  EXPECT_EQ(next(), 7u);
  std::set<std::uint32_t> random;
  for (int i = 0; i < 200; ++i) random.insert(next());
  EXPECT_GT(random.size(), 40u);
}

TEST_F(PathsTest, reps__ring_keeps_the_newest) {
  make(LoadBalancing::kReps, 64);
  for (std::uint32_t i = 0; i < 12; ++i) feed(i, PathFeedback::kGood);
  EXPECT_EQ(take(8), "4 5 6 7 8 9 10 11 ");
}

TEST_F(PathsTest, reps__freezes_after_a_timeout_and_explores_after_the_thaw) {
  auto config = path_config(LoadBalancing::kReps, 64);
  config.trimming = true;
  make(config);
  for (std::uint32_t i = 1; i <= 3; ++i) feed(i, PathFeedback::kGood);
  feed(40, PathFeedback::kTimeout);
  EXPECT_EQ(take(7), "1 2 3 1 2 3 1 ");
  wait(Duration::from_ms(10));
  EXPECT_EQ(take(2), "2 3 ");  // until an ACK comes
  feed(2, PathFeedback::kGood);
  std::set<std::uint32_t> explored;
  for (int i = 0; i < 16; ++i) explored.insert(next());
  EXPECT_GT(explored.size(), 10u);
  EXPECT_EQ(next(), 2u);
}

TEST_F(PathsTest, reps__does_not_freeze_where_congestion_loses_packets) {
  make(LoadBalancing::kReps, 64);
  feed(1, PathFeedback::kGood);
  feed(40, PathFeedback::kTimeout);
  EXPECT_EQ(next(), 1u);
  std::set<std::uint32_t> random;
  for (int i = 0; i < 50; ++i) random.insert(next());
  EXPECT_GT(random.size(), 20u);
}

TEST_F(PathsTest, reps_legacy__introduces_a_window_of_paths_then_recycles) {
  make(LoadBalancing::kRepsLegacy, 4);
  EXPECT_EQ(take(4), "0 1 2 3 ");
  feed(2, PathFeedback::kGood);
  feed(0, PathFeedback::kGood);
  feed(2, PathFeedback::kGood);
  EXPECT_EQ(take(3), "2 0 2 ");
}

TEST_F(PathsTest, path_fifo__is_bounded_and_forgets_the_oldest) {
  make(LoadBalancing::kRepsLegacy, 4);
  PathFifo fifo(4);
  for (std::uint32_t i = 0; i < 20; ++i) fifo.push(i % 4);
  EXPECT_EQ(fifo.size(), 8u);
}

TEST_F(PathsTest, mixed__recycles_first_and_avoids_what_was_bad) {
  make(LoadBalancing::kMixed, 4);
  selector_->fix_order_for_test();
  feed(3, PathFeedback::kGood);
  feed(0, PathFeedback::kEcn);
  EXPECT_EQ(take(3), "3 1 2 ");
}

// Covers: CC-I12
TEST_F(PathsTest, single__changes_only_when_idle_or_after_many_round_trips) {
  make(path_config(LoadBalancing::kSingle, 16), false);
  ASSERT_EQ(table_->size(), 1u);
  base::Rng rng(17);
  Instant last_change = now_ - Duration::from_seconds(1);
  next(1, 0);
  auto entropy = table_->entropy(0);
  int changes = 0;
  for (int i = 0; i < 20'000; ++i) {
    wait(Duration::from_ns(rng.below(5000)));
    const auto open = rng.below(20);
    if (rng.chance(0.1)) feed(0, rng.chance(0.5) ? PathFeedback::kEcn : PathFeedback::kNacked);
    next(1, open);
    if (table_->entropy(0) == entropy) continue;
    ASSERT_TRUE(open == 0 || now_ - last_change >= config_.config_base_rtt * config_.reroute_rtts);
    entropy = table_->entropy(0);
    last_change = now_;
    ++changes;
  }
  EXPECT_GT(changes, 10);
}

TEST_F(PathsTest, single__good_news_changes_nothing) {
  make(path_config(LoadBalancing::kSingle, 16), false);
  const auto entropy = table_->entropy(0);
  for (int i = 0; i < 100; ++i) {
    feed(0, PathFeedback::kGood);
    next(1, 0);
    ASSERT_EQ(table_->entropy(0), entropy);
  }
}

TEST_F(PathsTest, single__leaves_a_port_that_takes_no_packets) {
  auto config = path_config(LoadBalancing::kSingle, 16);
  config.planes = 4;
  make(config, false);
  for (std::uint8_t free : {1, 2, 4, 8, 5, 10}) {
    next(free, 5);
    EXPECT_NE(free >> table_->plane(0) & 1, 0);
  }
}

TEST_F(PathsTest, eviction__with_trimming_the_first_timeout_then_one_packet_tries) {
  auto config = path_config(LoadBalancing::kBitmap, 8);
  config.trimming = true;
  make(config);
  feed(3, PathFeedback::kTimeout);
  EXPECT_EQ(trace_.count(base::EventId::kPathEvicted), 1u);
  const auto uses_of_3 = [this](int packets) {
    int uses = 0;
    for (int i = 0; i < packets; ++i) uses += next() == 3 ? 1 : 0;
    return uses;
  };
  EXPECT_EQ(uses_of_3(100), 0);
  wait(Duration::from_ms(10));
  EXPECT_EQ(uses_of_3(100), 1);
  const auto tried = now_;
  feed(3, PathFeedback::kTimeout);  // still dead: twice as long
  wait(Duration::from_ms(19));
  EXPECT_EQ(uses_of_3(100), 0);
  wait(Duration::from_ms(1));
  EXPECT_EQ(uses_of_3(100), 1);
  table_->on_answered(now_, 3, tried);  // an old packet says nothing
  EXPECT_EQ(uses_of_3(100), 0);
  deliver(3, now_);  // there, but is there a way back?
  EXPECT_EQ(uses_of_3(100), 0);
  table_->on_answered(now_, 3, now_);
  EXPECT_EQ(trace_.count(base::EventId::kPathRestored), 1u);
  EXPECT_GT(uses_of_3(100), 10);
}

TEST_F(PathsTest, caution__after_a_loss_only_paths_that_answered_since_are_used) {
  CcConfig config = path_config(LoadBalancing::kBitmap, 8);
  config.trimming = true;
  make(config);
  const Instant lost_at = now_ + Duration::from_us(10);
  const Instant later = lost_at + Duration::from_us(1);
  table_->on_answered(now_, 1, now_);  // before the loss: says nothing about now
  for (std::uint32_t i : {2u, 5u}) table_->on_answered(now_, i, later);
  now_ = later + Duration::from_us(12);
  table_->on_feedback(now_, 0, PathFeedback::kTimeout, config_.config_base_rtt, lost_at);
  std::set<std::uint32_t> used;
  for (int i = 0; i < 20; ++i) used.insert(next());
  EXPECT_EQ(used, (std::set<std::uint32_t>{2, 5}));
  // Then the others come back as evicted paths do: one packet each, until it is answered.
  now_ = now_ + config_.evict_time / 8;
  std::map<std::uint32_t, int> packets;
  for (int i = 0; i < 200; ++i) ++packets[next()];
  for (const auto& [index, count] : packets) {
    EXPECT_TRUE(table_->entry(index).evictions == 0 || count <= 2) << index;
  }
  EXPECT_LE(table_->evicted(), 6u);
  table_->on_answered(now_, 1, now_);
  EXPECT_EQ(table_->entry(1).evictions, 0);
}

TEST_F(PathsTest, caution__a_path_that_only_delivered_gets_one_packet_to_answer) {
  CcConfig config = path_config(LoadBalancing::kBitmap, 8);
  config.trimming = true;
  make(config);
  const Instant lost_at = now_;
  wait(Duration::from_us(1));
  table_->on_answered(now_, 2, now_);
  deliver(5, now_);
  table_->on_feedback(now_, 0, PathFeedback::kTimeout, config_.config_base_rtt, lost_at);
  const auto uses_of_5 = [this] {
    int uses = 0;
    for (int i = 0; i < 50; ++i) uses += next() == 5 ? 1 : 0;
    return uses;
  };
  EXPECT_EQ(uses_of_5(), 1);
  deliver(5, now_);  // again, and again no answer
  EXPECT_EQ(uses_of_5(), 0);
  table_->on_answered(now_, 5, now_);
  EXPECT_GT(uses_of_5(), 10);
}

// After a timeout without any answer since: the packet goes where the last answer came from.
TEST_F(PathsTest, caution__without_a_trusted_path_the_latest_good_news_decides) {
  for (const auto lb : {LoadBalancing::kBitmap, LoadBalancing::kReps, LoadBalancing::kMixed}) {
    CcConfig config = path_config(lb, 8);
    config.trimming = true;
    make(config);
    for (std::uint32_t i = 0; i < 8; ++i)
      table_->on_answered(now_, i, now_ + Duration::from_us(i == 6 ? 9 : i));
    wait(Duration::from_us(20));
    table_->on_feedback(now_, 1, PathFeedback::kTimeout, config_.config_base_rtt, now_);
    EXPECT_EQ(next(), 6u) << "load balancing " << static_cast<int>(lb);
  }
}

// A path may lose nothing but the answers: what arrives is told by the answers on other paths.
TEST_F(PathsTest, eviction__of_a_path_that_delivers_but_never_answers) {
  CcConfig config = path_config(LoadBalancing::kBitmap, 8);
  config.trimming = true;
  make(config);
  bool was_asked = false;
  for (int round = 0; round < 60 && table_->entry(3).evictions == 0; ++round) {
    was_asked = was_asked || table_->wants_answer(3, now_);
    table_->on_sent(now_, 3, table_->wants_answer(3, now_));
    const Instant sent = now_;
    wait(config_.config_base_rtt);
    deliver(3, sent);
  }
  EXPECT_TRUE(was_asked);
  EXPECT_EQ(table_->evicted(), 1u);
  // One that answers, however seldom, stays.
  for (int round = 0; round < 300; ++round) {
    table_->on_sent(now_, 4, table_->wants_answer(4, now_));
    const Instant sent = now_;
    wait(config_.config_base_rtt);
    deliver(4, sent);
    if (round % 17 == 0) table_->on_answered(now_, 4, sent);
  }
  EXPECT_EQ(table_->evicted(), 1u);
}

TEST_F(PathsTest, adaptive__more_paths_are_in_use_where_many_are_broken) {
  CcConfig config = path_config(LoadBalancing::kBitmap, 64);
  config.trimming = true;
  config.adaptive_paths = true;
  make(config);
  for (std::uint32_t i = 0; i < 14; ++i) feed(i, PathFeedback::kTimeout);
  std::set<std::uint32_t> used;
  for (int i = 0; i < 500; ++i) {
    const auto index = selector_->next({.now = now_, .avoid_entropy = {}, .window_packets = 2});
    table_->on_sent(now_, index);
    used.insert(index);
  }
  EXPECT_GE(used.size(), 16u) << "sixteen paths for small windows, two of which work";
}

TEST_F(PathsTest, mixed__a_mark_voids_the_arrival_that_was_reported_first) {
  make(LoadBalancing::kMixed, 8);
  feed(3, PathFeedback::kGood);
  feed(4, PathFeedback::kGood);
  feed(3, PathFeedback::kEcn);
  EXPECT_EQ(next(), 4u);
  EXPECT_NE(next(), 3u);
}

TEST_F(PathsTest, mixed__every_other_mark_is_pardoned) {
  make(LoadBalancing::kMixed, 8);
  feed(3, PathFeedback::kEcn);
  EXPECT_EQ(table_->entry(3).penalty, 1);
  feed(4, PathFeedback::kEcn);
  EXPECT_EQ(table_->entry(4).penalty, 0);
  EXPECT_EQ(next(), 4u) << "as if it had not been marked";
  feed(5, PathFeedback::kGood);
  feed(5, PathFeedback::kNacked);
  feed(5, PathFeedback::kNacked);
  EXPECT_EQ(table_->entry(5).penalty, 8) << "cut packets are never pardoned";
  EXPECT_NE(next(), 5u);
}

TEST_F(PathsTest, mixed__one_turn_a_round_trip_moves_from_a_slow_path_to_the_fastest) {
  make(LoadBalancing::kMixed, 8);
  const auto base_rtt = Duration::from_us(10);
  wait(base_rtt * 5);
  table_->note_rtt(now_, 1, Duration::from_us(11));
  wait(base_rtt * 5);
  table_->note_rtt(now_, 2, Duration::from_us(13));
  table_->note_rtt(now_, 3, Duration::from_us(12));
  table_->note_rtt(now_, 6, Duration::from_us(15));
  selector_->on_slow(now_, 6, base_rtt);
  EXPECT_EQ(next(), 3u) << "what is known of 1 is too old";
  selector_->on_slow(now_, 6, base_rtt);
  EXPECT_EQ(next(), 6u) << "one in a round trip";
  wait(base_rtt);
  selector_->on_slow(now_, 6, base_rtt);
  EXPECT_EQ(next(), 3u);
}

TEST_F(PathsTest, eviction__rest_is_bounded) {
  auto config = path_config(LoadBalancing::kBitmap, 8);
  config.trimming = true;
  make(config);
  for (int i = 0; i < 300; ++i) {
    feed(3, PathFeedback::kTimeout);
    EXPECT_LE(table_->entry(3).evicted_until - now_, Duration::from_seconds(1));
    now_ = table_->entry(3).evicted_until;
    table_->on_sent(now_, 3);
  }
  EXPECT_EQ(table_->evicted(), 1u);
}

TEST_F(PathsTest, eviction__probe_that_is_never_answered_is_repeated) {
  auto config = path_config(LoadBalancing::kBitmap, 8);
  config.trimming = true;
  make(config);
  feed(3, PathFeedback::kTimeout);
  for (int i = 0; i < 5; ++i) {
    wait(Duration::from_ms(10));
    int uses = 0;
    for (int p = 0; p < 50; ++p) uses += next() == 3 ? 1 : 0;
    EXPECT_EQ(uses, 1);
  }
}

TEST_F(PathsTest, eviction__without_trimming_only_after_a_run_of_timeouts) {
  make(LoadBalancing::kBitmap, 8);
  feed(3, PathFeedback::kTimeout);
  EXPECT_EQ(table_->evicted(), 0u);
  deliver(3, now_ + Duration::from_ns(1));
  feed(3, PathFeedback::kTimeout);
  EXPECT_EQ(table_->evicted(), 0u);
  wait(config_.config_base_rtt * 11);
  feed(3, PathFeedback::kTimeout);
  EXPECT_EQ(table_->evicted(), 0u);
  feed(3, PathFeedback::kTimeout);
  EXPECT_EQ(table_->evicted(), 1u);
}

TEST_F(PathsTest, eviction__never_more_than_three_quarters) {
  auto config = path_config(LoadBalancing::kMixed, 8);
  config.trimming = true;
  make(config);
  for (std::uint32_t i = 0; i < 8; ++i) {
    wait(Duration::from_us(1));
    feed(i, PathFeedback::kTimeout);
    EXPECT_LE(table_->evicted(), 6u);
  }
  for (std::uint32_t i = 0; i < 2; ++i) EXPECT_EQ(table_->entry(i).evictions, 0) << "oldest first";
}

TEST_F(PathsTest, planes__only_free_ports_are_used_and_every_path_keeps_its_port) {
  for (const auto lb : {LoadBalancing::kOblivious, LoadBalancing::kBitmap, LoadBalancing::kReps,
                        LoadBalancing::kMixed, LoadBalancing::kRepsLegacy}) {
    auto config = path_config(lb, 16);
    config.planes = 3;
    make(config);
    base::Rng rng(7);
    std::map<std::uint32_t, std::uint8_t> plane_of;
    for (int i = 0; i < 5000; ++i) {
      const auto free = static_cast<std::uint8_t>(1 + rng.below(7));
      const auto index = next(free);
      ASSERT_NE((free >> table_->plane(index)) & 1, 0) << "load balancing " << static_cast<int>(lb);
      const auto [known, is_new] = plane_of.emplace(index, table_->plane(index));
      ASSERT_EQ(known->second, table_->plane(index));
      feed(index, static_cast<PathFeedback>(rng.below(4)));
      wait(Duration::from_us(10));
    }
  }
}

// Covers: CC-I13
TEST_F(PathsTest, avoided_path_is_not_taken_by_any_selector) {
  for (const auto lb : {LoadBalancing::kOblivious, LoadBalancing::kBitmap, LoadBalancing::kReps,
                        LoadBalancing::kMixed, LoadBalancing::kRepsLegacy}) {
    auto config = path_config(lb, 4);
    config.trimming = true;
    make(config);
    base::Rng rng(7);
    for (int i = 0; i < 5000; ++i) {
      avoid_ = table_->entropy(rng.below(4));
      const auto index = next();
      ASSERT_NE(table_->entropy(index), *avoid_) << "load balancing " << static_cast<int>(lb);
      feed(index, static_cast<PathFeedback>(rng.below(4)));
    }
  }
}

TEST_F(PathsTest, find__knows_only_its_own_entropy_values) {
  make(LoadBalancing::kOblivious, 16);
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(table_->find(table_->entropy(i)), i);
  EXPECT_EQ(table_->find(static_cast<std::uint16_t>(table_->entropy(3) ^ 0x4000)), std::nullopt);
}

class PathInfoTest : public CccTest {};

TEST_F(PathInfoTest, path__shows_what_happened) {
  auto config = hand_config();
  config.load_balancing = LoadBalancing::kBitmap;
  make(config);
  Transmission t[3];
  for (auto& one : t) send(one, share_);
  wait(12'500);
  auto signal = ack_of(&t[0], 17);
  signal.ecn = true;
  ccc_->on_first_ack(t[0], share_);
  ccc_->on_ack(now_, share_, signal);
  trim(t[1], share_);
  ccc_->on_inferred_loss(now_, t[2], share_, true);
  const auto info = [this](const Transmission& one) {
    for (std::size_t i = 0; i < ccc_->path_count(); ++i) {
      if (ccc_->path(i).entropy == one.entropy) return ccc_->path(i);
    }
    return Ccc::PathInfo{};
  };
  EXPECT_EQ(info(t[0]).marks, 1u);
  EXPECT_EQ(info(t[0]).rtt, Duration::from_ns(12'500));
  EXPECT_EQ(info(t[0]).penalty, 1);
  EXPECT_EQ(info(t[1]).trims, 1u);
  EXPECT_EQ(info(t[1]).penalty, 4);
  EXPECT_EQ(info(t[2]).losses, 1u);
  EXPECT_EQ(info(t[2]).state, Ccc::PathState::kEvicted);
  EXPECT_EQ(info(t[2]).sent, 1u);
}

}  // namespace
}  // namespace uet::cc
