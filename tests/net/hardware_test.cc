/// A DPDK device on hardware, by families of drivers (scripted_nic.h): what is asked of them, what they bring, what befalls them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rte_mbuf.h>

#include <chrono>
#include <climits>
#include <thread>

#include "lib/dpdk/caretaker.h"
#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/eal.h"
#include "lib/net/ip_port.h"
#include "tests/net/no_descriptors.h"
#include "tests/net/scripted_nic.h"

namespace uet::dpdk {
namespace {

using base::DropReason;
using testing::HasSubstr;
using testing::IsEmpty;

/// An untagged or tagged frame of `bytes` in all, its last byte marked.
Frame frame_of(std::size_t bytes, std::uint16_t vlan = 0) {
  Frame frame = {2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb};
  if (vlan != 0)
    frame.insert(frame.end(), {0x81, 0x00, static_cast<std::uint8_t>(vlan >> 8),
                               static_cast<std::uint8_t>(vlan)});
  frame.insert(frame.end(), {0x08, 0x00});
  frame.resize(bytes, 0x11);
  frame.back() = 0x77;
  return frame;
}

class HardwareTest : public testing::Test {
 protected:
  void SetUp() override {
    // The process has no PCI, and the scripted NIC does not care.
    ASSERT_TRUE(ensure_eal({.memory_bytes = 64 << 20}, error_)) << error_;
  }
  void TearDown() override {
    device_.reset();
    if (nic_ == nullptr) return;
    EXPECT_EQ(nic_->misuse, "");
    EXPECT_TRUE(nic_->listeners.empty());
  }

  bool open(NicTraits traits) {
    device_.reset();
    nic_.reset();
    nic_ = std::make_unique<ScriptedNic>(std::move(traits));
    config_.packets = 512;
    config_.spec = {};
    std::string why;
    EXPECT_TRUE(parse_device_spec(std::string("dpdk:") + ScriptedNic::kName, config_.spec, why));
    device_ = DpdkDevice::open(config_, trace_, error_);
    return device_ != nullptr;
  }

  std::vector<Frame> receive() {
    std::array<net::Packet, 64> burst;
    std::vector<Frame> frames;
    const std::size_t n = device_->receive_frames(burst);
    for (std::size_t i = 0; i < n; ++i)
      frames.emplace_back(burst[i].bytes().begin(), burst[i].bytes().end());
    return frames;
  }
  std::size_t send(std::size_t count) {
    std::vector<net::Packet> packets(count);
    for (net::Packet& p : packets) {
      p = device_->pool().allocate();
      p.append(100);
    }
    return device_->send_frames(packets);
  }
  /// Turns the loop until `is_so`; the caretaker works on a thread of its own.
  template <typename F>
  bool comes_true(F is_so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      receive();
      if (is_so()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  base::Trace trace_;
  std::string error_;
  DpdkDeviceConfig config_;
  std::unique_ptr<ScriptedNic> nic_;
  std::unique_ptr<DpdkDevice> device_;
};

class FamilyTest : public HardwareTest, public testing::WithParamInterface<const char*> {};

// --- All families

TEST_P(FamilyTest, packets_of_the_mtu__come_and_go_whole) {
  ASSERT_TRUE(open(family(GetParam()))) << error_;
  const std::size_t largest = device_->facts().ip_mtu + 14;
  EXPECT_EQ(nic_->mtu, device_->facts().ip_mtu);
  nic_->arrive(frame_of(largest));
  const auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0], frame_of(largest));
  EXPECT_EQ(send(3), 3u);
  EXPECT_EQ(nic_->sent.size(), 3u);
}

TEST_P(FamilyTest, tagged_packets__come_with_their_tag) {
  config_.vlan = 7;
  ASSERT_TRUE(open(family(GetParam()))) << error_;
  const Frame frame = frame_of(device_->facts().ip_mtu + 18, 7);
  nic_->arrive(frame);
  const auto frames = receive();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0], frame);
}

TEST_P(FamilyTest, reset__the_device_comes_back_as_it_was) {
  config_.vlan = 7;
  ASSERT_TRUE(open(family(GetParam()))) << error_;
  const std::size_t mtu = device_->facts().ip_mtu;
  const std::uint32_t generation = device_->link_generation();
  nic_->raise(RTE_ETH_EVENT_INTR_RESET);
  EXPECT_TRUE(comes_true([&] { return device_->link_generation() != generation; }));
  EXPECT_EQ(nic_->resets, 1);
  EXPECT_EQ(nic_->mtu, mtu);
  nic_->arrive(frame_of(mtu + 18, 7));
  EXPECT_EQ(receive().size(), 1u);
  EXPECT_EQ(send(2), 2u);
}

