// Runs of packets through the kernel, with real sockets. [decision 126]
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "lib/udp/local_addresses.h"
#include "lib/udp/udp_port.h"

namespace uet::udp {

using base::Instant;
using net::FabricAddress;

namespace {

constexpr std::uint16_t kRunsPort = 14794;

struct Kind {
  const char* name;
  const char* a;
  const char* b;
  bool a_merges, b_merges;
};
void PrintTo(const Kind& k, std::ostream* out) {
  *out << k.name;
}

std::uint8_t byte_at(std::size_t packet, std::size_t i) {
  return static_cast<std::uint8_t>(packet * 31 + i * 7 + i / 251);
}

class UdpRunsTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const Kind& k = GetParam();
    bool has_v6 = false;
    const auto all = local_addresses();
    ASSERT_TRUE(all);
    for (const LocalAddress& l : *all) has_v6 |= l.address == *FabricAddress::parse("::1");
    if (std::strchr(k.a, '.') == nullptr && !has_v6) GTEST_SKIP() << "this machine has no ::1";
    a_ = open(k.a, k.a_merges);
    b_ = std::strcmp(k.a, k.b) == 0 ? nullptr : open(k.b, k.b_merges);
    ASSERT_TRUE(a_) << error_;
    to_ = b_ ? b_.get() : a_.get();
  }
  std::unique_ptr<net::Port> open(const char* address, bool merges) {
    net::PortRequest request;
    request.spec = std::string("udp:") + address + (merges ? "" : ",merge=0");
    request.udp_port = kRunsPort;
    request.packets = 1024;
    return open_udp_port(request, trace_, error_);
  }
  /// Packet number `i` is its own pattern: what arrives tells which it was.
  net::TxPacket make(std::size_t i, std::size_t bytes, std::uint8_t dscp = 10) {
    net::TxPacket tx;
    tx.packet = a_->pool().allocate();
    std::uint8_t* const p = tx.packet.append(bytes);
    for (std::size_t at = 0; at < bytes; ++at) p[at] = byte_at(i, at);
    tx.destination = to_->facts().address;
    tx.entropy = 1;
    tx.tos = net::TosByte::of(dscp, 2);
    return tx;
  }
  std::vector<net::RxPacket> receive(std::size_t count, std::size_t burst_size = 32) {
    std::vector<net::RxPacket> all;
    for (int tries = 0; tries < 1000 && all.size() < count; ++tries) {
      std::vector<net::RxPacket> burst(burst_size);
      const std::size_t n = to_->receive(Instant(), burst);
      for (std::size_t i = 0; i < n; ++i) all.push_back(std::move(burst[i]));
      if (n == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return all;
  }
  static void expect_packet(const net::RxPacket& rx, std::size_t i, std::size_t bytes) {
    ASSERT_EQ(rx.packet.size(), bytes) << "packet " << i;
    for (std::size_t at = 0; at < bytes; ++at)
      ASSERT_EQ(rx.packet.data()[at], byte_at(i, at)) << "packet " << i << ", byte " << at;
  }
  base::Trace trace_;
  std::string error_;
  std::unique_ptr<net::Port> a_, b_;
  net::Port* to_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Ports, UdpRunsTest,
                         testing::Values(Kind{"merging", "127.0.0.2", "127.0.0.3", true, true},
                                         Kind{"one_by_one", "127.0.0.2", "127.0.0.3", false, false},
                                         Kind{"only_sender", "127.0.0.2", "127.0.0.3", true, false},
                                         Kind{"only_receiver", "127.0.0.2", "127.0.0.3", false,
                                              true},
                                         Kind{"ipv6", "::1", "::1", true, true}),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(UdpRunsTest, sizes_in_any_mixture__arrive_whole_and_in_order) {
  // Equal ones, a shorter last one, single ones, runs of another size than the last, tiny ones.
  std::vector<std::size_t> sizes;
  for (const std::size_t bytes : {1088u, 8264u, 4168u, 36u, 8356u, 1u})
    for (const std::size_t count : {1u, 2u, 7u, 19u}) {
      sizes.insert(sizes.end(), count, bytes);
      sizes.push_back(bytes / 2 + 1);
    }
  for (const std::size_t burst_size : {1u, 5u, 32u, 64u}) {
    for (std::size_t first = 0; first < sizes.size(); first += 24) {
      const std::size_t n = std::min<std::size_t>(24, sizes.size() - first);
      std::vector<net::TxPacket> burst;
      for (std::size_t i = 0; i < n; ++i) burst.push_back(make(i, sizes[first + i]));
      ASSERT_EQ(a_->send(Instant(), burst), n);
      const auto got = receive(n, burst_size);
      ASSERT_EQ(got.size(), n);
      for (std::size_t i = 0; i < n; ++i) {
        expect_packet(got[i], i, sizes[first + i]);
        EXPECT_EQ(got[i].tos.value, net::TosByte::of(10, 2).value);
        EXPECT_EQ(got[i].source, a_->facts().address);
        EXPECT_EQ(got[i].entropy, a_->wire_entropy(1));
      }
    }
  }
  for (unsigned r = 0; r < base::kDropReasonCount; ++r)
    EXPECT_EQ(trace_.drops(static_cast<base::DropReason>(r)), 0u) << r;
}

TEST_P(UdpRunsTest, tos_byte__ends_a_run) {
  std::vector<net::TxPacket> burst;
  for (std::size_t i = 0; i < 12; ++i)
    burst.push_back(make(i, 1088, static_cast<std::uint8_t>(i / 3 % 2 == 0 ? 10 : 46)));
  ASSERT_EQ(a_->send(Instant(), burst), 12u);
  const auto got = receive(12);
  ASSERT_EQ(got.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    expect_packet(got[i], i, 1088);
    EXPECT_EQ(got[i].tos.dscp(), i / 3 % 2 == 0 ? 10 : 46) << i;
  }
}

TEST_P(UdpRunsTest, borrowed_payload__goes_out_between_headers_and_trailer) {
  std::vector<std::uint8_t> user(8192 * 9);
  for (std::size_t i = 0; i < user.size(); ++i) user[i] = byte_at(99, i);
  std::vector<net::TxPacket> burst;
  for (std::size_t i = 0; i < 9; ++i) {
    net::TxPacket tx = make(i, 60);
    ASSERT_TRUE(tx.packet.can_borrow());
    tx.packet.borrow(user.data() + 8192 * i, 8192);
    std::memcpy(tx.packet.append(4), "tail", 4);
    burst.push_back(std::move(tx));
  }
  ASSERT_EQ(a_->send(Instant(), burst), 9u);
  std::fill(user.begin(), user.end(), 0);  // the call is over, the memory the user's again
  const auto got = receive(9);
  ASSERT_EQ(got.size(), 9u);
  for (std::size_t i = 0; i < 9; ++i) {
    const auto bytes = got[i].packet.bytes();
    ASSERT_EQ(bytes.size(), 60u + 8192 + 4);
    for (std::size_t at = 0; at < 60; ++at) ASSERT_EQ(bytes[at], byte_at(i, at));
    for (std::size_t at = 0; at < 8192; ++at)
      ASSERT_EQ(bytes[60 + at], byte_at(99, 8192 * i + at)) << i;
    EXPECT_EQ(std::memcmp(bytes.data() + 60 + 8192, "tail", 4), 0);
  }
}

/// It is dropped by itself, or lost on its way: those beside it arrive.
TEST_P(UdpRunsTest, packet_without_a_route__costs_no_neighbour) {
  std::vector<net::TxPacket> burst;
  for (std::size_t i = 0; i < 5; ++i) burst.push_back(make(i, 1088));
  burst[2].destination = *FabricAddress::parse("10.9.9.9");
  if (!a_->facts().address.is_v4()) burst[2].destination = *FabricAddress::parse("fd00::9");
  a_->send(Instant(), burst);
  const auto got = receive(4);
  ASSERT_EQ(got.size(), 4u);
  for (std::size_t i = 0, k = 0; i < 5; ++i)
    if (i != 2) expect_packet(got[k++], i, 1088);
}

/// A thread that sleeps on the socket would not hear of packets that were taken out of it already.
TEST_P(UdpRunsTest, rest_of_a_run__keeps_its_receiver_awake) {
  std::vector<net::TxPacket> burst;
  for (std::size_t i = 0; i < 7; ++i) burst.push_back(make(i, 1088));
  ASSERT_EQ(a_->send(Instant(), burst), 7u);
  auto got = receive(1, 1);
  ASSERT_EQ(got.size(), 1u);
  if (GetParam().a_merges && GetParam().b_merges && to_->facts().run_packets > 1) {
    EXPECT_FALSE(to_->arm_wakeup());
  }
  EXPECT_EQ(receive(6, 1).size(), 6u);
  EXPECT_TRUE(to_->arm_wakeup());
}

}  // namespace
}  // namespace uet::udp
