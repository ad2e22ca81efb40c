// Peers whose devices have different MTUs. [WIRE 7.2]
#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

struct Mtus {
  std::size_t a, b;
  Order order;
  bool is_one_ethernet;  ///< no router on the way that would tell of packets too large for it
};
void PrintTo(const Mtus& m, std::ostream* out) {
  *out << m.a << " and " << m.b << ", " << name_of(m.order)
       << (m.is_one_ethernet ? ", one Ethernet" : "");
}

std::vector<Mtus> all_pairs() {
  std::vector<Mtus> out;
  for (const std::size_t a : {1400u, 1440u, 1500u, 4300u, 9000u, 65535u})
    for (const std::size_t b : {1400u, 1440u, 1500u, 4300u, 9000u, 65535u})
      for (const Order order : kOrders)
        for (const bool is_one_ethernet : {false, true})
          if (a != b || !is_one_ethernet) out.push_back({a, b, order, is_one_ethernet});
  return out;
}

class UnequalMtuTest : public testing::TestWithParam<Mtus> {
 protected:
  static LinkConfig link() {
    return LinkConfig{.loss = 0.02,
                      .reorder = 0.05,
                      .ip_mtus = {GetParam().a, GetParam().b},
                      .knows_own_mtu_only = GetParam().is_one_ethernet,
                      .seed = 7};
  }
};

INSTANTIATE_TEST_SUITE_P(Pairs, UnequalMtuTest, testing::ValuesIn(all_pairs()),
                         [](const auto& pair) {
                           const Mtus& m = pair.param;
                           return std::to_string(m.a) + "_" + std::to_string(m.b) + "_" +
                                  name_of(m.order) + (m.is_one_ethernet ? "_one_ethernet" : "");
                         });

constexpr std::array kSizes = {0u,    1u,    1023u, 1024u, 1025u, 1280u,
                               1281u, 2560u, 8191u, 8192u, 8193u, 100'001u};

TEST_P(UnequalMtuTest, send__arrives_both_ways_expected_and_unexpected) {
  FepPair pair(link(), with_order(GetParam().order), GetParam().order != Order::kNone);
  for (const std::size_t from : {0u, 1u}) {
    for (const bool expected : {true, false}) {
      for (const std::size_t size : kSizes) {
        auto out = pattern(size, size + 1);
        std::vector<std::uint8_t> in(size + 1, 0xee);
        const iovec out_iov = iov(out), in_iov = iov(in);
        const auto receive = [&] {
          return pair.ses(1 - from)
              .receive(pair.now, pair.sides[1 - from].endpoint, {.iov = {&in_iov, 1}})
              .has_value();
        };
        if (expected) {
          ASSERT_TRUE(receive());
        }
        ASSERT_TRUE(pair.ses(from).send(pair.now, pair.sides[from].endpoint,
                                        {.peer = pair.sides[from].peer, .iov = {&out_iov, 1}}));
        if (!expected) {
          ASSERT_TRUE(
              pair.run_until([&] { return pair.ses(1 - from).gauges().unexpected_messages == 1; }));
          ASSERT_TRUE(receive());
        }
        ASSERT_TRUE(pair.run_until([&] {
          return pair.completions(0).count() == 1 && pair.completions(1).count() == 1;
        })) << size
            << " bytes";
        EXPECT_EQ(pair.completions(0).errors() + pair.completions(1).errors(), 0u) << size;
        EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin())) << size << " bytes";
        EXPECT_EQ(in[size], 0xee);
        pair.completions(0).clear();
        pair.completions(1).clear();
      }
    }
  }
  EXPECT_EQ(pair.link.too_large(), 0u);
}

TEST_P(UnequalMtuTest, rma__writes_and_reads_both_ways) {
  const bool ordered = GetParam().order == Order::kContext;
  FepPair pair(link(), {}, ordered, std::nullopt, ordered);
  for (const std::size_t from : {0u, 1u}) {
    const std::size_t to = 1 - from;
    for (const std::size_t size : kSizes) {
      auto local = pattern(size, size + 3), remote = pattern(size + 1, 4);
      std::vector<std::uint8_t> back(size);
      remote[size] = 0xee;
      const iovec remote_iov = iov(remote), local_iov = iov(local), back_iov = iov(back);
      const auto key =
          pair.ses(to).register_memory(ses::MemoryRequest{.iov = {&remote_iov, 1},
                                                          .remote_read = true,
                                                          .remote_write = true,
                                                          .virtual_addressing = false});
      ASSERT_TRUE(key);
      for (const bool read : {false, true}) {
        const iovec here = read ? back_iov : local_iov;
        ASSERT_TRUE(pair.ses(from).rma(
            pair.now, pair.sides[from].endpoint,
            {.peer = pair.sides[from].peer, .read = read, .iov = {&here, 1}, .key = *key}));
        ASSERT_TRUE(pair.run_until([&] { return pair.completions(from).count() == 1; }));
        EXPECT_EQ(pair.completions(from).errors(), 0u) << size << " bytes";
        pair.completions(from).clear();
      }
      EXPECT_TRUE(std::equal(local.begin(), local.end(), remote.begin())) << size << " bytes";
      EXPECT_EQ(back, local);
      EXPECT_EQ(remote[size], 0xee);
      pair.ses(to).deregister_memory(*key);
    }
  }
  EXPECT_EQ(pair.link.too_large(), 0u);
  ASSERT_TRUE(pair.run_until_idle());
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(pair.link.pool(i).available(), pair.link.pool(i).capacity());
}

/// Only the setting differs: each cuts as it was told, and takes what the other cuts.
TEST(UnequalMtu, max_payload_set_at_one_side__is_no_matter_for_the_other) {
  for (const char* const payload : {"1024", "1280", "2048", "4096"}) {
    const LinkConfig config{.ip_mtu = 9000, .seed = 3};
    const std::map<std::string, std::string> a{{"MAX_PAYLOAD", payload}},
        b{{"MAX_PAYLOAD", "8192"}};
    FepPair pair(config, a, false, b);
    auto local = pattern(100'000, 1), remote = pattern(100'000, 2);
    for (const std::size_t from : {0u, 1u}) {
      auto target = remote;
      const iovec target_iov = iov(target), local_iov = iov(local);
      const auto key = pair.ses(1 - from).register_memory(ses::MemoryRequest{
          .iov = {&target_iov, 1}, .remote_write = true, .virtual_addressing = false});
      ASSERT_TRUE(key);
      ASSERT_TRUE(
          pair.ses(from).rma(pair.now, pair.sides[from].endpoint,
                             {.peer = pair.sides[from].peer, .iov = {&local_iov, 1}, .key = *key}));
      ASSERT_TRUE(pair.run_until([&] { return pair.completions(from).count() == 1; }));
      EXPECT_EQ(pair.completions(from).errors(), 0u);
      EXPECT_EQ(target, local);
    }
  }
}

}  // namespace
}  // namespace uet::test