TEST_P(FamilyTest, full_ring__takes_what_it_has_room_for) {
  ASSERT_TRUE(open(family(GetParam()))) << error_;
  nic_->transmit_room = 5;
  EXPECT_EQ(send(40), 5u);
  EXPECT_EQ(trace_.drops_total(), 0u);  // the rest is still the caller's
  EXPECT_EQ(device_->pool().available(), device_->pool().capacity());
  for (int i = 0; i < 5000; ++i) nic_->arrive(frame_of(100));
  std::size_t got = 0;
  while (const std::size_t n = receive().size()) got += n;
  EXPECT_EQ(got, nic_->rx_descriptors);
  EXPECT_EQ(nic_->statistics.imissed, 5000 - got);
  EXPECT_TRUE(comes_true([&] { return trace_.drops(DropReason::kDeviceMissed) == 5000 - got; }));
}

INSTANTIATE_TEST_SUITE_P(Drivers, FamilyTest,
                         testing::Values("plain", "mlx5", "ice", "iavf", "ixgbevf", "ena", "gve",
                                         "virtio", "bnxt"),
                         [](const auto& family) { return std::string(family.param); });

// --- MTU

TEST_F(HardwareTest, mtu__the_device_s_own_is_configured_not_the_default_of_ethdev) {
  ASSERT_TRUE(open({.mtu = 9000})) << error_;
  EXPECT_EQ(device_->facts().ip_mtu, 9000u);
  EXPECT_EQ(nic_->conf.rxmode.mtu, 9000u);
}

TEST_F(HardwareTest, mtu__wished_for_is_set) {
  config_.ip_mtu = 4200;
  ASSERT_TRUE(open(family("mlx5"))) << error_;
  EXPECT_EQ(device_->facts().ip_mtu, 4200u);
  EXPECT_EQ(nic_->mtu, 4200u);
}

TEST_F(HardwareTest, refused_mtu__ends_in_an_error_with_the_limit_of_the_driver) {
  config_.ip_mtu = 9000;
  EXPECT_FALSE(open(family("gve")));
  EXPECT_THAT(error_, HasSubstr("at most MTU 1460"));
}

// ixgbevf behind a host that allows no jumbo frames: every call succeeds.
TEST_F(HardwareTest, refused_mtu__is_noticed_where_the_driver_cuts_in_silence) {
  config_.ip_mtu = 9000;
  EXPECT_FALSE(open(family("ixgbevf")));
  EXPECT_THAT(error_, HasSubstr("at most MTU 1500"));
}

TEST_F(HardwareTest, mtu__of_its_own_that_was_cut_is_what_facts_say) {
  ASSERT_TRUE(open({.mtu = 4000, .mtu_taken = 1500})) << error_;
  EXPECT_EQ(device_->facts().ip_mtu, 1500u);
  EXPECT_THAT(error_, HasSubstr("FI_UET_MTU=1500"));
}

TEST_F(HardwareTest, frame_that_is_too_long__is_a_receive_error) {
  ASSERT_TRUE(open({})) << error_;
  nic_->arrive(frame_of(1515));
  EXPECT_TRUE(comes_true([&] { return trace_.drops(DropReason::kDeviceReceiveError) == 1; }));
}

// --- Tags that the NIC takes off

/// Who has 10.0.0.1, asks 10.0.0.2; in `vlan` unless that is 0.
Frame question(std::uint16_t vlan) {
  Frame frame(6, 0xff);
  frame.insert(frame.end(), {2, 0, 0, 0, 0, 0xb});
  if (vlan != 0) frame.insert(frame.end(), {0x81, 0x00, 0, static_cast<std::uint8_t>(vlan)});
  frame.insert(frame.end(), {0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1, 2, 0,  0, 0, 0,
                             0xb,  10,   0, 0, 2,    0, 0, 0, 0, 0, 0, 10, 0, 0, 1});
  return frame;
}

