// Injected messages that no program waits for leave it to those behind them to ask for ACKs. [decision 167]
#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "tests/net/udp_capture.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using Asked = std::vector<bool>;

struct PatienceTest : PairTest {
  static constexpr int kRounds = 20;

  PatienceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "uet-patience-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~PatienceTest() override { std::filesystem::remove_all(folder_); }

  /// With a message between the two, so that the target is known. What A sends is written down.
  void open_pair(const fi_info* hints = nullptr) {
    const Info none = make_hints();
    none->domain_attr->mr_mode = kBasicModes;
    if (hints == nullptr) hints = none.get();
    {
      const Variable capturing("FI_UET_PCAP", capture());
      a.open(address_of(2), *hints);
    }
    b.open(address_of(3), *hints);
    ASSERT_FALSE(HasFatalFailure());
    a.open_endpoint();
    b.open_endpoint();
    to_b = a.insert(b);
    std::array<char, 1> byte{};
    ASSERT_EQ(fi_recv(b.ep, byte.data(), 1, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ASSERT_EQ(fi_send(a.ep, byte.data(), 1, nullptr, to_b, nullptr), 0);
    EXPECT_FALSE(wait_for(a).failed);
    EXPECT_FALSE(wait_for(b).failed);
  }
  /// A message of 8 bytes that `post` sends has arrived.
  void round(const std::function<ssize_t()>& post) {
    std::array<char, 8> got{};
    ASSERT_EQ(fi_recv(b.ep, got.data(), got.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    ssize_t ret = -FI_EAGAIN;
    ASSERT_TRUE(turn_until([&] { return (ret = post()) != -FI_EAGAIN; }));
    ASSERT_EQ(ret, 0);
    EXPECT_FALSE(wait_for(b).failed);
  }
  ssize_t inject() { return fi_inject(a.ep, "1234567", 8, to_b); }
  ssize_t send_with(std::uint64_t flags) {
    iovec piece{sent_.data(), sent_.size()};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = to_b;
    return fi_sendmsg(a.ep, &message, flags);
  }
  /// Which of the messages behind the first one asked for their ACKs, in the order in which they left.
  Asked asked() {
    a.close();
    b.close();
    Asked all;
    for (const auto& d : net::testing::datagrams_of(capture())) {
      if (!d.is_outbound || d.payload.size() < wire::PdsRequest::kSize) continue;
      const auto request = wire::parse<wire::PdsRequest>(d.payload);
      const bool is_request = request && (request->type == wire::PdsType::kRudReq ||
                                          request->type == wire::PdsType::kRodReq);
      if (is_request && !request->syn && !request->retx) all.push_back(request->ar);
    }
    return all;
  }
  std::string capture() const { return (folder_ / "a.pcapng").string(); }

  std::filesystem::path folder_;
  std::array<char, 8> sent_{};
};

// All that is certain on a busy machine: a message that is late asks.
TEST_F(PatienceTest, inject__asks_now_and_then) {
  open_pair();
  for (int i = 0; i < kRounds; ++i) round([&] { return inject(); });
  const Asked all = asked();
  ASSERT_EQ(all.size(), std::size_t{kRounds});
  EXPECT_GT(std::count(all.begin(), all.end(), false), 0);
}

TEST_F(PatienceTest, inject__with_an_entry_asks) {
  open_pair();
  for (int i = 0; i < kRounds; ++i) {
    round([&] { return send_with(FI_INJECT | FI_COMPLETION); });
    EXPECT_FALSE(wait_for(a).failed);
  }
  EXPECT_EQ(asked(), Asked(kRounds, true));
}

TEST_F(PatienceTest, inject__until_delivery_is_complete_asks) {
  open_pair();
  for (int i = 0; i < kRounds; ++i)
    round([&] { return send_with(FI_INJECT | FI_DELIVERY_COMPLETE); });
  const Asked all = asked();
  EXPECT_GE(all.size(), std::size_t{kRounds});
  EXPECT_EQ(std::count(all.begin(), all.end(), false), 0);
}

TEST_F(PatienceTest, inject__that_a_counter_counts_asks) {
  open_pair();
  ASSERT_EQ(fi_close(&a.ep->fid), 0);
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(a.domain, nullptr, &counter, nullptr), 0);
  ASSERT_EQ(fi_endpoint(a.domain, a.info.get(), &a.ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(a.ep, &a.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(a.ep, &counter->fid, FI_SEND), 0);
  ASSERT_EQ(fi_enable(a.ep), 0);
  for (int i = 0; i < kRounds; ++i) round([&] { return inject(); });
  EXPECT_TRUE(turn_until([&] { return fi_cntr_read(counter) == kRounds; }));
  ASSERT_EQ(fi_close(&a.ep->fid), 0);
  a.ep = nullptr;
  ASSERT_EQ(fi_close(&counter->fid), 0);
  EXPECT_EQ(asked(), Asked(kRounds, true));
}

TEST_F(PatienceTest, small_queue__is_not_filled_by_what_may_wait) {
  const Info hints = make_hints();
  hints->domain_attr->mr_mode = kBasicModes;
  hints->tx_attr->size = 4;
  open_pair(hints.get());
  for (int i = 0; i < kRounds; ++i) round([&] { return inject(); });
  const Asked all = asked();
  ASSERT_EQ(all.size(), std::size_t{kRounds});
  const Asked three(3, false);
  EXPECT_EQ(std::search(all.begin(), all.end(), three.begin(), three.end()), all.end());
}

// A peer that is silent is asked after ten milliseconds here, unless the endpoint that closes has asked before.
TEST_F(PatienceTest, close__asks_for_what_was_injected) {
  const Variable silence("FI_UET_TAIL_LOSS_TIME", "10ms");
  auto shortest = std::chrono::nanoseconds::max();
  for (int i = 0; i < kRounds; ++i) {
    open_pair();
    round([&] { return inject(); });
    std::atomic<bool> is_over = false;
    const auto began = std::chrono::steady_clock::now();
    std::thread peer([&] {  // which only moves its loop
      fi_cq_tagged_entry entry;
      while (!is_over && std::chrono::steady_clock::now() - began < std::chrono::seconds(5))
        (void)fi_cq_read(b.cq, &entry, 1);
    });
    EXPECT_EQ(fi_close(&a.ep->fid), 0);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
    shortest = std::min(shortest, took);
    a.ep = nullptr;
    is_over = true;
    peer.join();
    a.close();
    b.close();
  }
  EXPECT_LT(shortest, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace uet::provider::testing
