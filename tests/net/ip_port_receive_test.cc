#include "lib/base/rng.h"
#include "lib/net/checksum.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::net {

using base::DropReason;

namespace {

constexpr std::size_t kIp = 14;  ///< where the IP header begins in an untagged frame

void fix_ipv4_checksum(Bytes& frame, std::size_t ip = kIp) {
  frame[ip + 10] = frame[ip + 11] = 0;
  base::store_be(&frame[ip + 10], checksum_fold(checksum_add({&frame[ip], 20})));
}

class RefusalTest : public IpPortTest {
 protected:
  void SetUp() override {
    open_v4();
    frame_ = frame_to_b("payload");
  }
  Bytes frame_;
};

class RefusalV6Test : public IpPortTest {
 protected:
  void SetUp() override {
    open_v6();
    frame_ = frame_to_b("payload");
  }
  Bytes frame_;
};

}  // namespace

TEST_F(RefusalTest, receive__intact_frame_is_accepted) {
  EXPECT_EQ(refusal(frame_), DropReason::kCount);
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(text_of(got_b_[0]), "payload");
}

// Covers: PDS-73, PDS-194
TEST_F(RefusalTest, receive__padding_of_short_frames_is_cut_off) {
  frame_.resize(60, 0xee);
  EXPECT_EQ(refusal(frame_), DropReason::kCount);
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(text_of(got_b_[0]), "payload");
}

TEST_F(RefusalTest, receive__every_truncation_is_refused) {
  for (std::size_t n = 0; n < frame_.size(); ++n)
    EXPECT_EQ(refusal(Bytes(frame_.begin(), frame_.begin() + n)), DropReason::kTruncated) << n;
}

TEST_F(RefusalTest, receive__frame_for_another_mac) {
  frame_[5] ^= 1;
  EXPECT_EQ(refusal(frame_), DropReason::kNotForUs);
}

TEST_F(RefusalTest, receive__returns_in_a_flood_of_frames_for_others) {
  Bytes foreign = frame_;
  foreign[5] ^= 1;
  for (int i = 0; i < 1000; ++i) b_.device->inject(foreign);
  b_.device->inject(frame_);
  std::vector<RxPacket> out(64);
  EXPECT_EQ(b_.port->receive(now_, out), 0u);
  EXPECT_GE(b_.device->waiting(), 1000u - 64u) << "one call looks at no more than it could give";
  std::size_t calls = 1;
  while (b_.port->receive(now_, out) == 0 && calls < 100) ++calls;
  EXPECT_EQ(calls, 1001u / 64u);
}

TEST_F(RefusalTest, receive__unicast_ip_in_broadcast_frame) {
  std::fill_n(frame_.begin(), 6, 0xff);
  EXPECT_EQ(refusal(frame_), DropReason::kNotForUs);
}

TEST_F(RefusalTest, receive__other_ethertype) {
  frame_[12] = 0x88;
  frame_[13] = 0xcc;
  EXPECT_EQ(refusal(frame_), DropReason::kNotIp);
}

TEST_F(RefusalTest, receive__ipv4_checksum_wrong) {
  frame_[kIp + 10] ^= 1;
  EXPECT_EQ(refusal(frame_), DropReason::kBadIpHeader);
}

TEST_F(RefusalTest, receive__ipv4_options) {
  frame_[kIp] = 0x46;
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kIpOptions);
}

TEST_F(RefusalTest, receive__fragments) {
  frame_[kIp + 6] = 0x20;  // more fragments
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kFragment);
  frame_[kIp + 6] = 0;
  frame_[kIp + 7] = 1;  // second piece
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kFragment);
}

TEST_F(RefusalTest, receive__other_ip_destination) {
  frame_[kIp + 19] = 77;
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kNotForUs);
}

TEST_F(RefusalTest, receive__source_addresses_of_no_host) {
  for (const std::uint8_t first : {224, 255}) {
    Bytes bad = frame_;
    bad[kIp + 12] = first;
    fix_ipv4_checksum(bad);
    EXPECT_EQ(refusal(bad), DropReason::kBadIpHeader);
  }
  std::fill_n(frame_.begin() + kIp + 12, 4, 0);
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kBadIpHeader);
}

TEST_F(RefusalTest, receive__our_own_source_address_is_a_conflict) {
  frame_[kIp + 15] = 2;
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kAddressConflict);
}

TEST_F(RefusalTest, receive__other_udp_port_or_protocol) {
  Bytes port = frame_;
  port[kIp + 22] ^= 1;
  EXPECT_EQ(refusal(port), DropReason::kNotUet);
  frame_[kIp + 9] = 6;
  fix_ipv4_checksum(frame_);
  EXPECT_EQ(refusal(frame_), DropReason::kNotUet);
}

