/// Two whole endpoints talk over a link that loses, repeats and reorders packets.

#include <cstdlib>
#include <string_view>

#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

using base::DropReason;
using base::EventId;
using ses::OpKind;
using ses::ReturnCode;

struct Weather {
  const char* name;
  double loss, reorder, duplicate;
};
void PrintTo(const Weather& w, std::ostream* out) {
  *out << w.name;
}

constexpr Weather kClean{"clean", 0, 0, 0};
constexpr Weather kRough{"rough", 0.01, 0.05, 0.01};
constexpr Weather kStorm{"storm", 0.10, 0.20, 0.05};

class FepPairTest : public testing::TestWithParam<Weather> {
 protected:
  static LinkConfig link() {
    const Weather& w = GetParam();
    return LinkConfig{.loss = w.loss, .reorder = w.reorder, .duplicate = w.duplicate, .seed = 42};
  }
};

INSTANTIATE_TEST_SUITE_P(Weather, FepPairTest, testing::Values(kClean, kRough, kStorm),
                         [](const auto& weather) { return weather.param.name; });

/// Where two buffers of one size differ first; the size when they do not.
std::size_t first_difference(const std::vector<std::uint8_t>& x,
                             const std::vector<std::uint8_t>& y) {
  return static_cast<std::size_t>(std::mismatch(x.begin(), x.end(), y.begin()).first - x.begin());
}

void expect_pools_full(FepPair& pair) {
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(pair.link.pool(i).available(), pair.link.pool(i).capacity())
        << "packets lost on side " << i;
}

// Covers: FI-39
TEST_P(FepPairTest, send__every_size_arrives_intact_expected_and_unexpected) {
  for (const bool tagged : {false, true}) {
    for (const bool expected : {true, false}) {
      FepPair pair(link());
      const std::uint32_t mtu = pair.sides[0].fep->payload_mtu();
      for (const std::size_t size : {0u, 1u, mtu - 1, mtu, mtu + 1, 1u << 20}) {
        auto out = pattern(size, size + 1);
        std::vector<std::uint8_t> in(size + 16, 0xee);
        const iovec out_iov = iov(out), in_iov = iov(in);
        const ses::ReceiveRequest receive{
            .tagged = tagged, .tag = 7, .iov = {&in_iov, 1}, .context = 2};
        const ses::SendRequest send{.peer = pair.sides[0].peer,
                                    .tagged = tagged,
                                    .tag = 7,
                                    .iov = {&out_iov, 1},
                                    .context = 1};

        if (expected) {
          ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint, receive));
        }
        const std::uint64_t unexpected = pair.count(1, EventId::kMessageUnexpected);
        ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint, send));
        if (!expected) {
          ASSERT_TRUE(pair.run_until(
              [&] { return pair.count(1, EventId::kMessageUnexpected) > unexpected; }));
          ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint, receive));
        }
        ASSERT_TRUE(pair.run_until([&] {
          return pair.completions(0).count() == 1 && pair.completions(1).count() == 1;
        })) << size
            << " bytes";
        EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
        EXPECT_EQ(pair.completions(1).kept().front().length, size);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin())) << size << " bytes";
        EXPECT_EQ(in[size], 0xee) << "wrote behind the message";
        pair.completions(0).clear();
        pair.completions(1).clear();
      }
    }
  }
}

TEST_P(FepPairTest, rma__write_and_read_a_mebibyte) {
  FepPair pair(link());
  auto local = pattern(1 << 20, 3), remote = pattern(1 << 20, 4),
       back = std::vector<std::uint8_t>(1 << 20);
  const iovec remote_iov = iov(remote), local_iov = iov(local), back_iov = iov(back);
  const auto key = pair.ses(1).register_memory(ses::MemoryRequest{.iov = {&remote_iov, 1},
                                                                  .remote_read = true,
                                                                  .remote_write = true,
                                                                  .virtual_addressing = false});
  ASSERT_TRUE(key);
  ASSERT_TRUE(pair.ses(0).rma(
      pair.now, pair.sides[0].endpoint,
      ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&local_iov, 1}, .key = *key}));
  ASSERT_TRUE(pair.run_until([&] { return pair.completions(0).count() == 1; }));
  EXPECT_EQ(remote, local);
  ASSERT_TRUE(pair.ses(0).rma(
      pair.now, pair.sides[0].endpoint,
      ses::RmaRequest{
          .peer = pair.sides[0].peer, .read = true, .iov = {&back_iov, 1}, .key = *key}));
  ASSERT_TRUE(pair.run_until([&] { return pair.completions(0).count() == 2; }));
  EXPECT_EQ(back, local);
  EXPECT_EQ(pair.completions(0).errors(), 0u);
  ASSERT_TRUE(pair.run_until_idle());
  expect_pools_full(pair);
}