class StrippedTagTest : public HardwareTest {
 protected:
  void SetUp() override {
    HardwareTest::SetUp();
    config_.vlan = 7;
    ASSERT_TRUE(open(family("ixgbevf"))) << error_;
    ASSERT_TRUE(nic_->traits.strips_tags);
    const net::IpPortConfig host{.address = *net::FabricAddress::parse("10.0.0.1"), .vlan = 7};
    port_ = std::make_unique<net::IpPort>(std::move(device_), host, trace_);
  }
  void TearDown() override {
    port_.reset();
    HardwareTest::TearDown();
  }
  /// Frames that the port sent because of this one.
  std::size_t answers_to(Frame frame) {
    const std::size_t before = nic_->sent.size();
    nic_->arrive(std::move(frame));
    std::array<net::RxPacket, 4> burst;
    port_->receive(base::Instant::from_ns(1), burst);
    return nic_->sent.size() - before;
  }

  std::unique_ptr<net::IpPort> port_;
};

TEST_F(StrippedTagTest, stripped_tag__of_our_vlan_is_put_back_before_the_port_looks) {
  EXPECT_EQ(answers_to(question(7)), 1u);
  EXPECT_EQ(nic_->sent.back()[12], 0x81);
  EXPECT_EQ(nic_->sent.back()[15], 7);
  EXPECT_EQ(trace_.drops_total(), 0u);
}

TEST_F(StrippedTagTest, stripped_tag__of_another_vlan_is_a_vlan_mismatch) {
  EXPECT_EQ(answers_to(question(8)), 0u);
  EXPECT_EQ(trace_.drops(DropReason::kVlanMismatch), 1u);
  EXPECT_EQ(answers_to(question(0)), 0u);
  EXPECT_EQ(trace_.drops(DropReason::kVlanMismatch), 2u);
}

// --- What is asked for

TEST_F(HardwareTest, mbufs__are_freed_fast_only_when_all_come_from_one_pool) {
  constexpr std::uint64_t kFastFree = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  config_.sends_own_pool_only = true;
  ASSERT_TRUE(open(family("ice"))) << error_;
  EXPECT_EQ(nic_->conf.txmode.offloads, kFastFree);
  send(10);
  config_.has_siblings = true;
  ASSERT_TRUE(open(family("ice"))) << error_;
  EXPECT_EQ(nic_->conf.txmode.offloads, 0u);
  config_.has_siblings = false;
  ASSERT_TRUE(open(family("gve"))) << error_;
  EXPECT_EQ(nic_->conf.txmode.offloads, 0u);
}

TEST_F(HardwareTest, descriptors__are_as_set_within_what_the_driver_has) {
  config_.rx_descriptors = 2048;
  config_.tx_descriptors = 300;
  ASSERT_TRUE(open({.descriptors_max = 1536})) << error_;
  EXPECT_EQ(nic_->rx_descriptors, 1536);
  EXPECT_EQ(nic_->tx_descriptors, 300);
}

TEST_F(HardwareTest, burst__is_as_set) {
  config_.burst = 4;
  ASSERT_TRUE(open({})) << error_;
  nic_->transmit_room = 6;
  EXPECT_EQ(send(10), 6u);
  for (int i = 0; i < 10; ++i) nic_->arrive(frame_of(100));
  EXPECT_EQ(receive().size(), 10u);
}

TEST_F(HardwareTest, memory__of_another_node_does_when_its_own_has_none) {
  ASSERT_TRUE(open({.node = 7})) << error_;
  nic_->arrive(frame_of(100));
  EXPECT_EQ(receive().size(), 1u);
}

// --- Sleeping

TEST_F(HardwareTest, packet_before_the_switch__keeps_the_loop_awake) {
  for (const char* name : {"ice", "ena"}) {  // counts what waits, and does not
    ASSERT_TRUE(open(family(name))) << error_;
    ASSERT_GE(device_->wakeup_fd(), 0) << name;
    nic_->arrive(frame_of(100));
    EXPECT_FALSE(device_->arm_wakeup()) << name;
    EXPECT_EQ(receive().size(), 1u) << name;
    EXPECT_TRUE(device_->arm_wakeup()) << name;
    nic_->arrive(frame_of(100));
    pollfd wait{.fd = device_->wakeup_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&wait, 1, 0), 1) << name;
    EXPECT_EQ(receive().size(), 1u) << name;
  }
}

TEST_F(HardwareTest, interrupts_that_fail_at_start__are_done_without) {
  ASSERT_TRUE(open(family("iavf"))) << error_;
  EXPECT_LT(device_->wakeup_fd(), 0);
  EXPECT_TRUE(device_->arm_wakeup());
}

