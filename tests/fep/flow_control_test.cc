// Destination flow control: a receiver that posts its receives slowly slows its sender down before it has to refuse.
// [CC 4.8]
#include "cc/ccc.h"
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

struct Outcome {
  std::uint64_t refused = 0;         ///< messages sent again because there was no room
  std::uint64_t bytes_wasted = 0;    ///< packets of them, as payload bytes that arrived in vain
  Duration slow;                     ///< first part: the receiver takes its time
  Duration fast;                     ///< second part: receives are there before the messages
  base::ByteCount least_window = 0;  ///< of the sender, in the first part
  std::size_t most_kept = 0;         ///< bytes unexpected at once
  std::size_t errors = 0;
  bool is_right = true;
};

class SlowReceiver {
 public:
  static constexpr std::size_t kBytes = 16 * 1024;
  static constexpr std::size_t kInFlight = 256;

  SlowReceiver(bool flow_control, Order order, bool rendezvous = false)
      : pair_(LinkConfig{.seed = 5},
              with_order(order, {{"FLOW_CONTROL", flow_control ? "1" : "0"},
                                 {"OVERFLOW_BYTES", "1M"},
                                 {"RENDEZVOUS", rendezvous ? "1" : "0"}}),
              order != Order::kNone) {
    out_ = pattern(kBytes, 3);
  }

  /// `count` messages; one receive every `pace` (zero: all at the beginning).
  Duration play(std::size_t count, Duration pace, Outcome& o) {
    const Instant begin = pair_.now;
    auto& from = pair_.sides[0];
    auto& to = pair_.sides[1];
    from.completions.clear();
    to.completions.clear();
    in_.assign(count, std::vector<std::uint8_t>(kBytes, 0));
    std::size_t sent = 0, posted = 0;
    Instant next_post = begin;
    const auto step = [&] {
      while (posted < count && pair_.now >= next_post) {
        const iovec one = iov(in_[posted]);
        EXPECT_TRUE(to.fep->ses().receive(pair_.now, to.endpoint, {.iov = {&one, 1}}));
        ++posted;
        next_post = pace == Duration() ? begin : next_post + pace;
      }
      while (sent < count && sent - from.completions.count() < kInFlight) {
        const iovec all = iov(out_);
        if (!from.fep->ses().send(pair_.now, from.endpoint, {.peer = from.peer, .iov = {&all, 1}}))
          break;
        ++sent;
      }
      from.fep->pds().for_each_congestion([&](const pds::Pds::CongestionView& v) {
        o.least_window = std::min(o.least_window, v.ccc.window_bytes());
      });
      o.most_kept = std::max(o.most_kept, to.fep->ses().gauges().unexpected_bytes);
      return to.completions.count() == count && from.completions.count() == count;
    };
    // The receiver's clock: it wakes up for its own reasons.
    while (!step()) {
      pair_.alarm = posted < count ? next_post : pair_.now + Duration::from_us(20);
      if (!pair_.run_until([&] { return pair_.now >= pair_.alarm || step(); },
                           Duration::from_seconds(60)))
        break;
    }
    for (const auto& bytes : in_) o.is_right = o.is_right && bytes == out_;
    o.errors += from.completions.errors() + to.completions.errors();
    return pair_.now - begin;
  }

  Outcome run() {
    Outcome o;
    o.least_window = std::numeric_limits<base::ByteCount>::max();
    o.slow = play(2000, Duration::from_us(50), o);
    const auto window = o.least_window;
    o.refused = pair_.count(0, base::EventId::kMessageRetried);
    o.bytes_wasted =
        (pair_.count(1, base::EventId::kRequestDelivered) - 2000 * kBytes / 4096) * 4096;
    o.fast = play(4000, Duration(), o);
    o.least_window = window;
    return o;
  }

 private:
  FepPair pair_;
  std::vector<std::uint8_t> out_;
  std::vector<std::vector<std::uint8_t>> in_;
};