TEST_P(FepPairTest, rma__64_mebibytes_each_way_at_once) {
  constexpr std::size_t kSize = 64 << 20;
  FepPair pair(link());
  auto a = pattern(kSize, 5), b = pattern(kSize, 6);
  std::vector<std::uint8_t> from_a(kSize), from_b(kSize);
  const iovec a_iov = iov(a), b_iov = iov(b), from_a_iov = iov(from_a), from_b_iov = iov(from_b);
  const auto key_at_1 = pair.ses(1).register_memory(ses::MemoryRequest{
      .iov = {&from_a_iov, 1}, .remote_write = true, .virtual_addressing = false});
  const auto key_at_0 = pair.ses(0).register_memory(ses::MemoryRequest{
      .iov = {&from_b_iov, 1}, .remote_write = true, .virtual_addressing = false});
  ASSERT_TRUE(key_at_0 && key_at_1);
  ASSERT_TRUE(pair.ses(0).rma(
      pair.now, pair.sides[0].endpoint,
      ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&a_iov, 1}, .key = *key_at_1}));
  ASSERT_TRUE(pair.ses(1).rma(
      pair.now, pair.sides[1].endpoint,
      ses::RmaRequest{.peer = pair.sides[1].peer, .iov = {&b_iov, 1}, .key = *key_at_0}));
  ASSERT_TRUE(pair.run_until(
      [&] { return pair.completions(0).count() == 1 && pair.completions(1).count() == 1; }));
  EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
  EXPECT_EQ(first_difference(from_a, a), kSize);
  EXPECT_EQ(first_difference(from_b, b), kSize);
  ASSERT_TRUE(pair.run_until_idle());
  expect_pools_full(pair);
}

/// Sends `total` tagged messages of 8 bytes with at most `window` receives posted, and checks each
/// payload.
void exchange_small_messages(FepPair& pair, std::uint32_t total, std::uint32_t window) {
  std::vector<std::uint64_t> out(total), in(total);
  std::iota(out.begin(), out.end(), 0x1234'5678'0000ull);
  std::uint32_t posted = 0, sent = 0;
  for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
  const auto top_up = [&] {
    for (; posted < total && posted < pair.completions(1).count() + window; ++posted) {
      const iovec at{&in[posted], 8};
      const ses::ReceiveRequest receive{.tagged = true, .tag = posted, .iov = {&at, 1}};
      if (!pair.ses(1).receive(pair.now, pair.sides[1].endpoint, receive)) break;
    }
    for (; sent < posted; ++sent) {
      const iovec at{&out[sent], 8};
      const ses::SendRequest send{
          .peer = pair.sides[0].peer, .tagged = true, .tag = sent, .iov = {&at, 1}};
      if (!pair.ses(0).send(pair.now, pair.sides[0].endpoint, send)) break;
    }
  };
  ASSERT_TRUE(pair.run_until([&] {
    top_up();
    return pair.completions(0).count() == total && pair.completions(1).count() == total;
  }));
  EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
  EXPECT_EQ(in, out);
}