// --- What befalls it

TEST_F(HardwareTest, reset__the_device_keeps_its_mac) {
  ASSERT_TRUE(open(family("iavf"))) << error_;
  const rte_ether_addr before = nic_->mac;
  nic_->draws_mac = true;
  const std::uint32_t generation = device_->link_generation();
  nic_->raise(RTE_ETH_EVENT_INTR_RESET);
  EXPECT_TRUE(comes_true([&] { return device_->link_generation() != generation; }));
  EXPECT_TRUE(rte_is_same_ether_addr(&before, &nic_->mac));
}

// The driver closes its descriptor, and the number may be another file's when it is back.
TEST_F(HardwareTest, reset__its_interrupt_is_used_no_more) {
  NicTraits traits = family("iavf");
  traits.starts_with_interrupts = true;
  ASSERT_TRUE(open(traits)) << error_;
  ASSERT_GE(device_->wakeup_fd(), 0);
  const std::uint32_t generation = device_->link_generation();
  nic_->raise(RTE_ETH_EVENT_INTR_RESET);
  EXPECT_TRUE(comes_true([&] { return device_->link_generation() != generation; }));
  EXPECT_EQ(device_->wakeup_fd(), -1);
}

TEST_F(HardwareTest, reset__that_fails_at_first_is_tried_again) {
  ASSERT_TRUE(open(family("iavf"))) << error_;
  nic_->resets_to_fail = 1;
  nic_->raise(RTE_ETH_EVENT_INTR_RESET);
  EXPECT_FALSE(device_->has_link());
  EXPECT_EQ(send(1), 0u);  // the caller keeps its packet
  EXPECT_TRUE(comes_true([&] { return device_->has_link(); }));
  EXPECT_EQ(nic_->resets, 2);
}

// Every look of the caretaker is an attempt; one a second, unless it is woken.
TEST_F(HardwareTest, reset__that_never_succeeds_ends_as_a_removal) {
  ASSERT_TRUE(open(family("iavf"))) << error_;
  nic_->resets_to_fail = 1000;
  nic_->raise(RTE_ETH_EVENT_INTR_RESET);
  EXPECT_TRUE(comes_true([&] {
    Caretaker::instance().wake();
    return send(1) == 1;  // dropped; before, the caller kept it
  }));
  EXPECT_EQ(nic_->resets, 30);
  EXPECT_FALSE(device_->has_link());
  EXPECT_EQ(trace_.drops(DropReason::kDeviceGone), 2u);  // it, and the packet
  EXPECT_EQ(device_->pool().available(), device_->pool().capacity());
}

TEST_F(HardwareTest, removal__is_counted_where_nothing_was_to_leave) {
  ASSERT_TRUE(open(family("ena"))) << error_;
  nic_->raise(RTE_ETH_EVENT_INTR_RMV);
  nic_->is_started = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(receive().size(), 0u);
  EXPECT_EQ(trace_.drops(DropReason::kDeviceGone), 1u);
}

TEST_F(HardwareTest, removal__takes_the_link_and_counts_what_was_to_leave) {
  ASSERT_TRUE(open(family("mlx5"))) << error_;
  nic_->raise(RTE_ETH_EVENT_INTR_RMV);
  nic_->is_started = false;
  EXPECT_FALSE(device_->has_link());
  EXPECT_EQ(send(3), 3u);
  EXPECT_EQ(receive().size(), 0u);
  EXPECT_EQ(trace_.drops(DropReason::kDeviceGone), 1u + 3u);  // it, and what was to leave
  EXPECT_EQ(device_->pool().available(), device_->pool().capacity());
}

TEST_F(HardwareTest, link__is_the_driver_s) {
  ASSERT_TRUE(open(family("ice"))) << error_;
  EXPECT_TRUE(device_->has_link());
  nic_->has_cable = false;
  EXPECT_FALSE(device_->has_link());
  const std::uint32_t generation = device_->link_generation();
  nic_->has_cable = true;
  EXPECT_TRUE(device_->has_link());
  EXPECT_EQ(device_->link_generation(), generation + 1);
}

TEST_F(HardwareTest, link_rate__is_known_once_autonegotiation_has_ended) {
  NicTraits traits = family("ice");
  traits.looks_without_link = 3;
  ASSERT_TRUE(open(traits)) << error_;
  EXPECT_EQ(device_->facts().link_rate, base::BitRate::from_gbps(100));
  EXPECT_THAT(error_, IsEmpty());
}

