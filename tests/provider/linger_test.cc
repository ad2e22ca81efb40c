/// A process that closes stays until its peers have heard what they wait for.
#include <chrono>
#include <thread>

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

}  // namespace
}  // namespace uet::provider::testing