/// A gibibyte where time allows (UET_TEST_DEPTH=long), else a sixteenth.
TEST(FepPair, large_write_at_five_percent_loss) {
  const char* depth = std::getenv("UET_TEST_DEPTH");
  const bool is_long = depth != nullptr && std::string_view(depth) == "long";
  const std::size_t size = is_long ? 1ull << 30 : 64ull << 20;
  FepPair pair(LinkConfig{.loss = 0.05, .seed = 6});
  auto local = pattern(size, 3);
  std::vector<std::uint8_t> remote(size);
  const iovec remote_iov = iov(remote), local_iov = iov(local);
  const auto key = pair.ses(1).register_memory(ses::MemoryRequest{
      .iov = {&remote_iov, 1}, .remote_write = true, .virtual_addressing = false});
  ASSERT_TRUE(key);
  ASSERT_TRUE(pair.ses(0).rma(
      pair.now, pair.sides[0].endpoint,
      ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&local_iov, 1}, .key = *key}));
  ASSERT_TRUE(pair.run_until([&] { return pair.completions(0).count() == 1; }));
  EXPECT_EQ(pair.completions(0).errors(), 0u);
  EXPECT_EQ(first_difference(remote, local), size);
  RecordProperty("virtual_ms", static_cast<int>((pair.now - Instant()).ms()));
}

TEST(FepPair, one_hundred_thousand_small_tagged_messages_at_five_percent_loss) {
  FepPair pair(LinkConfig{.loss = 0.05, .seed = 7});
  exchange_small_messages(pair, 100'000, 512);
  ASSERT_TRUE(pair.run_until_idle());
  expect_pools_full(pair);
}

class OrderedPair : public testing::TestWithParam<Order> {};
INSTANTIATE_TEST_SUITE_P(Order, OrderedPair, testing::Values(Order::kContext, Order::kNumbers),
                         [](const auto& order) { return name_of(order.param); });

TEST_P(OrderedPair, small_messages_at_two_percent_loss) {
  FepPair pair(LinkConfig{.loss = 0.02, .reorder = 0.05, .seed = 8}, with_order(GetParam()), true);
  exchange_small_messages(pair, 5'000, 256);
  EXPECT_EQ(pair.count(1, base::EventId::kMessageHeld) > 0, GetParam() == Order::kNumbers);
}

// Covers: SES-80
TEST_P(OrderedPair, sends__match_in_order_with_loss) {
  constexpr std::uint32_t kMessages = 2000;
  FepPair pair(LinkConfig{.loss = 0.03, .reorder = 0.1, .duplicate = 0.02, .seed = 9},
               with_order(GetParam()), true);
  std::vector<std::uint64_t> out(kMessages), in(kMessages, ~0ull);
  std::uint32_t sent = 0;
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    const iovec at{&in[i], 8};
    ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                                    ses::ReceiveRequest{.iov = {&at, 1}}));
  }
  ASSERT_TRUE(pair.run_until([&] {
    for (; sent < kMessages; ++sent) {
      out[sent] = sent;
      const iovec at{&out[sent], 8};
      if (!pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                            ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&at, 1}}))
        break;
    }
    return pair.completions(1).count() == kMessages;
  }));
  EXPECT_EQ(in, out);
}

// Covers: FI-50
TEST(FepPair, send_to_self__is_delivered_without_the_link) {
  FepPair pair(LinkConfig{.loss = 1.0});
  const auto self = pair.ses(0).add_peer(pair.ses(0).address_of(pair.sides[0].endpoint));
  ASSERT_TRUE(self);
  auto out = pattern(100'000, 1);
  std::vector<std::uint8_t> in(out.size()), window(out.size());
  const iovec out_iov = iov(out), in_iov = iov(in), window_iov = iov(window);
  ASSERT_TRUE(pair.ses(0).receive(pair.now, pair.sides[0].endpoint,
                                  ses::ReceiveRequest{.iov = {&in_iov, 1}}));
  ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                               ses::SendRequest{.peer = *self, .iov = {&out_iov, 1}}));
  const auto key = pair.ses(0).register_memory(ses::MemoryRequest{
      .iov = {&window_iov, 1}, .remote_write = true, .virtual_addressing = false});
  ASSERT_TRUE(key);
  ASSERT_TRUE(pair.ses(0).rma(pair.now, pair.sides[0].endpoint,
                              ses::RmaRequest{.peer = *self, .iov = {&out_iov, 1}, .key = *key}));
  ASSERT_TRUE(pair.run_until([&] { return pair.completions(0).count() == 3; }));
  EXPECT_EQ(pair.completions(0).errors(), 0u);
  EXPECT_EQ(in, out);
  EXPECT_EQ(window, out);
}