// Covers: PDS-194
TEST_F(RefusalTest, receive__udp_length_disagrees) {
  for (const int delta : {-1, 1}) {
    Bytes bad = frame_;
    bad[kIp + 25] = static_cast<std::uint8_t>(bad[kIp + 25] + delta);
    EXPECT_EQ(refusal(bad), DropReason::kBadUdpLength);
  }
}

TEST_F(RefusalTest, receive__stale_lengths_of_a_trimmed_packet_are_accepted) {
  frame_[kIp + 1] = 26 << 2;  // DSCP_TRIMMED
  fix_ipv4_checksum(frame_);
  frame_.resize(frame_.size() - 4);
  EXPECT_EQ(refusal(frame_), DropReason::kCount);
  ASSERT_EQ(got_b_.size(), 1u);
  EXPECT_EQ(text_of(got_b_[0]), "pay");
}

TEST_F(RefusalTest, receive__tag_of_another_vlan) {
  Bytes tagged = frame_;
  tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0x00, 0x05});
  EXPECT_EQ(refusal(tagged), DropReason::kVlanMismatch);
}

TEST_F(RefusalTest, receive__priority_tag_is_accepted_and_a_third_tag_is_not) {
  Bytes tagged = frame_;
  for (int tags = 1; tags <= 3; ++tags) {
    tagged.insert(tagged.begin() + 12, {0x81, 0x00, 0xe0, 0x00});
    EXPECT_EQ(refusal(tagged), tags <= 2 ? DropReason::kCount : DropReason::kVlanMismatch);
  }
}

TEST_F(RefusalV6Test, receive__extension_headers_and_fragments) {
  for (const std::uint8_t next : {0, 43, 50, 51, 60}) {
    Bytes bad = frame_;
    bad[kIp + 6] = next;
    EXPECT_EQ(refusal(bad), DropReason::kIpOptions) << int{next};
  }
  frame_[kIp + 6] = 44;
  EXPECT_EQ(refusal(frame_), DropReason::kFragment);
}

TEST_F(RefusalV6Test, receive__mapped_ipv4_source_cannot_pass_for_ipv4) {
  std::fill_n(frame_.begin() + kIp + 8, 10, 0);
  frame_[kIp + 18] = frame_[kIp + 19] = 0xff;
  EXPECT_EQ(refusal(frame_), DropReason::kBadIpHeader);
}

TEST_F(RefusalV6Test, receive__multicast_destination) {
  frame_[kIp + 24] = 0xff;
  EXPECT_EQ(refusal(frame_), DropReason::kNotForUs);
}

TEST_F(RefusalV6Test, receive__every_truncation_is_refused) {
  for (std::size_t n = 0; n < frame_.size(); ++n)
    EXPECT_EQ(refusal(Bytes(frame_.begin(), frame_.begin() + n)), DropReason::kTruncated) << n;
}

namespace {

/// Every frame of a talk between two hosts, damaged in many ways: nothing may crash, leak a packet, or be uncounted.
void fuzz(IpPortTest&, Host& victim, const std::vector<Bytes>& seeds, std::uint64_t seed) {
  base::Rng rng(seed);
  const std::size_t packets = victim.port->pool().available();
  Instant now = Instant::from_ns(5'000'000);
  for (int i = 0; i < 20000; ++i) {
    Bytes frame = seeds[rng.below(static_cast<std::uint32_t>(seeds.size()))];
    for (std::uint32_t n = rng.below(6); n > 0; --n)
      frame[rng.below(static_cast<std::uint32_t>(frame.size()))] =
          static_cast<std::uint8_t>(rng.next_u32());
    if (rng.chance(0.3)) frame.resize(rng.below(static_cast<std::uint32_t>(frame.size()) + 8) + 1);
    if (rng.chance(0.05))
      for (auto& b : frame) b = static_cast<std::uint8_t>(rng.next_u32());
    victim.device->inject(std::move(frame));
    std::array<RxPacket, 4> out;
    victim.port->receive(now, out);
    now = now + Duration::from_us(100);
    if (victim.port->next_deadline() <= now) victim.port->on_deadline(now);
    victim.device->sent.clear();
  }
  EXPECT_EQ(victim.port->pool().available(), packets) << "seed " << seed;
  EXPECT_LE(victim.port->neighbors().size(), victim.port->neighbors().config().max_neighbors);
}

}  // namespace

TEST_F(IpPortTest, receive__hostile_frames_leave_nothing_behind) {
  for (const bool is_v4 : {true, false}) {
    if (is_v4)
      open_v4();
    else
      open_v6();
    send(a_, b_, "one");
    send(b_, a_, "two");
    settle();
    got_a_.clear();
    got_b_.clear();
    std::vector<Bytes> seeds = a_.device->sent;
    seeds.insert(seeds.end(), b_.device->sent.begin(), b_.device->sent.end());
    fuzz(*this, b_, seeds, 42);
  }
}

}  // namespace uet::net
