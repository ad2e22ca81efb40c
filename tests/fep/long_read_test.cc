// Long READs, whose packets ask for eight packets of data each, between whole endpoints. [decisions 108, 170]
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fep/fep_pair.h"

namespace uet::test {
namespace {

/// One reader, one source, as many bytes as are read.
struct LongRead {
  LongRead(const LinkConfig& link, std::size_t size,
           const std::map<std::string, std::string>& of_reader = {},
           const std::map<std::string, std::string>& of_source = {})
      : pair(link, of_reader, false, of_source), remote(pattern(size, 4)), local(size) {
    const iovec memory = iov(remote);
    key = *pair.ses(1).register_memory(
        ses::MemoryRequest{.iov = {&memory, 1}, .remote_read = true, .virtual_addressing = false});
  }
  /// Whether `bytes` have come within seconds.
  bool read(std::size_t bytes) {
    pair.completions(0).clear();
    const iovec into{local.data(), bytes};
    EXPECT_TRUE(pair.ses(0).rma(
        pair.now, pair.sides[0].endpoint,
        ses::RmaRequest{.peer = pair.sides[0].peer, .read = true, .iov = {&into, 1}, .key = key}));
    return pair.run_until([&] { return pair.completions(0).count() == 1; },
                          Duration::from_seconds(5)) &&
           pair.completions(0).errors() == 0 &&
           std::equal(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(bytes),
                      remote.begin());
  }

  FepPair pair;
  std::vector<std::uint8_t> remote, local;
  std::uint64_t key = 0;
};

/// The IP MTU of both devices, and READs of more than 3,072 packets of data there: what is under way behind a request that was lost is
/// more than any window of packet delivery.
struct Way {
  std::size_t ip_mtu, bytes;
};
class LongReadTest : public testing::TestWithParam<Way> {};

TEST_P(LongReadTest, request_that_was_lost__ends_nothing) {
  int to_lose = -1;
  LinkConfig link{.ip_mtu = GetParam().ip_mtu};
  link.drop = [&](std::size_t from, std::span<const std::uint8_t>) {
    return from == 0 && to_lose >= 0 && to_lose-- == 0;
  };
  LongRead r(link, GetParam().bytes);
  ASSERT_TRUE(r.read(100'000));  // the PDC is open, and its way known
  for (const int n : {0, 1, 50}) {
    to_lose = n;
    EXPECT_TRUE(r.read(GetParam().bytes)) << n;
    EXPECT_EQ(to_lose, -1);
  }
  EXPECT_TRUE(r.pair.run_until_idle());
}

TEST_P(LongReadTest, losses__end_nothing) {
  LongRead r(LinkConfig{.loss = 0.01, .reorder = 0.01, .ip_mtu = GetParam().ip_mtu, .seed = 3},
             GetParam().bytes);
  EXPECT_TRUE(r.read(GetParam().bytes));
  EXPECT_TRUE(r.pair.run_until_idle());
}

INSTANTIATE_TEST_SUITE_P(Ways, LongReadTest,
                         testing::Values(Way{1500, 5 << 20}, Way{9000, 26 << 20}),
                         [](const auto& way) { return std::to_string(way.param.ip_mtu); });

TEST(LongRead, requests__ask_for_less_where_more_may_be_under_way) {
  for (const auto& [mpr, requests] : {std::pair{"1024", 2u}, {"4096", 4u}, {"8192", 8u}}) {
    LongRead r(LinkConfig{.ip_mtu = 9000}, 131'072, {{"MPR", mpr}});
    EXPECT_TRUE(r.read(131'072));
    EXPECT_EQ(r.pair.count(1, base::EventId::kRequestDelivered), requests) << mpr;
  }
}

// What may ride on an ACK is the source's to say: the data comes in other packets than the reader thought.
TEST(LongRead, reader_and_source_with_other_limits_of_data_on_ACKs) {
  for (const char* const of_reader : {"16", "2000", "8192"}) {
    for (const char* const of_source : {"16", "2000", "4096"}) {
      for (const std::size_t ip_mtu : {1500, 9000}) {
        const auto limit = [](const char* bytes) {
          return std::map<std::string, std::string>{
              {"PDS", std::string("Max_ACK_Data_Size=") + bytes}, {"MAX_PAYLOAD", "1280"}};
        };
        SCOPED_TRACE(std::string(of_reader) + ", " + of_source);
        LongRead r(LinkConfig{.ip_mtu = ip_mtu}, 20'000, limit(of_reader), limit(of_source));
        for (const std::size_t bytes : {16u, 1280u, 1500u, 5000u, 20'000u})
          EXPECT_TRUE(r.read(bytes)) << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace uet::test