/// Writes 4 MiB over a link that loses a little, and checks them.
void expect_exact_write(const std::map<std::string, std::string>& settings) {
  FepPair pair(LinkConfig{.loss = 0.005, .reorder = 0.02, .seed = 5}, settings);
  auto local = pattern(4 << 20, 3);
  std::vector<std::uint8_t> remote(local.size());
  const iovec remote_iov = iov(remote), local_iov = iov(local);
  const auto key = pair.ses(1).register_memory(ses::MemoryRequest{
      .iov = {&remote_iov, 1}, .remote_write = true, .virtual_addressing = false});
  ASSERT_TRUE(key);
  ASSERT_TRUE(pair.ses(0).rma(
      pair.now, pair.sides[0].endpoint,
      ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&local_iov, 1}, .key = *key}));
  ASSERT_TRUE(
      pair.run_until([&] { return pair.completions(0).count() == 1; }, Duration::from_seconds(20)));
  EXPECT_EQ(pair.completions(0).errors(), 0u);
  EXPECT_EQ(first_difference(remote, local), local.size());
}

TEST(FepPair, congestion_control_and_load_balancing__every_choice_carries_data) {
  for (const char* cc : {"nscc", "rccc", "both", "none"}) {
    SCOPED_TRACE(cc);
    expect_exact_write({{"CC", cc}});
  }
  for (const char* lb : {"oblivious", "bitmap", "reps", "mixed", "single"}) {
    SCOPED_TRACE(lb);
    expect_exact_write({{"LB", lb}});
  }
}

TEST(FepPair, protection_none__works_between_two_of_the_same) {
  FepPair pair(LinkConfig{}, {{"PROTECT", "none"}});
  exchange_small_messages(pair, 100, 10);
}

// Covers: FI-51
TEST(FepPair, silent_peer__fails_after_the_peer_timeout_and_not_before) {
  FepPair pair(LinkConfig{.loss = 1.0}, {{"PEER_TIMEOUT", "5s"}});
  std::uint64_t word = 1;
  const iovec at{&word, 8};
  const Instant start = pair.now;
  ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                               ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&at, 1}}));
  ASSERT_TRUE(
      pair.run_until([&] { return pair.completions(0).count() == 1; }, Duration::from_seconds(20)));
  EXPECT_EQ(pair.completions(0).errors(), 1u);
  EXPECT_GE(pair.now - start, Duration::from_ms(4900));
  EXPECT_LE(pair.now - start, Duration::from_ms(5500));
}

TEST(FepPair, peer_that_computes__kills_nothing) {
  FepPair pair(LinkConfig{});
  exchange_small_messages(pair, 10, 10);
  auto out = pattern(1 << 20, 1);
  std::vector<std::uint8_t> in(out.size());
  const iovec out_iov = iov(out), in_iov = iov(in);
  pair.completions(0).clear();
  pair.completions(1).clear();
  ASSERT_TRUE(pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                                  ses::ReceiveRequest{.iov = {&in_iov, 1}}));
  ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                               ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&out_iov, 1}}));
  // Side 1 does nothing for ten seconds, side 0 goes on.
  const Instant wakes = pair.now + Duration::from_seconds(10);
  while (pair.now < wakes) {
    pair.now = pair.now + Duration::from_us(500);
    while (pair.sides[0].fep->turn(pair.now)) {
    }
  }
  EXPECT_EQ(pair.completions(0).count(), 0u);
  const Instant awake = pair.now;
  ASSERT_TRUE(pair.run_until(
      [&] { return pair.completions(0).count() == 1 && pair.completions(1).count() == 1; }));
  EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u);
  EXPECT_EQ(in, out);
  EXPECT_LE(pair.now - awake, Duration::from_seconds(1));
}