TEST_F(HardwareTest, link_rate__of_a_port_without_a_cable_is_unknown_and_it_opens) {
  NicTraits traits = family("ice");
  traits.looks_without_link = INT_MAX;
  config_.link_patience = std::chrono::milliseconds(1);
  ASSERT_TRUE(open(traits)) << error_;
  EXPECT_EQ(device_->facts().link_rate.bps(), 0u);
  EXPECT_THAT(error_, HasSubstr("no link yet"));
  EXPECT_THAT(error_, HasSubstr("FI_UET_LINK_GBPS"));
}

// No wait will make its driver tell.
TEST_F(HardwareTest, link_rate__that_the_driver_does_not_tell_is_not_waited_for) {
  for (const std::uint32_t untold :
       {std::uint32_t{RTE_ETH_SPEED_NUM_UNKNOWN}, std::uint32_t{RTE_ETH_SPEED_NUM_NONE}}) {
    NicTraits traits = family("ena");
    traits.link_speed = untold;
    config_.link_patience = std::chrono::hours(1);
    ASSERT_TRUE(open(traits)) << error_;
    EXPECT_EQ(device_->facts().link_rate.bps(), 0u);
    EXPECT_THAT(error_, HasSubstr("does not tell the rate"));
  }
}

TEST_F(HardwareTest, empty_pool__is_counted_by_the_driver_and_by_us) {
  ASSERT_TRUE(open({})) << error_;
  std::vector<net::Packet> held;
  while (net::Packet p = device_->pool().allocate()) held.push_back(std::move(p));
  nic_->arrive(frame_of(100));
  EXPECT_EQ(receive().size(), 0u);
  EXPECT_TRUE(comes_true([&] { return trace_.drops(DropReason::kDeviceNoBuffer) == 1; }));
}

// --- Beside the kernel

TEST_F(HardwareTest, kernel__keeps_its_traffic_where_it_has_our_address) {
  // Interface 1 is the loopback: 127.0.0.1 is the kernel's there.
  config_.flow = FlowTarget{.address = *net::FabricAddress::parse("127.0.0.1")};
  ASSERT_TRUE(open(family("mlx5"))) << error_;
  EXPECT_TRUE(nic_->is_isolated);
  EXPECT_EQ(nic_->rules, 1u);
  EXPECT_TRUE(device_->is_shared_with_kernel());
  EXPECT_EQ(device_->interface(), "lo");
}

TEST_F(HardwareTest, kernel__is_not_robbed_of_an_interface_that_it_uses) {
  config_.flow = FlowTarget{.address = *net::FabricAddress::parse("10.9.9.9")};
  EXPECT_FALSE(open(family("mlx5")));
  EXPECT_THAT(error_, HasSubstr("ip addr add 10.9.9.9"));
  EXPECT_EQ(nic_->rules, 0u);
}

TEST_F(HardwareTest, kernel__is_not_robbed_where_there_is_no_descriptor_to_ask_it) {
  config_.flow = FlowTarget{.address = *net::FabricAddress::parse("127.0.0.1")};
  const auto opens = [&] {
    const net::NoDescriptors no_descriptors;
    return open(family("mlx5"));
  };
  EXPECT_FALSE(opens());
  EXPECT_THAT(error_, HasSubstr("cannot find the interface with index 1 under it: Too many open"));
  EXPECT_EQ(nic_->rules, 0u);
}

TEST_F(HardwareTest, kernel__has_no_part_in_other_drivers) {
  config_.flow = FlowTarget{.address = *net::FabricAddress::parse("127.0.0.1")};
  ASSERT_TRUE(open(family("ice"))) << error_;
  EXPECT_FALSE(device_->is_shared_with_kernel());
  EXPECT_THAT(error_, IsEmpty());
}

TEST_F(HardwareTest, driver_that_cannot_isolate__is_refused) {
  NicTraits old = family("mlx5");
  old.can_isolate = false;
  config_.flow = FlowTarget{.address = *net::FabricAddress::parse("127.0.0.1")};
  EXPECT_FALSE(open(old));
  EXPECT_THAT(error_, HasSubstr("flow isolation is not supported"));
}

}  // namespace
}  // namespace uet::dpdk
