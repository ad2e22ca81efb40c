/// A process that closes stays until its peers have heard what they wait for.
#include <chrono>
#include <thread>
#include <utility>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

class LingerTest : public PairTest {
 protected:
  /// Half of what a should hear is lost, and a round trip takes 10 ms: a asks again 40 ms after an ACK that it misses.
  void open_with_losses(int seed) {
    const Info hints = make_hints();
    {
      const Variable weather("FI_UET_IMPAIR", "delay=5ms,rx_loss=0.5,seed=" + std::to_string(seed));
      a.open(address_of(2), *hints);
    }
    b.open(address_of(3), *hints);
    ASSERT_FALSE(HasFatalFailure());
    open_endpoints();
  }
};

TEST_F(LingerTest, message_that_was_taken__is_acknowledged_although_its_receiver_closed) {
  const Variable timeout("FI_UET_PEER_TIMEOUT", "3s");
  for (int seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    open_with_losses(seed);
    ASSERT_FALSE(HasFatalFailure());
    std::vector<char> in(8);
    ASSERT_EQ(fi_recv(b.ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_send(a.ep, "message", 8, nullptr, to_b, nullptr), 0);
    std::optional<Got> sent;
    ASSERT_TRUE(turn_until([&] {
      if (!sent) sent = poll(a);
      return poll(b).has_value();
    }));
    std::thread closes([&] { b.close(); });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!sent && std::chrono::steady_clock::now() < end) sent = poll(a);
    closes.join();
    ASSERT_TRUE(sent);
    EXPECT_FALSE(sent->failed) << fi_strerror(sent->error.err);
    a.close();
  }
}

/// Their peer is gone. A close that waited for the first message has waited for those of the others too.
TEST_F(LingerTest, endpoints__share_the_wait_for_injected_messages) {
  open();
  b.close();
  constexpr std::size_t kEndpoints = 4;
  std::vector<fid_ep*> endpoints;
  const std::uint8_t byte = 1;
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &a.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
    ASSERT_EQ(fi_enable(ep), 0);
    ASSERT_EQ(fi_inject(ep, &byte, 1, to_b), 0);
    endpoints.push_back(ep);
  }
  std::vector<std::chrono::milliseconds> took;
  for (fid_ep* ep : endpoints) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fi_close(&ep->fid), 0);
    took.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin));
  }
  EXPECT_GT(took.front().count(), 1500) << "the peer could have been slow";
  for (std::size_t i = 1; i < kEndpoints; ++i)
    EXPECT_LT(took[i].count(), 1900) << "a wait takes two seconds";
  // What is injected after a wait gets one of its own.
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(fi_inject(a.ep, &byte, 1, to_b), 0);
  EXPECT_EQ(fi_close(&std::exchange(a.ep, nullptr)->fid), 0);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
}

}  // namespace
}  // namespace uet::provider::testing