// Covers: PDS-194
TEST(FepPair, corrupted_packets__are_dropped_by_the_crc) {
  FepPair pair(LinkConfig{});
  std::vector<std::uint8_t> captured;
  pair.link.config().drop = [&](std::size_t from, std::span<const std::uint8_t> bytes) {
    if (from == 0 && captured.empty()) captured.assign(bytes.begin(), bytes.end());
    return from == 0;
  };
  std::uint64_t word = 1;
  const iovec at{&word, 8};
  ASSERT_TRUE(pair.ses(0).send(pair.now, pair.sides[0].endpoint,
                               ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&at, 1}}));
  ASSERT_TRUE(pair.run_until([&] { return !captured.empty(); }));
  for (std::size_t bit = 0; bit < captured.size() * 8; ++bit) {
    captured[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    pair.link.inject(pair.now, 1, captured, MemoryLink::address(0), 0xc000, {});
    captured[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
  const auto before = pair.sides[1].trace.drops_total();
  for (int i = 0; i < 100; ++i) pair.sides[1].fep->turn(pair.now);
  const auto& trace = pair.sides[1].trace;
  EXPECT_EQ(trace.drops_total() - before, captured.size() * 8);
  // Flips in the first five bits may make it a secured packet, which is another reason to drop it.
  EXPECT_EQ(trace.drops(DropReason::kBadCrc) + trace.drops(DropReason::kTssUnexpected),
            captured.size() * 8);
  EXPECT_EQ(pair.sides[1].fep->pds().gauges().pdcs_open, 0u);
}

// A client that waits for its server turns its loop without end.
TEST(FepPortBusyTest, port_that_takes_nothing__is_reported_when_it_begins) {
  bool has_link = false;
  FepPair pair(LinkConfig{.refuses = [&](std::size_t side) { return side == 0 && !has_link; }});
  auto out = pattern(64, 1);
  const iovec out_iov = iov(out);
  ASSERT_TRUE(pair.ses(0).send(
      pair.now, pair.sides[0].endpoint,
      ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&out_iov, 1}, .context = 1}));
  const Instant later = pair.now + Duration::from_ms(50);
  ASSERT_TRUE(pair.run_until([&] { return pair.now >= later; }));
  EXPECT_EQ(pair.count(0, EventId::kPortBusy), 1u);
  has_link = true;
  ASSERT_TRUE(pair.run_until([&] { return pair.count(1, EventId::kMessageUnexpected) > 0; }));
  has_link = false;
  const Instant again = pair.now + Duration::from_ms(50);
  ASSERT_TRUE(pair.ses(0).send(
      pair.now, pair.sides[0].endpoint,
      ses::SendRequest{.peer = pair.sides[0].peer, .iov = {&out_iov, 1}, .context = 2}));
  ASSERT_TRUE(pair.run_until([&] { return pair.now >= again; }));
  EXPECT_EQ(pair.count(0, EventId::kPortBusy), 2u);
}

// Also calls that send nothing may ask the delivery layer for something: this receive has the rest of its message fetched. A thread
// that sleeps until the loop's deadline would not see to it otherwise.
TEST(FepPair, receive__that_leads_to_packets__makes_the_loop_due) {
  FepPair pair(LinkConfig{.seed = 3}, {{"OVERFLOW_BYTES", "64K"}});
  auto out = pattern(256 * 1024, 1), in = std::vector<std::uint8_t>(out.size());
  const iovec out_iov = iov(out), in_iov = iov(in);
  auto &from = pair.sides[0], &to = pair.sides[1];
  ASSERT_TRUE(
      from.fep->ses().send(pair.now, from.endpoint, {.peer = from.peer, .iov = {&out_iov, 1}}));
  const Instant quiet = pair.now + Duration::from_seconds(2);
  ASSERT_TRUE(pair.run_until([&] { return pair.now >= quiet; }));
  while (to.fep->turn(pair.now)) {
  }
  ASSERT_GT(to.fep->next_deadline(), pair.now);
  ASSERT_TRUE(to.fep->ses().receive(pair.now, to.endpoint, {.iov = {&in_iov, 1}}));
  EXPECT_LE(to.fep->next_deadline(), pair.now);
  ASSERT_TRUE(pair.run_until([&] { return to.completions.count() == 1; }));
  EXPECT_EQ(in, out);
}

// With fewer the packets that are refused and sent again would keep the rest of a message from ever leaving.
TEST(FepLimits, places_for_messages__too_few_are_refused) {
  const auto open = [](std::uint32_t places) {
    const FepPair pair({}, {}, false, {}, false,
                       [&](std::size_t, const net::PortFacts&, fep::FepConfig& config) {
                         config.ses.max_messages = places;
                       });
  };
  open(ses::SesConfig::kFewestMessages);
  EXPECT_DEATH(open(ses::SesConfig::kFewestMessages - 1), "kFewestMessages");
}

}  // namespace
}  // namespace uet::test
