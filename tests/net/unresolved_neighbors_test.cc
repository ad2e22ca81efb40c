// Which neighbors keep their packets in the kernel, from the messages with which it tells.
#include "lib/udp/unresolved_neighbors.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstring>

namespace uet::udp {

using net::FabricAddress;

namespace {

constexpr int kEth0 = 2, kEth1 = 3;

FabricAddress host_at(const char* text) {
  return *FabricAddress::parse(text);
}

/// What the kernel says of its neighbors.
class Messages {
 public:
  Messages& neighbor(const char* text, int interface, std::uint16_t state) {
    const FabricAddress address = host_at(text);
    const std::size_t bytes = address.is_v4() ? 4 : 16;
    nlmsghdr header{};
    header.nlmsg_type = RTM_NEWNEIGH;
    header.nlmsg_len =
        static_cast<std::uint32_t>(NLMSG_SPACE(sizeof(ndmsg)) + RTA_SPACE(1) + RTA_LENGTH(bytes));
    ndmsg body{};
    body.ndm_ifindex = interface;
    body.ndm_state = state;
    add(&header, sizeof header);
    add(&body, sizeof body);
    const rtattr other{.rta_len = RTA_LENGTH(1), .rta_type = NDA_PROBES};
    add(&other, sizeof other);
    add("\0\0\0", 4);
    const rtattr where{.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(bytes)),
                       .rta_type = NDA_DST};
    add(&where, sizeof where);
    add(address.bytes().data() + 16 - bytes, bytes);
    return *this;
  }
  Messages& end() {
    nlmsghdr header{};
    header.nlmsg_type = NLMSG_DONE;
    header.nlmsg_len = sizeof header;
    add(&header, sizeof header);
    return *this;
  }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  void add(const void* from, std::size_t n) {
    const auto* const at = static_cast<const std::uint8_t*>(from);
    bytes_.insert(bytes_.end(), at, at + n);
  }
  std::vector<std::uint8_t> bytes_;
};

TEST(UnresolvedNeighborsTest, keeps__those_that_are_asked_for) {
  UnresolvedNeighbors neighbors(true, 0, kEth0);
  Messages messages;
  messages.neighbor("10.0.0.1", kEth0, NUD_REACHABLE)
      .neighbor("10.0.0.9", kEth0, NUD_INCOMPLETE)
      .neighbor("10.0.0.2", kEth0, NUD_STALE)
      .neighbor("10.0.0.3", kEth0, NUD_INCOMPLETE)
      .neighbor("10.0.0.4", kEth0, NUD_NONE)
      .end()
      .neighbor("10.0.0.5", kEth0, NUD_INCOMPLETE);
  EXPECT_TRUE(neighbors.look_at(messages.bytes()));
  EXPECT_FALSE(neighbors.is_empty());
  for (const char* kept : {"10.0.0.3", "10.0.0.9", "10.0.0.3"})
    EXPECT_TRUE(neighbors.keeps(host_at(kept))) << kept;
  for (const char* gone : {"10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.77"})
    EXPECT_FALSE(neighbors.keeps(host_at(gone))) << gone;
  EXPECT_FALSE(neighbors.look_at(Messages().end().bytes()));
  EXPECT_TRUE(neighbors.is_empty());
}

TEST(UnresolvedNeighborsTest, keeps__lets_one_packet_ask_again_where_the_kernel_gave_up) {
  UnresolvedNeighbors neighbors(true, 0, kEth0);
  Messages messages;
  messages.neighbor("10.0.0.3", kEth0, NUD_FAILED);
  EXPECT_FALSE(neighbors.look_at(messages.bytes())) << "holds no packets";
  EXPECT_FALSE(neighbors.keeps(host_at("10.0.0.3")));
  EXPECT_TRUE(neighbors.keeps(host_at("10.0.0.3")));
  Messages asks;
  neighbors.look_at(asks.neighbor("10.0.0.3", kEth0, NUD_INCOMPLETE).bytes());
  EXPECT_TRUE(neighbors.keeps(host_at("10.0.0.3")));
  neighbors.look_at(messages.bytes());
  EXPECT_FALSE(neighbors.keeps(host_at("10.0.0.3")));
}

/// A route that changed: what was asked for on the link once is reached through a gateway.
TEST(UnresolvedNeighborsTest, keeps__nothing_where_the_kernel_does_not_ask_for_what_it_is_sent) {
  UnresolvedNeighbors neighbors(true, 0, kEth0);
  Messages messages;
  messages.neighbor("10.0.0.3", kEth0, NUD_FAILED);
  neighbors.look_at(messages.bytes());
  EXPECT_FALSE(neighbors.keeps(host_at("10.0.0.3")));
  for (int look = 0; look < 3; ++look) {
    neighbors.look_at(messages.bytes());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(neighbors.keeps(host_at("10.0.0.3"))) << look;
  }
}

TEST(UnresolvedNeighborsTest, interface__counts_as_the_port_uses_it) {
  Messages messages;
  messages.neighbor("10.0.0.3", kEth0, NUD_INCOMPLETE)
      .neighbor("10.0.0.3", kEth1, NUD_STALE)
      .neighbor("10.0.0.4", kEth1, NUD_INCOMPLETE);
  UnresolvedNeighbors untied(true, 0, kEth0);
  untied.look_at(messages.bytes());
  EXPECT_FALSE(untied.keeps(host_at("10.0.0.3"))) << "another interface leads there";
  EXPECT_TRUE(untied.keeps(host_at("10.0.0.4")));
  UnresolvedNeighbors tied(true, kEth0, kEth0);
  tied.look_at(messages.bytes());
  EXPECT_TRUE(tied.keeps(host_at("10.0.0.3")));
  EXPECT_FALSE(tied.keeps(host_at("10.0.0.4")));
}

TEST(UnresolvedNeighborsTest, link_local_addresses__are_those_of_their_link) {
  Messages messages;
  messages.neighbor("fe80::3", kEth0, NUD_STALE)
      .neighbor("fe80::3", kEth1, NUD_INCOMPLETE)
      .neighbor("fe80::4", kEth0, NUD_INCOMPLETE)
      .neighbor("10.0.0.3", kEth0, NUD_INCOMPLETE);
  UnresolvedNeighbors neighbors(false, 0, kEth1);
  EXPECT_TRUE(neighbors.look_at(messages.bytes()));
  EXPECT_TRUE(neighbors.keeps(host_at("fe80::3")));
  EXPECT_FALSE(neighbors.keeps(host_at("fe80::4")));
  EXPECT_FALSE(neighbors.keeps(host_at("10.0.0.3")));
}

TEST(UnresolvedNeighborsTest, messages_cut_off_anywhere__are_read_as_far_as_they_go) {
  Messages messages;
  messages.neighbor("10.0.0.3", kEth0, NUD_INCOMPLETE).neighbor("10.0.0.4", kEth0, NUD_INCOMPLETE);
  const auto bytes = messages.bytes();
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(n));
    UnresolvedNeighbors neighbors(true, 0, kEth0);
    neighbors.look_at(cut);
    EXPECT_EQ(neighbors.keeps(host_at("10.0.0.3")), n >= bytes.size() / 2) << n;
    EXPECT_EQ(neighbors.keeps(host_at("10.0.0.4")), n == bytes.size()) << n;
  }
}

}  // namespace
}  // namespace uet::udp