void show(const char* name, const Outcome& o) {
  std::printf(
      "%s: refused %lu, wasted %.1f MB, slow part %.1f ms, fast part %.1f ms, least window %ld, "
      "kept at most %zu\n",
      name, o.refused, static_cast<double>(o.bytes_wasted) * 1e-6, o.slow.seconds() * 1e3,
      o.fast.seconds() * 1e3, o.least_window, o.most_kept);
}

class FlowControlTest : public testing::TestWithParam<Order> {};
INSTANTIATE_TEST_SUITE_P(Order, FlowControlTest, testing::ValuesIn(kOrders),
                         [](const auto& order) { return name_of(order.param); });

TEST_P(FlowControlTest, slow_receiver__slows_its_sender_and_refuses_less) {
  const Outcome with = SlowReceiver(true, GetParam()).run();
  const Outcome without = SlowReceiver(false, GetParam()).run();
  show("with   ", with);
  show("without", without);
  EXPECT_EQ(with.errors + without.errors, 0u);
  EXPECT_TRUE(with.is_right && without.is_right);
  if (GetParam() == Order::kNumbers) {
    // Messages before their turn have room of their own, so few are refused either way.
    EXPECT_LT(with.refused, without.refused);
    EXPECT_LT(with.bytes_wasted, without.bytes_wasted);
  } else {
    EXPECT_LT(with.refused * 3, without.refused * 2);
    EXPECT_LT(with.bytes_wasted * 2, without.bytes_wasted);
  }
  EXPECT_LT(with.least_window, 10'000);
  EXPECT_GT(without.least_window, 100'000);
  // What the receiver allows, 100 ms, is used about as well; and once the receives are there first the rate is what it was.
  EXPECT_LT(with.slow, Duration::from_ms(130));
  EXPECT_LT(with.fast.ns(), without.fast.ns() * 102 / 100);
}

// What is announced instead of being sent again and again is there when its receive comes: 50 us each.
TEST_P(FlowControlTest, slow_receiver__reads_what_it_had_no_room_for) {
  const Outcome without = SlowReceiver(true, GetParam()).run();
  const Outcome with = SlowReceiver(true, GetParam(), true).run();
  show("with   ", with);
  show("without", without);
  EXPECT_EQ(with.errors, 0u);
  EXPECT_TRUE(with.is_right);
  EXPECT_LT(with.refused, without.refused);
  // Ordered messages take the 100 ms that the receives allow either way.
  EXPECT_LT(with.slow, Duration::from_ms(104));
  EXPECT_LT(with.slow.ns(), without.slow.ns() * 101 / 100);
  EXPECT_LT(with.fast.ns(), without.fast.ns() * 102 / 100);
}

// The answer to an unexpected message is kept until it is cleared, and CACK stays below it. What is behind it is told by name, so
// that its source clears many answers at once and not one in several round trips.
TEST_P(FlowControlTest, unexpected_messages__are_complete_together) {
  constexpr std::size_t kMessages = 24;
  const auto delay = Duration::from_us(50);
  FepPair pair(LinkConfig{.delay = delay, .seed = 5},
               with_order(GetParam(), {{"OVERFLOW_BYTES", "4M"}}), GetParam() != Order::kNone);
  auto& from = pair.sides[0];
  auto out = pattern(SlowReceiver::kBytes, 3);
  const iovec all = iov(out);
  const auto send = [&](std::size_t count) {
    from.completions.clear();
    const Instant begin = pair.now;
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_TRUE(
          from.fep->ses().send(pair.now, from.endpoint, {.peer = from.peer, .iov = {&all, 1}}));
    EXPECT_TRUE(pair.run_until([&] { return from.completions.count() == count; }));
    EXPECT_EQ(from.completions.errors(), 0u);
    return pair.now - begin;
  };
  send(1);  // opens the PDC
  const std::uint64_t controls = pair.count(0, base::EventId::kControlSent);
  EXPECT_LT(send(kMessages), delay * 6);
  EXPECT_LE(pair.count(0, base::EventId::kControlSent), controls + 2);
  EXPECT_EQ(pair.ses(1).gauges().unexpected_messages, kMessages + 1);
}

}  // namespace
}  // namespace uet::test
