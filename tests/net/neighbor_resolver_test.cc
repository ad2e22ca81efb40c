/// An IpPort whose neighbors the kernel finds.

#include <deque>
#include <map>

#include "tests/net/ip_port_fixture.h"

namespace uet::net {
namespace {

using base::DropReason;

constexpr MacAddress kPeer{2, 0, 0, 0, 0, 0xb};

class ScriptedResolver final : public NeighborResolver {
 public:
  bool ask(const FabricAddress& address, MacAddress& mac) override {
    ++questions;
    const auto at = known.find(address);
    if (at == known.end()) return false;
    mac = at->second;
    return true;
  }
  News poll(FabricAddress& address, MacAddress& mac) override {
    ++polls;
    if (std::exchange(has_lost, false)) return News::kLost;
    if (resolved.empty()) return News::kNone;
    std::tie(address, mac) = resolved.front();
    resolved.pop_front();
    return News::kFound;
  }
  std::map<FabricAddress, MacAddress> known;
  std::deque<std::pair<FabricAddress, MacAddress>> resolved;
  bool has_lost = false;
  int questions = 0;
  int polls = 0;
};

class NeighborResolverTest : public IpPortTest {
 protected:
  void SetUp() override {
    IpPortConfig a = config_of("10.0.0.1");
    a.answers = false;
    a.resolver = resolver_;
    open(a, config_of("10.0.0.2"));
  }
  /// Where the next packet to the peer goes.
  MacAddress mac_of_next() {
    while (send(a_, b_, "next") == 0) {
    }
    MacAddress mac;
    std::copy_n(a_.device->sent.back().begin(), mac.size(), mac.begin());
    return mac;
  }
  std::shared_ptr<ScriptedResolver> resolver_ = std::make_shared<ScriptedResolver>();
  const FabricAddress peer_ = address("10.0.0.2");
};

TEST_F(NeighborResolverTest, known_neighbor__is_used_without_a_frame_of_ours) {
  resolver_->known[peer_] = kPeer;
  while (send(a_, b_, "hello") == 0) {
  }
  settle();
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(a_.device->sent.size(), 1u);
  EXPECT_EQ(resolver_->questions, 1);
}

TEST_F(NeighborResolverTest, unknown_neighbor__is_used_once_the_kernel_has_found_it) {
  send(a_, b_, "hello");
  EXPECT_TRUE(a_.device->sent.empty());
  resolver_->resolved.emplace_back(peer_, kPeer);
  advance(Duration::from_ms(1));
  settle();
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(text_of(got_b_[0]), "hello");
}

TEST_F(NeighborResolverTest, neighbor_that_the_kernel_does_not_find__is_given_up) {
  send(a_, b_, "hello");
  for (int i = 0; i < 100; ++i) advance(Duration::from_ms(100));
  EXPECT_EQ(a_.trace.drops(DropReason::kNoNeighbor), 1u);
  EXPECT_EQ(resolver_->questions, 5);
}

TEST_F(NeighborResolverTest, news_of_others__make_no_neighbors) {
  send(a_, b_, "hello");
  resolver_->resolved.emplace_back(address("10.0.0.77"), kPeer);
  advance(Duration::from_ms(1));
  settle();
  EXPECT_EQ(a_.port->neighbors().size(), 1u);
}

TEST_F(NeighborResolverTest, kernel__is_asked_for_news_every_50_ms_when_nothing_is_asked) {
  resolver_->known[peer_] = kPeer;
  while (send(a_, b_, "hello") == 0) {
  }
  receive(a_);
  resolver_->polls = 0;
  for (int i = 0; i < 100'000; ++i) {
    now_ = now_ + Duration::from_us(10);
    receive(a_);
  }
  EXPECT_EQ(resolver_->polls, 20);
}

// The kernel tells of a MAC before the neighbor has confirmed it.
TEST_F(NeighborResolverTest, neighbor_that_moves_unasked__is_followed_and_asked_for) {
  resolver_->known[peer_] = kPeer;
  while (send(a_, b_, "hello") == 0) {
  }
  resolver_->questions = 0;
  constexpr MacAddress kOther{2, 0, 0, 0, 0, 0xc};
  resolver_->resolved.emplace_back(peer_, kOther);
  resolver_->known[peer_] = kOther;
  advance(Duration::from_ms(100));
  receive(a_);
  EXPECT_EQ(mac_of_next(), kOther);
  advance(Duration());
  EXPECT_EQ(resolver_->questions, 1);
}

// A resolver whose news were lost has the oldest of them still.
TEST_F(NeighborResolverTest, lost_news__have_all_neighbors_asked_anew) {
  resolver_->known[peer_] = kPeer;
  const FabricAddress other = address("10.0.0.3");
  resolver_->known[other] = {2, 0, 0, 0, 0, 3};
  for (const FabricAddress& to : {peer_, other})
    while (send(a_, to, "hello") == 0) {
    }
  resolver_->questions = 0;
  constexpr MacAddress kMoved{2, 0, 0, 0, 0, 0xc};
  resolver_->known[peer_] = kMoved;
  resolver_->has_lost = true;
  advance(Duration::from_ms(50));
  receive(a_);
  advance(Duration());
  EXPECT_EQ(resolver_->questions, 2);
  EXPECT_EQ(mac_of_next(), kMoved);
}

TEST_F(NeighborResolverTest, news_of_a_neighbor_that_did_not_move__put_off_no_question) {
  resolver_->known[peer_] = kPeer;
  while (send(a_, b_, "hello") == 0) {
  }
  resolver_->questions = 0;
  for (int i = 0; i < 31; ++i) {
    resolver_->resolved.emplace_back(peer_, kPeer);
    advance(Duration::from_seconds(1));
    receive(a_);
  }
  EXPECT_EQ(mac_of_next(), kPeer);
  advance(Duration());
  EXPECT_EQ(resolver_->questions, 1);
}

}  // namespace
}  // namespace uet::net
